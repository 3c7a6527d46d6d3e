"""Follow runs in progress: report each run that changed or has new events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import anyio
from anyio.streams.memory import MemoryObjectSendStream

from fireswarm.contracts.ports import Clock, Query, Snapshot, Store
from fireswarm.contracts.swarm.event import TaskEvent
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.contracts.swarm.task import Task
from fireswarm.runs.sinks.run_reader import RunReader
from fireswarm.storage.documents import queries

TICK_SECONDS = 2.0
"""Interval for reading the pages of a running run: a page grows without a change of the run's document."""


@dataclass(slots=True)
class RunFollower:
    """Listens to the runs of *query* and calls *report* with those that have news, oldest run first.

    Calls of *report* never overlap. ``started`` is set after the first one.
    """

    store: Store
    clock: Clock
    query: Query
    report: Callable[[Sequence[Snapshot]], Awaitable[None]]
    known: dict[str, Snapshot] = field(default_factory=dict[str, Snapshot])
    started: anyio.Event = field(default_factory=anyio.Event)
    _busy: anyio.Lock = field(default_factory=anyio.Lock)

    async def follow(self) -> None:
        """Report changes until canceled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._tick)
            async with self.store.listen(self.query) as batches:
                async for snapshots in batches:
                    changed = [run for run in snapshots if self._has_changed(run)]
                    await self._report(snapshots, changed)
                    self.started.set()

    async def read_once(self, query: Query | None = None) -> None:
        """Report all runs of the query as they are now, including the last commit."""
        snapshots = await self.store.query(query or self.query)
        await self._report(snapshots, snapshots)

    async def _tick(self) -> None:
        await self.started.wait()
        while True:
            await self.clock.sleep(TICK_SECONDS)
            async with self._busy:
                await self.report(_oldest_first([run for run in self.known.values() if has_pages(run)]))

    async def _report(self, snapshots: Sequence[Snapshot], changed: Sequence[Snapshot]) -> None:
        async with self._busy:  # the tick, the listener and the final read must not report an event twice
            self.known = {run.path: run for run in snapshots}
            await self.report(_oldest_first(changed))

    def _has_changed(self, run: Snapshot) -> bool:
        known = self.known.get(run.path)
        return known is None or known.update_time != run.update_time


def has_pages(run: Snapshot) -> bool:
    """Return True for a run in progress whose events go to pages."""
    data = run.data or {}
    return bool(data.get("journal_pages")) and data.get("status") == RunStatus.PROGRESS.value


def has_ended(run: Snapshot) -> bool:
    """Return True for a run that its agent or another worker has closed."""
    return (run.data or {}).get("ended_at") is not None


def _oldest_first(runs: Sequence[Snapshot]) -> list[Snapshot]:
    return sorted(runs, key=lambda run: (str((run.data or {}).get("started_at")), run.id))


async def send_events(
    store: Store,
    clock: Clock,
    task: Task,
    over: Callable[[], Awaitable[object]],
    send: MemoryObjectSendStream[TaskEvent],
) -> None:
    """Send the events of the runs of a task's objective to *send*, the earlier ones first, until *over* returns."""
    readers: dict[str, RunReader] = {}

    async def report(runs: Sequence[Snapshot]) -> None:
        for run in runs:
            reader = readers.setdefault(run.path, RunReader(store))
            for event in await reader.news(run):
                await send.send(TaskEvent.of_run(run.data or {}, event))

    follower = RunFollower(store, clock, queries.runs_of(task.trace.chain_id), report)
    async with send, anyio.create_task_group() as group:
        group.start_soon(follower.follow)
        await over()
        await follower.read_once()
        group.cancel_scope.cancel()
