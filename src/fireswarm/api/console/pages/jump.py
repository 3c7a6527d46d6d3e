"""Find a task, an agent, a role or a screen by a few words, or go there at once if there is only one."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from fireswarm.api.console.pages.agents import find_living
from fireswarm.api.console.rendering import quote_part
from fireswarm.api.console.visit import Goto, Shown, Visit
from fireswarm.contracts.base import is_document_id
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput, NotFound
from fireswarm.storage.documents.paths import run_path

SEARCHED, KEPT_SECONDS = 300, 10.0
"""Number of newest tasks among which words are looked for, and how long they are kept: each costs a read."""

SHOWN = 40
MIN_PREFIX_CHARS = 6
"""Minimum length of the beginning of an id that is looked for in the store."""

SCREENS = (
    ("Overview", "/"),
    ("Inbox: questions, approvals, what gave up", "/inbox"),
    ("Tasks", "/tasks"),
    ("The slowest tasks", "/tasks?sort=slowest"),
    ("New objective", "/new"),
    ("Agents and roles", "/agents"),
    ("Skills, and what each role may use", "/skills"),
    ("Mail", "/mail"),
    ("Memory", "/memory"),
    ("Spend and budgets", "/spend"),
    ("Store: documents and counts", "/store"),
)


@dataclass(frozen=True, slots=True)
class Hit:
    """A place that was found. ``kind`` is what it is, ``path`` its address below the console."""

    kind: str
    title: str
    path: str
    task: Task | None = None


async def show(visit: Visit) -> Shown | Goto:
    """Go to the only place that has all words, or list the places."""
    text = visit.query.get("q", "").strip()
    words = text.casefold().split()
    hits = await _find(visit, text, words) if words else []
    if len(hits) == 1:
        return Goto(hits[0].path)
    screens = [Hit("screen", title, path) for title, path in SCREENS]
    return Shown("jump.html", {"q": text, "hits": hits[:SHOWN] if words else screens, "more": len(hits) > SHOWN})


async def _find(visit: Visit, text: str, words: list[str]) -> list[Hit]:
    """Return the places that have all words: screens, agents, then tasks, the newest first."""
    clean = visit.console.redactor.clean  # a search must not find a secret by its beginning
    found = [Hit("screen", title, path) for title, path in SCREENS if _has_words(title, words)]
    for agent in await find_living(visit.swarm):
        if _has_words(f"{agent.agent_id} {agent.role}", words):
            found.append(Hit("agent", agent.agent_id, f"/agents/{quote_part(agent.agent_id)}"))
    newest = await visit.console.feed.remember("newest tasks", KEPT_SECONDS, lambda: visit.swarm.tasks(limit=SEARCHED))
    tasks = [task for task in newest if _has_words(clean(f"{task.objective} {task.assigned_to} {task.task_id}"), words)]
    if not tasks and len(text) >= MIN_PREFIX_CHARS and " " not in text:
        with contextlib.suppress(NotFound, InvalidInput):
            tasks = [await visit.swarm.find(text)]
    if _is_run_id(text) and (await visit.swarm.parts.store.get(run_path(text))).data is not None:
        found.append(Hit("run", text, f"/runs/{quote_part(text)}"))
    return [*found, *(Hit("task", task.objective, f"/tasks/{quote_part(task.task_id)}", task) for task in tasks)]


def _is_run_id(text: str) -> bool:
    """Return True for the id of a task and the number of its run."""
    task_id, _, epoch = text.rpartition(".")
    return is_document_id(task_id) and epoch.isdecimal()


def _has_words(text: str, words: list[str]) -> bool:
    folded = text.casefold()
    return all(word in folded for word in words)
