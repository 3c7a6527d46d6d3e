"""Conversations over several tasks: a task that was sent back, or retried with a note, goes on with what it knows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import anyio.to_thread

from fireswarm.capabilities.workspace.place import Workspace
from fireswarm.contracts.skills.artifact import OUTPUT_FOLDER, Artifact
from fireswarm.contracts.swarm.task import Task, TaskStatus
from fireswarm.errors import FireswarmError
from fireswarm.mind.assignment import Steering
from fireswarm.runs.sinks.documents import Journal
from fireswarm.runs.steps import step_name
from fireswarm.swarm.turn.state import Turn

_TELLING = ("message:", "steering:")
"""Names of the steps that tell the model something."""


class Hearing:
    """What the model of a turn is told besides its task: the feedback of its planner, and what others say meanwhile.

    A conversation that had ended hears its feedback as a reply to its last answer, any other one before its next call.
    Each message is told once, also after a crash.
    """

    def __init__(self, turn: Turn, told: Sequence[str]) -> None:
        self._lease = turn.lease
        task, earlier = turn.task, turn.relatives.earlier
        self._told = {said for said in task.said if any(said in text for text in told)}
        self._lease.heard = len(task.said)
        feedback = "" if any(task.feedback in text for text in told) else task.feedback
        replies = bool(earlier) and earlier[-1].status is TaskStatus.DONE and not task.fork_before
        self._reply = feedback if replies else ""
        self.steering = Steering(text="" if replies else feedback, typed=self._take_said)

    @classmethod
    async def open(cls, turn: Turn) -> Hearing:
        """Return what the model of a turn is still to be told."""
        return cls(turn, await _delivered_messages(turn.journal))

    def _take_said(self) -> str:
        """Return what was said since the last call; the lease's task is read again when something is said."""
        new = [said for said in self._lease.task.said if said not in self._told]
        self._told.update(new)
        self._lease.heard = len(self._lease.task.said)
        return "\n".join(new)

    @property
    def has_news(self) -> bool:
        """True if the model has not been told everything."""
        told = self._told.issuperset(self._lease.task.said)
        return bool(self._reply or self.steering.text) or not told

    async def reply(self, answer: str) -> str | None:
        """Return what the model is to hear after an answer that would end its run, or None."""
        feedback, self._reply = self._reply, ""
        return "\n".join(text for text in (feedback, self.steering.take(), self._take_said()) if text) or None


async def _delivered_messages(journal: Journal) -> list[str]:
    """Return the messages that earlier starts and rounds of the run have delivered."""
    steps = [step for step in journal.known.finished if step_name(step).partition("/")[2].startswith(_TELLING)]
    results = [await journal.load_result(journal.known.finished[step]) for step in steps]
    return [str(result.get("text") if isinstance(result, dict) else "") for result in results]


async def restore_outputs(turn: Turn, folder: Path) -> None:
    """Put the outputs of the conversation's last task into its output folder, as the model left them.

    Done once for each task, and again in an empty folder: the task may have moved to another machine.
    """
    earlier, step = turn.relatives.earlier, ("restored", turn.task.task_id)
    if not earlier:
        return
    begun = turn.journal.steps.has_begun(*step)
    if begun and await anyio.to_thread.run_sync(os.listdir, folder):
        return

    async def restore() -> None:
        await anyio.to_thread.run_sync(_empty, folder)
        result = earlier[-1].result
        for artifact in result.artifacts if result is not None else ():
            await _restore(turn, artifact, earlier[-1], Workspace(folder))

    if begun:
        await restore()
    await turn.journal.steps.step(*step, restore, idempotent=True)


async def _restore(turn: Turn, artifact: Artifact, task: Task, place: Workspace) -> None:
    """Store a file of an ended task in the output folder. One that cannot be stored is noted in the journal."""
    if not artifact.uri or not turn.swarm.blobs.holds(
        artifact.uri, f"{task.session_hash}/{task.task_id}/{OUTPUT_FOLDER}"
    ):
        return
    try:
        content = await turn.swarm.blobs.get(artifact.uri)
        await anyio.to_thread.run_sync(place.write, place.locate(artifact.name, new=True), content)
    except FireswarmError as error:
        turn.journal.note("outputs_left_out", text=f"{artifact.name}: {error}")


def _empty(folder: Path) -> None:
    """Delete what a canceled task of the conversation left."""
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
