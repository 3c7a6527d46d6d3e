"""Summary of events that were dropped from the log: one line per event, within a size limit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from fireswarm.contracts.skills.conversation import MAX_SUMMARY_CHARS, LoggedEvent

LINE_CHARS = 200
_LEFT_OUT = re.compile(r"\[(\d+) earlier lines? left out\]\n?")


def append_to_summary(before: str, dropped: Iterable[LoggedEvent]) -> str:
    """Append the *dropped* events to the summary, at most ``MAX_SUMMARY_CHARS``; the oldest lines are removed first.

    A text written by a model counts as one or several such lines; its beginning is removed last.
    """
    lost = 0
    match = _LEFT_OUT.match(before)
    if match:
        lost, before = int(match[1]), before[match.end() :]
    lines = [line for line in before.split("\n") if line] + [format_event(event) for event in dropped]
    kept: list[str] = []
    room = MAX_SUMMARY_CHARS - 60
    for line in reversed(lines):
        if len(line) + 1 > room:
            break
        kept.append(line)
        room -= len(line) + 1
    lost += len(lines) - len(kept)
    head = [f"[{lost} earlier line{'s' if lost != 1 else ''} left out]"] if lost else []
    return "\n".join([*head, *reversed(kept)])


def format_event(event: LoggedEvent) -> str:
    """Format an event in one line."""
    said = ", ".join(f"{name}={_preview(value)}" for name, value in sorted(event.payload.items()))
    return f"turn {event.turn}, {event.type}: {said}"[:LINE_CHARS].rstrip(": ")


def _preview(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return " ".join(text.split())
