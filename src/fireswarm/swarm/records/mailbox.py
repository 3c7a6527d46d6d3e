"""The mailbox: send and open envelopes under the policy of ``mailbox/policy.yaml``.

The envelope of a planned task has the task's id, so its receiver finds it without a query; its claim follows the task's
lease, so when the claimant dies, the next holder of the task gets the envelope. A message to a named agent or role has
no lease: one commit ends it, and the task that it creates has its own key.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import ValidationError

from fireswarm.contracts.base import JsonObject
from fireswarm.contracts.limits import MAX_STORED_SUMMARY_CHARS, truncate
from fireswarm.contracts.ports import Clock, Create, Query, Snapshot, Store, Update, Write
from fireswarm.contracts.skills.skill import Reply, asks_a_person
from fireswarm.contracts.swarm.constraints import Constraints
from fireswarm.contracts.swarm.envelope import (
    Envelope,
    MailKind,
    MailLease,
    MailStatus,
    Message,
    SecurityContext,
    SecurityMode,
    TaskRef,
)
from fireswarm.contracts.swarm.task import Task, TaskResult
from fireswarm.errors import Conflict, InvalidInput, LeaseLost, NotFound
from fireswarm.storage.documents.build import check_version, message_document, plain, unreadable
from fireswarm.storage.documents.paths import message_path, task_path
from fireswarm.storage.documents.read import HAND_WRITTEN_SESSION, parse_readable, parse_task_snapshot
from fireswarm.swarm.records.policy import HandoffPolicy

NO_NOTES: Mapping[str, str] = {}

OPEN_ATTEMPTS = 8
"""Maximum number of reads until an envelope is opened; each one after the first follows a conflict."""


@dataclass(frozen=True, slots=True)
class Mailbox:
    """Sends and opens messages of one store under one policy."""

    store: Store
    clock: Clock
    policy: HandoffPolicy

    def handoffs(
        self, task: Task, births: Sequence[Task], result: TaskResult, notes: str, outlines: Mapping[str, str] = NO_NOTES
    ) -> list[Write]:
        """Return the writes that hand *births* over from *task*'s role. Raises PolicyRefused if one is not allowed.

        The notes of an envelope are *notes*, or else those of *outlines* by the id of the new task.
        """
        now = self.clock.now()
        keep = now + timedelta(days=self.policy.retention_days)
        writes: list[Write] = []
        for child in births:
            envelope = Envelope(
                envelope_id=child.task_id,
                task=TaskRef(task_id=child.task_id, assigned_to=child.assigned_to),
                session_hash=child.session_hash,
                artifacts=result.artifacts,
                signals=result.signals,
                attachments=task.attachments,
                notes=notes or outlines.get(child.task_id) or child.handoff_reason,
                security_context=SecurityContext(mode=mode_of(child.constraints)),
                trace=child.trace,
            )
            asked_by = task.created_by if child.is_review else task.assigned_to  # the planner wants the review
            self.policy.check(envelope, asked_by)
            document = message_document(envelope, task.assigned_to, child.assigned_to, now, keep)
            writes.append(Create(message_path(child.task_id), document))
        return writes

    async def send(self, envelope: Envelope, sender: str, to: str, *, sender_role: str) -> str:
        """Ask a role, or the role of a named agent, for work; a repeated message creates no second task.

        Returns the message's id. Raises PolicyRefused.
        """
        self.policy.check(envelope, sender_role)
        document = self._document(envelope, sender, to) | {"kind": MailKind.MESSAGE.value}
        return await self._create(Create(message_path(envelope.envelope_id), document))

    async def answer(self, task: Task, answers: JsonObject, sender_role: str, message_id: str = "") -> str:
        """Send answers to *task*; any worker of its role applies them. Returns the message's id.

        They are valid for the open questions of *task*: names are replaced by the ids of these questions. If they are
        sent twice with the same *message_id*, they are applied once. Raises PolicyRefused if *sender_role* may not
        answer. The answers are validated when they are applied; the result is in ``outcome`` of the message.
        """
        return await self._create(self.answering(task, answers, sender_role, message_id or str(uuid.uuid4())))

    def answering(self, task: Task, answers: JsonObject, sender_role: str, message_id: str) -> Create:
        """Return the write that sends answers, for a commit with other writes. Raises PolicyRefused."""
        self.policy.check_answer(sender_role, task.assigned_to, approves=asks_a_person(task.questions))
        envelope = Envelope(
            envelope_id=message_id,
            task=TaskRef(task_id=task.task_id, assigned_to=task.assigned_to),
            session_hash=task.session_hash,
            answers=task.bind(answers),
            trace=task.trace,
        )
        self.policy.check_size(envelope)
        document = self._document(envelope, sender_role, task.assigned_to) | {"kind": MailKind.ANSWERS.value}
        return Create(message_path(message_id), document)

    async def replies(self, task: Task, replies: Sequence[Reply]) -> list[Write]:
        """Return the writes by which a turn of *task* answers other tasks, for the settling commit.

        The ids are derived from the turn, so a repeated turn sends nothing twice. Raises NotFound for a task
        outside the session, and PolicyRefused for one that may not be answered.
        """
        tasks = await self.store.get_many([task_path(reply.task_id) for reply in replies])
        asking = {item.id: parse_task_snapshot(item) for item in tasks if item.data is not None}
        writes: list[Write] = []
        for number, reply in enumerate(replies, 1):
            other = asking.get(reply.task_id)
            if other is None or other.session_hash != task.session_hash:
                raise NotFound(f"this session has no task {reply.task_id} that could be answered")
            message_id = f"{task.task_id}.{task.turn}.{number}"
            writes.append(self.answering(other, reply.answers, task.assigned_to, message_id))
        return writes

    def _document(self, envelope: Envelope, sender: str, to: str) -> dict[str, Any]:
        now = self.clock.now()
        return message_document(envelope, sender, to, now, now + timedelta(days=self.policy.retention_days))

    async def _create(self, write: Create) -> str:
        try:
            await self.store.commit([write])
        except Conflict as conflict:
            if not (conflict.exists or conflict.ambiguous):
                raise
        return str(write.data["message_id"])

    @staticmethod
    def end_message_write(snapshot: Snapshot, outcome: str, *, complete: bool = True) -> Update:
        """Return the write that ends a message; it requires an unchanged message.

        It completes a hand-written one, so that lists and filters find it, unless *complete* is false.
        """
        data = snapshot.data or {}
        derived = _derived_fields(snapshot) if complete else {}
        missing = {name: value for name, value in derived.items() if data.get(name) is None}
        ended = {"status": "read", "outcome": truncate(outcome, MAX_STORED_SUMMARY_CHARS)}
        return Update(snapshot.path, missing | ended, snapshot.update_time)

    async def open(self, task: Task, owner: str, epoch: int) -> Envelope | None:
        """Claim and return a planned task's envelope, or None if it has none.

        Only the holder of the task's lease may call this. After a conflict the message is read again: a claim of this
        epoch may have been applied although its commit failed.

        Raises LeaseLost if a later holder has opened it, and Conflict after repeated conflicts.
        """
        for _ in range(OPEN_ATTEMPTS):
            snapshot = await self.store.get(message_path(task.task_id))
            if snapshot.data is None:
                return None
            message = parse_message(snapshot)
            holder = message.lease
            if message.status is MailStatus.READ or (
                holder and (holder.owner_agent_id, holder.epoch) == (owner, epoch)
            ):
                return message.payload
            if holder is not None and holder.epoch > epoch:
                raise LeaseLost(f"the envelope of task {task.task_id} was opened by {holder.owner_agent_id}")
            lease = MailLease(owner_agent_id=owner, expires_at=self.clock.now(), epoch=epoch)
            claimed = {"status": "claimed", "lease": plain(lease), "deliveries": message.deliveries + 1}
            try:
                await self.store.commit([Update(snapshot.path, claimed, snapshot.update_time)])
            except Conflict:
                continue
            return message.payload
        raise Conflict(f"the envelope of task {task.task_id} keeps changing: it could not be opened")

    async def payload_of(self, task: Task) -> Envelope | None:
        """Return the envelope with which *task* was created; None if it is gone, unreadable or of another session."""
        try:
            message = parse_message(await self.store.get(message_path(task.message_id or task.task_id)))
        except (NotFound, InvalidInput):
            return None
        return message.payload if message.session_hash == task.session_hash else None

    @staticmethod
    def open_envelope_writes(task: Task) -> list[Write]:
        """Return the write that acknowledges a planned task's envelope, for the settling commit."""
        return [Update(message_path(task.task_id), {"status": "read", "lease": None})]

    async def read(self, query: Query) -> list[Message]:
        """Read messages for display. An unreadable document is logged and skipped."""
        return parse_readable(await self.store.query(query), parse_message)


