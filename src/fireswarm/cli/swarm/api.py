"""``swarm api``: serve the HTTP API. Its modules are imported when the command is called."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Annotated

import typer

from fireswarm.cli.shared.fleet import stop_signal
from fireswarm.cli.shared.options import Project, Root, Session, StoreUri, console, errors, run_async, settings_for
from fireswarm.client import Swarm
from fireswarm.errors import ConfigError
from fireswarm.settings import Settings
from fireswarm.settings.extras import install_command

if TYPE_CHECKING:
    from fireswarm.api.auth import Access

DEFAULT_PORT = 8090
TOKEN_VARIABLE = "FIRESWARM_API_TOKEN"


def api(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 picks a free port.")] = DEFAULT_PORT,
    host: Annotated[
        str,
        typer.Option(
            "--host", help="Address to listen on; addresses other than loopback need explicit authentication."
        ),
    ] = "127.0.0.1",
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="File with the token; default: FIRESWARM_API_TOKEN.")
    ] = None,
    google_audience: Annotated[
        str | None, typer.Option("--google-audience", help="Accept Google identity tokens for this audience.")
    ] = None,
    google_account: Annotated[
        list[str] | None,
        typer.Option("--google-account", help="Allowed e-mail address of the token, repeatable; '*' for any."),
    ] = None,
    root: Root = Path(),
    store: StoreUri = None,
    project: Project = None,
    session: Session = None,
) -> None:
    """Serve one session over HTTP, until interrupted. Without a configured token, one is generated and printed once."""
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise ConfigError(f"the HTTP API needs FastAPI and uvicorn: {install_command('api')}")
    settings = settings_for(root, store, project, session)
    access, made = _access(host, token_file, google_audience, google_account or ())

    from fireswarm.api.server import listening_socket

    with listening_socket(host, port) as listening:
        run_async(lambda: _serve(settings, access, listening, made))


def _say(address: str, settings: Settings, made: str | None) -> None:
    console.print(f"API on {address}/v1, session {settings.session}; Ctrl-C stops it", soft_wrap=True, markup=False)
    if made is not None:
        console.print(f"token, shown only once: {made}", soft_wrap=True, markup=False)


async def _serve(settings: Settings, access: Access, listening: socket, made: str | None) -> None:
    """Serve the API until SIGINT or SIGTERM, and print its address."""
    from fireswarm.api.server import address_of, serve
    from fireswarm.api.session import ApiSession
    from fireswarm.runs.make_mind import redactor_for
    from fireswarm.swarm.opening.open_parts import serving

    secrets = [access.token] if access.token else []
    redactor = redactor_for(settings, {**os.environ, TOKEN_VARIABLE: secrets[0]} if secrets else None)
    async with (
        stop_signal() as stop,
        serving(settings) as uri,
        Swarm.open(uri, settings=settings) as swarm,
    ):
        await serve(
            ApiSession(swarm, redactor), access, listening, stop, lambda: _say(address_of(listening), settings, made)
        )
    errors.print("stopped", style="dim")


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
