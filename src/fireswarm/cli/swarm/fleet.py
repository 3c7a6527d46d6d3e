"""Commands that run role processes: ``demo``, ``init``, ``up``, ``role``."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import shutil
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import psutil
import typer
from anyio import from_thread
from anyio.lowlevel import current_token

from fireswarm.cli.shared.fleet import (
    bound_to,
    console_beside,
    fleet_of,
    print_address,
    refuse_second_fleet,
    stop_signal,
)
from fireswarm.cli.shared.options import (
    Project,
    Root,
    Session,
    StoreUri,
    board_settings,
    console,
    errors,
    run_async,
    settings_for,
)
from fireswarm.client import Swarm
from fireswarm.contracts.model_choice import NO_CHOICE
from fireswarm.errors import ConfigError, InvalidInput, MissingApiKey
from fireswarm.processes.watchdog import watch_loop
from fireswarm.settings import Settings
from fireswarm.settings.packaged import packaged_path
from fireswarm.swarm.opening.reload import Reloader
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.records.orders import DRAINED_EXIT, AgentOrders, Order
from fireswarm.swarm.schedules.duty import ScheduleDuty
from fireswarm.swarm.worker.loop import Worker
from fireswarm.swarm.worker.role import RoleConfig, run
from fireswarm.swarm.worker.supervisor import PARENT

if TYPE_CHECKING:  # imports the skills, which `swarm --help` does not need
    from fireswarm.contracts.swarm.role import RoleCard
    from fireswarm.skills.packs.catalog import Catalog

WORK_LOG = Worker.__module__
"""Logger of what a role process did: it logs that also without --verbose."""

SCAFFOLD = ("roles", "mailbox", "skills", "firestore.indexes.json", "firestore.rules", "firebase.json")


def init(
    folder: Annotated[Path, typer.Argument(help="Folder of the new swarm.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
) -> None:
    """Write roles/, mailbox/, skills/ and the Firebase files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in SCAFFOLD:
        source, target = packaged_path(name), folder / name
        if target.exists() and not force:
            console.print(f"kept     {target}")
            continue
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, target)
        console.print(f"wrote    {target}")
    console.print("next: edit roles/*/ROLE.md, then `swarm doctor` and `swarm up`")


def _replicas(roles: Sequence[str], given: Sequence[str]) -> dict[str, int]:
    replicas = dict.fromkeys(roles, 1)
    for item in given:
        role, mark, count = item.partition("=")
        if not mark or not count.isdigit() or not 0 < int(count) <= 100:
            raise InvalidInput(f"--replicas {item!r} must be ROLE=COUNT with a count from 1 to 100")
        if role not in replicas:
            raise InvalidInput(f"--replicas names {role!r}, which is not a started role: {', '.join(roles)}")
        replicas[role] = int(count)
    return replicas


def up(
    roles: Annotated[str, typer.Option("--roles", help="Comma-separated roles; default: all role cards.")] = "",
    replicas: Annotated[list[str] | None, typer.Option("--replicas", help="ROLE=COUNT, repeatable.")] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            help="Serve the embedded store on this loopback port, for every local user; 0 picks a free one. Default: a "
            "socket that only you can connect to.",
        ),
    ] = None,
    console_port: Annotated[
        int | None, typer.Option("--console", min=0, max=65535, help="Also serve the console on this loopback port.")
    ] = None,
    join: Annotated[bool, typer.Option("--join", help="Start another fleet on a store that already has one.")] = False,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    session: Session = None,
) -> None:
    """Run the fleet on this machine until interrupted; uses the embedded store by default.

    With --session, it executes only tasks of that session; without, tasks of every session. If a fleet already works on
    the embedded store of this folder, --join, --roles or --replicas is needed to start more role processes.
    """
    from fireswarm.swarm.opening.embedded_store import serving
    from fireswarm.swarm.opening.open_parts import load_swarm, local_project

    settings = settings_for(root, store, project, session, **bound_to(session))
    cards, catalog, *_ = load_swarm(settings)
    chosen = _choose_roles(roles, cards)
    wanted = _replicas(chosen, replicas or [])
    confined = _say_confinement(settings, [cards[name] for name in chosen], catalog)

    async def main() -> None:
        if not (join or roles or replicas):
            await refuse_second_fleet(settings)
        async with (
            stop_signal() as stop,
            serving(settings, port=port) as uri,
            fleet_of(settings, uri, wanted).running() as fleet,
            contextlib.AsyncExitStack() as stack,
        ):
            console.print(f"store {uri}", soft_wrap=True)
            if confined:
                console.print(confined, soft_wrap=True)
            _say_how_open(uri, port)
            if uri.startswith("firelite://"):
                print_address(uri.removeprefix("firelite://"), local_project(settings))
            if console_port is not None:
                link = await stack.enter_async_context(console_beside(settings, uri, console_port, stop))
                console.print(f"console, a link for one browser: {link}", soft_wrap=True, markup=False)
            console.print(f"{len(fleet.places)} role processes, logs in {fleet.logs}; Ctrl-C drains and stops")
            await stop.wait()
            console.print("draining ...")

    run_async(main)


