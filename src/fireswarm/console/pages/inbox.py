"""What waits for a person: questions, approvals, and tasks that gave up, each with its form."""

from __future__ import annotations

from fireswarm.client import Swarm
from fireswarm.console.pages.questions import shown_questions
from fireswarm.console.visit import Shown, Visit
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import TASKS
from fireswarm.storage.documents.read import parse_readable, parse_task_snapshot

NEEDS_PERSON = frozenset(StatusReason) - {
    StatusReason.DEPENDENCIES,
    StatusReason.DELEGATING,
    StatusReason.RETRY_BACKOFF,
}
"""Reasons that no agent can end by itself; so is a blocked task without a reason."""

READ = 200
"""Maximum number of blocked tasks that are read, the newest first."""

SHOWN = 50


async def find_waiting(swarm: Swarm) -> list[Task]:
    """Return the tasks that wait for a person, most recently changed first."""
    query = queries.newest(TASKS, "updated_at", READ, status=TaskStatus.BLOCKED.value)
    blocked = parse_readable(await swarm.parts.store.query(query), parse_task_snapshot)
    return [task for task in blocked if task.status_reason is None or _needs_person(task)]


def _needs_person(task: Task) -> bool:
    """Return True unless time or other tasks move it on: a paused task with a time starts by itself."""
    return task.status_reason in NEEDS_PERSON and not (
        task.status_reason is StatusReason.PAUSED and task.not_before is not None
    )


async def show(visit: Visit) -> Shown:
    """Make the page."""
    found = await find_waiting(visit.swarm)
    items = [
        {
            "task": task,
            "why": await visit.swarm.explain(task),
            "questions": await shown_questions(visit.swarm, task),
        }
        for task in found[:SHOWN]
    ]
    return Shown("inbox.html", {"items": items, "more": len(found) - len(items)})
