"""What the swarm remembers: facts with source and history, which a person corrects, marks as wrong or forgets."""

from __future__ import annotations

from fireswarm.api.console.visit import Goto, Shown, Visit
from fireswarm.errors import InvalidInput
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import MEMORY
from fireswarm.storage.documents.read import parse_readable
from fireswarm.storage.memory.fact_documents import SUMMARIES, is_wrong, parse_fact, read_value

SHOWN = 50
MARKS = {"wrong": True, "right": False}


async def show(visit: Visit) -> Shown:
    """Make the page of the newest facts, or of those that share a word with a query."""
    text = visit.query.get("query", "").strip()
    if text:
        facts, wrong = await visit.swarm.recall(text, limit=SHOWN), set[str]()
    else:
        found = await visit.swarm.parts.store.query(queries.newest(MEMORY, "created_at", SHOWN, type="fact"))
        facts = parse_readable(found, parse_fact)
        wrong = {snapshot.id for snapshot in found if is_wrong(snapshot.data or {})}
    return Shown("memory.html", {"facts": facts, "wrong": wrong, "query": text})


async def show_fact(visit: Visit) -> Shown:
    """Make the page of a fact with the values that it has had. Raises NotFound."""
    fact_id = visit.path["fact_id"]
    data = (await visit.swarm.parts.memory.find(fact_id)).data or {}
    current, *earlier = await visit.swarm.fact_history(fact_id)
    values = {
        "fact": current,
        "earlier": earlier,
        "wrong": is_wrong(data),
        "reason": str(data.get("wrong_reason") or ""),
        "summary": current.bucket == SUMMARIES,
        "task_id": str(data.get("source_task_id") or ""),
    }
    return Shown("fact.html", values)


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
