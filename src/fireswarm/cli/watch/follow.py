"""Print the events of an objective's runs as they happen, for ``swarm watch`` and ``swarm show``.

A short run stores its events on its document, a long one on pages of its ``journal``. Both are append-only, so the
number of printed events identifies the new ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from rich.console import Console
from rich.text import Text

from fireswarm.cli.watch.event_line import DETAILS, FAULTS, SEVERITY, WARNINGS, EventPrinter, is_narrow
from fireswarm.client import Swarm
from fireswarm.contracts.base import count_noun
from fireswarm.contracts.limits import clip, shown_id
from fireswarm.contracts.ports import Snapshot
from fireswarm.contracts.skills.skill import NEEDS_MODEL
from fireswarm.contracts.swarm.event import EventRecord, EventType
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.runs.event_text import QUESTION, describe_question
from fireswarm.runs.sinks.run_reader import Event, RunReader
from fireswarm.storage.documents import queries
from fireswarm.swarm.records.run_follower import RunFollower, has_ended

EARLIER_SHOWN = 10
EARLIER_RUNS = 5
"""Earlier events shown at the start: number of last events per run, and number of ended runs besides the open ones."""

LIVE_CHARS = 160
OURS = frozenset(kind.value for kind in EventType)
FAILED = frozenset({"turn_failed", "step_failed", *(kind.value for kind in FAULTS)})
QUIET = frozenset({"step_started", "step_finished", "step_replayed"})
"""Bookkeeping events of the journal: shown at level debug only, except the end of a skill."""

_SAID = re.compile(r'"(?:text|answer|question|command)"\s*:\s*"((?:[^"\\]|\\.)*)')
_ESCAPED = re.compile(r"\\(.)")


class RunEventPrinter:
    """Prints one run's events of at least *level*."""

    def __init__(self, console: Console, level: str) -> None:
        self._console = console
        self._level = level
        self._printer = EventPrinter(console, level, of_one_run=False)

    def print(self, run: Mapping[str, Any], events: Sequence[Event], *, last: int | None = None) -> None:
        """Print *events* of *run*. With *last*, print the number of omitted events and then only that many."""
        events = [event for event in events if severity(event) >= SEVERITY[self._level]]
        left = len(events) - last if last is not None else 0
        if left > 0:
            task = shown_id(str(run.get("task_id")))
            self._console.print(Text(f"{'':8} {task} … {count_noun(left, 'earlier event')}", "dim"), soft_wrap=True)
        for event in events[max(0, left) :]:
            self._one(run, event)

    def _one(self, run: Mapping[str, Any], event: Event) -> None:
        """Print one event, of the mind or of the journal."""
        kind, payload = str(event.get("type")), dict(event.get("payload") or {})
        if kind not in OURS:
            self._journal(run, kind, event, payload)
            return
        record = EventRecord(
            run_id=str(run.get("run_id")),
            trace_id=str(run.get("task_id")),
            span_id=f"turn-{payload.get('turn', '')}",
            timestamp=event["ts"],
            event_type=EventType(kind),
            payload=payload,
        )
        self._printer.event(record)

    def _journal(self, run: Mapping[str, Any], kind: str, event: Event, payload: Mapping[str, Any]) -> None:
        """Print an event of the journal, which also exists for a run without a model."""
        style = {0: "dim", 3: "red"}.get(severity(event), "")
        step = _step_of(payload)
        detail = step or str(payload.get("skill", ""))
        said = brief(str(payload.get("error") or payload.get("reason") or ""))
        if asked := describe_question(kind, payload):
            kind, detail, said = QUESTION, asked, ""
        if why := payload.get("without_model"):  # the rest of the text is printed by agents at their start
            said = f"by its code, {str(why).partition(',')[0]}"
        line = Text()
        line.append(f"{event['ts']:%H:%M:%S} {shown_id(str(run.get('task_id')))} ", "dim")
        narrow = is_narrow(self._console)
        if not narrow:
            line.append(f"{'':2} {str(run.get('role')):<24} ", "magenta")
        line.append(f"{'':{3 if narrow else 0}}{kind:<{0 if narrow else 27}} ", style or "bold")
        line.append(f"{detail}{': ' if detail and said else ''}{clip(said, 160)}", style)
        if self._console.is_terminal:  # one line per event, as in the table
            self._console.print(line, no_wrap=True, overflow="ellipsis", crop=True)
        else:
            self._console.print(line, soft_wrap=True)


