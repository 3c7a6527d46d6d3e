"""The role processes by their heartbeats, and the roles; what an operator orders them; one process with its log."""

from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from anyio import to_thread

from fireswarm.api.console.rendering import quote_part
from fireswarm.api.console.visit import Goto, Shown, Visit, WebConsole
from fireswarm.client import Swarm
from fireswarm.contracts.base import is_document_id
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.contracts.swarm.status import GONE, SILENT, AgentState, AgentStatus, SeenAgent, see_agents
from fireswarm.errors import InvalidInput, NotFound
from fireswarm.redaction import Redactor
from fireswarm.settings import Settings
from fireswarm.settings.run_folders import STATE_FOLDER
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import RUNS
from fireswarm.swarm.opening.confinement import describe, refusal
from fireswarm.swarm.records.orders import PLACE_NAME, Order

RECENT = timedelta(hours=1)
DAY_SECONDS = 60.0
"""How long the heartbeats of a day are kept: each costs a read."""

ENDED = (GONE, AgentState.STOPPED)
READ, KEPT_SECONDS = 100, 10.0
LOG_LINES, LOG_BYTES = 200, 128 * 1024
"""Of a log, so many of the last lines are shown, of so many of its last bytes."""

CONFINEMENT_SECONDS = 300.0
"""How long it is known how this machine confines code: to find out starts programs."""

KEY_BYTES = 32 * 1024
"""Read before these: a key that began there is recognized by its beginning."""

LONG_LINE = re.compile(r"^(.{2000}).+$", re.MULTILINE)


async def find_living(swarm: Swarm) -> list[AgentStatus]:
    """Return the agents that are alive or ended within the last hour, newest heartbeat first."""
    now = swarm.parts.clock.now()
    return [agent for agent in await swarm.parts.heartbeats.latest(READ, since=now - RECENT)]


async def keep_living(console: WebConsole) -> list[AgentStatus]:
    """Return what `find_living` does, as it was at most ten seconds ago."""
    return await console.feed.keep("agents", KEPT_SECONDS, lambda: find_living(console.swarm))


async def keep_reported(console: WebConsole) -> list[AgentStatus]:
    """Return the newest heartbeats of a day as the agents wrote them, as they were at most a minute ago."""
    heartbeats = console.swarm.parts.heartbeats
    return await console.feed.keep("agents of a day", DAY_SECONDS, lambda: heartbeats.read_reported(READ))


async def keep_orders(console: WebConsole) -> list[Order]:
    """Return the orders in force, as they were at most ten seconds ago."""
    return await console.feed.keep("orders", KEPT_SECONDS, console.swarm.orders.read)


async def show(visit: Visit) -> Shown:
    """Make the page: the processes that live, the roles, and the processes that have ended."""
    found = await keep_living(visit.console)
    orders = await visit.swarm.orders.read()
    known = {agent.agent_id for agent in found}
    earlier = [agent for agent in await keep_reported(visit.console) if agent.agent_id not in known]
    seen = see_agents([*found, *earlier], visit.swarm.parts.clock.now())
    agents = [(each, describe_state(each, orders)) for each in seen]
    roles = sorted(visit.swarm.parts.roles.values(), key=lambda card: card.name)
    values = {
        "tables": [
            ("Role processes", [each for each in agents if each[0].state not in ENDED]),
            ("Ended in the last day", [each for each in agents if each[0].state in ENDED]),
        ],
        "roles": [(card, _order_to(card.name, orders)) for card in roles],
        "orders": orders,
    }
    return Shown("agents.html", values)


async def show_one(visit: Visit) -> Shown | Goto:
    """Make the page of one agent; of one without a heartbeat, go to its runs. Raises NotFound if there are none."""
    swarm, agent_id = visit.swarm, visit.path["agent_id"]
    agent = await swarm.parts.heartbeats.find(agent_id)
    if agent is None:
        if is_document_id(agent_id) and await swarm.parts.store.query(
            queries.newest(RUNS, "started_at", 1, agent_id=agent_id)
        ):
            return Goto(f"/runs?agent={quote_part(agent_id)}")
        raise NotFound(f"there is no agent {agent_id} with a heartbeat of the last day, and it has no runs")
    living = await keep_living(visit.console)
    if agent.lives_at(swarm.parts.clock.now()):  # what it holds now, by the leases
        agent = next((each for each in living if each.agent_id == agent_id), agent)
    others = {each.agent_id: each for each in (*await keep_reported(visit.console), *living)} | {agent_id: agent}
    orders = await swarm.orders.read()
    seen = next(each for each in see_agents(others.values(), swarm.parts.clock.now()) if each.status is agent)
    card = swarm.parts.roles.get(agent.role)
    confined = await visit.console.feed.remember(
        "confined", CONFINEMENT_SECONDS, lambda: to_thread.run_sync(_describe_confinement, swarm.parts.settings)
    )
    lines, reason = await to_thread.run_sync(_read_log, swarm.parts.settings, agent, visit.console.redactor)
    values = {
        "agent": agent,
        "seen": seen,
        "state": describe_state(seen, orders),
        "ended": seen.state in ENDED,
        "order": next((order for order in orders if order.concerns(agent.role, agent.agent_id, agent.place)), None),
        "own": any(order.subject and order.concerns(agent.role, agent.agent_id, agent.place) for order in orders),
        "card": card,
        "limits": _limits(swarm.parts.settings, card),
        "confined": confined,
        "log": lines,
        "reason": reason,
        "file": swarm.parts.settings.path(f"{STATE_FOLDER}/logs") / f"{agent.place.rpartition('.')[2]}.log",
    }
    return Shown("agent.html", values)


