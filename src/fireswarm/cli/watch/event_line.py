"""Print a run's events as they arrive, one line per event. The events come from the log, which has no secrets."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from fireswarm.contracts.limits import clip
from fireswarm.contracts.swarm.event import EventRecord, EventType
from fireswarm.runs.event_text import describe_event

SEVERITY = {"debug": 0, "info": 1, "warning": 2, "error": 3}
DETAILS = frozenset({EventType.PROMPT_BUDGET_COMPUTED, EventType.PROMPT_COMPOSED, EventType.SKILL_CATALOG_LOADED})
"""Shown at level debug only."""

WARNINGS = frozenset({EventType.LLM_RETRY_SCHEDULED, EventType.STEP_RETRY_SCHEDULED, EventType.SIGNAL_RECEIVED})
FAULTS = frozenset({EventType.LLM_REQUEST_FAILED, EventType.RUN_FAILED})
STYLES = {0: "dim", 1: "", 2: "yellow", 3: "red"}

NARROW = 110
"""Minimum terminal width for a full event; narrower terminals get fewer columns."""


class EventPrinter:
    """Prints events of at least *level*. A model's text is shown dimmed while it arrives."""

    def __init__(self, console: Console, level: str = "info", *, of_one_run: bool = True) -> None:
        """Print to *console*, the events of one run or of several."""
        self._console = console
        self._of_one_run = of_one_run
        self._level = SEVERITY[level]
        self._speaking = False
        self._skill = "-"

    def event(self, record: EventRecord) -> None:
        """Print one event."""
        kind, payload = record.event_type, record.payload
        if kind is EventType.SKILL_INVOCATION_STARTED:
            self._skill = str(payload.get("skill") or "-")
        severity = 3 if kind in FAULTS else 2 if kind in WARNINGS else 0 if kind in DETAILS else 1
        if severity < self._level:
            return
        self._silence()
        turn = record.span_id.removeprefix("turn-")
        narrow = is_narrow(self._console)
        line = Text()
        line.append(f"{record.timestamp:%H:%M:%S} ", "dim")
        if not (narrow and self._of_one_run):
            line.append(f"{record.trace_id[:8]} ", "dim")
        line.append(f"{turn:>2} ", "cyan")
        if not narrow:
            line.append(f"{clip(self._skill, 24):<24} ", "magenta")
        line.append(f"{kind.value:<{0 if narrow else 27}} ", STYLES[severity] or "bold")
        if narrow and kind is EventType.SKILL_INVOCATION_STARTED:
            line.append(f"{self._skill} ", "magenta")
        line.append(describe_event(kind, payload), STYLES[severity])
        if self._console.is_terminal:  # one line per event on a terminal; a file gets the full line
            self._console.print(line, no_wrap=True, overflow="ellipsis", crop=True)
        else:
            self._console.print(line, soft_wrap=True)

    def words(self, text: str) -> None:
        """Print a piece of the model's answer."""
        self._speaking = True
        self._console.print(Text(text, "dim"), end="", soft_wrap=True)

    def _silence(self) -> None:
        if self._speaking:
            self._console.print()
            self._speaking = False


def is_narrow(console: Console) -> bool:
    """Return True for a terminal that is too narrow for all columns of an event; a file gets all columns."""
    return console.is_terminal and console.width < NARROW
