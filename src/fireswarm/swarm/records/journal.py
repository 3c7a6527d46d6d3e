"""The journal of a run: what happened, step by step, so that a crash repeats no finished step.

A run belongs to one lease epoch. A later epoch of the same task reads the steps that earlier epochs
finished and takes their results instead of executing them again. A step that was started, is not known
to have finished and is not declared idempotent stops the turn with StepUncertain.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import anyio

from fireswarm.contracts.ports import SERVER_TIME, Blobs, Clock, Create, Merge, PendingWrites, Store, Update, Write
from fireswarm.contracts.swarm.run import MAX_INLINE_PAYLOAD_BYTES, MAX_RUN_EVENTS, RunStatus
from fireswarm.contracts.swarm.task import Task, TaskResult, canonical_json
from fireswarm.errors import Conflict, LeaseLost, StepUncertain
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.build import plain, run_identity
from fireswarm.storage.documents.paths import run_path
from fireswarm.swarm.records.run_reader import read_events

ALIVE = (RunStatus.STARTED.value, RunStatus.PROGRESS.value)

EPOCHS_REPLAYED = 50
"""Earlier runs of a task that are read for their finished steps; max_attempts and resumed turns stay below."""

PAGE_EVENTS = 16
"""A page of the run's ``journal`` subcollection is written again with each flush until it holds so many events:
more cost time, since all of them are written each time; fewer cost room, since every document has its overhead."""

STEP_STARTED, STEP_FINISHED, STEP_FAILED, STEP_REPLAYED = (
    "step_started",
    "step_finished",
    "step_failed",
    "step_replayed",
)


def step_id(name: str, inputs: Any) -> str:
    """Identify a step by its name and a hash of what it works on: changed input is another step."""
    return f"{name}:{hashlib.sha256(canonical_json(inputs).encode()).hexdigest()[:16]}"


@dataclass(slots=True)
class Steps:
    """Steps known from earlier epochs: finished ones with their results, and those left in doubt."""

    finished: dict[str, Any] = field(default_factory=dict)
    in_doubt: set[str] = field(default_factory=set)

    def take(self, events: list[Mapping[str, Any]]) -> None:
        """Learn from one run's events, in order."""
        for event in events:
            payload = event.get("payload") or {}
            step = str(payload.get("step"))
            match event.get("type"):
                case "step_started":
                    self.in_doubt.add(step)
                case "step_finished":
                    self.in_doubt.discard(step)
                    self.finished[step] = payload
                case "step_failed":
                    self.in_doubt.discard(step)
                case _:
                    pass


