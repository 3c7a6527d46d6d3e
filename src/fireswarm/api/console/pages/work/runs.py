"""One run: its events, a page at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from fireswarm.api.console.visit import Shown, Visit
from fireswarm.contracts.swarm.event import EventType
from fireswarm.errors import InvalidInput, NotFound
from fireswarm.runs.event_text import QUESTION, describe_event, describe_journal_event, describe_question
from fireswarm.runs.sinks.run_reader import read_last_events
from fireswarm.runs.steps import STEP_FINISHED, STEP_REPLAYED, is_answer, number_of_answer
from fireswarm.storage.documents.paths import run_path
from fireswarm.storage.documents.read import parse_run_snapshot

READ_PAGES = 8
"""Pages of a journal that are read, of 16 events or a few more each: each costs a read, also at each refresh."""

MAX_DIGITS = 6
KINDS = {kind.value: kind for kind in EventType}


async def show(visit: Visit) -> Shown:
    """Make the page: the last events, or those before a page of the journal."""
    run_id, store = visit.path["run_id"], visit.swarm.parts.store
    snapshot = await store.get(run_path(run_id))
    if snapshot.data is None:
        raise NotFound(f"there is no run {run_id}")
    given = visit.query.get("before", "")
    before = int(given) if given.isdecimal() and len(given) <= MAX_DIGITS else 0
    found = await read_last_events(store, snapshot, before, READ_PAGES)
    rows = [_row(event) for event in found.events]
    run = parse_run_snapshot(snapshot)
    try:
        task = await visit.swarm.get(run.task_id)
    except (NotFound, InvalidInput):
        task = None
    [run] = await visit.swarm.parts.run_ends.complete([run], [task] if task else [])
    values = {
        "run": run,
        "task": task,
        "events": rows,
        "earlier": found.earlier,
        "before": before,
        "talks": any(row["answered"] for row in rows) or bool((found.earlier or before) and run.usage.get("calls")),
    }
    return Shown("run.html", values)


def _row(found: Any) -> dict[str, Any]:
    """Return the values of an event's row; of a malformed one, which a hand wrote, what there is."""
    event: Mapping[str, Any] = cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {"type": found}
    kind, given = str(event.get("type")), event.get("payload")
    payload: dict[str, Any] = dict(cast("Mapping[str, Any]", given)) if isinstance(given, Mapping) else {}
    asked = describe_question(kind, payload)
    text = asked or (describe_event(KINDS[kind], payload) if kind in KINDS else describe_journal_event(payload))
    named = QUESTION if asked else kind.replace("_", " ")
    shown = {"at": event.get("ts"), "kind": named, "text": text, "payload": payload}
    step = str(payload.get("step"))
    answered = kind in (STEP_FINISHED, STEP_REPLAYED) and is_answer(step)
    return shown | {"answer": number_of_answer(step), "answered": answered}
