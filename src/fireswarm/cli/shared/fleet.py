"""The role processes of one machine, and the signals that stop a command."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import anyio
import psutil

from fireswarm.cli.shared.options import console, errors
from fireswarm.client import Swarm
from fireswarm.contracts.base import command_line, count_noun
from fireswarm.contracts.swarm.status import AgentStatus
from fireswarm.errors import InvalidInput
from fireswarm.settings import Settings
from fireswarm.swarm.worker.supervisor import Supervisor

RECENT_SECONDS = 3_600
"""Maximum age of heartbeats that are read to find a running fleet."""


def _session_option(settings: Settings) -> list[str]:
    """Return the option that binds role processes to the session of this fleet, if the fleet is bound to one."""
    return ["--session", settings.session] if settings.worker.sessions == (settings.session,) else []


def bound_to(session: str | None) -> dict[str, Any]:
    """Return the setting that binds a worker to the named session."""
    return {} if session is None else {"worker.sessions": [session]}


def fleet_of(settings: Settings, uri: str, replicas: dict[str, int]) -> Supervisor:
    """Return the supervisor of one machine's role processes, which passes them the settings of this process."""
    fleet = Supervisor.plan(
        replicas,
        arguments=["--root", str(settings.root.resolve()), "--store", uri, *_session_option(settings)],
        environment={
            "FIRESWARM_SESSION": settings.session,
            "FIRESWARM_LEASE_SECONDS": str(settings.leases.lease_seconds),
            "FIRESWARM_THINK": settings.worker.think,
            "FIRESWARM_PROVIDER": settings.model.provider,
            **({"FIRESWARM_SCRIPT": settings.model.script} if settings.model.script else {}),
        },
        logs=settings.path(".fireswarm/logs"),
        drain_seconds=settings.worker.drain_seconds,
    )
    fleet.report = lambda text: errors.print(text, style="red", markup=False, soft_wrap=True)
    return fleet


def print_address(endpoint: str, project: str) -> None:
    """Print how an official client of Firestore reaches a served store: the variable, and the id of the project."""
    console.print(f"export FIRESTORE_EMULATOR_HOST={command_line(endpoint)}", soft_wrap=True)
    console.print(f"the project of its documents, for official clients: {project}", style="dim", soft_wrap=True)


async def refuse_second_fleet(settings: Settings) -> None:
    """Raise InvalidInput if agents work on the embedded store of this folder, which another process serves."""
    from fireswarm.swarm.opening.embedded_store import served_elsewhere

    if not (uri := served_elsewhere(settings)):
        return
    async with Swarm.open(uri, settings=settings) as swarm:
        now = swarm.parts.clock.now()
        recent = await swarm.parts.heartbeats.latest(since=now - timedelta(seconds=RECENT_SECONDS))
    alive = [status for status in recent if status.lives_at(now) and _is_running(status)]
    if alive:
        roles = ", ".join(sorted({status.role for status in alive}))
        raise InvalidInput(
            f"a fleet already works on this folder: {count_noun(len(alive), 'agent')} ({roles}; `swarm agents` "
            f"lists them). It executes the tasks that you submit. To start more role processes, use --join, or "
            f"--roles or --replicas"
        )


def _is_running(status: AgentStatus) -> bool:
    """Return False if the agent was on this machine and its process has ended."""
    return status.host != socket.gethostname() or psutil.pid_exists(status.pid)


@contextlib.asynccontextmanager
async def stop_signal() -> AsyncGenerator[anyio.Event]:
    """Yield an event that is set by SIGINT or SIGTERM, which are handled for the whole block."""
    stop = anyio.Event()
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with anyio.create_task_group() as group:

            async def listen() -> None:
                async for _ in signals:
                    stop.set()

            group.start_soon(listen)
            yield stop
            group.cancel_scope.cancel()


async def until_signal(call: Callable[[], Awaitable[object]]) -> None:
    """Await *call*, but return on SIGINT or SIGTERM."""
    async with stop_signal() as stop, anyio.create_task_group() as group:

        async def end() -> None:
            await stop.wait()
            group.cancel_scope.cancel()

        group.start_soon(end)
        await call()
        group.cancel_scope.cancel()


@contextlib.asynccontextmanager
async def console_beside(settings: Settings, uri: str, port: int, stop: anyio.Event) -> AsyncGenerator[str]:
    """Serve the console of the store at *uri* until *stop* is set or the block ends; yields its link."""
    from fireswarm.api.console.application import make_console
    from fireswarm.api.console.visit import WebConsole
    from fireswarm.api.server import address_of, hosts_of, listening_socket, serve
    from fireswarm.runs.make_mind import redactor_for

    with listening_socket("127.0.0.1", port) as listening:
        async with Swarm.open(uri, settings=settings) as swarm, anyio.create_task_group() as group:
            pages, ready = WebConsole(swarm, redactor_for(settings)), anyio.Event()
            application = make_console(pages, hosts_of(listening))
            group.start_soon(pages.feed.follow)
            async with anyio.create_task_group() as served:
                served.start_soon(serve, application, listening, stop, ready.set, [pages.stopping])
                await ready.wait()
                yield pages.link(address_of(listening), pages.entrance.new_link())
                stop.set()
            group.cancel_scope.cancel()