def _choose_roles(roles: str, cards: Mapping[str, RoleCard]) -> list[str]:
    """Return the roles that *roles* lists, or all. Raises ConfigError for one without a card."""
    chosen = [name for name in roles.split(",") if name] or sorted(cards)
    for name in chosen:
        if name not in cards:
            raise ConfigError(f"--roles names {name!r}, which has no role card; known: {', '.join(sorted(cards))}")
    return chosen


def _say_confinement(settings: Settings, cards: Sequence[RoleCard], catalog: Catalog) -> str:
    """Return how code is confined; without confinement "", and print the skills that need it."""
    from fireswarm.swarm.opening.confinement import confined_skills, describe, refusal

    if not (reason := refusal(settings.runtime.confinement)):
        return describe(settings.runtime.confinement)
    if blocking := confined_skills(settings, cards, catalog):
        errors.print(f"skills that will block: {', '.join(blocking)}: {reason}", markup=False, soft_wrap=True)
    return ""


def _say_how_open(uri: str, port: int | None) -> None:
    """Print a warning if the requested port is not used, or if every local user can connect."""
    if port is None:
        return
    if not uri.endswith(f":{port or uri.rpartition(':')[2]}") or uri.startswith("firelite://unix:"):
        console.print(f"--port {port} is ignored: another process already serves this store", style="yellow")
    elif uri.startswith("firelite://127.0.0.1:"):
        console.print("every user of this machine can read and write this store", style="yellow")


def role(
    name: Annotated[str, typer.Argument(help="Role of this process.")],
    agent_id: Annotated[str | None, typer.Option("--agent-id", help="Id of this process; default: random.")] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", min=1, help="Maximum number of concurrent tasks.")
    ] = None,
    health_port: Annotated[
        int | None,
        typer.Option("--health-port", min=0, max=65535, help="Serve /healthz, /readyz and /metrics of this process."),
    ] = None,
    health_host: Annotated[
        str, typer.Option("--health-host", help="Address of --health-port; 0.0.0.0 for probes of other machines.")
    ] = "127.0.0.1",
    with_parent: Annotated[
        bool, typer.Option("--with-parent", help="Drain and stop when the parent process ends.")
    ] = False,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    session: Session = None,
) -> None:
    """Run one role process, as on Cloud Run. SIGTERM drains within seven seconds.

    With --session, it executes only tasks of that session; without, tasks of every session.
    """
    from fireswarm.swarm.opening.open_parts import new_agent_id, open_parts

    settings = settings_for(root, store, project, session, **{"worker.concurrency": concurrency}, **bound_to(session))
    agent = agent_id or new_agent_id(name)
    for logger in (WORK_LOG, ScheduleDuty.__module__):
        logging.getLogger(logger).setLevel(logging.INFO)

    async def main() -> None:
        async with watch_loop(), stop_signal() as stop, open_parts(settings, thinks=True) as parts:
            line = f"{parts.clock.now():%Y-%m-%d %H:%M:%S} {agent} works as role {name}, {_how(parts, name)}"
            errors.print(line, style="dim", soft_wrap=True)
            if with_parent:
                _stop_with_parent(stop, int(os.environ.get(PARENT) or os.getppid()))
            async with _health(parts, health_host, health_port) as begin:
                drained.append(await run(RoleConfig(parts, name, agent, stop, Reloader(parts).current, begin)))

    drained: list[bool] = []
    run_async(main)
    if any(drained):
        raise typer.Exit(DRAINED_EXIT)


