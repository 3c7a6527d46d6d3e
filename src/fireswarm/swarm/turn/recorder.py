"""Record a model's events and steps in the journal of its task."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from fireswarm.contracts.swarm.event import EventType
from fireswarm.errors import StoreError
from fireswarm.redaction import Redactor, StreamRedactor
from fireswarm.runs.sinks.documents import Journal
from fireswarm.runs.sinks.exact_answer import exact_answer, with_exact_answer

LIVE_SECONDS = 2.0
"""Interval at which a model's text is stored while it arrives. Only calls that last longer cost an additional write."""


LIVE_CHARS = 2_000


@dataclass(slots=True)
class JournalRecorder:
    """Records a model's run in the journal of its lease.

    ``phase`` is the number of plans handed out before, or the name of the question. ``streams`` is True if the model's
    text is stored while it arrives.
    """

    journal: Journal
    redact: Redactor
    phase: int | str = 0
    streams: bool = False
    _live: str = ""
    _stream: StreamRedactor = field(init=False)

    def __post_init__(self) -> None:
        """Create the stream redactor for the model's text."""
        self._stream = StreamRedactor(self.redact)

    @property
    def run_id(self) -> str:
        """Id of the run document."""
        return self.journal.run_id

    @property
    def follows(self) -> bool:
        """True if the model's text is stored while it arrives."""
        return self.streams

    def event(self, kind: EventType, payload: Mapping[str, Any]) -> None:
        """Add an event, without empty fields. It is stored with the next step."""
        shown = {name: value for name, value in payload.items() if value is not None and value not in ("", [], {})}
        self.journal.note(kind.value, **self.redact.value(shown))

    def words(self, text: str) -> None:
        """Add a piece of the model's answer; it is stored at the next interval."""
        self._live = (self._live + self._stream.feed(text))[-LIVE_CHARS:]

    def record_usage(self, usage: Mapping[str, Any]) -> None:
        """Add a call's usage to the run's totals."""
        total = self.journal.usage
        for name, value in usage.items():
            counts = isinstance(value, (int, float)) and not isinstance(value, bool)
            total[name] = total.get(name, 0) + value if counts else value

    def has_begun(self, name: str) -> bool:
        """Return True for a step that an earlier run has finished, or may have executed."""
        return self.journal.steps.has_begun(f"{self.phase}/{name}")

    def earlier_kinds(self, call: str) -> frozenset[str]:
        """Return the kinds of records that an earlier run wrote for a call of the model."""
        return self.journal.steps.earlier_kinds(call, f"{self.phase}/")

    async def step(
        self,
        name: str,
        run: Callable[[], Awaitable[dict[str, Any]]],
        *,
        idempotent: bool,
        skipped: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Run a step once, even after a crash. Its result is stored before the run continues.

        Each call of a model's run ends by a limit of its own, so the limits of the turn do not end it.
        """

        async def clean_result() -> dict[str, Any]:
            shown = self.streams and name.startswith("llm:")
            with self.journal.lease.activity.limited_call(self.journal.clock.now):
                result = await (self._run_showing_words(run) if shown else run())
            return with_exact_answer(self.redact.step_result(result), self.redact.value)

        full_name = f"{self.phase}/{name}"
        return exact_answer(
            await self.journal.steps.step(full_name, None, clean_result, idempotent=idempotent, skipped=skipped or {})
        )

    def body(self, name: str, content: str) -> None:
        """Do nothing: only the stand-alone agent stores bodies, which are too large for documents."""

    async def keep(self, name: str, text: str) -> str:
        """Store a text in the blob store, without secrets, and return its URI."""
        digest = hashlib.sha256(f"{self.phase}/{name}".encode()).hexdigest()[:24]
        return await self.journal.blobs.put(f"journal/{self.journal.run_id}/{digest}", self.redact.clean(text).encode())

    async def _run_showing_words(self, run: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Run the call, and store the model's text every LIVE_SECONDS during the call."""
        self._live = ""
        self._stream.rest()  # drop the rest of the last call's text
        ended = anyio.Event()
        outcome: list[dict[str, Any] | Exception] = []

        async def work() -> None:
            try:
                outcome.append(await run())
            except Exception as error:  # must leave the task group unwrapped; raised again below
                outcome.append(error)
            ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            while not await self.journal.clock.wait(ended, LIVE_SECONDS):
                if self._live and self._live != self.journal.live:
                    self.journal.show(self._live)
                    with contextlib.suppress(StoreError):  # failing to write live text must not lose the paid answer
                        await self.journal.flush()
        if self.journal.live:
            self.journal.show("")
        if isinstance(outcome[0], Exception):
            raise outcome[0]
        return outcome[0]
