"""A worker's background duties: heartbeat, leases, limits of turns, sweep, inbox, answers by mail, old files."""

from __future__ import annotations

import contextlib
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import anyio
from anyio.abc import TaskGroup

from fireswarm.clocks import Bell
from fireswarm.contracts.ports import Snapshot
from fireswarm.contracts.swarm.envelope import MailKind
from fireswarm.contracts.swarm.status import AgentState
from fireswarm.errors import Conflict, FireswarmError, LeaseLost, StoreError
from fireswarm.storage.documents import queries
from fireswarm.swarm.board.by_hand.set_aside import work_on_document
from fireswarm.swarm.board.operator.actions import CANCEL_SIGNAL
from fireswarm.swarm.board.operator.say import SAID_SIGNAL
from fireswarm.swarm.board.operator.stalls import Stall
from fireswarm.swarm.notices.duty import NoticeDuty
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.records.idle_mail import find_idle_mail_of
from fireswarm.swarm.records.mailbox import parse_message
from fireswarm.swarm.records.orders import Order, Orders, parse_order
from fireswarm.swarm.schedules.duty import ScheduleDuty
from fireswarm.swarm.turn.outputs import remove_old_outputs
from fireswarm.swarm.worker import answers_by_mail, mail, work_by_mail
from fireswarm.swarm.worker.heartbeat import Heartbeat
from fireswarm.swarm.worker.held import HeldTasks, HeldWork
from fireswarm.swarm.worker.turn_limits import Look

STORE_PAUSE_SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0)
"""Pauses while the store is unavailable. Held tasks are still renewed or given up during a pause."""

