"""The loop of a role process: claim, work, settle, drain. Its background duties are in ``upkeep``.

The loop queries the queue while there is work and listens otherwise, so an idle role never polls. Skills run in their
own processes, so a busy turn does not block the loop.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from fireswarm.contracts.limits import shown_id
from fireswarm.contracts.ports import Snapshot
from fireswarm.contracts.swarm.outcome import Failed, Outcome, Released, Retry
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.contracts.swarm.status import AgentState
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.errors import Conflict, InvalidInput, LeaseLost, StoreError, StoreRejected, WorkEdited
from fireswarm.runs.sinks.run_ends import end_lost_run
from fireswarm.signals.current import telemetry_in_use
from fireswarm.signals.spans import report_end, turn_span
from fireswarm.swarm.board import HeldLease
from fireswarm.swarm.board.settle import Transition
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.turn.outcome import outcome_of_error
from fireswarm.swarm.turn.outputs import remove_outputs
from fireswarm.swarm.turn.state import TurnEnd
from fireswarm.swarm.turn.turn import open_journal, run_turn
from fireswarm.swarm.worker.heartbeat import Heartbeat
from fireswarm.swarm.worker.held import HeldTasks, HeldWork
from fireswarm.swarm.worker.upkeep import Upkeep

REFILL_SECONDS = 0.005
"""Time to wait for more free places if only some are free: one claim for several tasks costs one round trip.

It is far below the latency target of a claim.
"""

AHEAD_SECONDS = 0.1
"""Average turn length below which a worker claims up to twice as many tasks as it can run at once.

The next task then starts without delay. With longer turns, that would withhold tasks from other workers.
"""

CONTENDED_PAUSE_SECONDS = 0.004
"""Multiplied by the contention factor and jittered, so that idle workers do not all claim the same task.

The pause is at most one second.
"""

LISTEN_AGAIN_SECONDS = 5.0
"""Pause after a listener of the queue has failed, such as for a missing index."""

QUICK_SECONDS = 0.1
"""Turns that took less, and whose tasks are done, are not logged: a busy queue has hundreds a second."""

SETTLE_PAUSE_SECONDS = 0.5
"""Pause between attempts to settle while the store is unavailable, until the lease expires."""

LEAVE_SECONDS = 0.7
"""Time limits after the drain: one to release the remaining tasks, one to write the last heartbeat.

