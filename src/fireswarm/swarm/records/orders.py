"""Orders of an operator to role processes: a pause or a drain of a role, or of one agent, as a message to the role.

An order is a document of ``agent_mailbox`` with the kind ``order``. It stays new while it is in force, so each process
of the role reads it with the listener that it has for messages, also after a restart.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio

from fireswarm.contracts.base import command_line
from fireswarm.contracts.limits import MAX_LABEL_CHARS, truncate
from fireswarm.contracts.ports import Create, Snapshot, Store, Update
from fireswarm.contracts.skills.artifact import Signal
from fireswarm.contracts.swarm.envelope import Envelope, MailKind, MailStatus, TaskRef, Trace
from fireswarm.contracts.swarm.task import Task, TaskStatus
from fireswarm.errors import Conflict, InvalidInput, NotFound
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.build import message_document
from fireswarm.storage.documents.paths import message_path
from fireswarm.storage.documents.read import parse_readable
from fireswarm.swarm.board import Board
from fireswarm.swarm.records.heartbeats import Heartbeats
from fireswarm.swarm.records.mailbox import parse_message

PAUSED, DRAINED = "paused", "drained"
"""Names of the signals of an order. A paused agent claims no task; a drained one hands its tasks back and ends."""

PLACE = "FIRESWARM_PLACE"
"""Environment variable in which the supervisor tells a process its place: when its fleet began, and its name there."""

NO_PLACE = re.compile(r"[^A-Za-z0-9.-]")
PLACE_NAME = re.compile(r"(\d{1,12})\.([0-9a-f]{4})\.([a-z0-9-]{1,63}-\d{1,3})", re.ASCII)
"""A place, such as ``1764409072.5ab1.scout-1``: seconds since 1970, a random number of the fleet, the name."""

DRAINED_EXIT = 83
"""Exit code of a process that an operator drained: its supervisor does not start it again. No other end has it."""

AGENT_ORDER_LASTS = timedelta(days=30)
"""An order to one agent is deleted after this time: agents come and go, and each process of a role reads all orders."""

ATTEMPTS = 5
MAX_READ, MAX_IN = 200, 30
"""Orders to agents that are read, and values that one filter takes."""


@dataclass(frozen=True, slots=True)
class Order:
    """An order in force. ``subject`` is the place or id of one agent, "" for all agents of the role."""

    role: str
    subject: str
    paused: bool
    drained: bool
    since: datetime
    reason: str = ""

    def concerns(self, role: str, agent_id: str, place: str) -> bool:
        """Return True if an agent of a role has to follow the order."""
        return self.role == role and self.subject in ("", agent_id, place or agent_id)

    def describe(self) -> str:
        """Return the order as the end of a sentence."""
        done = " and ".join(word for word, given in ((PAUSED, self.paused), (DRAINED, self.drained)) if given)
        return f"{done} by an operator{f': {self.reason}' if self.reason else ''}"


@dataclass(slots=True)
class Orders:
    """What an operator orders one agent to do; ``active`` is True while that is anything.

    ``known`` is set when it is read; before, the agent claims nothing.
    """

    role: str
    agent_id: str
    place: str = field(default_factory=lambda: os.environ.get(PLACE, ""))
    began: float = 0.0
    paused: bool = False
    drained: bool = False
    active: bool = False
    known: anyio.Event = field(default_factory=anyio.Event)

    def take(self, orders: Iterable[Order]) -> bool:
        """Follow the orders that are in force now; returns True if they tell this agent something else than before.

        A drain is for the processes of fleets that began before it, also for those that restart afterwards.
        """
        mine = [order for order in orders if order.concerns(self.role, self.agent_id, self.place)]
        paused = any(order.paused for order in mine)
        drained = any(order.drained and self._began < order.since.timestamp() for order in mine)
        changed = (paused, drained) != (self.paused, self.drained)
        self.paused, self.drained, self.active = paused, drained, paused or drained
        self.known.set()
        return changed

    @property
    def _began(self) -> float:
        match = PLACE_NAME.fullmatch(self.place)
        return float(match[1]) if match else self.began


def parse_order(snapshot: Snapshot) -> Order:
    """Parse an order. Raises InvalidInput for a document that orders nothing."""
    message = parse_message(snapshot)
    signals = {signal.name: signal for signal in message.payload.signals if signal.name in (PAUSED, DRAINED)}
    if not signals:
        raise InvalidInput(f"an order has a signal with the name {PAUSED} or {DRAINED} in payload.signals")
    first = next(iter(signals.values()))
    return Order(
        role=message.to_agent_id,
        subject=first.subject,
        paused=PAUSED in signals,
        drained=DRAINED in signals,
        since=message.created_at,
        reason=first.note,
    )


async def read_orders(store: Store, roles: Iterable[str]) -> list[Order]:
    """Return the orders in force: all to *roles*, and 200 to agents. A malformed document is logged and skipped."""
    ids = [_id(role) for role in roles]
    to_roles: list[Snapshot] = []
    for start in range(0, len(ids), MAX_IN):
        to_roles += await store.query(queries.orders(None, ids[start : start + MAX_IN]))
    named = {item.path for item in to_roles}
    others = [item for item in await store.query(queries.orders(MAX_READ)) if item.path not in named]
    return [order for item in (*to_roles, *others) for order in _in_force(item)]


async def explain_task(
    board: Board, heartbeats: Heartbeats, task: Task, relatives: Mapping[str, Task] | None = None
) -> str:
    """Return what a task waits for, also for a role that an operator paused, or of which no process lives.

    Costs up to six reads more for a task that waits for an agent.
    """
    held = task.lease is not None and task.lease.expires_at >= board.clock.now()
    if task.status is not TaskStatus.QUEUED and (task.status is not TaskStatus.IN_PROGRESS or held):
        return await board.explain(task, relatives)
    role = task.assigned_to
    order = await find_order(board.store, role)
    if order is not None and order.paused:
        resume = command_line("swarm", "resume", role)
        return f"The role {role} is {order.describe()}, since {_at(order.since)}. `{resume}` lets it claim tasks again."
    if await heartbeats.lives(role):
        return await board.explain(task, relatives)
    why = "none lives"
    if role not in board.roles:
        why += ", and there is no role card of this name here"
    elif order is not None:
        why += f": its processes were {order.describe()}, at {_at(order.since)}"
    lost = (
        f", since the lease of {task.lease.owner_agent_id} expired at {_at(task.lease.expires_at)}"
        if task.lease
        else ""
    )
    return f"It waits for an agent of the role {role}{lost}; {why}. `swarm up` starts the roles of a folder."


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


async def find_order(store: Store, role: str) -> Order | None:
    """Return the order in force to a role, None if there is none; costs a read."""
    return next(iter(_in_force(await store.get(_path(role)))), None)


@dataclass(frozen=True, slots=True)
class AgentOrders:
    """Gives orders to the roles and agents of a store, in the name of a session.

    Methods take the name of a role or the id of an agent, and raise NotFound for an unknown one.
    """

    board: Board
    heartbeats: Heartbeats
    session: str

    async def read(self) -> list[Order]:
        """Return the orders in force."""
        return await read_orders(self.board.store, self.board.roles)

    async def find(self, role: str) -> Order | None:
        """Return the order in force to a role, None if there is none."""
        return await find_order(self.board.store, role)

    async def pause(self, name: str, reason: str = "") -> Order:
        """Let a role or an agent claim no more tasks; what it holds goes on. It lasts until `resume`."""
        return await self._give(name, PAUSED, reason)

    async def drain(self, name: str, reason: str = "") -> Order:
        """Let the processes of a role, or one agent, hand their tasks back within their drain time and end.

        Those of a fleet do not start again; a fleet that begins later works.
        """
        return await self._give(name, DRAINED, reason)

    async def _give(self, name: str, signal: str, reason: str) -> Order:
        role, subject = await self._find(name)
        for _ in range(ATTEMPTS):
            snapshot = await self.board.store.get(_path(subject or role))
            names = {signal} | _signals(snapshot)
            document = self._document(role, subject, sorted(names), reason)
            write = (
                Create(snapshot.path, document)
                if snapshot.data is None
                else Update(snapshot.path, document, snapshot.update_time)
            )
            try:
                await self.board.store.commit([write])
            except Conflict:
                continue
            return Order(role, subject, PAUSED in names, DRAINED in names, self.board.clock.now(), reason)
        raise Conflict(f"the order for {name} keeps changing: nothing was changed, give it again")

    async def resume(self, name: str) -> Order | None:
        """End the order to a role or an agent, and return it; None if there was none. What was drained stays ended."""
        role, subject = await self._find(name)
        for _ in range(ATTEMPTS):
            snapshot = await self.board.store.get(_path(subject or role))
            if (snapshot.data or {}).get("status") != MailStatus.NEW:
                return None
            ended = {"status": MailStatus.READ.value, "outcome": "ended by an operator"}
            try:
                await self.board.store.commit([Update(snapshot.path, ended, snapshot.update_time)])
            except Conflict:
                continue
            return next(iter(_in_force(snapshot)), None)
        raise Conflict(f"the order for {name} keeps changing: nothing was changed, end it again")

    async def _find(self, name: str) -> tuple[str, str]:
        """Return the role, and the place or id of an agent, "" for a role."""
        if name in self.board.roles:
            return name, ""
        status = await self.heartbeats.find(name)
        if status is None:
            raise NotFound(
                f"there is no role or agent {truncate(name, MAX_LABEL_CHARS)!r}: roles are "
                f"{', '.join(sorted(self.board.roles))}, and `swarm agents` lists the agents"
            )
        return status.role, status.place or status.agent_id

    def _document(self, role: str, subject: str, names: Sequence[str], reason: str) -> dict[str, Any]:
        message_id = _id(subject or role)
        note = truncate(reason.strip(), MAX_LABEL_CHARS)
        envelope = Envelope(
            envelope_id=message_id,
            task=TaskRef(task_id=message_id, assigned_to=role),
            session_hash=self.session,
            signals=tuple(Signal(name=name, strength=1.0, subject=subject, note=note) for name in names),
            notes=f"{subject or f'the role {role}'} is {' and '.join(names)} by an operator",
            trace=Trace(chain_id=message_id),
        )
        made = message_document(envelope, "operator", role, self.board.clock.now(), self.board.clock.now())
        expires_at = self.board.clock.now() + AGENT_ORDER_LASTS if subject else None
        return made | {"kind": MailKind.ORDER.value, "expires_at": expires_at, "outcome": ""}


def _in_force(snapshot: Snapshot) -> list[Order]:
    """Return the order in a document, or nothing if it has ended or cannot be read."""
    return parse_readable([snapshot], parse_order) if (snapshot.data or {}).get("status") == MailStatus.NEW else []


def _signals(snapshot: Snapshot) -> set[str]:
    """Return what an order that is in force tells already; a drain counts from the time of the last one."""
    return {PAUSED for order in _in_force(snapshot) if order.paused}


def _id(subject: str) -> str:
    return f"order-{NO_PLACE.sub('-', subject)}"


def _path(subject: str) -> str:
    return message_path(_id(subject))


def new_place(fleet: str, name: str) -> str:
    """Return the place of a process in a fleet; see `new_fleet`."""
    return f"{fleet}.{name}"


def new_fleet() -> str:
    """Return the beginning of all places of a fleet that begins now."""
    return f"{int(datetime.now(UTC).timestamp())}.{os.urandom(2).hex()}"
