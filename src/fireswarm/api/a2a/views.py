"""Tasks of the board as tasks of the protocol: status, answer, files and history, without secrets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from a2a import types
from anyio import to_thread
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from google.protobuf.timestamp_pb2 import Timestamp

from fireswarm.api.a2a.cards import TEXT
from fireswarm.api.a2a.states import for_person_only, open_questions, state_of, waits_for_others, who_asks
from fireswarm.client import Swarm
from fireswarm.contracts.skills.artifact import ANSWER, Artifact
from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.swarm.task import Task, TaskStatus
from fireswarm.errors import FireswarmError
from fireswarm.redaction import Redactor
from fireswarm.swarm.records.artifacts import (
    Content,
    find_numbered,
    name_of,
    read_answer,
    read_content,
    safe_file_name,
)

MAX_INLINE_BYTES = 1_000_000
"""Bytes of files inside one task, as base64 in JSON; a file beyond them has an address instead."""

MAX_FILE_BYTES = 50_000_000
"""Largest file that is served at its address. It is read into memory, since secrets are removed from texts."""

Tree = Sequence[Task]


@dataclass(frozen=True, slots=True)
class TaskViews:
    """Makes tasks of the protocol; *address* is that of the agent, below which its files are."""

    swarm: Swarm
    redactor: Redactor
    address: str

    async def task(self, task: Task, tree: Tree = (), *, inline_bytes: int = MAX_INLINE_BYTES) -> types.Task:
        """Return a task. Without a *tree*, the tasks of its objective are read if its state depends on them."""
        if not tree and waits_for_others(task):
            tree = await self.swarm.objective(task)
        return types.Task(
            id=task.task_id,
            context_id=task.thread,
            status=await self.status(task, tree),
            artifacts=await self.artifacts(task, inline_bytes=inline_bytes),
            history=self._history(task),
        )

    async def status(self, task: Task, tree: Tree) -> types.TaskStatus:
        """Return the state of a task with a sentence that explains it, and its open questions."""
        asking = who_asks(task, tree)
        parts = [types.Part(text=await self._explain(task, asking), media_type=TEXT)]
        if asking:
            parts.append(types.Part(data=_to_value(self.redactor.value({"questions": _questions(asking)}))))
        message = types.Message(
            message_id=f"{task.task_id}.{task.epoch}.{task.updated_at:%Y%m%dT%H%M%S.%f}",
            task_id=task.task_id,
            context_id=task.thread,
            role=types.Role.ROLE_AGENT,
            parts=parts,
        )
        return types.TaskStatus(state=state_of(task, tree), message=message, timestamp=_to_timestamp(task.updated_at))

    async def artifacts(self, task: Task, *, inline_bytes: int = MAX_INLINE_BYTES) -> list[types.Artifact]:
        """Return the answer of a task as a text, and its files: up to *inline_bytes* inside, others by address."""
        if task.result is None:
            return []
        answer = self.redactor.clean(await read_answer(self.swarm.parts.blobs, task))
        views = [_artifact(ANSWER, ANSWER, types.Part(text=answer, media_type=TEXT))] if answer else []
        room = inline_bytes
        for number, artifact in enumerate(task.result.artifacts):
            if artifact.type != ANSWER:
                view, used = await self._file(task, number, artifact, room)
                views.append(view)
                room -= used
        return views

    async def read_file(self, task: Task, number: str) -> Content:
        """Return a file of a task. Raises NotFound, and InvalidInput for a file that is too large."""
        artifact = find_numbered(task, number, self.swarm.parts.blobs)
        content = await read_content(self.swarm.parts.blobs, artifact, MAX_FILE_BYTES)
        name = safe_file_name(self.redactor.clean(content.file_name))
        return replace(content, data=await to_thread.run_sync(self._clean, content.data), file_name=name)

    async def _file(self, task: Task, number: int, artifact: Artifact, room: int) -> tuple[types.Artifact, int]:
        """Return a file, and how many bytes of it are inside. An unreadable one says why, and hides no others."""
        part = types.Part(
            filename=safe_file_name(self.redactor.clean(name_of(artifact))),
            url=f"{self.address}/tasks/{task.task_id}/files/{number}",
            media_type=artifact.mime or "",
        )
        size = 0
        try:
            if await self._size(artifact) <= room:
                content = await self.read_file(task, str(number))
                size = len(content.data)
                part = types.Part(filename=content.file_name, raw=content.data, media_type=content.media_type)
        except FireswarmError as error:
            part = types.Part(text=f"this file cannot be read: {self.redactor.clean(str(error))}", media_type=TEXT)
        summary = self.redactor.clean(artifact.summary)
        name = self.redactor.clean(name_of(artifact))
        return _artifact(str(number), name, part, summary), size

    async def _size(self, artifact: Artifact) -> int:
        """Return the stored size of a file in bytes; a value in a document is small."""
        return 0 if artifact.uri is None else await self.swarm.parts.blobs.size(artifact.uri)

    def _clean(self, data: bytes) -> bytes:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return data
        cleaned = self.redactor.clean(text)
        return data if cleaned == text else cleaned.encode("utf-8", "replace")

    async def _explain(self, task: Task, asking: Sequence[Task]) -> str:
        if task.status is TaskStatus.DONE or task.status is TaskStatus.CANCELED:
            return self.redactor.clean(task.summary or task.status.value)
        lines = [await self.swarm.explain(task)]
        for each in asking:
            if for_person_only(each):
                lines.append("A person decides on this, in the console or on the command line.")
            lines += [_describe_question(question) for _, question in open_questions([each])]
        return self.redactor.clean("\n".join(lines))

    def _history(self, task: Task) -> list[types.Message]:
        """Return what the task was told: its objective, or the message that it goes on with, then what was said."""
        texts = [task.feedback or task.objective, *task.said]
        return [
            types.Message(
                message_id=f"{task.task_id}.said.{number}",
                task_id=task.task_id,
                context_id=task.thread,
                role=types.Role.ROLE_USER,
                parts=[types.Part(text=self.redactor.clean(text), media_type=TEXT)],
            )
            for number, text in enumerate(texts)
        ]


def _questions(asking: Sequence[Task]) -> list[dict[str, Any]]:
    """Return the open questions for a program."""
    return [
        {
            "task_id": task.task_id,
            "name": question.name,
            "text": question.description,
            "type": question.type,
            "choices": [*question.choices],
            "approval": None if question.approval is None else question.approval.shown,
        }
        for task, question in open_questions(asking)
    ]


def _describe_question(question: Question) -> str:
    choices = f" ({question.shown_choices})" if question.options else ""
    shown = f"\n{question.approval.shown}" if question.approval is not None else ""
    return f"{question.name}: {question.description}{choices}{shown}"


def _artifact(artifact_id: str, name: str, part: types.Part, summary: str = "") -> types.Artifact:
    return types.Artifact(artifact_id=artifact_id, name=name, description=summary, parts=[part])


def _to_value(value: Any) -> Value:
    return ParseDict(value, Value())


def _to_timestamp(moment: datetime) -> Timestamp:
    timestamp = Timestamp()
    timestamp.FromDatetime(moment)
    return timestamp