Their sum is below the supervisor's grace and, with the default drain, well below the ten seconds after which Cloud Run
kills.
"""

Refresh = Callable[[bool], Awaitable[SwarmParts]]
"""Returns the parts for the next turn; True looks at their files at once."""

_log = logging.getLogger(__name__)


class Worker:
    """Works for one role under one agent id until ``stop`` is called, then drains and returns."""

    def __init__(
        self, parts: SwarmParts, role: str, agent_id: str, *, message: str = "", refresh: Refresh | None = None
    ) -> None:
        """Set up a worker for *role*; *refresh* returns the parts of each turn. Raises NotFound for an unknown role."""
        parts.board.check_role(role)
        self.parts = parts
        self.role = role
        self.agent_id = agent_id
        self.capacity = parts.settings.worker.concurrency
        self.stopping = False
        self.held = HeldTasks()
        self.settled = 0
        self._claimer = parts.board.claimer(role, agent_id, parts.settings.worker.sessions, self._has_skill)
        self._refresh = refresh
        self._serving = 0
        self._mean_turn_seconds = float("inf")
        self._time_to_finish = anyio.CancelScope()
        self._rng = random.Random(agent_id)
        heartbeat = Heartbeat(parts, role, agent_id, message)
        self._upkeep = Upkeep(parts, role, agent_id, self.held, self._rng, heartbeat)

    def stop(self) -> None:
        """Stop claiming; ``run`` finishes its turns within ``drain_seconds`` and returns."""
        if not self.stopping:
            self._time_to_finish.deadline = anyio.current_time() + self.parts.settings.worker.drain_seconds
        self.stopping = True
        self._upkeep.orders.known.set()
        self.held.freed.ring()
        self._upkeep.queued.ring()

    async def _renew_parts(self, *, at_once: bool = False) -> None:
        """Use changed files of roles, skills and capabilities from now on, unless this role is gone."""
        if self._refresh is not None and self.role in (parts := await self._refresh(at_once)).roles:
            self.parts = parts

    async def _has_skill(self, name: str) -> bool:
        if not self.parts.has_skill(name):
            await self._renew_parts(at_once=True)
        return self.parts.has_skill(name)

    @property
    def faults(self) -> int:
        """Number of unexpected errors that ended one turn or one round of a duty."""
        return self._upkeep.faults

    @property
    def drained(self) -> bool:
        """True if an operator ordered this agent to end."""
        return self._upkeep.orders.drained

    @property
    def contention(self) -> tuple[int, int]:
        """Claims won and lost so far."""
        return self._claimer.contention.won, self._claimer.contention.lost

    async def run(self) -> None:
        """Work until ``stop`` is called; then drain within ``drain_seconds`` and write a last heartbeat."""
        if (telemetry := telemetry_in_use.get()) is not None:
            telemetry.count_claims(self.role, lambda: self.contention)
        async with anyio.create_task_group() as background:
            self._upkeep.start(background)
            async with anyio.create_task_group() as turns:
                with self._time_to_finish:  # a claim may hang as long as the store does
                    await self._claim(turns)
                    await self._drain(background)
                with anyio.move_on_after(LEAVE_SECONDS):
                    await self._give_back(self.held.all())
            background.cancel_scope.cancel()
        with anyio.CancelScope(shield=True), anyio.move_on_after(LEAVE_SECONDS):
            await self._upkeep.beat(AgentState.STOPPED, self.held.task_ids())

    # ── claims and turns ──────────────────────────────────────────────────────────────────────────────────

    async def _claim(self, turns: TaskGroup) -> None:
        """Claim tasks while places are free, and start their turns, until ``stop`` is called or an operator drains it.

        The orders of an operator are read first, so that a paused agent stays so after a restart.
        """
        await self._upkeep.orders.known.wait()
        while not self.stopping:
            if self._upkeep.orders.active:
                if self.drained:
                    self.stop()
                else:
                    await self._upkeep.queued.heard(self.parts.clock, None)
                continue
            free = self._free
            if free <= 0 or (len(self.held) and free < self._refill):
                await self.held.freed.heard(self.parts.clock, REFILL_SECONDS if free > 0 else None)
                free = self._free
            if free <= 0 or self.stopping or self._upkeep.orders.active:
                continue
            await self._renew_parts()
            leases = await self._upkeep.available(lambda wanted=free: self._claimer.claim(wanted)) or []
            self._begin(leases, turns)
            if leases:
                await anyio.lowlevel.checkpoint()  # start the claimed tasks before the next query
            else:
                await self._idle(turns)

    def _begin(self, leases: list[HeldLease], turns: TaskGroup) -> None:
        """TurnHold the claimed tasks and start their turns."""
        for lease in leases:
            self.held.add(lease)
        for _ in range(min(len(leases), self.capacity - self._serving)):
            self._serving += 1
            turns.start_soon(self._serve)

    @property
    def _places(self) -> int:
        return self.capacity * (2 if self._mean_turn_seconds < AHEAD_SECONDS else 1)

    @property
    def _free(self) -> int:
        return self._places - len(self.held)

    @property
    def _refill(self) -> int:
        return max(1, self._places // 4)

    async def _serve(self) -> None:
        """Run one turn after another while tasks are ready. A task group per turn would cost more than a no-op."""
        try:
            while self.held.ready:
                await self._work(self.held.ready.popleft())
                if not self.held.ready:
                    await anyio.lowlevel.checkpoint()  # a concurrent claim may be about to add tasks
        finally:
            self._serving -= 1

    async def _work(self, work: HeldWork) -> None:
        """Run and settle one task's turn, and free its place in any case."""
        lease = work.lease
        work.started = True
        try:
            with work.scope, turn_span(lease) as span:
                began = anyio.current_time()
                end = await self._turn(work)
                work.settling = True
                span.end(end.outcome)
                transition = await self._settle(lease, end)
                seconds = anyio.current_time() - began
                self._pace(seconds)
                if seconds >= QUICK_SECONDS or transition.status is not TaskStatus.DONE:
                    _log_end(lease.task, transition, seconds)
            if work.scope.cancelled_caught:
                _log.warning("task %s: %s", lease.task.task_id, work.ended_because)
                await self._end_lost(lease, work.ended_because)
        except LeaseLost as lost:
            _log.warning("%s", lost)
            await self._end_lost(lease, str(lost))
        except Exception:  # a turn must not end the process, which holds other tasks; the lease of this one expires
            self._upkeep.faults += 1
            _log.exception("task %s: unexpected error, it is redone when its lease has expired", lease.task.task_id)
        finally:
            self.held.forget(work)

    async def _end_lost(self, lease: HeldLease, reason: str) -> None:
        if not self.stopping:  # a stopping worker releases its tasks, which ends their runs
            end = partial(end_lost_run, self.parts.store, lease, reason, self.parts.clock.now())
            await self._upkeep.log_failure(end)

    def _pace(self, seconds: float) -> None:
        known = self._mean_turn_seconds
        self._mean_turn_seconds = seconds if known == float("inf") else 0.8 * known + 0.2 * seconds

    async def _turn(self, work: HeldWork) -> TurnEnd:
        """Run the turn until it ends, its deadline passes, or nothing happens in it for too long."""
        await self._renew_parts()
        lease = work.lease
        work.limit = self._upkeep.look.begin(lease, self.parts.roles[self.role].limits, self.parts.clock)
        with work.turn:
            try:
                return await run_turn(lease, self.parts)
            except StoreError as error:  # its journal cannot be opened: the lease is kept until the task is given back
                return await self._cut_short_for(lease, error)
            finally:
                work.limit = None
        if work.cut is None:
            raise LeaseLost(f"the turn of task {lease.task.task_id} was cancelled without a limit")
        return await self._cut_short(lease, work.cut, RunStatus.TIMEOUT)

    async def _cut_short_for(self, lease: HeldLease, error: StoreError) -> TurnEnd:
        """End the turn as soon as the store works again; without an attempt, unless it refuses to work."""
        _log.warning("task %s waits for the store: %s", lease.task.task_id, error)
        while True:
            try:
                return await self._cut_short(lease, outcome_of_error(error), RunStatus.ERROR)
            except StoreError:
                await self.parts.clock.sleep(SETTLE_PAUSE_SECONDS)

    async def _cut_short(self, lease: HeldLease, outcome: Outcome, status: RunStatus) -> TurnEnd:
        """Close the run of an interrupted turn and return its end with *outcome*."""
        journal = await open_journal(lease, self.parts)
        await journal.take_up()
        text = outcome.error if isinstance(outcome, (Failed, Retry)) else "released by a stopping agent"
        journal.note("turn_cut_short", reason=text)
        return TurnEnd(outcome, tuple(journal.closing(status, text, None, text)))

    async def _settle(self, lease: HeldLease, end: TurnEnd) -> Transition:
        """Settle the outcome; retry while the store fails. Raises LeaseLost if the task is no longer held.

        The commit is fenced by the epoch: after an outage it succeeds if no other agent claimed the task meanwhile.
        """
        outcome, writes = end
        failure: Exception | None = None
        told = ""
        while True:
            try:
                transition = await self.parts.board.settle(lease, outcome, writes)
            except LeaseLost:
                raise
            except (InvalidInput, StoreRejected, Conflict) as refused:
                if failure is not None:
                    raise LeaseLost(f"task {lease.task.task_id} cannot be settled: {refused}") from refused
                failure = refused
                outcome, writes = await self._cut_short(lease, _outcome_of_refusal(refused), RunStatus.ERROR)
            except StoreError as error:  # also one without permission: an operator may give it before the lease is lost
                if str(error) != told:
                    _log.warning("task %s has ended and waits for the store: %s", lease.task.task_id, error)
                told = str(error)
                await self.parts.clock.sleep(SETTLE_PAUSE_SECONDS)
            else:
                break
        self.settled += 1
        report_end(lease.task, transition.status, self.parts.clock.now())
        if transition.status is TaskStatus.DONE:
            await remove_outputs(self.parts, lease.task)
        if transition.reason in (StatusReason.RETRY_BACKOFF, StatusReason.PAUSED):
            self._upkeep.sweep_soon.ring()
        return transition

    # ── waiting for work ──────────────────────────────────────────────────────────────────────────────

    async def _idle(self, turns: TaskGroup) -> None:
        """Wait until a task of this role was claimed, or the sweep or ``stop`` rings."""

        async def follow() -> None:
            async with self.parts.store.listen(
                self._claimer.query_to_listen(self._upkeep.heartbeat.idle_agents)
            ) as batches:
                async for snapshots in batches:
                    if snapshots and await self._claim_seen(snapshots, turns):
                        self._upkeep.queued.ring()
                        return

        async def follow_or_look() -> None:
            await self._upkeep.log_failure(follow)
            await self.parts.clock.sleep(LISTEN_AGAIN_SECONDS)  # after a failure: look at the queue, then listen again
            self._upkeep.queued.ring()

        async with anyio.create_task_group() as group:
            group.start_soon(follow_or_look)
            await self._upkeep.queued.heard(self.parts.clock, None)
            group.cancel_scope.cancel()
        factor = self._claimer.contention.factor
        if factor > 1.0 and not self.stopping:
            pause = self._rng.uniform(0, CONTENDED_PAUSE_SECONDS * factor)
            await self._upkeep.queued.heard(self.parts.clock, pause)

    async def _claim_seen(self, snapshots: list[Snapshot], turns: TaskGroup) -> bool:
        """Claim delivered tasks; True if any was claimed, or may be. A canceled claim would lose its lease."""
        leases: list[HeldLease] = []
        if self._upkeep.orders.active:
            return True
        with anyio.CancelScope(shield=True):
            await self._renew_parts()
            leases = await self._claimer.claim_seen(snapshots, max(1, self._free))
            self._begin(leases, turns)
        return bool(leases or self._claimer.in_doubt)

    # ── drain ─────────────────────────────────────────────────────────────────────────────────────────────

    async def _drain(self, background: TaskGroup) -> None:
        """Let running turns finish; release tasks that have not started immediately."""
        if not len(self.held):
            return
        background.start_soon(self._upkeep.beat, AgentState.STOPPING, self.held.task_ids())
        await self._give_back([work for work in self.held.all() if not work.started])
        while len(self.held):
            await self.held.freed.heard(self.parts.clock, None)

    async def _give_back(self, works: list[HeldWork]) -> None:
        for work in works:
            self.held.end(work, "the agent stops, the task is released")
        async with anyio.create_task_group() as group:
            for work in works:
                group.start_soon(self._release, work.lease)

    async def _release(self, lease: HeldLease) -> None:
        async def release() -> None:
            end = await self._cut_short(lease, Released(), RunStatus.TIMEOUT)
            await self.parts.board.settle(lease, end.outcome, end.writes)

        await self._upkeep.log_failure(release)


def _log_end(task: Task, transition: Transition, seconds: float) -> None:
    """Log how a turn ended, without its words: logs are exported where content is not."""
    state = transition.reason or transition.status
    _log.info("task %s is %s after %.1f s", shown_id(task.task_id), state.value, seconds)


def _outcome_of_refusal(refused: Exception) -> Outcome:
    """Return the outcome of a turn whose own outcome cannot be stored.

    A conflict that remains means that a document of this epoch exists already: the task was reset to an earlier epoch.
    """
    if isinstance(refused, WorkEdited):
        return Released(f"{refused}: it runs again")
    if isinstance(refused, Conflict):
        return Retry(f"the task's document was reset: {refused}")
    return Failed(str(refused))
