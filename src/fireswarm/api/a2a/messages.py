"""Messages of clients: what they hold, and the task that a message begins, answers or speaks to.

A message with a known ``message_id`` is not delivered again: a document in ``api_requests`` names its task.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from a2a import types
from a2a.utils.errors import InvalidParamsError, UnsupportedOperationError
from google.protobuf.json_format import MessageToDict

from fireswarm.api.a2a.cards import BYTES
from fireswarm.api.a2a.states import ENDED, for_person_only, open_questions, state_of, waits_for_others, who_asks
from fireswarm.api.idempotency import KEEP_SECONDS
from fireswarm.api.models.base import storable
from fireswarm.client import Swarm
from fireswarm.contracts.limits import MAX_LABEL_CHARS, shown_id, truncate
from fireswarm.contracts.ports import Create
from fireswarm.contracts.skills.artifact import Attachment
from fireswarm.contracts.skills.skill import Question, choice_of
from fireswarm.contracts.swarm.task import Task, TaskStatus
from fireswarm.contracts.swarm.task_fields import make_spec
from fireswarm.errors import Conflict, InvalidInput, NotFound
from fireswarm.redaction import Redactor
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import REQUESTS
from fireswarm.storage.documents.read import parse_readable, parse_task_snapshot
from fireswarm.swarm.records.artifacts import safe_file_name

CREATED_BY = "a2a"
"""Origin of the tasks of clients: files of this machine that a task from elsewhere names are not read."""

MAX_FILES = 20
"""Maximum number of files of a message; the size of the request limits their bytes."""


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file of a message, with a safe name."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message: its texts, JSON values and files. ``digest`` identifies its id, ``fingerprint`` its content."""

    digest: str
    fingerprint: str
    text: str
    values: tuple[Any, ...]
    files: tuple[SentFile, ...]

    def words(self, redactor: Redactor) -> str:
        """Return all that a model is told: the texts, then the values as JSON, without those under names of secrets."""
        values = (json.dumps(redactor.value(value), ensure_ascii=False) for value in self.values)
        return "\n\n".join(text for text in (self.text, *values) if text)


def parse_message(message: types.Message, role: str) -> SentMessage:
    """Return the content of a message to the agent of a role. Raises InvalidInput for one that is not taken."""
    if message.role != types.Role.ROLE_USER:
        raise InvalidInput("message.role must be ROLE_USER: this agent writes the messages of ROLE_AGENT")
    texts: list[str] = []
    values: list[Any] = []
    files: list[SentFile] = []
    for number, part in enumerate(message.parts):
        match part.WhichOneof("content"):
            case "text":
                texts.append(part.text)
            case "data":
                values.append(_with_integers(MessageToDict(part.data)))
            case "raw":
                name = safe_file_name(part.filename or f"file-{number + 1}")
                files.append(SentFile(name, truncate(part.media_type, MAX_LABEL_CHARS) or BYTES, part.raw))
            case "url":
                raise InvalidInput(
                    f"message.parts[{number}] is a URL: this agent fetches no addresses. Send the bytes of the file"
                )
            case _:
                raise InvalidInput(f"message.parts[{number}] has no text, data or raw content")
    if len(files) > MAX_FILES:
        raise InvalidInput(f"a message may have {MAX_FILES} files; this one has {len(files)}")
    return SentMessage(
        hashlib.sha256(f"{role}\n{message.message_id}".encode()).hexdigest()[:40],
        hashlib.sha256(message.SerializeToString(deterministic=True)).hexdigest(),
        "\n\n".join(text for text in texts if text.strip()),
        tuple(values),
        tuple(files),
    )


