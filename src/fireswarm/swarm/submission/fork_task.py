"""Fork an objective at an answer of its model: a new task has the steps before it, and goes on from there."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from fireswarm.contracts.base import JsonObject, command_line, explain_validation
from fireswarm.contracts.limits import shown_id
from fireswarm.contracts.ports import Create, Store
from fireswarm.contracts.swarm.task import NO_DEADLINE, Submitted, Task, canonical_json
from fireswarm.errors import ConfigError, Conflict, InvalidInput
from fireswarm.runs.sinks.documents import EPOCHS_REPLAYED
from fireswarm.runs.sinks.run_reader import read_events
from fireswarm.runs.steps import STEP_FINISHED, number_of_answer
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import run_path, task_path
from fireswarm.storage.documents.read import parse_readable, parse_task_snapshot
from fireswarm.swarm.board.operator.say import MAX_SAID_CHARS
from fireswarm.swarm.board.rounds import MAX_EARLIER, follow_up
from fireswarm.swarm.board.submit import document
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.submission.check import check_role

TOLD = (
    "This task is a fork: until here, another run did it, and now it goes on with you. Files may be newer than the "
    "messages above, or missing: look before you rely on them."
)
"""What the model of a fork is told first. A step of the other run is not executed again."""


@dataclass(frozen=True, slots=True)
class Fork:
    """Where a task is forked, and what is changed: None and "" keep what the task has.

    ``before`` is the number of the model's answer that the fork asks for anew. A different ``again`` makes another
    fork of the same kind.
    """

    before: int
    text: str = ""
    model: str | None = None
    objective: str | None = None
    context: JsonObject | None = None
    again: str = ""

    def changes(self) -> dict[str, Any]:
        """Return the changed fields of the task. Another model takes the effort and fallback of the settings."""
        fields = {"objective": self.objective, "context": self.context, "model": self.model}
        changed = {name: value for name, value in fields.items() if value is not None}
        return changed | ({"effort": None, "fallback": None} if self.model else {})


async def fork_task(parts: SwarmParts, task_id: str, fork: Fork) -> Submitted:
    """Create the fork, or find the same one. Raises NotFound, InvalidInput, QueueFull and StoreError."""
    text = fork.text.strip()
    if len(text) > MAX_SAID_CHARS:
        raise InvalidInput(f"the message may have {MAX_SAID_CHARS:,} characters; it has {len(text):,}")
    task = await parts.board.get(task_id)
    if task.parent_task_id is not None:
        objective = command_line("swarm", "fork", shown_id(task.trace.chain_id))
        raise InvalidInput(f"task {task_id} is part of a plan: fork its objective before the plan, `{objective}`")
    check_role(parts.roles, task.assigned_to, task.capabilities)
    await _check_answer(parts, task, fork.before)
    await parts.board.check_room(task.assigned_to)
    salt = hashlib.sha256(canonical_json([fork.before, text, fork.model, fork.again]).encode()).hexdigest()
    now = parts.clock.now()
    try:
        changed = Task.model_validate(task.model_dump() | fork.changes())
        following = follow_up(
            changed,
            "\n".join((*([TOLD] if fork.before > 1 else ()), *([f"The operator says: {text}"] if text else ()))),
            f"fork/{task_id}/{salt}",
            now,
            created_by=task.created_by,
            budget=task.budget,
            thread_id=None,
            fork_before=fork.before,
            answered={},
            deadline=task.deadline if task.deadline > now else NO_DEADLINE,
            summary=f"forked before answer {fork.before}, waits for an agent",
        )
    except ValidationError as error:
        raise InvalidInput(f"the fork cannot be made: {explain_validation(error)}") from error
    try:
        parts.settings.model_of(task.assigned_to, parts.roles[task.assigned_to], following)
    except ConfigError as error:
        raise InvalidInput(f"the model of the fork cannot be used: {error}") from error
    try:
        await parts.store.commit([Create(task_path(following.task_id), document(following))])
    except Conflict:
        return Submitted(await parts.board.get(following.task_id), created=False)
    return Submitted(following, created=True)


async def find_following(store: Store, task: Task) -> list[Task]:
    """Return the tasks that go on with a task's conversation, and its forks, oldest first."""
    found = parse_readable(await store.query(queries.continuing(task.task_id)), parse_task_snapshot)
    own = [following for following in found if following.session_hash == task.session_hash]
    return sorted(own, key=lambda each: (each.created_at, each.task_id))


async def _check_answer(parts: SwarmParts, task: Task, before: int) -> None:
    """Raise InvalidInput unless the task's model gave this answer before it planned, and all before it are stored."""
    stored, own = set[int](), set[int]()
    line = [*await parts.board.read_earlier(task), task]
    if line[0].continues is not None:
        raise InvalidInput(
            f"task {task.task_id} cannot be forked: a task that it goes on with is gone, or over {MAX_EARLIER}"
        )
    for each in line:
        finished, own = await _read_answers(parts.store, each)
        stored = {number for number in stored if not each.fork_before or number < each.fork_before} | finished
    if before not in own:
        numbers = ", ".join(map(str, sorted(own))) or "none: no model has worked on it"
        raise InvalidInput(
            f"task {task.task_id} cannot be forked before answer {before}: the answers of its model before a plan are "
            f"{numbers}"
        )
    if lost := sorted(set(range(1, before)) - stored):
        raise InvalidInput(f"task {task.task_id} cannot be forked: answer {lost[0]} is gone with the run that had it")


async def _read_answers(store: Store, task: Task) -> tuple[set[int], set[int]]:
    """Return the numbers of the answers before a plan in the runs of a task that a fork would read.

    First those that are stored there, then those with all that its runs replayed from earlier tasks.
    """
    epochs = range(max(1, task.work_epoch + 1, task.epoch + 1 - EPOCHS_REPLAYED), task.epoch + 1)
    finished, seen = {0}, {0}
    for run in await store.get_many([run_path(task.run_id(epoch)) for epoch in epochs]):
        for event in await read_events(store, run) if run.data is not None else ():
            number = number_of_answer(str((event.get("payload") or {}).get("step")))
            seen.add(number)
            if event.get("type") == STEP_FINISHED:
                finished.add(number)
    return finished - {0}, seen - {0}