def parse_message(snapshot: Snapshot) -> Message:
    """Parse a mailbox document. Raises NotFound, or InvalidInput with the faulty field."""
    if snapshot.data is None:
        raise NotFound(f"there is no message {snapshot.id}")
    data = snapshot.data
    try:
        message = Message.model_validate(
            data if data.get("message_id") == snapshot.id else _with_missing_fields(snapshot, data)
        )
    except ValidationError as error:
        raise unreadable(error, data, f"{snapshot.path} is not a message") from error
    check_version(message.schema_version, snapshot.path)
    return message


def _with_missing_fields(snapshot: Snapshot, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return *data* with the fields that a hand-written message lacks; its ``payload`` needs only ``notes``."""
    session = data.get("session_hash") or HAND_WRITTEN_SESSION
    message = _derived_fields(snapshot) | {**data, "message_id": snapshot.id, "session_hash": session}
    payload = data.get("payload")
    if isinstance(payload, dict):
        task = {"task_id": snapshot.id, "assigned_to": data.get("to_agent_id")}
        trace = {"chain_id": snapshot.id, "step": 0}
        message["payload"] = {
            "envelope_id": snapshot.id,
            "task": task,
            "session_hash": session,
            "trace": trace,
        } | payload
    return message


def _derived_fields(snapshot: Snapshot) -> dict[str, Any]:
    """Return the fields of every sent message that a hand-written one may lack."""
    return {
        "session_hash": HAND_WRITTEN_SESSION,
        "task_id": snapshot.id,
        "from_agent_id": "operator",
        "created_at": snapshot.create_time,
    }


def mode_of(constraints: Constraints) -> SecurityMode:
    """Return the envelope mode that enforces the constraints most strictly."""
    if constraints.read_only:
        return SecurityMode.READ_ONLY
    return SecurityMode.DEMO_SAFE if constraints.demo_safe else SecurityMode.STANDARD


def constraints_of(mode: str) -> Constraints:
    """Return the task constraints that correspond to an envelope's mode. Raises InvalidInput for an unknown mode."""
    if mode not in set(SecurityMode):
        raise InvalidInput(f"payload.security_context.mode is {mode!r}: use {', '.join(SecurityMode)}")
    return Constraints(read_only=mode == SecurityMode.READ_ONLY, demo_safe=mode != SecurityMode.STANDARD)
