"""What the swarm remembers: facts with source and history, which a person corrects, marks as wrong or forgets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fireswarm.api.console.visit import Goto, Shown, Visit
from fireswarm.client import Swarm
from fireswarm.contracts.base import is_document_id
from fireswarm.contracts.ports import Snapshot
from fireswarm.contracts.skills.skill import Fact
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import MEMORY, task_path
from fireswarm.storage.documents.read import parse_readable, parse_task_snapshot
from fireswarm.storage.memory.fact_documents import SUMMARIES, is_wrong, parse_fact, read_value
from fireswarm.storage.memory.session_memory import CORRECTED_BY

SHOWN = 50
_TASK = re.compile(r"(?:^|\btask )([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$")
"""The id of a task at the end of a source."""

MARKS = {"wrong": True, "right": False}


@dataclass(frozen=True, slots=True)
class Written:
    """A value of a fact with the task that wrote it, None if that is not there; ``words`` name other sources."""

    fact: Fact
    words: str
    task: Task | None


async def show(visit: Visit) -> Shown:
    """Make the page of the newest facts, or of those that share a word with a query."""
    text = visit.query.get("query", "").strip()
    if text:
        facts, wrong = await visit.swarm.recall(text, limit=SHOWN), set[str]()
    else:
        found = await visit.swarm.parts.store.query(queries.newest(MEMORY, "created_at", SHOWN, type="fact"))
        facts = parse_readable(found, parse_fact)
        wrong = {snapshot.id for snapshot in found if is_wrong(snapshot.data or {})}
    rows = [(fact, *split_source(fact.source)) for fact in facts]
    return Shown("memory.html", {"rows": rows, "wrong": wrong, "query": text})


async def show_fact(visit: Visit) -> Shown:
    """Make the page of a fact with the values that it has had. Raises NotFound."""
    snapshots = await visit.swarm.parts.memory.find_values(visit.path["fact_id"])
    current, *earlier = await _find_writers(visit.swarm, snapshots)
    data = snapshots[0].data or {}
    values = {
        "fact": current.fact,
        "written": current,
        "earlier": earlier,
        "wrong": is_wrong(data),
        "reason": str(data.get("wrong_reason") or ""),
        "summary": current.fact.bucket == SUMMARIES,
    }
    return Shown("fact.html", values)


async def _find_writers(swarm: Swarm, snapshots: Sequence[Snapshot]) -> list[Written]:
    """Return the values of a fact with the tasks that wrote them, as far as these are there."""
    facts = [(fact, item.data or {}) for item in snapshots for fact in parse_readable([item], parse_fact)]
    ids = [_task_of(fact, data) for fact, data in facts]
    paths = [task_path(task_id) for task_id in dict.fromkeys(ids) if is_document_id(task_id)]
    found = [item for item in await swarm.parts.store.get_many(paths) if item.data is not None] if paths else []
    tasks = {task.task_id: task for task in parse_readable(found, parse_task_snapshot)}
    return [_attribute(fact, tasks.get(task_id)) for (fact, _), task_id in zip(facts, ids, strict=True)]


def _attribute(fact: Fact, task: Task | None) -> Written:
    """Return a value with its task, and with its source unless that only names the same task."""
    named = task is not None and split_source(fact.source)[1] == task.task_id
    return Written(fact, "" if named else fact.source, task)


def _task_of(fact: Fact, data: Mapping[str, Any]) -> str:
    """Return the id of the task that wrote a value, "" for that of a person, also if an earlier version named one."""
    if fact.source == CORRECTED_BY:
        return ""
    return str(data.get("source_task_id") or "") or split_source(fact.source)[1]


def split_source(source: str) -> tuple[str, str]:
    """Return a source without the id of a task at its end, and the id; "" for none."""
    found = _TASK.search(source)
    return (source[: found.start(1)], found[1]) if found else (source, "")


async def correct(visit: Visit) -> Goto:
    """Replace the value of a fact. Raises InvalidInput and NotFound."""
    fact_id = visit.path["fact_id"]
    current = (await visit.swarm.fact_history(fact_id))[0]
    value = visit.form.get("value", "").replace("\r\n", "\n")
    if not value.strip():
        raise InvalidInput("give the value: to delete a fact, forget it")
    fact = await visit.swarm.correct_fact(current.fact_id, read_value(value, current.value))
    return Goto(f"/memory/{fact.fact_id}", "fact_corrected")


async def forget(visit: Visit) -> Goto:
    """Delete a fact with its earlier values. Raises InvalidInput and NotFound."""
    await visit.swarm.forget_fact(visit.path["fact_id"])
    return Goto("/memory", "fact_forgotten")


async def mark(visit: Visit) -> Goto:
    """Mark a fact as wrong, or remove the mark. Raises InvalidInput and NotFound."""
    word = visit.form.get("mark", "")
    if word not in MARKS:
        raise InvalidInput("the form does not say whether the fact is wrong: load the page again")
    fact = await visit.swarm.mark_fact(
        visit.path["fact_id"], wrong=MARKS[word], reason=visit.form.get("reason", "").strip()
    )
    return Goto(f"/memory/{fact.fact_id}", f"fact_{word}")
