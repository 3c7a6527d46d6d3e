"""Fill a template's placeholders, and check the task graph before it is created."""

from __future__ import annotations

import json
import re
from typing import Any

from fireswarm import (
    PlannedTask,
    count_noun,
)

from .templates import TaskTemplate, Template

MOST_TASKS = 40
MAX_CONTEXT_BYTES = 16_384
MAX_OBJECTIVE_CHARS = 2_000

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


class PlanInvalid(Exception):
    """The filled graph may not be created; the message has the reason."""


def fill(template: Template, values: dict[str, Any], roles: tuple[str, ...]) -> tuple[list[PlannedTask], list[str]]:
    """Fill *template* with *values*; returns also the optional tasks that were dropped for lack of their role."""
    dropped = [task for task in template.tasks if roles and task.optional and task.assigned_to not in roles]
    gone = {task.key for task in dropped}
    bridges = {task.key: task.depends_on for task in dropped}
    tasks = [_fill_task(task, values, bridges) for task in template.tasks if task.key not in gone]
    return tasks, [f"{task.key} left out: this swarm has no {task.assigned_to}" for task in dropped]


def validate(tasks: list[PlannedTask], roles: tuple[str, ...]) -> list[list[str]]:
    """Check size, roles, dependencies and cycles; return the keys in waves that can run in parallel."""
    keys = [task.key for task in tasks]
    if not 1 <= len(tasks) <= MOST_TASKS:
        raise PlanInvalid(f"The plan has {count_noun(len(tasks), 'task')}; 1 to {MOST_TASKS} are allowed.")
    if len(set(keys)) != len(keys):
        raise PlanInvalid("Two tasks of the plan have the same key.")
    for task in tasks:
        if roles and task.assigned_to not in roles:
            raise PlanInvalid(f"Task {task.key} needs the role {task.assigned_to}, which this swarm does not have.")
        unknown = set(task.depends_on) - set(keys)
        if unknown:
            raise PlanInvalid(f"Task {task.key} depends on {', '.join(sorted(unknown))}, which is not in the plan.")
        size = len(json.dumps(task.context).encode())
        if size > MAX_CONTEXT_BYTES:
            raise PlanInvalid(f"The context of task {task.key} is {size:,} bytes; {MAX_CONTEXT_BYTES:,} are allowed.")
    return _waves(tasks)


def _waves(tasks: list[PlannedTask]) -> list[list[str]]:
    waiting = {task.key: set(task.depends_on) for task in tasks}
    waves: list[list[str]] = []
    while waiting:
        ready = sorted(key for key, needs in waiting.items() if not needs & waiting.keys())
        if not ready:
            raise PlanInvalid(f"The tasks {', '.join(sorted(waiting))} depend on each other in a cycle.")
        waves.append(ready)
        for key in ready:
            del waiting[key]
    return waves


def _fill_task(task: TaskTemplate, values: dict[str, Any], bridges: dict[str, tuple[str, ...]]) -> PlannedTask:
    context = {key: _fill(value, values) for key, value in task.context.items()}
    return PlannedTask(
        key=task.key,
        assigned_to=task.assigned_to,
        skill=task.skill,
        objective=str(_fill(task.objective, values))[:MAX_OBJECTIVE_CHARS],
        context={key: value for key, value in context.items() if value is not None},
        depends_on=tuple(dict.fromkeys(_bridged(task.depends_on, bridges))),
        handoff_reason=f"step {task.key} of the plan",
        expected_outcome=task.expected_outcome,
    )


def _bridged(needs: tuple[str, ...], bridges: dict[str, tuple[str, ...]]) -> list[str]:
    """Return the dependencies with each dropped task replaced by its own dependencies."""
    found: list[str] = []
    for key in needs:
        found.extend(_bridged(bridges[key], bridges) if key in bridges else [key])
    return found


def _fill(value: Any, values: dict[str, Any]) -> Any:
    """Replace placeholders; a text that is a single placeholder becomes the value itself, or None without a value."""
    if not isinstance(value, str):
        return value
    whole = _PLACEHOLDER.fullmatch(value)
    if whole:
        return values.get(whole.group(1))
    return _PLACEHOLDER.sub(lambda match: str(values.get(match.group(1), match.group(0))), value)
