"""Conversations over several tasks: a task that was sent back, or retried with a note, goes on with what it knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio.to_thread

from fireswarm.capabilities.workspace.place import Workspace
from fireswarm.contracts.skills.artifact import OUTPUT_FOLDER
from fireswarm.contracts.swarm.envelope import Envelope
from fireswarm.contracts.swarm.task import Task, TaskStatus
from fireswarm.errors import FireswarmError, InvalidInput, NotFound
from fireswarm.mind.assignment import Steering
from fireswarm.runs.steps import KnownSteps, step_name
from fireswarm.storage.documents.paths import message_path
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.records.mailbox import parse_message
from fireswarm.swarm.turn.state import Turn

MAX_EARLIER = 50
"""Maximum number of tasks of one conversation."""


async def earlier_tasks(parts: SwarmParts, task: Task) -> Sequence[Task]:
    """Return the ended tasks whose conversation the task goes on with, the oldest first.

    A task that is gone, unreadable or of another session ends the search: documents may name any task.
    """
    found: list[Task] = []
    following = task.continues
    while following is not None and len(found) < MAX_EARLIER:
        try:
            earlier = await parts.board.get(following)
        except (NotFound, InvalidInput):
            break
        if earlier.session_hash != task.session_hash:
            break
        found.insert(0, earlier)
        following = earlier.continues
    return found


class Hearing:
    """What the model of a turn is told besides its task: the feedback of its planner, and what others say meanwhile.

    A conversation that had ended hears its feedback as a reply to its last answer, any other one before its next call.
    Each message is told once, also after a crash.
    """

    def __init__(self, turn: Turn) -> None:
        self._lease = turn.lease
        told = list(_delivered_messages(turn.journal.known))
        task, earlier = turn.task, turn.relatives.earlier
        self._told = {said for said in task.said if any(said in text for text in told)}
        feedback = "" if any(task.feedback in text for text in told) else task.feedback
        replies = bool(earlier) and earlier[-1].status is TaskStatus.DONE
        self._reply = feedback if replies else ""
        self.steering = Steering(text="" if replies else feedback, typed=self._take_said)

    def _take_said(self) -> str:
        """Return what was said since the last call; the lease's task is read again when something is said."""
        new = [said for said in self._lease.task.said if said not in self._told]
        self._told.update(new)
        return "\n".join(new)

    async def reply(self, answer: str) -> str | None:
        """Return what the model is to hear after an answer that would end its run, or None."""
        feedback, self._reply = self._reply, ""
        return "\n".join(text for text in (feedback, self.steering.take(), self._take_said()) if text) or None


def _delivered_messages(known: KnownSteps) -> Iterator[str]:
    """Yield the messages that earlier starts and rounds of the run have delivered."""
    for step, kept in known.finished.items():
        if step_name(step).partition("/")[2].startswith(("message:", "steering:")):
            result = (kept or {}).get("result")
            yield str(result.get("text") if isinstance(result, dict) else "")


async def restore_outputs(turn: Turn, earlier: Sequence[Task], folder: Path) -> None:
    """Store the outputs of the conversation's last task in its output folder, as far as they are missing there."""
    result = earlier[-1].result if earlier else None
    for artifact in result.artifacts if result is not None else ():
        start = f"{turn.task.session_hash}/{earlier[-1].task_id}/{OUTPUT_FOLDER}"
        if not artifact.uri or not turn.swarm.blobs.holds(artifact.uri, start):
            continue
        try:
            place = Workspace(folder)
            target = place.locate(artifact.name, new=True)
            if not target.exists():
                content = await turn.swarm.blobs.get(artifact.uri)
                await anyio.to_thread.run_sync(place.write, target, content)
        except FireswarmError as error:
            turn.journal.note("outputs_left_out", text=f"{artifact.name}: {error}")


async def original_envelope(turn: Turn) -> Envelope | None:
    """Return the conversation's first envelope, or None if it is gone."""
    earlier = turn.relatives.earlier
    first = earlier[0].task_id if earlier else turn.task.task_id
    try:
        return parse_message(await turn.swarm.store.get(message_path(first))).payload
    except (NotFound, InvalidInput):
        return None
