"""States of the protocol: what a client of A2A is told about the state of a task and its objective."""

from __future__ import annotations

from collections.abc import Sequence

from a2a.types import TaskState

from fireswarm.contracts.skills.skill import Question, asks_a_person
from fireswarm.contracts.swarm.task import WAITS_FOR_OTHERS, WAITS_FOR_TIME, Task, TaskStatus

ENDED = frozenset(
    {
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_REJECTED,
    }
)
"""States in which a task takes no messages. An operator can still retry a failed one."""

RESTS = ENDED | {TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED}
"""States at which a stream and a blocking request end."""

_STATES = {
    TaskStatus.QUEUED: TaskState.TASK_STATE_SUBMITTED,
    TaskStatus.IN_PROGRESS: TaskState.TASK_STATE_WORKING,
    TaskStatus.DONE: TaskState.TASK_STATE_COMPLETED,
    TaskStatus.CANCELED: TaskState.TASK_STATE_CANCELED,
}

STATUS_OF = {
    TaskState.TASK_STATE_SUBMITTED: TaskStatus.QUEUED,
    TaskState.TASK_STATE_COMPLETED: TaskStatus.DONE,
    TaskState.TASK_STATE_CANCELED: TaskStatus.CANCELED,
    TaskState.TASK_STATE_FAILED: TaskStatus.BLOCKED,
    TaskState.TASK_STATE_INPUT_REQUIRED: TaskStatus.BLOCKED,
}
"""The status of all tasks in a state; tasks that work are in progress, or blocked until time or others move them."""


def state_of(task: Task, tree: Sequence[Task]) -> TaskState:
    """Return the state of a task; *tree* are the tasks of its objective, needed only if it waits for others."""
    if task.status is not TaskStatus.BLOCKED:
        return _STATES[task.status]
    if task.given_up:
        return TaskState.TASK_STATE_FAILED
    if task.needs_person or who_asks(task, tree) or _is_stuck(task, tree):
        return TaskState.TASK_STATE_INPUT_REQUIRED
    return TaskState.TASK_STATE_WORKING


def waits_for_others(task: Task) -> bool:
    """Return True for an objective whose state depends on the tasks that it planned."""
    waits = task.status is TaskStatus.BLOCKED and task.status_reason in WAITS_FOR_OTHERS
    return waits and task.parent_task_id is None


def who_asks(task: Task, tree: Sequence[Task]) -> list[Task]:
    """Return the tasks with open questions that a client may see: the task itself, or those that it waits for."""
    others = tree if waits_for_others(task) else ()
    every = [task, *(other for other in others if other.task_id != task.task_id)]
    return [each for each in every if each.status is TaskStatus.BLOCKED and each.questions]


def for_person_only(task: Task) -> bool:
    """Return True if a person answers the questions of a task: it asks for an approval, or for advice."""
    return asks_a_person(task.questions)


def open_questions(tasks: Sequence[Task]) -> list[tuple[Task, Question]]:
    """Return the questions of *tasks*, each with its task."""
    return [(task, question) for task in tasks for question in task.questions]


def _is_stuck(task: Task, tree: Sequence[Task]) -> bool:
    """Return True if an objective waits for tasks of which none moves by itself, and one needs a person."""
    if not waits_for_others(task):
        return False
    moves = any(
        each.status in (TaskStatus.QUEUED, TaskStatus.IN_PROGRESS) or each.status_reason in WAITS_FOR_TIME
        for each in tree
    )
    return not moves and any(each.needs_person for each in tree)
