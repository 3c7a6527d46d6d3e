"""What waits for a person: questions, approvals, and tasks that gave up, each with its form."""

from __future__ import annotations

from dataclasses import dataclass

from fireswarm.api.console.pages.work.questions import describe_uncertain, shown_questions
from fireswarm.api.console.visit import Shown, Visit, WebConsole
from fireswarm.client import Swarm
from fireswarm.contracts.swarm.task import Task, TaskStatus
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import TASKS
from fireswarm.storage.documents.read import parse_all, parse_task_snapshot

READ = 100
"""Maximum number of blocked tasks that are read, the newest first."""

KEPT_SECONDS = 10.0
"""How long the inbox is kept for all pages; an action of this console reads it anew."""

SHOWN = 50


@dataclass(frozen=True, slots=True)
class Inbox:
    """The tasks that wait for a person, longest first; ``unreadable`` are ids of blocked documents with a fault.

    ``more`` is True if older blocked tasks were not read.
    """

    tasks: tuple[Task, ...]
    unreadable: tuple[str, ...]
    more: bool

    @property
    def count(self) -> str:
        """The number of tasks, "" for none."""
        return f"{len(self.tasks)}{'+' if self.more else ''}" if self.tasks else ""


async def find_waiting(console: WebConsole) -> Inbox:
    """Return what waits for a person."""
    return await console.feed.keep("inbox", KEPT_SECONDS, lambda: _read(console.swarm))


async def _read(swarm: Swarm) -> Inbox:
    query = queries.newest(TASKS, "updated_at", READ, status=TaskStatus.BLOCKED.value)
    snapshots = await swarm.parts.store.query(query)
    blocked, others = parse_all(snapshots, parse_task_snapshot)
    waiting = [task for task in reversed(blocked) if task.needs_person]
    return Inbox(tuple(waiting), tuple(snapshot.id for snapshot, _ in others), len(snapshots) == READ)


async def show(visit: Visit) -> Shown:
    """Make the page."""
    found = await find_waiting(visit.console)
    items = [
        {
            "task": task,
            "why": await visit.swarm.explain(task),
            "questions": await shown_questions(visit.swarm, task),
            "uncertain": await describe_uncertain(visit.swarm, task),
        }
        for task in found.tasks[:SHOWN]
    ]
    return Shown("inbox.html", {"items": items, "more": len(found.tasks) - len(items), "unreadable": found.unreadable})
