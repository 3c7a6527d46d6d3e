"""Apply answers that come by mail: a message to a role answers a task of that role.

One commit changes the task and ends the message. If a worker is killed before it, nothing has changed, and another
worker of the role handles the message. Refused answers stay in the message, with the reason.
"""

from __future__ import annotations

from fireswarm.contracts.ports import Snapshot
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import ConfigError, Conflict, InvalidInput, NotFound, PolicyRefused, StoreRejected, TerminalTask
from fireswarm.storage.documents import queries
from fireswarm.swarm.records.mailbox import parse_message
from fireswarm.swarm.swarm import Swarm

TAKEN = "taken"


async def follow(swarm: Swarm, role: str) -> None:
    """Apply answers to tasks of *role* as they come, until the listener ends."""
    async with swarm.store.listen(queries.answers(role)) as snapshots:
        async for changed in snapshots:
            for snapshot in changed:
                await take(swarm, role, snapshot)


async def take(swarm: Swarm, role: str, snapshot: Snapshot) -> None:
    """Apply one message's answers to its task, or store the reason for refusing them in the message."""
    try:
        await _give(swarm, role, snapshot)
    except (InvalidInput, NotFound, TerminalTask, PolicyRefused, ConfigError, StoreRejected) as refused:
        try:
            await swarm.store.commit([swarm.mailbox.end_message_write(snapshot, f"refused: {refused}")])
        except Conflict:
            return  # another worker was faster; keep its write


async def _give(swarm: Swarm, role: str, snapshot: Snapshot) -> None:
    """Check a message and apply its answers to its task, in the commit that ends the message."""
    message = parse_message(snapshot)
    swarm.mailbox.policy.check_answer(message.from_agent_id, role)

    def accept(task: Task) -> None:
        if task.session_hash != message.session_hash:
            raise PolicyRefused(f"task {task.task_id} is of another session than the message")
        if task.assigned_to != role:
            raise InvalidInput(f"task {task.task_id} is for {task.assigned_to}: address the message to that role")

    ended = swarm.mailbox.end_message_write(snapshot, TAKEN)
    await swarm.board.answer(message.task_id, message.payload.answers, accept=accept, also=[ended])
