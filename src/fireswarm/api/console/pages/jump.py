"""Find a task, file, agent, schedule or screen by a few words, and go there if it is the only one; or an action."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from fireswarm.api.console.pages.agents import find_living
from fireswarm.api.console.pages.work.schedules import keep_schedules
from fireswarm.api.console.rendering import quote_part
from fireswarm.api.console.visit import Goto, Shown, Visit
from fireswarm.contracts.base import is_document_id
from fireswarm.contracts.swarm.task import WAITS_FOR_OTHERS, Task, TaskStatus
from fireswarm.errors import InvalidInput, NotFound
from fireswarm.storage.documents.paths import run_path
from fireswarm.swarm.records.artifacts import name_of

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
    ("Schedules: objectives that are submitted again and again", "/schedules"),
    ("New objective", "/new"),
    ("Agents and roles", "/agents"),
    ("Skills, and what each role may use", "/skills"),
    ("Mail", "/mail"),
    ("Memory", "/memory"),
    ("Spend and budgets", "/spend"),
    ("Store: documents and counts", "/store"),
    ("What nobody works on, and what cannot be read", "/store/check"),
)


RETRY, CANCEL = "retry", "cancel"
ORDERS = ("pause", "resume", "drain")
"""First words that find an action: on tasks, and on roles and agents."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A place or an action that was found. ``kind`` is what it is, ``path`` its address below the console.

    ``action`` is the first word of an action, "" for a place. ``told`` is the summary of a task that was found by it.
    """

    kind: str
    title: str
    path: str
    task: Task | None = None
    action: str = ""
    told: str = ""


async def show(visit: Visit) -> Shown | Goto:
    """Go to the only place that has all words, or list the places."""
    text = visit.query.get("q", "").strip()
    words = text.casefold().split()
    hits = await _find(visit, text, words) if words else []
    if len(hits) == 1 and not hits[0].action:
        return Goto(hits[0].path)
    screens = [Hit("screen", title, path) for title, path in SCREENS]
    return Shown("jump.html", {"q": text, "hits": hits[:SHOWN] if words else screens, "more": len(hits) > SHOWN})


async def _find(visit: Visit, text: str, words: list[str]) -> list[Hit]:
    """Return the actions, then the places that have all words: screens, agents, tasks and files, the newest first."""
    clean = visit.console.redactor.clean  # a search must not find a secret by its beginning
    found = [Hit("screen", title, path) for title, path in SCREENS if _has_words(title, words)]
    living = await find_living(visit.swarm)
    for agent in living:
        if _has_words(f"{agent.agent_id} {agent.role}", words):
            found.append(Hit("agent", agent.agent_id, f"/agents/{quote_part(agent.agent_id)}"))
    newest = await visit.console.feed.remember("newest tasks", KEPT_SECONDS, lambda: visit.swarm.tasks(limit=SEARCHED))
    for each in (await keep_schedules(visit)).schedules:
        if _has_words(clean(f"{each.schedule_id} {each.objective}"), words):
            found.append(Hit("schedule", each.schedule_id, f"/schedules/{quote_part(each.schedule_id)}"))
    texts = {task.task_id: _texts_of(task, clean) for task in newest}
    tasks = [_at(task, told) for task in newest if (told := _match(task, texts[task.task_id], words)) is not None]
    actions: list[Hit] = []
    if visit.visitor.acts and words[0] in (RETRY, CANCEL):
        actions = [
            _at(task, told, words[0])
            for task in newest
            if _allows(task, words[0]) and (told := _match(task, texts[task.task_id], words[1:])) is not None
        ]
    elif visit.visitor.acts and words[0] in ORDERS:
        now = visit.swarm.parts.clock.now()
        names = [*sorted(visit.swarm.parts.roles), *(agent.agent_id for agent in living if agent.lives_at(now))]
        actions = [Hit("action", name, "/agents", None, words[0]) for name in names if _has_words(name, words[1:])]
    if not tasks and len(text) >= MIN_PREFIX_CHARS and " " not in text:
        with contextlib.suppress(NotFound, InvalidInput):
            tasks = [_at(await visit.swarm.find(text))]
    if _is_run_id(text) and (await visit.swarm.parts.store.get(run_path(text))).data is not None:
        found.append(Hit("run", text, f"/runs/{quote_part(text)}"))
    return [*actions, *found, *tasks, *_find_files(newest, words, clean)]


def _texts_of(task: Task, clean: Callable[[str], str]) -> tuple[str, str]:
    """Return what names a task, and its summary, which has the first line of its error.

    The summary of a task in progress only names its agent, which is found itself.
    """
    summary = "" if task.status is TaskStatus.IN_PROGRESS else clean(task.summary)
    return clean(f"{task.objective} {task.assigned_to} {task.task_id}"), summary


def _match(task: Task, texts: tuple[str, str], words: Sequence[str]) -> str | None:
    """Return "" if what names a task has all words, its summary if they are in both, and None otherwise."""
    if _has_words(texts[0], words):
        return ""
    return task.summary if _has_words(" ".join(texts), words) else None


def _at(task: Task, told: str = "", action: str = "") -> Hit:
    """Return the hit of a task, or of an action on it."""
    return Hit("action" if action else "task", task.objective, f"/tasks/{quote_part(task.task_id)}", task, action, told)


def _allows(task: Task, action: str) -> bool:
    """Return True if an action can move a task."""
    if action == CANCEL:
        return not task.status.terminal
    stopped = task.status is TaskStatus.BLOCKED and task.status_reason not in WAITS_FOR_OTHERS
    return stopped and not task.questions and not task.uncertain_step


def _find_files(tasks: Iterable[Task], words: Sequence[str], clean: Callable[[str], str]) -> Iterator[Hit]:
    """Yield the files of the tasks' results whose names have all words."""
    for task in tasks:
        for number, artifact in enumerate(task.result.artifacts if task.result else ()):
            if _has_words(clean(name_of(artifact)), words):
                yield Hit("file", name_of(artifact), f"/tasks/{quote_part(task.task_id)}/files/{number}/shown", task)


def _is_run_id(text: str) -> bool:
    """Return True for the id of a task and the number of its run."""
    task_id, _, epoch = text.rpartition(".")
    return is_document_id(task_id) and epoch.isdecimal()


def _has_words(text: str, words: Sequence[str]) -> bool:
    folded = text.casefold()
    return all(word in folded for word in words)