SWEEPS_PER_RECLAIM = 5
"""Number of sweeps between two searches for tasks without a due sweep: leases of other programs, and uncounted ends."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Upkeep:
    """Runs a worker's background duties. ``queued`` rings when the worker should query its queue again.

    ``faults`` counts unexpected errors, which do not end a duty: a document of any content must not stop the others.
    """

    parts: SwarmParts
    role: str
    agent_id: str
    held: HeldTasks
    rng: random.Random
    heartbeat: Heartbeat
    queued: Bell = field(default_factory=Bell)
    sweep_soon: Bell = field(default_factory=Bell)
    faults: int = 0
    sweeps: int = 0
    looked_at: str = ""
    idle_mail: frozenset[Stall] = frozenset()
    unreachable_since: datetime | None = None
    reclaim_after: datetime | None = None
    orders: Orders = field(init=False)
    look: Look = field(default_factory=Look)
    last_pulse: datetime | None = None
    stood_still_at: datetime | None = None

    def __post_init__(self) -> None:
        """Note when this agent began: a drain before is not for it."""
        self.orders = Orders(self.role, self.agent_id, began=self.parts.clock.now().timestamp())

    def start(self, group: TaskGroup) -> None:
        """Start every duty in *group*; cancelling the group ends them."""
        for duty in (self._pulse, self._beat, self._renew, self._watch_turns, self._sweep, self._tidy):
            group.start_soon(duty)
        parts, role = self.parts, self.role
        schedules = ScheduleDuty(parts, role)
        for follow in (
            self._settle_edits,
            partial(mail.follow, parts, role, queries.inbox(self.agent_id), self._take_message),
            partial(mail.follow, parts, role, queries.answers(role), answers_by_mail.give_answers),
            self._follow_work,
            *(schedules.watch, schedules.fire),
        ):
            group.start_soon(self._repeat, follow)
        if parts.settings.notify:
            duty = NoticeDuty(parts, role)
            for follow in (duty.watch_waiting, duty.watch_ended, duty.watch_notices, duty.deliver):
                group.start_soon(self._repeat, follow)

    async def beat(self, state: AgentState, task_ids: list[str]) -> None:
        """Write one heartbeat. A failure is logged."""
        await self.log_failure(lambda: self.heartbeat.write(state, task_ids, self.faults))

    async def log_failure(self, call: Callable[[], Awaitable[object]]) -> None:
        """Run a duty once. A failure is logged, and the next round tries again."""
        try:
            await call()
        except FireswarmError as error:
            if isinstance(error, StoreError) and error.retryable:
                self._note_unreachable()
            _log.warning("%s %s: %s", self.role, self.agent_id, error)
        except Exception:  # an error that no test foresaw must not end the process, which holds other tasks
            self._count_fault()

    def _count_fault(self) -> None:
        self.faults += 1
        _log.exception("%s %s: unexpected error, the duty continues", self.role, self.agent_id)

    async def available[T](self, call: Callable[[], Awaitable[T]]) -> T | None:
        """Call the store; after a failure, log it, pause and return None.

        Raises a StoreError for which a retry cannot help, such as a missing index or permission.
        """
        try:
            result = await call()
        except StoreError as error:
            if not error.retryable:
                raise
            self._note_unreachable()
            _log.warning("%s %s: %s", self.role, self.agent_id, error)
            await self.parts.clock.sleep(self.rng.choice(STORE_PAUSE_SECONDS[1:4]))
        except FireswarmError as error:
            _log.warning("%s %s: %s", self.role, self.agent_id, error)
            await self.parts.clock.sleep(STORE_PAUSE_SECONDS[-1])
        except Exception:  # as in log_failure
            self._count_fault()
            await self.parts.clock.sleep(STORE_PAUSE_SECONDS[-1])
        else:
            self._note_reached()
            return result
        return None

    def _note_unreachable(self) -> None:
        self.unreachable_since = self.unreachable_since or self.parts.clock.now()

    def _note_reached(self) -> None:
        """After an outage, give lease holders the time of one renewal before any lease is reclaimed."""
        if self.unreachable_since is None:
            return
        now, every = self.parts.clock.now(), self.parts.board.rules.renew_every_seconds
        if (now - self.unreachable_since).total_seconds() >= every / 2:
            self.reclaim_after = now + timedelta(seconds=every)
        self.unreachable_since = None

    async def _pulse(self) -> None:
        """Notice that this process, and probably the others, stood still, such as on a suspended laptop."""
        while True:
            self.note_pulse()
            await self.parts.clock.sleep(self.parts.board.rules.renew_every_seconds / 4)

    def note_pulse(self) -> None:
        """After a standstill, give lease holders the time of one renewal, as after an outage of the store."""
        now, every = self.parts.clock.now(), self.parts.board.rules.renew_every_seconds
        if self.last_pulse is not None and (now - self.last_pulse).total_seconds() >= every / 2:
            _log.warning("%s %s stood still for %s", self.role, self.agent_id, now - self.last_pulse)
            self.stood_still_at = now
            self.reclaim_after = now + timedelta(seconds=every)
        self.last_pulse = now

    def _may_reclaim(self) -> bool:
        self.note_pulse()  # a sweep that was due meanwhile may come before the pulse
        after = self.reclaim_after
        return self.unreachable_since is None and (after is None or after <= self.parts.clock.now())

    async def _beat(self) -> None:
        """Write heartbeats: each at the time that the one before it promised, and at once when an idle agent begins."""
        worker = self.parts.settings.worker
        while True:
            self.held.added = Bell()
            busy = len(self.held) > 0
            idle = AgentState.STARTING if self.orders.paused else AgentState.IDLE  # the idle ones share the queue
            await self.beat(AgentState.WORKING if busy else idle, self.held.task_ids())
            if busy:
                await self.parts.clock.sleep(worker.heartbeat_working_seconds)
            else:
                await self.held.added.heard(self.parts.clock, worker.heartbeat_idle_seconds)

    async def _renew(self) -> None:
        """Renew every lease after a third of its lifetime. Cancels the turn of a lost lease."""
        every = self.parts.board.rules.renew_every_seconds
        while True:
            await self.parts.clock.sleep(every / 2)
            soon = self.parts.clock.now() + timedelta(seconds=self.parts.board.rules.lease_seconds - every)
            async with anyio.create_task_group() as group:
                for work in self.held.all():
                    if work.lease.expires_at <= soon:
                        group.start_soon(self.log_failure, partial(self._renew_one, work))

    async def _renew_one(self, work: HeldWork) -> None:
        try:
            await self.parts.board.renew(work.lease)
        except LeaseLost as lost:
            self.held.end(work, str(lost))
        except (StoreError, Conflict) as error:
            if work.lease.expires_at <= self.parts.clock.now() and not work.settling:
                self.held.end(work, f"its lease expired while the store was unreachable: {error}")

    async def _watch_turns(self) -> None:
        """End the turns in which nothing happens, or whose deadline has passed."""
        while True:
            await self.look.wait(self.parts.clock)
            self.note_pulse()
            now = self.parts.clock.now()
            for work in self.held.all():
                if work.limit is None:
                    continue
                work.cut = work.limit.check(now, self.stood_still_at)
                if work.cut is not None:
                    work.limit = None
                    work.turn.cancel()
                else:
                    self.look.need(work.limit.ends_at)

    async def _sweep(self) -> None:
        """Sweep when the next task is due, and at least once per lease time, since no newer lease expires earlier."""
        lease_seconds = self.parts.board.rules.lease_seconds
        while True:
            held, reclaim = frozenset(self.held.task_ids()), self._may_reclaim()
            swept = await self.available(partial(self.parts.board.sweep, self.role, held=held, reclaim=reclaim))
            if reclaim and self.sweeps % SWEEPS_PER_RECLAIM == 0:
                await self.log_failure(partial(self.parts.board.reclaim_expired, self.role, held=held))
                await self.log_failure(partial(self.parts.board.requeue_unheld, self.role, held=held))
                await self.log_failure(self._name_idle_mail)
            if self.heartbeat.queued:
                await self.log_failure(self._admit_hand_written)
            self.sweeps += 1
            pause = lease_seconds
            if swept is not None and swept.next_due is not None:
                due = swept.next_due if reclaim else max(swept.next_due, self.reclaim_after or swept.next_due)
                pause = min(lease_seconds, max(0.0, (due - self.parts.clock.now()).total_seconds()))
            self.queued.ring()
            jitter = self.rng.uniform(0.01, min(0.5, lease_seconds / 10))
            await self.sweep_soon.heard(self.parts.clock, pause + jitter)

    async def _admit_hand_written(self) -> None:
        """Adopt hand-written tasks that no claim can see, also while the queue never runs dry."""
        _, self.looked_at = await self.parts.board.admit_hand_written(self.role, self.looked_at)

    async def _name_idle_mail(self) -> None:
        """Log each message to this role that no agent will act on, once."""
        stalls = await find_idle_mail_of(self.parts.store, self.role, self.parts.roles)
        for stall in stalls:
            if stall not in self.idle_mail:
                _log.warning("%s stays unread: %s", *stall)
        self.idle_mail = frozenset(stalls)

    async def _tidy(self) -> None:
        """Remove old output folders at the start and once a day."""
        while True:
            await self.log_failure(partial(remove_old_outputs, self.parts))
            await self.parts.clock.sleep(timedelta(days=1).total_seconds())

    async def _repeat(self, follow: Callable[[], Awaitable[None]]) -> None:
        """Restart a listener whenever it ends or fails."""
        while True:
            await self.log_failure(follow)
            await self.parts.clock.sleep(STORE_PAUSE_SECONDS[-1])

    async def _follow_work(self) -> None:
        """Follow an operator's orders, and the messages that ask this role for work.

        If the orders may not be read, this agent works without them.
        """
        try:
            async with self.parts.store.listen(queries.work_messages(self.role)) as batches:
                async for snapshots in batches:
                    await self._take_orders([item for item in snapshots if _is_order(item)])
                    for snapshot in snapshots:
                        if not _is_order(snapshot):
                            await mail.act_on(self.parts, self.role, snapshot, work_by_mail.create_work)
        except StoreError as error:
            if not error.retryable:
                self.orders.known.set()
            raise

    async def _take_orders(self, snapshots: list[Snapshot]) -> None:
        """Follow the orders in force; a malformed one is refused and ignored."""
        orders: list[Order] = []

        async def take(parts: SwarmParts, role: str, snapshot: Snapshot) -> None:
            orders.append(parse_order(snapshot))

        for snapshot in snapshots:
            await mail.act_on(self.parts, self.role, snapshot, take)
        if self.orders.take(orders):
            mine = [order for order in orders if order.concerns(self.role, self.agent_id, self.orders.place)]
            self.heartbeat.order = "; ".join(order.describe() for order in mine) if self.orders.active else ""
            _log.warning("%s %s: %s", self.role, self.agent_id, self.heartbeat.order or "resumed by an operator")
            for bell in (self.held.added, self.held.freed, self.queued):  # a heartbeat tells it, and claims follow it
                bell.ring()

    async def _settle_edits(self) -> None:
        """Follow tasks of this role that a person set to canceled or done."""
        board = self.parts.board
        async with board.store.listen(queries.ended_by_hand(self.role)) as batches:
            async for snapshots in batches:
                for snapshot in snapshots:
                    await work_on_document(board, snapshot, partial(board.settle_edited, snapshot))

    async def _take_message(self, parts: SwarmParts, role: str, snapshot: Snapshot) -> None:
        """Act on a message to this agent: a canceled task stops immediately, other work is created for its role.

        A message without a request stays new: no agent acts on it.
        """
        message = parse_message(snapshot)
        if any(signal.name == CANCEL_SIGNAL for signal in message.payload.signals):
            for work in self.held.all():
                if work.lease.task.task_id == message.task_id:
                    self.held.end(work, f"canceled: {message.payload.notes}")
            await parts.store.commit([parts.mailbox.end_message_write(snapshot, mail.TAKEN)])
        elif any(signal.name == SAID_SIGNAL for signal in message.payload.signals):
            for work in self.held.all():
                if work.lease.task.task_id == message.task_id:
                    with contextlib.suppress(LeaseLost):  # the next renewal ends its turn
                        await parts.board.refresh(work.lease)
            await parts.store.commit([parts.mailbox.end_message_write(snapshot, mail.TAKEN)])
        elif message.kind is MailKind.MESSAGE:
            await work_by_mail.create_work(parts, role, snapshot)


def _is_order(snapshot: Snapshot) -> bool:
    return (snapshot.data or {}).get("kind") == MailKind.ORDER
