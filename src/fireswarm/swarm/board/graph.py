"""Task graphs: validate a plan, sort the tasks of an objective, and detect when an objective is over."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.task import WAITS_FOR_OTHERS, WAITS_FOR_TIME, StatusReason, Task, TaskStatus
from fireswarm.errors import GraphInvalid
from fireswarm.swarm.board.dependents import awaited_ids

NO_TASKS: Mapping[str, Task] = {}


def validate(
    tasks: Sequence[PlannedTask], roles: Collection[str], max_tasks: int, known: Mapping[str, Task] = NO_TASKS
) -> list[PlannedTask]:
    """Return *tasks* with dependencies first. Raises GraphInvalid with the reason for an invalid plan.

    *known* are earlier tasks of the plan by key, on which new ones may depend.
    """
    if not tasks and known:
        return []
    if not tasks:
        raise GraphInvalid("the plan has no task: a handoff needs at least one")
    if len(tasks) > max_tasks:
        raise GraphInvalid(f"the plan has {len(tasks)} tasks, more than the {max_tasks} allowed: plan in stages")
    by_key = {task.key: task for task in tasks}
    if len(by_key) < len(tasks):
        keys = [task.key for task in tasks]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        raise GraphInvalid(f"task keys are used twice in the plan: {', '.join(twice)}")
    if again := [key for key in by_key if key in known]:
        raise GraphInvalid(f"the plan has tasks {', '.join(again)} already: give new tasks other keys")
    for task in tasks:
        _check_task(task, by_key, roles, known)
    return _sort_topologically(by_key)


def _check_task(
    task: PlannedTask, by_key: Mapping[str, PlannedTask], roles: Collection[str], known: Mapping[str, Task]
) -> None:
    """Raise GraphInvalid for an unknown role, and for a dependency that does not exist."""
    if task.assigned_to not in roles:
        raise GraphInvalid(
            f"task {task.key!r} is assigned to {task.assigned_to!r}, which is not a role of this swarm "
            f"(known: {', '.join(sorted(roles))}); add roles/{task.assigned_to}/ROLE.md or change the plan"
        )
    missing = [key for key in task.depends_on if key not in by_key and key not in known]
    if missing:
        raise GraphInvalid(f"task {task.key!r} depends on {', '.join(missing)}, which the plan does not have")
    if len(set(task.depends_on)) < len(task.depends_on):
        raise GraphInvalid(f"task {task.key!r} names a dependency twice")


def _sort_topologically(by_key: dict[str, PlannedTask]) -> list[PlannedTask]:
    """Return the tasks with dependencies first. Raises GraphInvalid for a cycle."""
    waiting = {key: set(task.depends_on) & by_key.keys() for key, task in by_key.items()}
    dependents: dict[str, list[str]] = {key: [] for key in by_key}
    for key in by_key:
        for needed in waiting[key]:
            dependents[needed].append(key)
    ready = [key for key, needs in waiting.items() if not needs]
    ordered: list[PlannedTask] = []
    while ready:
        key = ready.pop()
        ordered.append(by_key[key])
        for dependent in dependents[key]:
            waiting[dependent].discard(key)
            if not waiting[dependent]:
                ready.append(dependent)
    if len(ordered) < len(by_key):
        stuck = sorted(key for key, needs in waiting.items() if needs)
        raise GraphInvalid(f"the plan has a cycle through {', '.join(stuck[:10])}")
    return ordered


def sort_objective(tasks: Sequence[Task]) -> list[Task]:
    """Sort the tasks of an objective: parents before children, then by dependencies."""
    by_id = {task.task_id: task for task in tasks}
    depths: dict[str, int] = {}

    def depth(task: Task) -> int:
        if task.task_id not in depths:
            needed = [by_id[task_id] for task_id in task.depends_on if task_id in by_id]
            depths[task.task_id] = 1 + max((depth(item) for item in needed), default=0)
        return depths[task.task_id]

    return sorted(tasks, key=lambda task: (task.trace.step, task.created_at, depth(task), task.plan_key))


def is_over(tasks: Sequence[Task], root_id: str) -> bool:
    """Return True when the root is terminal or no task can move without an operator."""
    root = next((task for task in tasks if task.task_id == root_id), None)
    if root is None:
        return False
    if root.status.terminal:
        return True
    moving = (TaskStatus.QUEUED, TaskStatus.IN_PROGRESS)
    by_id = {task.task_id: task for task in tasks}
    return not any(
        task.status in moving or task.status_reason in WAITS_FOR_TIME or _is_about_to_wake(task, by_id)
        for task in tasks
    )


def _is_about_to_wake(task: Task, by_id: Mapping[str, Task]) -> bool:
    """Return True if all that a task waits for has ended: it is queued after that commit, or by the next sweep."""
    if task.status is not TaskStatus.BLOCKED or task.status_reason not in WAITS_FOR_OTHERS:
        return False
    ends = (
        (TaskStatus.DONE, TaskStatus.CANCELED) if task.status_reason is StatusReason.DELEGATING else (TaskStatus.DONE,)
    )
    awaited = [by_id.get(each) for each in awaited_ids(task) if each not in task.gave_up]
    return bool(awaited) and all(each is not None and each.status in ends for each in awaited)
