"""Messages that ask a role for work: each creates one task, or is refused.

At the end, ``outcome`` of the message has the task's id or the reason of the refusal. If an agent sent the message, it
also gets the refusal as a message.
"""

from __future__ import annotations

from collections.abc import Collection

from fireswarm.contracts.limits import MAX_OBJECTIVE_CHARS, truncate
from fireswarm.contracts.ports import Snapshot
from fireswarm.contracts.swarm.envelope import Envelope, Message, TaskRef
from fireswarm.contracts.swarm.task import TaskSpec
from fireswarm.contracts.swarm.task_fields import make_spec
from fireswarm.errors import InvalidInput
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.records.mailbox import constraints_of, parse_message
from fireswarm.swarm.submission.submit_task import submit_task


async def create_work(parts: SwarmParts, role: str, snapshot: Snapshot) -> None:
    """Create the task that a message asks for and end the message. The same message never creates a second task.

    Raises PolicyRefused or InvalidInput.
    """
    outcome = f"task {await _submit(parts, role, snapshot)}"
    await parts.store.commit([parts.mailbox.end_message_write(snapshot, outcome)])


async def _submit(parts: SwarmParts, role: str, snapshot: Snapshot) -> str:
    """Submit the task and return its id. Raises PolicyRefused or InvalidInput."""
    message = parse_message(snapshot)
    envelope = message.payload.model_copy(update={"task": TaskRef(task_id=message.message_id, assigned_to=role)})
    parts.mailbox.policy.check(envelope, sender_role(message.from_agent_id, parts.roles))
    if not envelope.notes.strip():
        raise InvalidInput("payload.notes is empty: describe the work there")
    return (await submit_task(parts, _spec(message, envelope, role))).task_id


def _spec(message: Message, envelope: Envelope, role: str) -> TaskSpec:
    return make_spec(
        objective=truncate(envelope.notes.strip(), MAX_OBJECTIVE_CHARS),
        assigned_to=role,
        session_hash=message.session_hash,
        created_by=message.from_agent_id,
        constraints=constraints_of(envelope.security_context.mode),
        attachments=envelope.attachments,
        handoff_reason=f"requested by {message.from_agent_id}",
        fresh_key=f"message/{message.message_id}",
        message_id=message.message_id,
    )


def sender_role(sender: str, roles: Collection[str]) -> str:
    """Return the role of a sender: agent ids begin with it, as in ``scout-host-1a2b``.

    An unknown sender is its own role.
    """
    own = [role for role in roles if sender == role or sender.startswith(f"{role}-")]
    return max(own, key=len, default=sender)
