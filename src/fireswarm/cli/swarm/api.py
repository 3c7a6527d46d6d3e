"""``swarm api``, ``swarm console``, ``swarm mcp`` and ``swarm a2a``: serve programs, browsers and other agents.

Their modules are imported when a command is called.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from fireswarm.cli.shared.fleet import stop_signal
from fireswarm.cli.shared.options import Project, Root, Session, StoreUri, console, errors, run_async, settings_for
from fireswarm.client import Swarm
from fireswarm.contracts.base import count_noun
from fireswarm.errors import ConfigError
from fireswarm.settings import Settings
from fireswarm.settings.extras import install_command

if TYPE_CHECKING:
    from fireswarm.api.auth import Access
    from fireswarm.redaction import Redactor

DEFAULT_PORT, CONSOLE_PORT, A2A_PORT = 8090, 8091, 8093
LOOPBACK = "127.0.0.1"
ANY_ADDRESS = ("0.0.0.0", "::")
TOKEN_VARIABLE = "FIRESWARM_API_TOKEN"

Host = Annotated[
    str,
    typer.Option("--host", help="Address to listen on; addresses other than loopback need explicit authentication."),
]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", help="File with the token; default: FIRESWARM_API_TOKEN.")
]
GoogleAudience = Annotated[
    str | None, typer.Option("--google-audience", help="Accept Google identity tokens for this audience.")
]
GoogleAccount = Annotated[
    list[str] | None,
    typer.Option("--google-account", help="Allowed e-mail address of the token, repeatable; '*' for any."),
]
Approvals = Annotated[
    bool, typer.Option("--approvals", help="Let the client approve actions of tasks, in place of a person.")
]


def api(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 picks a free port.")] = DEFAULT_PORT,
    host: Host = LOOPBACK,
    token_file: TokenFile = None,
    google_audience: GoogleAudience = None,
    google_account: GoogleAccount = None,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    session: Session = None,
) -> None:
    """Serve one session over HTTP, until interrupted. Without a configured token, one is generated and printed once."""
    settings = settings_for(root, store, project, session)
    access, made = _access(host, token_file, google_audience, google_account or ())

    from fireswarm.api.server import listening_socket

    with listening_socket(host, port) as listening:
        run_async(lambda: _serve(settings, access, listening, made))


def console_command(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 picks a free port.")] = CONSOLE_PORT,
    viewer: Annotated[bool, typer.Option("--viewer", help="Give a link that may look, but not act.")] = False,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    session: Session = None,
) -> None:
    """Serve the console, pages for a browser on this machine, until interrupted. Its link works once."""
    settings = settings_for(root, store, project, session)

    from fireswarm.api.server import listening_socket

    with listening_socket("127.0.0.1", port) as listening:
        run_async(lambda: _serve(settings, None, listening, None, viewer=viewer))


async def _serve(
    settings: Settings, access: Access | None, listening: socket, made: str | None, *, viewer: bool = False
) -> None:
    """Serve the console, and with *access* the API, until SIGINT or SIGTERM; print their addresses."""
    from fireswarm.api.application import protected_application
    from fireswarm.api.auth import iap_tokens
    from fireswarm.api.console.access import ConsoleRole, KnownCallers
    from fireswarm.api.console.application import beside_api, make_console
    from fireswarm.api.console.visit import WebConsole
    from fireswarm.api.server import address_of, hosts_of, serve
    from fireswarm.api.session import ApiSession
    from fireswarm.swarm.opening.embedded_store import serving

    redactor = _redactor(settings, access)
    address, hosts = address_of(listening), hosts_of(listening)

    async with (
        stop_signal() as stop,
        serving(settings) as uri,
        Swarm.open(uri, settings=settings) as swarm,
        anyio.create_task_group() as group,
    ):
        people = settings.console
        iap = iap_tokens(people.iap_audience) if people.iap_audience else None
        callers = KnownCallers(people, access, iap) if access is not None else KnownCallers()
        pages = WebConsole(swarm, redactor, callers=callers)
        service = ApiSession(swarm, redactor)
        application = make_console(pages, hosts)
        if access is not None:
            for_programs = protected_application(service, access, hosts=hosts)
            application = beside_api(for_programs, application)
        has_agents = access is not None and hosts is not None and find_spec("a2a") is not None
        if access is not None and has_agents:
            from fireswarm.api.a2a.mount import AgentServer, beside_agents

            application = beside_agents(AgentServer(service, group, address).application(access, hosts), application)
        link = pages.link(address, pages.entrance.new_link(ConsoleRole.VIEWER if viewer else ConsoleRole.OPERATOR))

        def say() -> None:
            if access is not None:
                _print(f"API on {address}/v1, session {settings.session}; Ctrl-C stops it")
            if made is not None:
                _print(f"token, shown only once: {made}")
            if hosts is not None:
                _print(f"console, a link for one browser: {link}")
            else:
                _print(f"console on {address}/ui/, for the token and for {_describe(settings)}")
            if has_agents:
                _print(f"A2A agents on {address}/a2a")

        group.start_soon(pages.feed.follow)
        await serve(application, listening, stop, say, [service.stopping, pages.stopping])
        group.cancel_scope.cancel()
    errors.print("stopped", style="dim")


def _describe(settings: Settings) -> str:
    """Return whom the settings let into the console, for the line at the start."""
    people = settings.console
    count = len({*people.operators, *people.viewers})
    return f"{count_noun(count, 'entry')} of console.operators and console.viewers" if count else "nobody else"


def mcp_command(
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Serve HTTP on loopback; default: standard input.")
    ] = None,
    approvals: Approvals = False,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    session: Session = None,
) -> None:
    """Serve the swarm by the Model Context Protocol: submit, wait, answer, read files.

    Over HTTP the token is FIRESWARM_API_TOKEN; without it, one is generated and printed once.
    """
    settings = settings_for(root, store, project, session)
    if find_spec("mcp") is None:
        raise ConfigError(f"`swarm mcp` needs the package mcp: {install_command('mcp')}")
    if port is None:
        run_async(lambda: _serve_mcp(settings, approvals, None, None, None))
        return
    from fireswarm.api.server import listening_socket

    access, made = _access("127.0.0.1", None, None, ())
    with listening_socket("127.0.0.1", port) as listening:
        run_async(lambda: _serve_mcp(settings, approvals, listening, access, made))


async def _serve_mcp(
    settings: Settings, approvals: bool, listening: socket | None, access: Access | None, made: str | None
) -> None:
    """Serve until the client ends the connection, or until SIGINT or SIGTERM."""
    from fireswarm.api.mcp_server.server import SwarmTools
    from fireswarm.swarm.opening.embedded_store import serving

    redactor = _redactor(settings, access)
    async with (
        stop_signal() as stop,
        serving(settings) as uri,
        Swarm.open(uri, settings=settings) as swarm,
        anyio.create_task_group() as group,
    ):
        server = SwarmTools(swarm, redactor, approvals).make_server()
        if listening is not None and access is not None:
            await _serve_mcp_over_http(server, listening, access, made, stop, redactor)
        else:
            group.start_soon(_stop_with, stop, group.cancel_scope)
            await server.run_stdio_async()
        group.cancel_scope.cancel()


async def _serve_mcp_over_http(
    server: Any, listening: socket, access: Access, made: str | None, stop: anyio.Event, redactor: Any
) -> None:
    from fireswarm.api.middleware import LOOPBACK_HOSTS, MAX_BODY_BYTES, Gate
    from fireswarm.api.server import address_of, serve

    application = Gate(server.streamable_http_app(), access, redactor, LOOPBACK_HOSTS, MAX_BODY_BYTES)

    def say() -> None:
        errors.print(f"MCP on {address_of(listening)}/mcp; Ctrl-C stops it", soft_wrap=True, markup=False)
        if made is not None:
            errors.print(f"token, shown only once: {made}", soft_wrap=True, markup=False)

    async with server.session_manager.run():
        await serve(application, listening, stop, say, [])


def a2a_command(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 picks a free port.")] = A2A_PORT,
    host: Host = LOOPBACK,
    url: Annotated[
        str | None, typer.Option("--url", help="Address by which clients reach the server; default: its own.")
    ] = None,
    approvals: Approvals = False,
    token_file: TokenFile = None,
    google_audience: GoogleAudience = None,
    google_account: GoogleAccount = None,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    session: Session = None,
) -> None:
    """Serve each role as an agent of the Agent2Agent protocol, until interrupted.

    Without a configured token, one is generated and printed once.
    """
    settings = settings_for(root, store, project, session)
    if find_spec("a2a") is None:
        raise ConfigError(f"`swarm a2a` needs the package a2a-sdk: {install_command('a2a')}")
    if url is not None and not url.startswith(("http://", "https://")):
        raise ConfigError(f"--url {url} is no address: it begins with https:// or http://")
    access, made = _access(host, token_file, google_audience, google_account or ())
    if url is None and host in ANY_ADDRESS:
        raise ConfigError(f"--host {host} is no address for clients: give --url, which the cards of the agents name")

    from fireswarm.api.server import listening_socket

    with listening_socket(host, port) as listening:
        run_async(lambda: _serve_a2a(settings, access, listening, made, url, approvals))


async def _serve_a2a(
    settings: Settings, access: Access, listening: socket, made: str | None, url: str | None, approvals: bool
) -> None:
    """Serve the agents until SIGINT or SIGTERM; print their address."""
    from fireswarm.api.a2a.mount import AgentServer
    from fireswarm.api.server import address_of, hosts_of, serve
    from fireswarm.api.session import ApiSession
    from fireswarm.swarm.opening.embedded_store import serving

    async with (
        stop_signal() as stop,
        serving(settings) as uri,
        Swarm.open(uri, settings=settings) as swarm,
        anyio.create_task_group() as group,
    ):
        service = ApiSession(swarm, _redactor(settings, access))
        agents = AgentServer(service, group, (url or address_of(listening)).rstrip("/"), approvals)

        def say() -> None:
            _print(f"A2A agents on {agents.base}/a2a, session {settings.session}; Ctrl-C stops it")
            if made is not None:
                _print(f"token, shown only once: {made}")

        await serve(agents.application(access, hosts_of(listening)), listening, stop, say, [service.stopping])
        group.cancel_scope.cancel()
    errors.print("stopped", style="dim")


def _redactor(settings: Settings, access: Access | None) -> Redactor:
    """Return the redactor of the session, which also knows the token of the server."""
    from fireswarm.runs.make_mind import redactor_for

    token = access.token if access is not None else None
    return redactor_for(settings, {**os.environ, TOKEN_VARIABLE: token} if token else None)


async def _stop_with(stop: anyio.Event, scope: anyio.CancelScope) -> None:
    await stop.wait()
    scope.cancel()


def _print(line: str) -> None:
    console.print(line, soft_wrap=True, markup=False)


def _access(host: str, file: Path | None, audience: str | None, accounts: Sequence[str]) -> tuple[Access, str | None]:
    """Return the allowed callers, and the token if one was generated."""
    from fireswarm.api.auth import ANYONE, Access, GoogleTokens, new_token, read_token
    from fireswarm.api.middleware import is_loopback

    token = read_token(os.environ.get(TOKEN_VARIABLE, ""), file)
    if bool(audience) != bool(accounts):
        raise ConfigError(
            f"--google-audience and --google-account belong together: anyone can get a Google token for any "
            f"audience. Name the accounts, or use '{ANYONE}' if a service in front of this API, such as Cloud Run, "
            f"checks them"
        )
    google = GoogleTokens(audience, frozenset(each.strip().lower() for each in accounts)) if audience else None
    if token is not None or google is not None:
        return Access(token, google), None
    if not is_loopback(host):
        raise ConfigError(
            f"--host {host} can be reached from other machines, so the API does not start without authentication: "
            f"set {TOKEN_VARIABLE}, give --token-file, or --google-audience with --google-account"
        )
    made = new_token()
    return Access(made), made
