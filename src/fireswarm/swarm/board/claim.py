"""Claim and renew tasks: compare-and-set on the version that was read, with an increasing epoch."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import anyio

from fireswarm.contracts.ports import SERVER_TIME, Query, Snapshot, Update
from fireswarm.contracts.swarm.lease import HeldLease
from fireswarm.contracts.swarm.task import Lease, Task, TaskStatus
from fireswarm.errors import ConfigError, Conflict, InvalidInput, LeaseLost, StoreError, StoreRejected
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.build import plain
from fireswarm.storage.documents.paths import task_path
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.board.by_hand.adopt import adopt, ask_again, pause_until
from fireswarm.swarm.board.by_hand.set_aside import handle_error
from fireswarm.swarm.board.dependents import set_aside
from fireswarm.swarm.board.operator import answers
from fireswarm.swarm.board.rules import BoardContext
from fireswarm.swarm.board.sweep import check_due

MAX_FACTOR = 256.0
"""Upper bound of the contention factor. About 180 successful claims reduce it from there to 1."""

WOKEN = 6
"""Number of idle agents that a new task wakes on average; that it wakes none has a probability of exp(-6)."""

LEFT_TO_OTHERS_SECONDS = 30.0
"""Time for which an agent leaves a task to those that have its skill, before it pauses the task for as long."""

AGING_ROUNDS = 4
"""Every so many rounds, a claim first looks for tasks that have waited long."""


@dataclass(slots=True)
class Contention:
    """Contention of the queue: the factor grows with every lost race and decays with successful claims.

    Without contention, a claimer takes the head of the queue. Under contention it starts at a random id within
    the head's priority, so that claimers do not all try the same document.
    """

    factor: float = 1.0
    won: int = 0
    lost: int = 0
    rng: random.Random = field(default_factory=random.Random)

    def learn(self, won: int, lost: int) -> None:
        """Update the factor with the results of one round of claims."""
        self.won += won
        self.lost += lost
        if lost:
            self.factor = min(MAX_FACTOR, self.factor * 4)
        elif won:
            self.factor = max(1.0, self.factor * 0.97)

    @property
    def contended(self) -> bool:
        """True while recent lost races raise the factor."""
        return self.factor > 1.0

    def somewhere(self) -> str:
        """Return a random position in the range of task ids: eight hexadecimal digits."""
        return f"{self.rng.getrandbits(32):08x}"


HasSkill = Callable[[str], Awaitable[bool]]


@dataclass(slots=True)
class Claimer:
    """Claims tasks of one role for one agent; with ``sessions``, only tasks of these sessions.

    ``has_skill`` resolves to False for a skill that the agent lacks: a task that names it waits for another agent.
    """

    board: BoardContext
    role: str
    agent_id: str
    contention: Contention
    sessions: Sequence[str] = ()
    has_skill: HasSkill | None = None
    rounds: int = 0
    passed_over: dict[str, tuple[Any, datetime]] = field(default_factory=dict[str, tuple[Any, datetime]])
    """Tasks that need a skill which this agent lacks: their version, and until when they are left to others."""

    in_doubt: dict[str, tuple[Task, Snapshot]] = field(default_factory=dict[str, tuple[Task, Snapshot]])
    """Tasks with a claim that may have been applied, or may still be, as they were read before it."""

    async def claim(self, wanted: int) -> list[HeldLease]:
        """Claim up to *wanted* queued tasks. Returns an empty list if none could be claimed now.

        A commit that may have been applied is read again, at the latest by the next call: no lease is forgotten. Raises
        StoreError if no task was claimed.
        """
        if leases := await self._settle_doubts():
            return leases
        ready = await self._admit_all(await self._candidates(min(wanted, self.board.rules.claim_window)))
        return await self._take(ready) if ready else []

    async def claim_seen(self, snapshots: Sequence[Snapshot], wanted: int) -> list[HeldLease]:
        """Claim up to *wanted* of the tasks that a listener delivered, in random order and without a query.

        Other listeners got them too: a lost race does not count as contention of the queue.
        """
        seen = [item for item in snapshots if not self._passes_over(item)]
        self.contention.rng.shuffle(seen)
        ready = await self._admit_all(seen[:wanted])
        factor = self.contention.factor
        leases = await self._take(ready) if ready else []
        self.contention.factor = min(factor, self.contention.factor)
        return leases

    def query_to_listen(self, idle: int) -> Query:
        """Return the query that an idle agent listens to when *idle* agents of its role do the same.

        Of many agents, each listens to a slice of the task ids, so that a new task wakes about `WOKEN` of them. Few
        agents listen to the whole queue, also to documents without a sort field, which other agents' sweeps find.
        """
        slices = 1 if self.sessions else max(1, idle // WOKEN)
        if slices == 1:
            return queries.queued_tasks(self.role, self.board.rules.claim_window, self.sessions)
        number = self.contention.rng.randrange(slices)
        begin, end = (f"{2**32 * edge // slices:08x}" for edge in (number, number + 1))
        last = number == slices - 1
        return queries.queued_slice(
            self.role, begin if number else "", "" if last else end, self.board.rules.claim_window
        )

    async def _take(self, ready: list[tuple[Task, Snapshot]]) -> list[HeldLease]:
        """Claim all in one commit, or one by one if that fails."""
        if not self.contention.contended:
            try:
                leases = await self._commit(ready)
            except StoreRejected:
                pass  # one of the documents cannot be changed; it is set aside when claimed separately
            except (Conflict, StoreError) as error:
                if error.ambiguous:
                    self.in_doubt |= {task.task_id: (task, snapshot) for task, snapshot in ready}
                    return await self._settle_doubts()
                if isinstance(error, StoreError):
                    raise
            else:
                self.contention.learn(len(leases), 0)
                return leases
        return await self._one_by_one(ready)

    async def _candidates(self, wanted: int) -> list[Snapshot]:
        """Query the head of the queue or, under contention, tasks of the head's priority from a random id on.

        Every `AGING_ROUNDS` rounds, tasks that have waited long come first: a low priority cannot starve.
        """
        self.rounds += 1
        if self.rounds % AGING_ROUNDS == 0:
            before = self.board.clock.now() - timedelta(seconds=self.board.rules.aging_seconds)
            if waiting := await self._query(partial(queries.queued_before, self.role, before), wanted):
                return waiting
        if not self.contention.contended:
            return await self._query(partial(queries.claimable, self.role), wanted)
        head = await self._query(partial(queries.claimable, self.role), 1)
        priority = (head[0].data or {}).get("priority") if head else None
        if priority is None:
            return head
        place = self.contention.somewhere()
        snapshots = await self._query(partial(queries.claimable_from, self.role, priority, place), wanted)
        if len(snapshots) < wanted:
            rest = partial(queries.claimable_before, self.role, priority, place)
            snapshots += await self._query(rest, wanted - len(snapshots))
        return snapshots or head  # a hand-written head may have no task_id

    async def _query(self, query: Callable[[int, Sequence[str]], Query], wanted: int) -> list[Snapshot]:
        """Return up to *wanted* results, without the documents that this agent leaves to others."""
        more = min(len(self.board.aside.left_alone) + len(self.passed_over), 2 * self.board.rules.sweep_batch)
        found = await self.board.store.query(query(wanted + more, self.sessions))
        return [item for item in found if not self._passes_over(item)][:wanted] if more else found

    async def _admit_all(self, snapshots: Sequence[Snapshot]) -> list[tuple[Task, Snapshot]]:
        """Return the tasks that can be claimed now, with their snapshots."""
        ready: list[tuple[Task, Snapshot]] = []
        for snapshot in snapshots:
            try:
                task = await self._admit(snapshot)
            except Exception as error:  # errors of one document must not stop the other claims
                await handle_error(self.board, snapshot, error)
                continue
            if task is not None:
                ready.append((task, snapshot))
        return ready

    async def _admit(self, snapshot: Snapshot) -> Task | None:
        """Return the task if it can be claimed now; otherwise expire, adopt or block it and return None."""
        task, now = parse_task_snapshot(snapshot), self.board.clock.now()
        if task.deadline <= now:
            await check_due(self.board, snapshot, now)
            return None
        if task.not_before is not None and task.not_before > now:
            await pause_until(self.board, task, snapshot, task.not_before, "starts later, as its not_before says")
            return None
        if task.skill is not None and not (self.has_skill is None or await self.has_skill(task.skill)):
            await self._leave_to_others(task, snapshot, now)
            return None
        if not _is_adopted(task, snapshot) or await self._original_was_edited(task):
            await adopt(self.board, task, snapshot)
            return None
        return await self._accept_answers(task, snapshot) if task.questions else task

    async def _leave_to_others(self, task: Task, snapshot: Snapshot, now: datetime) -> None:
        """Pass over a task whose skill this agent lacks; pause it if no other agent has taken it for a while."""
        if now - task.updated_at < timedelta(seconds=LEFT_TO_OTHERS_SECONDS):
            until = task.updated_at + timedelta(seconds=LEFT_TO_OTHERS_SECONDS)
            self.passed_over = {path: kept for path, kept in self.passed_over.items() if kept[1] > now}
            self.passed_over[snapshot.path] = snapshot.update_time, until
            return
        self.passed_over.pop(snapshot.path, None)
        reason = f"waits for an agent with the skill {task.skill}, which {self.agent_id} does not have"
        until = now + timedelta(seconds=LEFT_TO_OTHERS_SECONDS)
        await pause_until(self.board, task, snapshot, until, reason)

    def _passes_over(self, snapshot: Snapshot) -> bool:
        """Return True for a document that this agent leaves to others for now."""
        version, until = self.passed_over.get(snapshot.path, (None, self.board.clock.now()))
        return self.board.aside.leaves(snapshot) or (version == snapshot.update_time and self.board.clock.now() < until)

    async def _original_was_edited(self, task: Task) -> bool:
        """Return True for a task that repeats another's work which is no longer its own work."""
        if task.duplicate_of is None:
            return False
        snapshot = await self.board.store.get(task_path(task.duplicate_of))
        return snapshot.data is not None and parse_task_snapshot(snapshot).work_id != task.work_id

    async def _accept_answers(self, task: Task, snapshot: Snapshot) -> Task | None:
        """Return the task if its stored answers are valid; otherwise block it again and return None.

        This applies to a task that was queued by hand with open questions. This check saves a turn.
        """
        try:
            merged = answers.merge_answers(task, {})
        except (InvalidInput, ConfigError) as error:
            await ask_again(self.board.store, task, snapshot, error)
            return None
        return task.model_copy(update=merged)

    async def _one_by_one(self, ready: list[tuple[Task, Snapshot]]) -> list[HeldLease]:
        """Claim each task with its own commit, concurrently, and update the contention factor.

        One task's error does not cost the others their leases.
        """
        leases: list[HeldLease] = []
        failures: list[StoreError] = []
        lost = 0

        async def attempt(task: Task, snapshot: Snapshot) -> None:
            nonlocal lost
            try:
                leases.extend(await self._commit([(task, snapshot)]))
            except StoreRejected as error:
                await set_aside(self.board, snapshot, error)
            except (Conflict, StoreError) as error:
                if error.ambiguous:
                    self.in_doubt[task.task_id] = task, snapshot
                elif isinstance(error, StoreError):
                    failures.append(error)
                else:
                    lost += 1

        async with anyio.create_task_group() as group:
            for task, snapshot in ready:
                group.start_soon(attempt, task, snapshot)
        self.contention.learn(len(leases), lost)
        leases = leases or await self._settle_doubts()
        if not leases and failures:
            raise failures[0]
        return leases

    async def _settle_doubts(self) -> list[HeldLease]:
        """Read the tasks in doubt, and return the leases that this agent holds.

        An unchanged document stays in doubt: the store may still be working on the claim.
        """
        if not self.in_doubt:
            return []
        doubts = [*self.in_doubt.values()]
        leases: list[HeldLease] = []
        read = await self.board.store.get_many([snapshot.path for _, snapshot in doubts])
        for (task, before), now in zip(doubts, read, strict=True):
            if now.update_time == before.update_time:
                continue
            self.in_doubt.pop(task.task_id, None)
            if (lease := self._lease_in(task, now)) is not None:
                leases.append(lease)
        return leases

    async def _commit(self, ready: list[tuple[Task, Snapshot]]) -> list[HeldLease]:
        now = self.board.clock.now()
        expires_at = now + timedelta(seconds=self.board.rules.lease_seconds)
        committed = await self.board.store.commit(
            [Update(item.path, self._claim_fields(task, now, expires_at), item.update_time) for task, item in ready]
        )
        for task, _ in ready:
            self.in_doubt.pop(task.task_id, None)
        return [
            HeldLease(task, self.agent_id, task.epoch + 1, now, expires_at, version)
            for (task, _), version in zip(ready, committed.update_times, strict=True)
        ]

    def _claim_fields(self, task: Task, now: datetime, expires_at: datetime) -> dict[str, Any]:
        """Return the fields that put the task in progress under this agent's lease."""
        lease = {"owner_agent_id": self.agent_id, "expires_at": expires_at, "epoch": task.epoch + 1, "claimed_at": now}
        answered: dict[str, Any] = {"questions": []} if task.questions else {}
        if task.questions and task.answered:  # answered by hand, for a step of the task's run
            answered |= {"answered": task.answered}
        if task.step_decisions and not task.decided_epoch:  # written by hand
            answered |= {"decided_epoch": task.epoch, "uncertain_step": "", "redo_steps": []}
        return answered | {
            "status": TaskStatus.IN_PROGRESS.value,
            "status_reason": None,
            "summary": f"{self.agent_id} is working on it",
            "lease": lease,
            "epoch": task.epoch + 1,
            "open": True,
            "not_before": None,
            "sweep_at": expires_at,
            "updated_at": SERVER_TIME,
        }

    def _lease_in(self, task: Task, snapshot: Snapshot) -> HeldLease | None:
        """Return the lease that the claim of *task* wrote, if the document still has it."""
        try:
            now = parse_task_snapshot(snapshot)
        except InvalidInput:
            return None  # deleted or overwritten meanwhile: the sweep sets it aside
        lease = now.lease
        if lease is None or lease.owner_agent_id != self.agent_id or lease.epoch != task.epoch + 1:
            return None
        began = lease.claimed_at or self.board.clock.now()
        return HeldLease(task, self.agent_id, now.epoch, began, lease.expires_at, snapshot.update_time)


