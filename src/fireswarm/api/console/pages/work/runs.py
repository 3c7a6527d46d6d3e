"""One run: its events, a page at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from fireswarm.api.console.visit import Shown, Visit
from fireswarm.contracts.swarm.event import EventType
from fireswarm.errors import NotFound
from fireswarm.runs.event_text import describe_event
from fireswarm.runs.sinks.run_reader import read_events
from fireswarm.runs.steps import number_of_answer
from fireswarm.storage.documents.paths import run_path
from fireswarm.storage.documents.read import parse_run_snapshot

SHOWN_EVENTS = 100
STEPS = {"llm": "call of the model", "budget": "budget that is left", "act": "action"}
"""Kinds of steps in words."""

KINDS = {kind.value: kind for kind in EventType}


async def show(visit: Visit) -> Shown:
    """Make the page: the last events, or those before a number."""
    run_id = visit.path["run_id"]
    snapshot = await visit.swarm.parts.store.get(run_path(run_id))
    if snapshot.data is None:
        raise NotFound(f"there is no run {run_id}")
    events = await read_events(visit.swarm.parts.store, snapshot)
    given = visit.query.get("before", "")
    end = min(int(given), len(events)) if given.isdecimal() and len(given) < 10 else len(events)
    start = max(0, end - SHOWN_EVENTS)
    rows = [_row(number, event) for number, event in enumerate(events[start:end], start + 1)]
    values = {"run": parse_run_snapshot(snapshot), "events": rows, "total": len(events), "start": start, "end": end}
    return Shown("run.html", {**values, "step": SHOWN_EVENTS})


def _row(number: int, found: Any) -> dict[str, Any]:
    """Return the values of an event's row; of a malformed one, which a hand wrote, what there is."""
    event: Mapping[str, Any] = cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {"type": found}
    kind, given = str(event.get("type")), event.get("payload")
    payload: dict[str, Any] = dict(cast("Mapping[str, Any]", given)) if isinstance(given, Mapping) else {}
    text = describe_event(KINDS[kind], payload) if kind in KINDS else _describe_step(str(payload.get("step", "")))
    shown = {"at": event.get("ts"), "kind": kind.replace("_", " "), "text": text, "payload": payload}
    return shown | {"number": number, "answer": number_of_answer(str(payload.get("step")))}


def _describe_step(step: str) -> str:
    """Return a step's id in words: ``0/llm:1.0:7423`` is a call of the model."""
    kind, _, more = step.rpartition("/")[2].partition(":")
    return f"{STEPS.get(kind, kind)} {more.partition(':')[0]}".strip()
