"""Answers that come by mail: a message to a role supplies what a task of the role asked.

The task's transition and the end of the message are one commit: whoever is killed before it has done nothing, and
another worker of the role finds the message as it was. Refused answers stay on the message, with the reason.
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
    """Take answers to tasks of *role* as they come, until the listening ends."""
    async with swarm.store.listen(queries.answers(role)) as snapshots:
        async for changed in snapshots:
            for snapshot in changed:
                await take(swarm, role, snapshot)


async def take(swarm: Swarm, role: str, snapshot: Snapshot) -> None:
    """Give one message's answers to its task, or say on the message why not."""
    try:
        await _give(swarm, role, snapshot)
    except (InvalidInput, NotFound, TerminalTask, PolicyRefused, ConfigError, StoreRejected) as refused:
        try:
            await swarm.store.commit([swarm.mailbox.end_message_write(snapshot, f"refused: {refused}")])
        except Conflict:
            return  # a peer was faster: what it wrote stands


async def _give(swarm: Swarm, role: str, snapshot: Snapshot) -> None:
    message = parse_message(snapshot)
    swarm.mailbox.policy.check_answer(message.from_agent_id, role)

    def accept(task: Task) -> None:
        if task.session_hash != message.session_hash:
            raise PolicyRefused(f"task {task.task_id} is of another session than the message")
        if task.assigned_to != role:
            raise InvalidInput(f"task {task.task_id} is for {task.assigned_to}: address the message to that role")

    ended = swarm.mailbox.end_message_write(snapshot, TAKEN)
    await swarm.board.answer(message.task_id, message.payload.answers, accept=accept, also=[ended])