def _is_adopted(task: Task, snapshot: Snapshot) -> bool:
    """Return True if the document can be claimed unchanged: submitted, planned, or adopted before.

    A copy made in the console still has the ``task_id`` of its original, so it is adopted as another task. A task whose
    objective, context, role or session was edited does other work, so it is adopted again.
    """
    data = snapshot.data or {}
    return data.get("task_id") == snapshot.id and "trace" in data and (task.key_id or task.task_id) == task.work_id


async def renew(board: BoardContext, held: HeldLease) -> None:
    """Extend a lease by a full term.

    Raises LeaseLost when another agent holds the task or the task was ended, and Conflict after repeated write
    conflicts.
    """
    for _ in range(board.rules.settle_attempts):
        if held.over:
            raise held.lost()
        expires_at = board.clock.now() + timedelta(seconds=board.rules.lease_seconds)
        lease = Lease(owner_agent_id=held.owner, expires_at=expires_at, epoch=held.epoch, claimed_at=held.claimed_at)
        fields = {"lease": plain(lease), "sweep_at": expires_at, "updated_at": SERVER_TIME}
        try:
            committed = await board.store.commit(
                [Update(task_path(held.task.task_id), fields, if_update_time=held.version)]
            )
        except Conflict:
            await refresh(board, held)
            continue
        held.note_renewal(expires_at, committed.update_times[0], board.rules.lease_seconds)
        return
    raise Conflict(f"task {held.task.task_id} keeps changing: its lease could not be renewed")


async def refresh(board: BoardContext, held: HeldLease) -> Task:
    """Read the task again and update the lease's version. Raises LeaseLost unless this epoch still holds the task."""
    snapshot = await board.store.get(task_path(held.task.task_id))
    if snapshot.data is None:
        raise LeaseLost(f"task {held.task.task_id} was deleted; nothing was written")
    try:
        task = parse_task_snapshot(snapshot)
    except InvalidInput as error:
        await set_aside(board, snapshot, error)
        raise LeaseLost(f"epoch {held.epoch} of task {held.task.task_id} has ended: {error}") from error
    lease = task.lease
    if task.status is not TaskStatus.IN_PROGRESS or lease is None or lease.epoch != held.epoch:
        holder = f"held by {lease.owner_agent_id} at epoch {lease.epoch}" if lease else f"it is {task.status.value}"
        raise LeaseLost(f"epoch {held.epoch} of task {task.task_id} has ended: {holder}; nothing was written")
    held.version = snapshot.update_time
    held.task = task
    return task