@dataclass(frozen=True, slots=True)
class MessageDesk:
    """Delivers messages to the agent of one role. With *approves*, a client may decide on approvals for a person."""

    swarm: Swarm
    role: str
    redactor: Redactor
    approves: bool = False

    async def deliver(self, message: types.Message) -> Task:
        """Deliver a message once, and return the task that it belongs to.

        Raises InvalidInput, NotFound, and the protocol's errors for a task that has ended or is of another context.
        """
        sent = parse_message(message, self.role)
        if known := await self._find_record(sent):
            return await self.read(known)
        if message.task_id:
            task = await self._tell_task(await self.read(message.task_id), message.context_id, sent)
        elif message.context_id:
            task = await self._go_on(message.context_id, sent)
        else:
            task = await self._submit(sent)
        await self._record(sent, task)
        return task

    async def read(self, task_id: str) -> Task:
        """Return a task of this session and role that a client began. Raises NotFound for any other.

        The tasks of people are not theirs: who speaks to one would speak with the trust of the person who began it.
        """
        unknown = f"there is no task {shown_id(task_id)} of this agent"
        try:
            task = await self.swarm.get(task_id)
        except InvalidInput as error:  # it cannot be the id of a task
            raise NotFound(unknown) from error
        if not self.is_own(task):
            raise NotFound(unknown)
        return task

    async def conversation(self, context_id: str) -> list[Task]:
        """Return the tasks of a context, the newest first; none if there is no such context."""
        try:
            first = await self.read(context_id)
        except NotFound:
            return []
        snapshots = await self.swarm.parts.store.query(queries.thread_of(context_id))
        others = [task for task in parse_readable(snapshots, parse_task_snapshot) if self.is_own(task)]
        return sorted([first, *others], key=lambda task: (task.created_at, task.task_id), reverse=True)

    def is_own(self, task: Task) -> bool:
        """Return True for a task of this session and role that a client began."""
        return (task.session_hash, task.assigned_to, task.created_by) == (self.swarm.session, self.role, CREATED_BY)

    async def _submit(self, sent: SentMessage) -> Task:
        """Submit an objective. The id of its message is part of its key: the same message is the same task."""
        words = sent.words(self.redactor)
        if not words:
            raise InvalidInput("the message has no text: say what is to be done")
        make_spec(objective=words, assigned_to=self.role, session_hash=self.swarm.session)  # before files are stored
        folder = f"{self.swarm.session}/{CREATED_BY}/{sent.digest}"
        attachments: list[Attachment] = []
        for number, file in enumerate(sent.files, 1):
            uri = await self.swarm.parts.blobs.put(f"{folder}/{number}/{file.name}", file.content)
            attachments.append(Attachment(name=file.name, mime=file.media_type, uri=uri))
        submitted = await self.swarm.submit(
            words,
            role=self.role,
            created_by=CREATED_BY,
            attachments=attachments,
            fresh_key=f"{CREATED_BY}/{sent.digest}",
        )
        return submitted.task

    async def _tell_task(self, task: Task, context_id: str, sent: SentMessage) -> Task:
        if context_id and context_id != task.thread:
            raise InvalidParamsError(f"task {task.task_id} is not of the context {shown_id(context_id)}")
        tree = await self.swarm.objective(task) if waits_for_others(task) else ()
        state = state_of(task, tree)
        if state in ENDED:
            raise UnsupportedOperationError(
                f"task {task.task_id} has ended and takes no messages: to go on, send a message with its contextId "
                f"and without taskId"
            )
        return await self._tell(task, who_asks(task, tree), sent)

    async def _go_on(self, context_id: str, sent: SentMessage) -> Task:
        """Go on with a context: answer or speak to its open task, or begin the next one if all have ended."""
        tasks = await self.conversation(context_id)
        if not tasks:
            raise InvalidParamsError(
                f"there is no context {shown_id(context_id)} of this agent: omit contextId, and the agent makes one"
            )
        last = next((task for task in tasks if task.status is not TaskStatus.CANCELED), None)
        if last is None or last.given_up:
            raise UnsupportedOperationError(
                "the context ended without a result, so nothing goes on with it: send a message without contextId"
            )
        if last.status is not TaskStatus.DONE:
            return await self._tell_task(last, context_id, sent)
        return await self._say(tasks[-1], sent)

    async def _tell(self, task: Task, asking: Sequence[Task], sent: SentMessage) -> Task:
        """Answer the questions of *asking*, or say something to the task if there are none."""
        if not asking:
            return await self._say(task, sent)
        _refuse_files(sent)
        if not self.approves and all(map(for_person_only, asking)):
            raise UnsupportedOperationError(
                f"task {task.task_id} waits for the decision of a person, which no client can give: it goes on after "
                f"`swarm approve`, or a decision in the console"
            )
        answerable = [each for each in asking if self.approves or not for_person_only(each)]
        asked, answers = _answers(answerable, sent)
        await self.swarm.answer(asked, answers)
        return await self.read(task.task_id)

    async def _say(self, task: Task, sent: SentMessage) -> Task:
        _refuse_files(sent)
        key = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.swarm.session}\n{sent.digest}"))
        return await self.swarm.say(task, sent.words(self.redactor), message_id=key)

    async def _find_record(self, sent: SentMessage) -> str:
        """Return the id of the task of an earlier message with the same id, or "". Raises InvalidInput for another."""
        data = (await self.swarm.parts.store.get(self._path(sent))).data or {}
        if data and data.get("fingerprint") != sent.fingerprint:
            raise InvalidInput("another message had this messageId: give each message a new one")
        return str(data.get("content") or "")

    async def _record(self, sent: SentMessage, task: Task) -> None:
        """Store that the message was delivered; the same message at the same time was recorded by the other request."""
        now = self.swarm.parts.clock.now()
        fields = {
            "session_hash": self.swarm.session,
            "fingerprint": sent.fingerprint,
            "status": 200,
            "content": task.task_id,
            "claimed_at": now,
            "expires_at": now + timedelta(seconds=KEEP_SECONDS),
        }
        with contextlib.suppress(Conflict):
            await self.swarm.parts.store.commit([Create(self._path(sent), fields)])

    def _path(self, sent: SentMessage) -> str:
        name = hashlib.sha256(f"{self.swarm.session}\n{CREATED_BY}\n{sent.digest}".encode()).hexdigest()
        return f"{REQUESTS}/{name[:40]}"


