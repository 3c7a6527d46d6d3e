"""Tell each task of a plan its place in the plan. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from fireswarm.contracts.base import count_noun
from fireswarm.contracts.limits import MAX_LABEL_CHARS, truncate
from fireswarm.contracts.swarm.task import Task

MAX_TASKS = 40
"""Maximum number of tasks that an outline names: the task itself, its neighbors, then the others in order."""


def notes_of(planner: Task, births: Sequence[Task]) -> dict[str, str]:
    """Return the notes of the new tasks' envelopes by id: the outline of the plan, and the task's own place in it.

    The notes of a task that goes on with a conversation are what it is told.
    """
    keys = {child.task_id: child.plan_key for child in births}
    lines = {child.task_id: _line(child, keys) for child in births}
    head = f"A plan of {count_noun(len(births), 'task')}, made by the {planner.assigned_to} for: "
    head += truncate(" ".join(planner.objective.split()), MAX_LABEL_CHARS)
    return {
        child.task_id: child.feedback if child.continues else f"{head}\n{_outline(child, births, lines)}"
        for child in births
    }


def _outline(own: Task, births: Sequence[Task], lines: dict[str, str]) -> str:
    near = {own.task_id, *own.depends_on, *own.dependents}
    others = [child.task_id for child in births if child.task_id not in near]
    named = near | set(others[: max(0, MAX_TASKS - len(near))])
    shown = [
        f"{lines[child.task_id]}{' <- your task' if child is own else ''}" for child in births if child.task_id in named
    ]
    more = len(births) - len(shown)
    return "\n".join([*shown, *([f"and {count_noun(more, 'more task')}"] if more else [])])


def _line(child: Task, keys: dict[str, str]) -> str:
    needed = [keys[each] for each in child.depends_on if each in keys]
    after = f", after {', '.join(needed[:MAX_TASKS])}" if needed else ""
    objective = truncate(" ".join(child.objective.split()), MAX_LABEL_CHARS // 2)
    return f"- {child.plan_key} ({child.assigned_to}{after}): {objective}"
