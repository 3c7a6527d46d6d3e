"""Messages that ask a role for work: each creates one task, or is answered with a refusal.

The message ends with the task's id, or with the reason of the refusal, in its ``outcome``. An agent that sent it also
gets the refusal as a message.
"""

from __future__ import annotations

from collections.abc import Collection

from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.limits import MAX_OBJECTIVE_CHARS, truncate
from fireswarm.contracts.ports import Snapshot
from fireswarm.contracts.swarm.envelope import Envelope, Message, TaskRef
from fireswarm.contracts.swarm.task import TaskSpec
from fireswarm.errors import InvalidInput
from fireswarm.swarm.records.mailbox import constraints_of, parse_message
from fireswarm.swarm.submission.check import check_task
from fireswarm.swarm.swarm import Swarm


async def create_work(swarm: Swarm, role: str, snapshot: Snapshot) -> None:
    """Create the task that a message asks for and end the message. The same message never creates a second task.

    Raises PolicyRefused or InvalidInput.
    """
    outcome = f"task {await _submit(swarm, role, snapshot)}"
    await swarm.store.commit([swarm.mailbox.end_message_write(snapshot, outcome)])


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
        constraints=constraints_of(envelope.security_context.mode),
        attachments=envelope.attachments,
        handoff_reason=f"asked by {message.from_agent_id}",
        fresh_key=f"message/{message.message_id}",
        message_id=message.message_id,
    )


def sender_role(sender: str, roles: Collection[str]) -> str:
    """Return the role of a sender: agent ids begin with it, as in ``scout-host-1a2b``. An unknown sender is itself."""
    own = [role for role in roles if sender == role or sender.startswith(f"{role}-")]
    return max(own, key=len, default=sender)