def _answers(asking: Sequence[Task], sent: SentMessage) -> tuple[Task, dict[str, Any]]:
    """Return the task to answer, and the answers by name: of a data part, or a text for the only question."""
    questions = open_questions(asking)
    if len(sent.values) == 1 and isinstance(sent.values[0], dict):
        values: dict[str, Any] = sent.values[0]
        for task in asking:
            if values.keys() & {question.name for question in task.questions}:
                return task, values
        names = ", ".join(question.name for _, question in questions)
        raise InvalidInput(f"the data part answers none of the open questions: {names}")
    if not sent.text or sent.values:
        raise InvalidInput("answer with one text, or with one data part: an object with answers by name")
    required = [item for item in questions if item[1].required]
    for chosen in (questions, required):
        if len(chosen) == 1:
            [(task, question)] = chosen
            return task, {question.name: _parse_answer(question, sent.text)}
    names = ", ".join(question.name for _, question in questions)
    raise InvalidInput(f"several questions are open, so answer them by name in a data part: {names}")


def _parse_answer(question: Question, text: str) -> Any:
    """Return a text as the answer to a question: its choice, or JSON if the question asks for no text."""
    said = text.strip()
    if question.type == "string":
        return choice_of(question, said) or said
    try:
        return storable(json.loads(said))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the answer to {question.name} must be JSON of the type {question.type}") from error


def _refuse_files(sent: SentMessage) -> None:
    if sent.files:
        raise InvalidInput("files are taken with the first message of a context only: begin a new one with them")


def _with_integers(value: Any) -> Any:
    """Return a JSON value with whole numbers as integers: the protocol's messages hold all numbers as floats."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _with_integers(item) for name, item in value.items()}
    return [_with_integers(item) for item in value] if isinstance(value, list) else value