async def order(visit: Visit) -> Goto:
    """Pause, resume or drain the role or agent of a form. Raises InvalidInput and NotFound."""
    orders, name, reason = visit.swarm.orders, visit.form.get("name", ""), visit.form.get("reason", "")
    match visit.form.get("do"):
        case "pause":
            await orders.pause(name, reason)
            done = "paused"
        case "drain":
            await orders.drain(name, reason)
            done = "drained"
        case "resume":
            ended = await orders.resume(name)
            done = "resumed_drained" if ended is not None and ended.drained else "resumed"
        case _:
            raise InvalidInput("the form does not say what to do: load the page again")
    return Goto("/agents", done)


def describe_state(seen: SeenAgent, orders: Sequence[Order]) -> str:
    """Return the state that all pages show: a living agent that may claim nothing is paused."""
    agent = seen.status
    paused = any(order.paused and order.concerns(agent.role, agent.agent_id, agent.place) for order in orders)
    return "paused" if paused and seen.state not in (SILENT, *ENDED) else seen.state


def _order_to(role: str, orders: Sequence[Order]) -> Order | None:
    return next((order for order in orders if order.role == role and not order.subject), None)


def _limits(settings: Settings, card: RoleCard | None) -> list[tuple[str, str]]:
    """Return the limits of an agent, as the settings of this console's folder and its role card set them."""
    runtime = settings.runtime
    return [
        ("tasks at once", f"{settings.worker.concurrency}"),
        ("decisions of the model in a turn", f"{runtime.max_turns}"),
        ("time of a command or skill", f"{runtime.timeout_seconds:g} s"),
        ("time of a turn without progress", f"{card.limits.idle_seconds:g} s" if card else "unknown"),
        ("memory of a command or skill", f"{runtime.max_memory_mb:,} MB"),
        ("processes of a command or skill", f"{runtime.max_processes:,}"),
        ("files that a command or skill writes", f"{runtime.max_disk_mb:,} MB"),
        ("lease of a task without renewal", f"{settings.leases.lease_seconds:g} s"),
        ("time of a drain", f"{settings.worker.drain_seconds:g} s"),
    ]


def _describe_confinement(settings: Settings) -> str:
    """Return how the machine of this console confines code, or why it does not."""
    confinement = settings.runtime.confinement
    return refusal(confinement) or describe(confinement) or "code is not confined"


def _read_log(settings: Settings, agent: AgentStatus, redactor: Redactor) -> tuple[str, str]:
    """Return the last lines of an agent's log without secrets, or why there are none."""
    match = PLACE_NAME.fullmatch(agent.place)
    if match is None:
        return "", "Its log is kept nowhere: no `swarm up` started it."
    if agent.host != socket.gethostname():
        return "", f"Its log is on the machine {agent.host}; this console runs on another one."
    try:
        return _read_tail(settings.path(f"{STATE_FOLDER}/logs") / f"{match[3]}.log", redactor), ""
    except OSError as error:
        return "", f"Its log cannot be read here: {error.strerror}. Its fleet may belong to another folder."


def _read_tail(path: Path, redactor: Redactor) -> str:
    """Return the last lines of a file. Raises OSError, also for a link and for what is no file.

    Secrets are removed before lines are left out or cut: of a part of one, nobody could tell what it is.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123 - by descriptor
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "it is no file")
        size = min(found.st_size, LOG_BYTES + KEY_BYTES)
        file.seek(found.st_size - size)
        text = redactor.clean(file.read(size).decode("utf-8", "replace"))
    cut = text if found.st_size == size else text[KEY_BYTES:].partition("\n")[2] or text[KEY_BYTES:]
    return LONG_LINE.sub(r"\1 ...", "\n".join(cut.splitlines()[-LOG_LINES:]))