class PrintsEvents(Protocol):
    """Prints the new events of a run."""

    def print(self, run: Mapping[str, Any], events: Sequence[Event], *, last: int | None = None) -> None:
        """Print *events* of *run*; with *last*, only the last of them."""
        ...


class RunPrinter:
    """Follows the runs of one objective: prints events, and has the text that models are writing."""

    def __init__(
        self,
        swarm: Swarm,
        chain_id: str,
        console: Console,
        level: str = "info",
        on_change: Callable[[], None] | None = None,
        printer: PrintsEvents | None = None,
    ) -> None:
        """Prepare to follow the runs of *chain_id*; *on_change* is called after each report.

        *printer* prints the events of all runs; without one, each event becomes a line.
        """
        self._swarm = swarm
        self._console = console
        self._level = level
        self.on_change = on_change
        self._shared = printer
        self._runs: dict[str, tuple[RunReader, PrintsEvents]] = {}
        self._follower = RunFollower(swarm.parts.store, swarm.parts.clock, queries.runs_of(chain_id), self._print)
        self._over: set[str] = set()
        self._begun = False

    async def follow(self) -> None:
        """Print events until canceled."""
        await self._follower.follow()

    async def finish(self) -> None:
        """Print the events of the last commit."""
        await self._follower.read_once()

    def speaking(self) -> list[tuple[str, str, str]]:
        """Return task id, role and the last text of each run whose model is writing."""
        runs = [run.data or {} for run in self._follower.known.values()]
        return [
            (str(run.get("task_id")), str(run.get("role")), tail(str(run["live"])))
            for run in runs
            if run.get("live") and run.get("status") == RunStatus.PROGRESS.value
        ]

    async def _print(self, runs: Sequence[Snapshot]) -> None:
        """Print the new events of *runs*; the first time, only the last ones of open and recently ended runs."""
        last = None if self._begun else EARLIER_SHOWN
        if not self._begun:
            self._over = {run.path for run in [run for run in runs if has_ended(run)][:-EARLIER_RUNS]}
        self._begun = True
        for run in runs:
            if run.path in self._over:
                continue
            if run.path not in self._runs:
                printer = self._shared or RunEventPrinter(self._console, self._level)
                self._runs[run.path] = (RunReader(self._swarm.parts.store), printer)
            reader, printer = self._runs[run.path]
            printer.print(run.data or {}, await reader.news(run), last=last)
            if has_ended(run):
                self._over.add(run.path)
        if self.on_change is not None:
            self.on_change()


def severity(event: Event) -> int:
    """Return the severity of an event: 0 is shown only at level debug, 3 is an error."""
    kind = str(event.get("type"))
    if describe_question(kind, event.get("payload") or {}):
        return SEVERITY["info"]
    if kind in FAILED:
        return SEVERITY["error"]
    if kind in WARNINGS:
        return SEVERITY["warning"]
    of_a_skill = _step_of(event.get("payload") or {}).startswith("skill:") and kind != "step_started"
    quiet = kind in DETAILS or (kind in QUIET and not of_a_skill)
    return SEVERITY["debug" if quiet else "info"]


def brief(text: str) -> str:
    """Return a short form of the reason for a refused objective, since its full text is printed once; or *text*."""
    return text.partition(";")[0] if text.startswith(NEEDS_MODEL) else text


def _step_of(payload: Mapping[str, Any]) -> str:
    """Return the name of a step without the hash of its input."""
    return str(payload.get("step", "")).rpartition(":")[0]


def tail(words: str) -> str:
    """Return the end of a model's text, on one line; for an unfinished decision, its current sentence."""
    sentences = _SAID.findall(words)
    said = _ESCAPED.sub(lambda found: " " if found[1] in "nrt" else found[1], sentences[-1]) if sentences else words
    line = " ".join(said.split())
    return line if len(line) <= LIVE_CHARS else "…" + line[-LIVE_CHARS:]
