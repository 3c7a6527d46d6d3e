"""One role process: claim, work, settle; renew what is held; sweep; heartbeat; drain.

The claim loop asks while there is work and listens while there is none: an idle role never polls hot.
Turns run their skills in processes of their own, so the loop here is never starved by a busy turn.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from fireswarm.clocks import Bell
from fireswarm.contracts.swarm.outcome import Failed, Outcome, Released, Retry
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.contracts.swarm.status import AgentState
from fireswarm.contracts.swarm.task import StatusReason
from fireswarm.errors import Conflict, FireswarmError, InvalidInput, LeaseLost, StoreError, StoreRejected
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.read import parse_all
from fireswarm.swarm.board import HeldLease
from fireswarm.swarm.board.operator.actions import CANCEL_SIGNAL
from fireswarm.swarm.records.mailbox import parse_message
from fireswarm.swarm.swarm import Swarm
from fireswarm.swarm.turn.turn import TurnEnd, open_journal, run_turn
from fireswarm.swarm.worker import answers_by_mail
from fireswarm.swarm.worker.heartbeat import Heartbeat

REFILL_SECONDS = 0.005
"""With some places free and others busy, wait this long for more to come free: one claim for several
tasks costs one round trip. Far below the latency target of a claim."""

AHEAD_SECONDS = 0.1
"""While turns are shorter than this on average, a worker claims as many tasks again as it works on at once,
so that the next one starts the moment a place comes free. A longer turn would keep them from its peers."""

CONTENDED_PAUSE_SECONDS = 0.004
"""Times the contention factor, jittered: many idle workers woken by one task do not all reach for it. Up to
a second for each of them; the first of thirty then comes after some thirty milliseconds."""

STORE_PAUSE_SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0)
"""Pauses while the store cannot be reached; everything held is renewed or given up meanwhile."""

SETTLE_PAUSE_SECONDS = 0.5
"""Between attempts to settle while the store is away, as long as the lease lasts."""

LEAVE_SECONDS = 0.7
"""After the drain: once to give back what is left, once to say goodbye. Both together are less than the supervisor's
grace, and with the default drain well below the ten seconds after which Cloud Run kills."""

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Work:
    """One turn, ready or under way: its lease, and the scope that ends it when the lease is lost."""

    held: HeldLease
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    started: bool = False
    ended_because: str = ""


class Worker:
    """Works for one role under one agent id until ``stop`` is called, then drains and returns."""

    def __init__(self, swarm: Swarm, role: str, agent_id: str, *, message: str = "") -> None:
        swarm.board.check_role(role)
        self.swarm = swarm
        self.role = role
        self.agent_id = agent_id
        self.capacity = swarm.settings.worker.concurrency
        self.stopping = False
        self.running: dict[str, _Work] = {}
        self.settled = 0
        self._claimer = swarm.board.claimer(role, agent_id)
        self._ready: deque[_Work] = deque()
        self._serving = 0
        self._mean_turn_seconds = float("inf")
        self._time_to_finish = anyio.CancelScope()
        self._freed = Bell()
        self._queued = Bell()
        self._sweep_soon = Bell()
        self._rng = random.Random(agent_id)
        self._heartbeat = Heartbeat(swarm, role, agent_id, message)

    def stop(self) -> None:
        """Stop claiming; ``run`` finishes what it can and returns."""
        if not self.stopping:
            self._time_to_finish.deadline = anyio.current_time() + self.swarm.settings.worker.drain_seconds
        self.stopping = True
        self._freed.ring()
        self._queued.ring()

    @property
    def contention(self) -> tuple[int, int]:
        """Claims won and lost so far."""
        return self._claimer.contention.won, self._claimer.contention.lost

    async def run(self) -> None:
        """Work until told to stop; then finish within ``drain_seconds`` or release, and say goodbye."""
        async with anyio.create_task_group() as background:
            for loop in (self._beat, self._renew, self._sweep, self._inbox, self._answers):
                background.start_soon(loop)
            async with anyio.create_task_group() as turns:
                with self._time_to_finish:  # a claim may hang as long as the store does
                    await self._claim(turns)
                    await self._drain(background)
                with anyio.move_on_after(LEAVE_SECONDS):
                    await self._give_back(list(self.running.values()))
            background.cancel_scope.cancel()
        with anyio.CancelScope(shield=True), anyio.move_on_after(LEAVE_SECONDS):
            await self._log_failure(lambda: self._heartbeat.write(AgentState.STOPPED, self._holding()))

    # ── the life of a task ────────────────────────────────────────────────────────────────────────────

    async def _claim(self, turns: TaskGroup) -> None:
        while not self.stopping:
            free = self._free
            if free <= 0 or (self.running and free < self._refill):
                await self._freed.heard(self.swarm.clock, REFILL_SECONDS if free > 0 else None)
                free = self._free
            if free <= 0 or self.stopping:
                continue
            held = await self._available(lambda wanted=free: self._claimer.claim(wanted)) or []
            for lease in held:
                work = self.running[lease.run_id] = _Work(lease)
                self._ready.append(work)
            for _ in range(min(len(held), self.capacity - self._serving)):
                self._serving += 1
                turns.start_soon(self._serve)
            if held:
                await anyio.lowlevel.checkpoint()  # what was claimed starts before the next look at the queue
            else:
                await self._idle()

    @property
    def _places(self) -> int:
        return self.capacity * (2 if self._mean_turn_seconds < AHEAD_SECONDS else 1)

    @property
    def _free(self) -> int:
        return self._places - len(self.running)

    @property
    def _refill(self) -> int:
        return max(1, self._places // 4)

    async def _serve(self) -> None:
        """One place: turn after turn while any is ready. A task of its own for each would cost more than a no-op."""
        try:
            while self._ready:
                await self._work(self._ready.popleft())
                if not self._ready:
                    await anyio.lowlevel.checkpoint()  # a claim committed with this turn is about to bring more
        finally:
            self._serving -= 1

    async def _work(self, work: _Work) -> None:
        held = work.held
        work.started = True
        try:
            with work.scope:
                began = anyio.current_time()
                ending = await self._turn(held)
                await self._settle(held, ending)
                self._pace(anyio.current_time() - began)
            if work.scope.cancelled_caught:
                _log.warning("task %s: %s", held.task.task_id, work.ended_because)
        except LeaseLost as lost:
            _log.warning("%s", lost)
        finally:
            self._forget(work)

    def _forget(self, work: _Work) -> None:
        del self.running[work.held.run_id]
        self._freed.ring()

    def _pace(self, seconds: float) -> None:
        known = self._mean_turn_seconds
        self._mean_turn_seconds = seconds if known == float("inf") else 0.8 * known + 0.2 * seconds

    async def _turn(self, held: HeldLease) -> TurnEnd:
        limit = self.swarm.roles[self.role].limits.turn_timeout_seconds
        asked = held.task.constraints.timeout_seconds
        limit = min(limit, asked) if asked else limit
        left = (held.task.deadline - self.swarm.clock.now()).total_seconds()
        with anyio.move_on_after(min(limit, left)):
            return await run_turn(held, self.swarm)
        if left <= limit:
            outcome: Outcome = Failed("the deadline passed while it was worked on", StatusReason.DEADLINE_EXCEEDED)
        else:
            outcome = Retry(f"the turn took longer than {limit:g} s, the limit of role {self.role}")
        return await self._cut_short(held, outcome, RunStatus.TIMEOUT)

    async def _cut_short(self, held: HeldLease, outcome: Outcome, status: RunStatus) -> TurnEnd:
        journal = await open_journal(held, self.swarm)
        await journal.take_up()
        text = outcome.error if isinstance(outcome, (Failed, Retry)) else "released by a stopping agent"
        journal.note("turn_cut_short", reason=text)
        return TurnEnd(outcome, tuple(journal.closing(status, text, None, text)))

    async def _settle(self, held: HeldLease, ending: TurnEnd) -> None:
        outcome, also = ending
        while True:
            try:
                transition = await self.swarm.board.settle(held, outcome, also)
            except (InvalidInput, StoreRejected) as refused:
                outcome, also = await self._cut_short(held, Failed(str(refused)), RunStatus.ERROR)
            except StoreError as error:
                if not error.retryable or held.expires_at <= self.swarm.clock.now():
                    raise LeaseLost(f"task {held.task.task_id} could not be settled, it is redone: {error}") from error
                await self.swarm.clock.sleep(SETTLE_PAUSE_SECONDS)
            else:
                break
        self.settled += 1
        if transition.reason in (StatusReason.RETRY_BACKOFF, StatusReason.PAUSED):
            self._sweep_soon.ring()

    # ── waiting for work ──────────────────────────────────────────────────────────────────────────────

    async def _idle(self) -> None:
        """Listen until something is queued for this role, or the sweep or the stop says to look."""

        async def follow() -> None:
            async with self.swarm.store.listen(queries.queued(self.role, 1)) as snapshots:
                async for found in snapshots:
                    if found:
                        await self._looked_at(found[0].path)
                        self._queued.ring()
                        return

        async with anyio.create_task_group() as group:
            group.start_soon(self._log_failure, follow)
            await self._queued.heard(self.swarm.clock, None)
            group.cancel_scope.cancel()
        factor = self._claimer.contention.factor
        if factor > 1.0 and not self.stopping:
            await self._queued.heard(self.swarm.clock, self._rng.uniform(0, CONTENDED_PAUSE_SECONDS * factor))

    async def _looked_at(self, path: str) -> None:
        """A queued document that the claim query does not return lacks a field: have it completed."""
        if self._claimer.last_seen == path:
            await self.swarm.board.admit_hand_written(self.role)
        self._claimer.last_seen = path

    # ── the background ────────────────────────────────────────────────────────────────────────────────

    async def _beat(self) -> None:
        worker = self.swarm.settings.worker
        while True:
            state = AgentState.WORKING if self.running else AgentState.IDLE
            await self._log_failure(lambda now=state: self._heartbeat.write(now, self._holding()))
            pause = worker.heartbeat_working_seconds if self.running else worker.heartbeat_idle_seconds
            await self.swarm.clock.sleep(pause)

    async def _renew(self) -> None:
        """Renew every lease once a third of its life is over; end the turn of one that is lost."""
        every = self.swarm.board.rules.renew_every_seconds
        while True:
            await self.swarm.clock.sleep(every / 2)
            soon = self.swarm.clock.now() + timedelta(seconds=self.swarm.board.rules.lease_seconds - every)
            async with anyio.create_task_group() as group:
                for work in list(self.running.values()):
                    if work.held.expires_at <= soon:
                        group.start_soon(self._renew_one, work)

    async def _renew_one(self, work: _Work) -> None:
        try:
            await self.swarm.board.renew(work.held)
        except LeaseLost as lost:
            self._end(work, str(lost))
        except (StoreError, Conflict) as error:
            if work.held.expires_at <= self.swarm.clock.now():
                self._end(work, f"its lease ran out while the store could not be reached: {error}")

    def _end(self, work: _Work, why: str) -> None:
        if self.running.get(work.held.run_id) is not work:
            return  # it is over already
        work.ended_because = why
        if work.started:
            work.scope.cancel()
        else:
            _log.warning("task %s: %s", work.held.task.task_id, why)
            self._ready.remove(work)
            self._forget(work)

    async def _sweep(self) -> None:
        """Look when the next thing is due, and once a lease at least: a lease taken since ends no sooner."""
        lease = self.swarm.board.rules.lease_seconds
        while True:
            swept = await self._available(lambda: self.swarm.board.sweep(self.role))
            pause = lease
            if swept is not None and swept.next_due is not None:
                pause = min(lease, max(0.0, (swept.next_due - self.swarm.clock.now()).total_seconds()))
            self._queued.ring()
            await self._sweep_soon.heard(self.swarm.clock, pause + self._rng.uniform(0.01, min(0.5, lease / 10)))

    async def _inbox(self) -> None:
        """Follow the messages to this agent: a canceled task stops at once."""
        while True:
            await self._log_failure(self._follow_inbox)
            await self.swarm.clock.sleep(STORE_PAUSE_SECONDS[-1])

    async def _answers(self) -> None:
        """Follow the messages that answer tasks of this role."""
        while True:
            await self._log_failure(lambda: answers_by_mail.follow(self.swarm, self.role))
            await self.swarm.clock.sleep(STORE_PAUSE_SECONDS[-1])

    async def _follow_inbox(self) -> None:
        async with self.swarm.store.listen(queries.inbox(self.agent_id)) as snapshots:
            async for found in snapshots:
                messages, _ = parse_all(found, parse_message)  # the claim puts the others aside
                for message in messages:
                    if any(signal.name == CANCEL_SIGNAL for signal in message.payload.signals):
                        for work in list(self.running.values()):
                            if work.held.task.task_id == message.task_id:
                                self._end(work, f"canceled: {message.payload.notes}")
                if found:
                    for held in await self.swarm.mailbox.claim(self.agent_id, self.agent_id):
                        await self.swarm.mailbox.acknowledge(held)

    # ── the end ───────────────────────────────────────────────────────────────────────────────────────

    async def _drain(self, background: TaskGroup) -> None:
        """Let turns finish; those that have not begun go to others at once."""
        if not self.running:
            return
        holding = self._holding()
        background.start_soon(self._log_failure, lambda: self._heartbeat.write(AgentState.STOPPING, holding))
        await self._give_back([work for work in self.running.values() if not work.started])
        while self.running:
            await self._freed.heard(self.swarm.clock, None)

    async def _give_back(self, works: list[_Work]) -> None:
        for work in works:
            self._end(work, "the agent stops, the task is released")
        async with anyio.create_task_group() as group:
            for work in works:
                group.start_soon(self._release, work.held)

    async def _release(self, held: HeldLease) -> None:
        async def release() -> None:
            ending = await self._cut_short(held, Released(), RunStatus.TIMEOUT)
            await self.swarm.board.settle(held, ending.outcome, ending.also)

        await self._log_failure(release)

    def _holding(self) -> list[str]:
        return [work.held.task.task_id for work in self.running.values()]

    async def _log_failure(self, call: Callable[[], Awaitable[object]]) -> None:
        """Run a background duty; a failure is logged and left to the next round."""
        try:
            await call()
        except FireswarmError as error:
            _log.warning("%s %s: %s", self.role, self.agent_id, error)

    async def _available[T](self, call: Callable[[], Awaitable[T]]) -> T | None:
        """Call the store; when it cannot be reached, log, pause and return None."""
        try:
            return await call()
        except StoreError as error:
            if not error.retryable:
                raise
            _log.warning("%s %s: %s", self.role, self.agent_id, error)
            await self.swarm.clock.sleep(self._rng.choice(STORE_PAUSE_SECONDS[1:4]))
            return None
