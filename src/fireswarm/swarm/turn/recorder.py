"""Write a model run's events and steps into the journal of its task."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from fireswarm.contracts.swarm.event import EventType
from fireswarm.errors import StoreError
from fireswarm.redaction import Redactor, StreamRedactor
from fireswarm.swarm.records.journal import Journal

LIVE_SECONDS = 2.0
"""How often a model's words are stored while they come: only calls that take longer cost a write more."""


LIVE_CHARS = 2_000


@dataclass(slots=True)
class JournalRecorder:
    """Writes a run of the mind into the journal of its lease.

    ``phase`` counts the plans handed out before, or names the question; ``streams`` says that the model's words come
    while it speaks.
    """

    journal: Journal
    redact: Redactor
    phase: int | str = 0
    streams: bool = False
    _live: str = ""
    _stream: StreamRedactor = field(init=False)

    def __post_init__(self) -> None:
        """Clean words with the redactor."""
        self._stream = StreamRedactor(self.redact)

    @property
    def run_id(self) -> str:
        """The run document."""
        return self.journal.run_id

    @property
    def follows(self) -> bool:
        """True when the model's words are stored while they come."""
        return self.streams

    def event(self, kind: EventType, payload: Mapping[str, Any]) -> None:
        """Note an event; it is stored with the next step. What is empty is left out: a document shows what it has."""
        shown = {name: value for name, value in payload.items() if value is not None and value not in ("", [], {})}
        self.journal.note(kind.value, **self.redact.value(shown))

    def words(self, text: str) -> None:
        """Take a piece of the model's answer; it is shown at the next tick."""
        self._live = (self._live + self._stream.feed(text))[-LIVE_CHARS:]

    def record_usage(self, usage: Mapping[str, Any]) -> None:
        """Count a call on the run document."""
        total = self.journal.usage
        for name, value in usage.items():
            counts = isinstance(value, (int, float)) and not isinstance(value, bool)
            total[name] = total.get(name, 0) + value if counts else value

    async def step(
        self, name: str, run: Callable[[], Awaitable[dict[str, Any]]], *, idempotent: bool
    ) -> dict[str, Any]:
        """Run a step once, whatever crashes; its result is stored before anything else is done."""

        async def clean_result() -> dict[str, Any]:
            shown = self.streams and name.startswith("llm:")
            return self.redact.value(await (self._run_showing_words(run) if shown else run()))

        return dict(await self.journal.step(f"{self.phase}/{name}", None, clean_result, idempotent=idempotent))

    def body(self, name: str, content: str) -> None:
        """Bodies are kept by the stand-alone agent only: a document is no place for them."""

    async def _run_showing_words(self, run: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Run, and store the model's words every now and then while they come."""
        self._live = ""
        self._stream.rest()  # what the last call left unsaid is not this one's
        ended = anyio.Event()
        outcome: list[dict[str, Any] | Exception] = []

        async def work() -> None:
            try:
                outcome.append(await run())
            except Exception as error:  # carried out of the task group as it is; raised again below
                outcome.append(error)
            ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            while not await self.journal.clock.wait(ended, LIVE_SECONDS):
                if self._live and self._live != self.journal.live:
                    self.journal.show(self._live)
                    with contextlib.suppress(StoreError):  # the answer is paid for, its show is not worth it
                        await self.journal.flush()
        if self.journal.live:
            self.journal.show("")
        if isinstance(outcome[0], Exception):
            raise outcome[0]
        return outcome[0]