@dataclass(slots=True)
class Journal:
    """The open journal of one run. Events gather here and reach the store with ``flush`` or ``closing``.

    The first flush writes them onto the run document, where a short run keeps all of them. From the second on they
    go to pages of the run's ``journal`` subcollection, so that a long run costs the same a step from first to last.
    The run document then holds what came after the last page.

    ``stored`` says that the run document exists; not ``certain``, that a flush may have made it unseen.
    ``usage`` is what this run spent on models, ``live`` what one is saying just now; ``unstored`` is what
    each commit carries besides. ``hold`` tells for how many seconds work may still begin, or raises LeaseLost.
    """

    store: Store
    clock: Clock
    blobs: Blobs
    task: Task
    epoch: int
    agent_id: str
    started_at: datetime
    earlier: Steps = field(default_factory=Steps)
    events: list[dict[str, Any]] = field(default_factory=list)
    unstored: PendingWrites | None = None
    hold: Callable[[], Awaitable[float]] | None = None
    pages: int = 0
    total: int = 0
    progress: float = 0.0
    usage: dict[str, Any] = field(default_factory=dict)
    live: str = ""
    stored: bool = False
    certain: bool = True
    _dirty: bool = False
    _inline: int = 0
    _page: list[dict[str, Any]] = field(default_factory=list)
    _told: dict[str, Any] = field(default_factory=dict)
    _flushing: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))

    @classmethod
    async def open(
        cls, store: Store, clock: Clock, blobs: Blobs, task: Task, epoch: int, agent_id: str, started_at: datetime
    ) -> Journal:
        """Open the journal of *epoch*; reads earlier runs only when there are any.

        The run document appears with the first flush, or with the commit that settles the task: a turn
        that is over in a moment costs one write for its run, not two.
        """
        journal = cls(store, clock, blobs, task, epoch, agent_id, started_at)
        first = max(1, epoch - EPOCHS_REPLAYED)
        for run in await store.get_many([run_path(task.run_id(number)) for number in range(first, epoch)]):
            if run.data is not None:
                journal.earlier.take(await read_events(store, run))
        return journal

    @property
    def run_id(self) -> str:
        """The run document this journal writes."""
        return self.task.run_id(self.epoch)

    async def take_up(self) -> None:
        """Continue the journal of a turn that was cut short, from the events it had stored."""
        found = (await self.store.get(run_path(self.run_id))).data
        self.stored = found is not None
        run = found or {}
        self.events = [dict(event) for event in run.get("events") or []]
        self._inline = len(self.events)
        if run.get("journal_pages"):
            pages = await self.store.query(queries.journal(run_path(self.run_id)))
            self.pages = len(pages)
            self.total = sum(len((page.data or {}).get("events", [])) for page in pages)
        self.total += self._inline
        self.progress = float(run.get("progress") or 0.0)

    def note(self, kind: str, **payload: Any) -> None:
        """Add an event; it is stored with the next flush or the settling commit."""
        self.events.append({"ts": self.clock.now(), "type": kind, "payload": payload})
        self.total += 1
        self._dirty = True

    def show(self, words: str) -> None:
        """Store what a model is saying with the next flush; empty when it has said it."""
        self.live = words
        self._dirty = True

    async def step(
        self,
        name: str,
        inputs: Any,
        run: Callable[[], Awaitable[Any]],
        *,
        idempotent: bool,
        last: bool = False,
    ) -> Any:
        """Execute a step once, whatever crashes: a finished step's result is taken from the journal.

        *inputs* and the result are JSON. A step that is not idempotent is journaled as started before it
        runs. With *last*, an idempotent step's result is stored by the settling commit itself.
        """
        step = step_id(name, inputs)
        if step in self.earlier.finished:
            self.note(STEP_REPLAYED, step=step)
            return await self._result(self.earlier.finished[step])
        if step in self.earlier.in_doubt and not idempotent:
            raise StepUncertain(
                f"step {name!r} of task {self.task.task_id} was started by an earlier run and may have taken effect. "
                "Look at what it did; then `swarm retry` the task, or cancel it."
            )
        if not idempotent:
            self.note(STEP_STARTED, step=step)
            await self.flush()
        if self.hold is not None:
            await self.hold()
        try:
            result = await run()
        except Exception as error:  # noted and raised again: the journal must know that the step did not finish
            self.note(STEP_FAILED, step=step, error=f"{type(error).__name__}: {error}"[:2_000])
            raise
        self.note(STEP_FINISHED, step=step, **await self._store_result(step, result))
        if not (last and idempotent):
            await self.flush()
        return result

    async def _store_result(self, step: str, result: Any) -> dict[str, Any]:
        text = json.dumps(result)
        if len(text) <= MAX_INLINE_PAYLOAD_BYTES:
            return {"result": result}
        name = f"journal/{self.run_id}/{hashlib.sha256(step.encode()).hexdigest()[:24]}.json"
        return {"result_uri": await self.blobs.put(name, text.encode())}

    async def _result(self, payload: Mapping[str, Any]) -> Any:
        if "result_uri" in payload:
            return json.loads(await self.blobs.get(payload["result_uri"]))
        return payload.get("result")

    async def flush(self) -> None:
        """Store the events so far, so that they survive this process. One flush at a time; others wait for it.

        LeaseLost when the lease is over: a run that was ended from outside stays as it was ended.
        """
        async with self._flushing:
            if not self._dirty:
                return
            if self.hold is not None:
                await self.hold()
            fields = {"status": RunStatus.PROGRESS.value, "progress": self.progress, **self._news()}
            also = self.unstored.writes() if self.unstored is not None else ()
            self._dirty = False  # what comes meanwhile is for the next one
            try:
                await (self._turn_page(fields, also) if self.stored else self._first(fields, also))
            except BaseException:
                self._dirty = True
                raise
            if self.unstored is not None:
                self.unstored.mark_stored(also)
            self._told |= fields

    async def _first(self, fields: dict[str, Any], also: Sequence[Write]) -> None:
        """Make the run document, the events on it."""
        path, events = run_path(self.run_id), list(self.events)
        data = self._identity() | fields | {"events": events, "events_total": self.total}
        self.certain = False  # until an answer says so
        try:
            await self.store.commit([Create(path, data), *also])
        except Conflict:
            # It was created after all and the answer was lost; or the lease ran out, and whoever took the task has
            # ended this run: then nothing of it may look alive again.
            found = await self.store.get(path)
            if str((found.data or {}).get("status")) not in ALIVE:
                raise LeaseLost(f"run {self.run_id} was ended from outside: its lease ran out") from None
            await self.store.commit([Update(path, data, found.update_time), *also])
        self.stored, self.certain, self._inline = True, True, len(events)

    async def _turn_page(self, fields: dict[str, Any], also: Sequence[Write]) -> None:
        """Write the last page again with what is new, or begin another; the run document only where it changes."""
        fields = {name: value for name, value in fields.items() if self._told.get(name) != value}
        writes: list[Write] = []
        taken = len(self.events)
        if taken > self._inline:
            page = self.pages if self._page and len(self._page) < PAGE_EVENTS else self.pages + 1
            held = [*self._page, *self.events] if page == self.pages else list(self.events)
            writes.append(self._page_of(page, held))
            if not self.pages:
                fields |= {"events": [], "journal_pages": 1}
        else:
            page, held, taken = self.pages, self._page, 0
        if fields:
            writes.append(Merge(run_path(self.run_id), fields))
        await self.store.commit([*writes, *also])
        if page > 0 and taken:
            self.pages, self._page, self._inline = page, held, 0
            del self.events[:taken]

    def _page_of(self, number: int, events: Sequence[Mapping[str, Any]]) -> Write:
        """One page, from 1. Written whole: sent twice it does no harm."""
        return Merge(f"{run_path(self.run_id)}/journal/{number:06d}", {"events": list(events)})

    def closing(self, status: RunStatus, summary: str, result: TaskResult | None, error: str | None) -> list[Write]:
        """The writes that end this run, for the commit that settles the task."""
        fields: dict[str, Any] = {
            "status": status.value,
            "summary": summary[:1_500],
            "progress": 1.0 if status is RunStatus.COMPLETED else self.progress,
            "ended_at": SERVER_TIME,
        }
        if result is not None and result.artifacts:
            fields["artifacts"] = [plain(artifact) for artifact in result.artifacts]
        if error is not None:
            fields["error"] = error
        over = max(0, len(self.events) - MAX_RUN_EVENTS)
        pages = [self._page_of(self.pages + 1, self.events[:over])] if over else []
        fields |= self._news() | {"events": self.events[over:], "events_total": self.total}
        if self.pages or pages:
            fields["journal_pages"] = self.pages + len(pages)
        path = run_path(self.run_id)
        also = self.unstored.writes() if self.unstored is not None else ()
        if self.stored:
            return [*pages, Merge(path, fields), *also]
        fields = self._identity() | fields
        return [*pages, Create(path, fields) if self.certain else Merge(path, fields), *also]

    def _identity(self) -> dict[str, Any]:
        return run_identity(self.task, self.epoch, self.agent_id, self.started_at)

    def _news(self) -> dict[str, Any]:
        """What the run document tells beside its events."""
        news: dict[str, Any] = {"usage": dict(self.usage)} if self.usage else {}
        if self.live or self._told.get("live"):
            news["live"] = self.live
        return news