Name = Annotated[str, typer.Argument(help="Name of a role, or id of an agent, as `swarm agents` lists them.")]
Reason = Annotated[str, typer.Option("--reason", help="Why, for people who ask why a task does not move.")]


def pause(
    name: Name, reason: Reason = "", root: Root = Path(), store: StoreUri = None, project: Project = None
) -> None:
    """Let a role or an agent claim no more tasks, on all machines and after restarts; what it holds goes on."""
    _order(board_settings(root, store, project), lambda orders: orders.pause(name, reason))


def drain(
    name: Name, reason: Reason = "", root: Root = Path(), store: StoreUri = None, project: Project = None
) -> None:
    """Let the processes of a role, or an agent, hand their tasks back and end; only a new `swarm up` starts others."""
    _order(board_settings(root, store, project), lambda orders: orders.drain(name, reason))


def resume(name: Name, root: Root = Path(), store: StoreUri = None, project: Project = None) -> None:
    """Let a paused role or agent claim tasks again."""
    _order(board_settings(root, store, project), lambda orders: orders.resume(name), ends=True)


def _order(settings: Settings, give: Callable[[AgentOrders], Awaitable[Order | None]], *, ends: bool = False) -> None:
    """Give an order, or end one, and print what is in force then."""

    async def main() -> None:
        async with Swarm.open(settings=settings, create=not ends) as swarm:
            given = await give(swarm.orders)
        if given is None:
            console.print("there is no order to end")
        elif ends:
            console.print("resumed; what was drained stays ended: `swarm up` starts it" if given.drained else "resumed")
        else:
            console.print(f"{given.subject or f'the role {given.role}'} is {given.describe()}", markup=False)

    run_async(main)


@contextlib.asynccontextmanager
async def _health(parts: SwarmParts, host: str, port: int | None) -> AsyncGenerator[Callable[[Worker], None] | None]:
    """Serve the health of this process inside the block; yields what has to be told the worker."""
    if port is None:
        yield None
        return
    from fireswarm.api.routes.metrics import ProcessHealth
    from fireswarm.api.server import address_of, listening_socket, serve

    health, ended = ProcessHealth(parts.store), anyio.Event()

    def begin(worker: Worker) -> None:
        health.worker = worker

    def say() -> None:
        errors.print(f"health on {address_of(listening)}/healthz", style="dim", soft_wrap=True)

    with listening_socket(host, port) as listening:
        async with anyio.create_task_group() as group:
            group.start_soon(serve, health.make_application(), listening, ended, say, ())
            try:
                yield begin
            finally:
                ended.set()


def _how(parts: SwarmParts, role: str) -> str:
    """Return with which model the role works, or why without one."""
    mind, card = parts.mind, parts.roles.get(role)
    if mind is None or mind.clients is None:
        return f"without a model: {mind.no_model if mind else 'no model'}"
    model = parts.settings.model_of(role, NO_CHOICE if card is None else card)
    try:
        client = mind.clients.open(model)
    except MissingApiKey as error:
        return f"without a model: {error}"
    return f"with the model {client.model.provider} {client.model.name}"


def _stop_with_parent(stop: anyio.Event, parent: int) -> None:
    """Drain when the parent process ends. The waiting thread is a daemon, so that it does not outlive the worker."""
    loop = current_token()

    def watch() -> None:
        starter = multiprocessing.parent_process()
        if starter is not None:  # this process is a copy of its fork server
            starter.join()
        with contextlib.suppress(psutil.NoSuchProcess):
            if os.getppid() == parent:  # the parent has already ended
                psutil.Process(parent).wait()
        with contextlib.suppress(RuntimeError):  # the event loop has ended already
            from_thread.run_sync(stop.set, token=loop)

    threading.Thread(target=watch, name="stop-with-parent", daemon=True).start()
