"""Messages that ask a role for work: each creates one task, or is answered with a refusal.

The message ends with the task's id, or with the reason of the refusal, in its ``outcome``. An agent that sent it also
gets the refusal as a message.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.limits import MAX_LABEL_CHARS, MAX_OBJECTIVE_CHARS, MAX_STORED_SUMMARY_CHARS, truncate
from fireswarm.contracts.ports import Create, Snapshot, Write
from fireswarm.contracts.skills.artifact import Signal
from fireswarm.contracts.swarm.envelope import Envelope, Message, TaskRef
from fireswarm.contracts.swarm.task import Constraints, TaskSpec
from fireswarm.errors import Conflict, FireswarmError, InvalidInput, StoreError, StoreRejected
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.build import message_document
from fireswarm.storage.documents.paths import message_path
from fireswarm.swarm.records.mailbox import parse_message
from fireswarm.swarm.submission.check import check_task
from fireswarm.swarm.swarm import Swarm

REFUSED_SIGNAL = "refused"
OPERATOR = "operator"


async def follow(swarm: Swarm, role: str) -> None:
    """Create tasks from messages to *role* as they arrive, until the listener ends."""
    async with swarm.store.listen(queries.work_messages(role)) as batches:
        async for snapshots in batches:
            for snapshot in snapshots:
                await create_work(swarm, role, snapshot)


async def create_work(swarm: Swarm, role: str, snapshot: Snapshot) -> None:
    """Create the task that a message asks for, or refuse it. The same message never creates a second task."""
    writes: list[Write] = []
    try:
        outcome = f"task {await _submit(swarm, role, snapshot)}"
    except FireswarmError as refused:
        if isinstance(refused, StoreError) and not isinstance(refused, StoreRejected):
            raise
        outcome = f"refused: {refused}"
        writes += _refusal(swarm, role, snapshot, str(refused))
    try:
        await swarm.store.commit([swarm.mailbox.end_message_write(snapshot, outcome), *writes])
    except Conflict:
        return  # another worker was faster; its outcome remains


async def _submit(swarm: Swarm, role: str, snapshot: Snapshot) -> str:
    """Submit the task and return its id. Raises PolicyRefused or InvalidInput."""
    message = parse_message(snapshot)
    envelope = message.payload.model_copy(update={"task": TaskRef(task_id=message.message_id, assigned_to=role)})
    swarm.mailbox.policy.check(envelope, sender_role(message.from_agent_id, swarm.roles))
    if not envelope.notes.strip():
        raise InvalidInput("payload.notes is empty: write there what is to be done")
    try:
        spec = _spec(message, envelope, role)
    except ValidationError as error:
        raise InvalidInput(f"the message cannot become a task: {explain_validation(error)}") from error
    check_task(swarm.roles, swarm.catalog, swarm.inline, spec)
    return (await swarm.board.submit(spec)).task.task_id


def _spec(message: Message, envelope: Envelope, role: str) -> TaskSpec:
    return TaskSpec(
        objective=truncate(envelope.notes.strip(), MAX_OBJECTIVE_CHARS),
        assigned_to=role,
        session_hash=message.session_hash,
        created_by=message.from_agent_id,
        constraints=Constraints(demo_safe=envelope.security_context.mode == "demo_safe"),
        attachments=envelope.attachments,
        handoff_reason=f"asked by {message.from_agent_id}",
        fresh_key=f"message/{message.message_id}",
        message_id=message.message_id,
    )


def sender_role(sender: str, roles: Collection[str]) -> str:
    """Return the role of a sender: agent ids begin with it, as in ``scout-host-1a2b``. An unknown sender is itself."""
    own = [role for role in roles if sender == role or sender.startswith(f"{role}-")]
    return max(own, key=len, default=sender)


def _refusal(swarm: Swarm, role: str, snapshot: Snapshot, reason: str) -> list[Write]:
    """Return the write that tells the sender. An operator reads the outcome instead, an unreadable message has none."""
    try:
        message: Message = parse_message(snapshot)
    except FireswarmError:
        return []
    if message.from_agent_id == OPERATOR:
        return []
    reply_id = f"{message.message_id}.refused"
    now = swarm.clock.now()
    envelope = Envelope(
        envelope_id=reply_id,
        task=TaskRef(task_id=message.message_id, assigned_to=role),
        session_hash=message.session_hash,
        signals=(Signal(name=REFUSED_SIGNAL, strength=1.0, subject=message.message_id, note=reason[:MAX_LABEL_CHARS]),),
        notes=truncate(reason, MAX_STORED_SUMMARY_CHARS),
        trace=message.payload.trace,
    )
    keep_until = now + timedelta(days=swarm.mailbox.policy.retention_days)
    return [Create(message_path(reply_id), message_document(envelope, role, message.from_agent_id, now, keep_until))]
