"""Conversations over several tasks: a task that was sent back, or retried with a note, goes on with what it knows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio.to_thread

from fireswarm.capabilities.workspace.place import Workspace
from fireswarm.contracts.skills.artifact import OUTPUT_FOLDER
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import FireswarmError, InvalidInput, NotFound
from fireswarm.mind.assignment import Steering
from fireswarm.runs.steps import KnownSteps, step_name
from fireswarm.storage.documents.paths import message_path
from fireswarm.swarm.parts import SwarmParts
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


def feedback_of(turn: Turn, phase: int) -> tuple[Callable[[str], Awaitable[str | None]] | None, Steering]:
    """Return how the model hears the task's feedback.

    A conversation that had ended hears it as a reply to its last answer, one that had failed before its next answer.
    """
    task = turn.task
    if not task.feedback or _was_told(turn.journal.known, phase, task.feedback):
        return None, Steering()
    if task.continues is None:
        return None, Steering(text=task.feedback)

    told: list[str] = []

    async def reply(answer: str) -> str | None:
        if told:
            return None
        told.append(answer)
        return task.feedback

    return reply, Steering()


def _was_told(known: KnownSteps, phase: int, text: str) -> bool:
    """Return True if a step that delivers a message has the text as its result."""
    for step, kept in known.finished.items():
        if step_name(step).startswith((f"{phase}/message:", f"{phase}/steering:")):
            result = (kept or {}).get("result") or {}
            if result.get("text") == text:
                return True
    return False


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


async def original_notes(turn: Turn) -> str:
    """Return the notes of the conversation's first envelope; "" if it is gone."""
    snapshot = await turn.swarm.store.get(message_path(turn.task.thread))
    payload = (snapshot.data or {}).get("payload")
    return str(payload.get("notes") or "") if isinstance(payload, dict) else ""
