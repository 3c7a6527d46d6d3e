"""Print what the roles of an objective do, without repetitions: their texts, calls and delegated tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from fireswarm.cli.watch.run_view import call_of, print_call
from fireswarm.contracts.limits import clip
from fireswarm.contracts.swarm.event import EventType
from fireswarm.runs.sinks.run_reader import Event

MAX_SAID_CHARS = 400


class Story:
    """Prints the events of all runs of an objective. A resumed run repeats its events, which are skipped."""

    def __init__(self, console: Console) -> None:
        """Print to *console*."""
        self._console = console
        self._told: set[tuple[str, str, str]] = set()
        self._speaking = ""

    def print(self, run: Mapping[str, Any], events: Sequence[Event], *, last: int | None = None) -> None:
        """Print the new *events*; *last* is not used, since a demo shows all events."""
        task, role = str(run.get("task_id")), str(run.get("role"))
        for event in events:
            kind, payload = str(event.get("type")), dict(event.get("payload") or {})
            place = str(payload.get("step_id") or payload.get("turn") or "")
            if (task, kind, place) not in self._told:
                self._told.add((task, kind, place))
                self._tell(role, kind, payload)

    def _tell(self, role: str, kind: str, payload: Mapping[str, Any]) -> None:
        match kind:
            case EventType.RUN_STARTED:
                self._say(role, "begins: ", str(payload.get("task") or payload.get("objective") or ""))
            case EventType.LLM_DECISION_DECODED:
                self._say(role, "" if payload.get("actions") else "answers: ", str(payload.get("reasoning_summary")))
            case EventType.SKILL_STEP_EXECUTED:
                self._show_call(role, payload)
            case EventType.RUN_FAILED | EventType.LLM_REQUEST_FAILED | "turn_failed":
                self._say(role, "failed: ", str(payload.get("error")), "red")
            case _:
                return

    def _show_call(self, role: str, payload: Mapping[str, Any]) -> None:
        name, argument, result, style = call_of(payload)
        if name == "delegate":
            result = ""  # it waits; the other role starts next
        self._take_the_word(role)
        print_call(self._console, name, argument, result, style)

    def _say(self, role: str, verb: str, text: str, style: str = "") -> None:
        first = next((line for line in text.splitlines() if line.strip()), "").lstrip("# ")
        if first:
            self._take_the_word(role)
            self._console.print(Text(f"{verb}{clip(first, MAX_SAID_CHARS)}", style))

    def _take_the_word(self, role: str) -> None:
        """Print the role's name when another role was printed before."""
        if role != self._speaking:
            self._speaking = role
            self._console.print()
            self._console.print(Text(role, "bold magenta"))
