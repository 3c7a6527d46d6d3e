"""The ends of runs that their agents did not end: the last moment at which an agent is known to have worked.

That moment is the latest of the claim, the last renewal of the lease and the last stored event. Heartbeats are of a
process, not of a task, and less frequent than renewals.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio

from fireswarm.contracts.base import is_document_id
from fireswarm.contracts.limits import MAX_STORED_SUMMARY_CHARS, truncate
from fireswarm.contracts.ports import SERVER_TIME, Clock, Snapshot, Store, Update
from fireswarm.contracts.swarm.lease import HeldLease
from fireswarm.contracts.swarm.run import RunDocument, RunStatus
from fireswarm.contracts.swarm.task import Lease, Task, TaskStatus
from fireswarm.errors import Conflict
from fireswarm.runs.sinks.run_reader import Event, read_last_events
from fireswarm.storage.documents.paths import run_path, task_path
from fireswarm.storage.documents.read import parse_readable, parse_task_snapshot

ALIVE = (RunStatus.STARTED.value, RunStatus.PROGRESS.value)
TAKEN_OVER = "its task was taken over by a later run"
NOT_HELD = "no agent holds its task any more"


def lost_run_fields(reason: str, ended_at: datetime) -> dict[str, Any]:
    """Return the fields that end a run whose agent lost the task."""
    summary = truncate(reason, MAX_STORED_SUMMARY_CHARS)
    ended = {"ended_at": ended_at, "noticed_at": SERVER_TIME}
    return {"status": RunStatus.TIMEOUT.value, "error": reason, "summary": summary, **ended}


def describe_expiry(lease: Lease) -> str:
    """Return in words that nobody renewed a lease."""
    return (
        f"the lease of {lease.owner_agent_id} (epoch {lease.epoch}) expired without a renewal: the process died or hung"
    )


def last_renewal(task: Task, lease: Lease, lease_seconds: float) -> datetime:
    """Return when an expired lease was renewed last. Every renewal changes its task, and so do people later."""
    began = datetime.min.replace(tzinfo=UTC) + timedelta(seconds=lease_seconds)
    return min(task.updated_at, max(lease.expires_at, began) - timedelta(seconds=lease_seconds))  # a hand may write any


def last_sign(events: Iterable[Event], until: datetime, *moments: Any) -> datetime:
    """Return the latest of *moments* and of the times of *events*, at most *until*, which is the result without any."""
    signs = [each for each in (*moments, *(event.get("ts") for event in events)) if isinstance(each, datetime)]
    return min(until, max(signs, default=until))


async def end_lost_run(store: Store, lease: HeldLease, reason: str, now: datetime) -> None:
    """End the run of a lease that was lost, unless it has ended or was never stored.

    Nobody else ends it if a person deleted the task, queued it again or removed the lease. A process that was suspended
    did not work after the lease had expired.
    """
    run = await store.get(run_path(lease.run_id))
    if run.data is not None and run.data.get("status") in ALIVE:
        with contextlib.suppress(Conflict):  # another process ends it
            ended_at = min(now, lease.expires_at)
            await store.commit([Update(run.path, lost_run_fields(reason, ended_at), run.update_time)])


@dataclass(frozen=True, slots=True)
class RunEnds:
    """Gives runs that their agents lost their ends, also if no other agent has noticed yet.

    ``lease_seconds`` is the lifetime of a lease without renewal.
    """

    store: Store
    clock: Clock
    lease_seconds: float

    async def complete(self, runs: Sequence[RunDocument], tasks: Iterable[Task] = ()) -> list[RunDocument]:
        """Return the runs with their ends. Tasks of runs in progress are read, unless they are given.

        A lost run without a certain end costs two reads more if it has pages of a journal.
        """
        held = await self._read_tasks(runs, {task.task_id: task for task in tasks})
        ended: dict[str, RunDocument] = {}

        async def end(run: RunDocument) -> None:
            ended[run.run_id] = await self._end(run, held.get(run.task_id))

        async with anyio.create_task_group() as group:
            for run in runs:
                if self._is_lost(run, held.get(run.task_id)):
                    group.start_soon(end, run)
        return [ended.get(run.run_id, run) for run in runs]

    async def _read_tasks(self, runs: Iterable[RunDocument], known: Mapping[str, Task]) -> Mapping[str, Task]:
        """Return the tasks of the runs in progress, as far as there are any."""
        ids = dict.fromkeys(run.task_id for run in runs if run.ended_at is None and run.task_id not in known)
        paths = [task_path(task_id) for task_id in ids if is_document_id(task_id)]
        snapshots = [item for item in await self.store.get_many(paths) if item.data is not None] if paths else []
        return {**known, **{task.task_id: task for task in parse_readable(snapshots, parse_task_snapshot)}}

    def _is_lost(self, run: RunDocument, task: Task | None) -> bool:
        """Return True for a run that nobody works on and that has no end, or the end of an earlier version.

        Earlier versions stored for a lost run the time at which another agent noticed.
        """
        if run.ended_at is not None:
            return run.status is RunStatus.TIMEOUT and run.noticed_at is None
        lease = _lease_of(run, task)
        return lease is None or lease.expires_at <= self.clock.now()

    async def _end(self, run: RunDocument, task: Task | None) -> RunDocument:
        events: Sequence[Event] = [event.model_dump() for event in run.events[-1:]]
        if not events and is_document_id(run.run_id):
            pages = Snapshot(run_path(run.run_id), {"journal_pages": 1})
            events = (await read_last_events(self.store, pages, 0, 1)).events
        if run.ended_at is not None and not events:  # nothing tells more
            return run
        if run.ended_at is not None:
            ended_at = max(run.started_at, last_sign(events, run.ended_at, run.started_at))
            return run.model_copy(update={"ended_at": ended_at})
        lease = _lease_of(run, task)
        renewed = last_renewal(task, lease, self.lease_seconds) if task is not None and lease is not None else None
        ended_at = max(run.started_at, last_sign(events, self.clock.now(), run.started_at, renewed))
        reason = NOT_HELD if lease is None else describe_expiry(lease)
        return run.model_copy(
            update={"status": RunStatus.TIMEOUT, "error": reason, "summary": reason, "ended_at": ended_at}
        )


def _lease_of(run: RunDocument, task: Task | None) -> Lease | None:
    """Return the lease in which a run works; None if its task is not held, or by a later run."""
    if task is None or task.lease is None or task.status is not TaskStatus.IN_PROGRESS:
        return None
    return task.lease if task.lease.epoch == run.epoch else None
