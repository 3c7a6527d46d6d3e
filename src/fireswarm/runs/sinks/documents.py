"""The journal of a run: events and step results, so that no finished step is repeated after a crash.

A run belongs to one lease epoch. A later epoch of the same task reads the finished steps of earlier epochs and uses
their results instead of executing them again. A step that was started, may not have finished and is not declared
idempotent stops the turn with StepUncertain.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import anyio

from fireswarm.contracts.base import command_line
from fireswarm.contracts.limits import MAX_ERROR_CHARS, MAX_STORED_SUMMARY_CHARS, truncate
from fireswarm.contracts.ports import SERVER_TIME, Blobs, Clock, Create, Merge, PendingWrites, Store, Update, Write
from fireswarm.contracts.swarm.event import EventType
from fireswarm.contracts.swarm.lease import HeldLease
from fireswarm.contracts.swarm.run import MAX_INLINE_PAYLOAD_BYTES, RunStatus
from fireswarm.contracts.swarm.task import Task, TaskResult
from fireswarm.errors import Conflict, FireswarmError, LeaseLost, StepUncertain
from fireswarm.processes.child_pool import Hold
from fireswarm.runs.sinks.pages import Pages
from fireswarm.runs.sinks.run_ends import ALIVE, TAKEN_OVER, last_sign, lost_run_fields
from fireswarm.runs.sinks.run_reader import read_events
from fireswarm.runs.steps import (
    STEP_FAILED,
    STEP_FINISHED,
    STEP_STARTED,
    KnownSteps,
    StepLog,
    fork_limits,
    is_before,
    step_name,
)
from fireswarm.storage.documents.build import plain, run_identity
from fireswarm.storage.documents.paths import run_path

EPOCHS_REPLAYED = 50
"""Maximum number of earlier runs of a task that are read for finished steps; max_attempts and resumed turns stay below.
"""


@dataclass(slots=True)
class Journal:
    """The open journal of one run. Events are buffered until ``flush`` or ``closing``.

    ``stored`` is True once the run document exists; ``certain`` is False while a flush may have created it without a
    confirmation. ``usage`` is this run's spend on models, ``live`` the text that a model is writing now. ``pending``
    are writes that are added to each commit. ``left_open`` are earlier runs that nobody ended, with their last signs of
    work. ``begun`` is the start of the last run if its turn was interrupted and this run goes on with it. ``renew``
    renews an expired lease, or raises LeaseLost.
    """

    store: Store
    clock: Clock
    blobs: Blobs
    lease: HeldLease
    renew: Callable[[], Awaitable[None]]
    pages: Pages
    known: KnownSteps = field(default_factory=KnownSteps)
    pending: PendingWrites | None = None
    progress: float = 0.0
    usage: dict[str, Any] = field(default_factory=dict)
    live: str = ""
    stored: bool = False
    certain: bool = True
    left_open: dict[str, datetime] = field(default_factory=dict[str, datetime])
    begun: Mapping[str, Any] = field(default_factory=dict[str, Any])
    _dirty: bool = False
    _written: dict[str, Any] = field(default_factory=dict)
    _flushing: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))

    @classmethod
    async def open(
        cls,
        store: Store,
        clock: Clock,
        blobs: Blobs,
        lease: HeldLease,
        renew: Callable[[], Awaitable[None]],
        earlier: Sequence[Task] = (),
    ) -> Journal:
        """Open the journal of a lease's epoch. Reads earlier runs only if there are any, also those of *earlier* tasks.

        *earlier* are the tasks, the oldest first, whose conversation the lease's task goes on with.

        The run document is created by the first flush, or by the commit that settles the task, so a short turn
        costs one write for its run instead of two.
        """
        journal = cls(store, clock, blobs, lease, renew, Pages(run_path(lease.run_id), lease.task.session_hash))
        limits = fork_limits([following.fork_before for following in (*earlier, lease.task)][1:]) if earlier else ()
        for task, limit in zip(earlier, limits, strict=True):
            await journal._learn(task, task.epoch + 1, limit)
        await journal._learn(lease.task, lease.epoch)
        return journal

    async def _learn(self, task: Task, before: int, fork_before: int = 0) -> None:
        """Read the steps of a task's runs before the epoch *before*, and apply the decisions about them.

        With *fork_before*, stop before the model's answer of this number.
        """
        numbers = range(max(1, task.work_epoch + 1, before - EPOCHS_REPLAYED), before)
        runs = await self.store.get_many([run_path(task.run_id(number)) for number in numbers])
        for number, run in zip(numbers, runs, strict=True):
            if run.data is not None:
                events = await read_events(self.store, run)
                if run.data.get("status") in ALIVE and task is self.lease.task:
                    self.left_open[run.path] = last_sign(events, self.clock.now(), run.data.get("started_at"))
                failed = run.data.get("status") == RunStatus.ERROR.value
                goes_on = not failed and task is self.lease.task and run.data.get("turn") == task.turn
                self.begun = self.begun if goes_on else {}
                for event in events:
                    payload = event.get("payload") or {}
                    if fork_before and not is_before(str(payload.get("step")), fork_before):
                        return
                    self.known.learn(str(event.get("type")), str(payload.get("step")), payload)
                    if goes_on and event.get("type") == EventType.RUN_STARTED.value:
                        self.begun = payload
            if number == (task.decided_epoch or before - 1):  # 0: written by hand before this claim
                self.known.decide(task.step_decisions)

    @property
    def run_id(self) -> str:
        """Id of the run document that this journal writes."""
        return self.lease.run_id

    async def take_up(self) -> None:
        """Continue the journal of an interrupted turn from its stored events."""
        document = (await self.store.get(self.pages.run)).data
        self.stored = document is not None
        await self.pages.restore(self.store, document or {})
        self.progress = float((document or {}).get("progress") or 0.0)

    async def seconds_left(self) -> float:
        """Return the number of seconds in which work may still start. Renews an expired lease first.

        Raises LeaseLost when the lease has ended. Call it before work that no commit fences: a suspended process may
        resume in the middle of its turn, long after another agent took over and finished the task.
        """
        if not self.may_start:
            await self.renew()
        return (self.lease.expires_at - self.clock.now()).total_seconds()

    @property
    def hold(self) -> Hold:
        """The lease, for child processes."""
        lease = self.lease
        return Hold(self.seconds_left, lease.followers, (lease.expires_at - lease.claimed_at).total_seconds() / 3)

    def note(self, kind: str, **payload: Any) -> None:
        """Add an event. It is stored with the next flush or the settling commit."""
        now = self.clock.now()
        self.pages.events.append({"ts": now, "type": kind, "payload": payload})
        self.lease.activity.last_at = now
        self._dirty = True

    def show(self, words: str) -> None:
        """Store the text that a model is writing with the next flush; "" when it has finished."""
        self.live = words
        self._dirty = True

    @property
    def steps(self) -> StepLog:
        """The steps of the run."""
        return StepLog(self, self.known)

    def note_step(self, kind: str, step: str, **more: Any) -> None:
        """Add an event about a step."""
        self.note(kind, step=step, **more)

    def fail_step(self, step: str, error: Exception) -> None:
        """Add the event of a step that failed."""
        reason = str(error) if isinstance(error, FireswarmError) else f"{type(error).__name__}: {error}"
        self.note(STEP_FAILED, step=step, error=truncate(reason, MAX_ERROR_CHARS))

    async def begin_step(self, step: str) -> None:
        """Store the start of a step that must not be repeated."""
        self.note(STEP_STARTED, step=step)
        await self.flush()

    @property
    def may_start(self) -> bool:
        """True until the lease expires."""
        return not self.lease.over and self.lease.expires_at > self.clock.now()

    async def finish_step(self, step: str, result: Any, *, last: bool) -> Any:
        """Store the result of a step; with *last*, the commit that settles the task stores it."""
        self.note(STEP_FINISHED, step=step, **await self._store_result(step, result))
        if not last:
            await self.flush()
        self.lease.activity.steps += 1
        return result

    async def doubt(self, step: str, skipped: Any) -> Any:
        """Raise StepUncertain: the step may have taken effect."""
        name = step_name(step)
        raise StepUncertain(
            f"step {name!r} was started by an earlier run and may have taken effect. Check if it did. If so, run "
            f"`{command_line('swarm', 'retry', self.lease.task.task_id, '--skip', name)}`, otherwise with "
            f"{command_line('--redo', name)}.",
            name,
        )

    async def _store_result(self, step: str, result: Any) -> dict[str, Any]:
        text = json.dumps(result)
        if len(text) <= MAX_INLINE_PAYLOAD_BYTES:
            return {"result": result}
        name = f"journal/{self.run_id}/{hashlib.sha256(step.encode()).hexdigest()[:24]}.json"
        return {"result_uri": await self.blobs.put(name, text.encode())}

    async def load_result(self, kept: Any) -> Any:
        """Return the result in the event of a finished step."""
        payload: Mapping[str, Any] = kept
        if "result_uri" in payload:
            return json.loads(await self.blobs.get(payload["result_uri"]))
        return payload.get("result")

    async def flush(self) -> None:
        """Store the events so far, so that they survive this process. Only one flush runs at a time.

        Raises LeaseLost if the lease has ended; a run closed by another process is not reopened.
        """
        async with self._flushing:
            if not self._dirty:
                return
            await self.seconds_left()
            fields = {"status": RunStatus.PROGRESS.value, "progress": self.progress, **self._run_fields()}
            also = self.pending.writes() if self.pending is not None else ()
            self._dirty = False  # events added during the commit are for the next flush
            try:
                await (self._write_page(fields, also) if self.stored else self._write_run(fields, also))
            except BaseException:
                self._dirty = True
                raise
            if self.pending is not None:
                self.pending.mark_stored(also)
            self._written |= fields

    async def _write_run(self, fields: dict[str, Any], also: Sequence[Write]) -> None:
        """Create the run document with its events."""
        path, events = self.pages.run, list(self.pages.events)
        data = self._identity() | fields | {"events": events, "events_total": self.pages.total}
        self.certain = False  # until the store confirms
        try:
            await self.store.commit([Create(path, data), *also])
        except Conflict:
            # Either the create succeeded and its response was lost, or the lease expired and the agent that took over
            # the task ended this run. An ended run must not become active again.
            run = await self.store.get(path)
            if str((run.data or {}).get("status")) not in ALIVE:
                raise LeaseLost(f"run {self.run_id} was ended by another process: its lease expired") from None
            await self.store.commit([Update(path, data, run.update_time), *also])
        self.stored, self.certain, self.pages.inline = True, True, len(events)

    async def _write_page(self, fields: dict[str, Any], also: Sequence[Write]) -> None:
        """Rewrite the last page with the new events, or start another page, and merge the changed run fields."""
        fields = {name: value for name, value in fields.items() if self._written.get(name) != value}
        page = self.pages.next()
        writes: list[Write] = []
        if page is not None:
            writes.append(self.pages.write_of(page.number, page.events))
            if not self.pages.count:
                fields |= {"events": [], "journal_pages": 1}
        if fields:
            writes.append(Merge(self.pages.run, fields))
        await self.store.commit([*writes, *also])
        if page is not None:
            self.pages.mark_stored(page)

    def closing(self, status: RunStatus, summary: str, result: TaskResult | None, error: str | None) -> list[Write]:
        """Return the writes that end this run, for the commit that settles the task."""
        fields: dict[str, Any] = {
            "status": status.value,
            "summary": truncate(summary, MAX_STORED_SUMMARY_CHARS),
            "progress": 1.0 if status is RunStatus.COMPLETED else self.progress,
            "ended_at": SERVER_TIME,
        }
        if result is not None and result.artifacts:
            fields["artifacts"] = [plain(artifact) for artifact in result.artifacts]
        if error is not None:
            fields["error"] = error
        fields |= self._run_fields()
        also = self.pending.writes() if self.pending is not None else ()
        if not self.stored:
            fields |= self._identity()
        events, writes = self.pages.closing()
        fields |= events
        is_new = not self.stored and self.certain
        lost = [Merge(path, lost_run_fields(TAKEN_OVER, ended_at)) for path, ended_at in self.left_open.items()]
        return [*writes, Create(self.pages.run, fields) if is_new else Merge(self.pages.run, fields), *lost, *also]

    def _identity(self) -> dict[str, Any]:
        lease = self.lease
        return run_identity(lease.task, lease.epoch, lease.owner, lease.claimed_at)

    def _run_fields(self) -> dict[str, Any]:
        """Return the run document's fields other than its events."""
        fields: dict[str, Any] = {"usage": dict(self.usage)} if self.usage else {}
        if self.live or self._written.get("live"):
            fields["live"] = self.live
        return fields
