"""``swarm store``: serve, inspect, export, import and reset the embedded store."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fireswarm.cli.shared.fleet import stop_signal
from fireswarm.cli.shared.options import AsJson, Root, console, print_json, run_async, settings_for, table
from fireswarm.errors import InvalidInput
from fireswarm.settings import STORE_TOKEN

app = typer.Typer(help="Manage the embedded Firestore: serve, stats, export, import, reset.", no_args_is_help=True)

Data = Annotated[Path | None, typer.Option("--data", help="Data file; default: store.data of the settings.")]
DEFAULT_PORT = 8080


def _path(root: Path, data: Path | None) -> Path:
    settings = settings_for(root, None)
    path = data if data is not None else settings.path(settings.store.data)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


@app.command()
def serve(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 picks a free port.")] = DEFAULT_PORT,
    data: Data = None,
    memory: Annotated[
        bool, typer.Option("--memory", help="Keep the data in memory; it is lost when the process ends.")
    ] = False,
    indexes: Annotated[
        Path | None,
        typer.Option("--indexes", help="Path of firestore.indexes.json; queries without an index are rejected."),
    ] = None,
    root: Root = Path(),
) -> None:
    """Serve Firestore's protocol on loopback for any official client, until interrupted."""
    from firelite.database import Database
    from firelite.query.index_definitions import IndexSet
    from firelite.wire.server import Server

    path = None if memory else _path(root, data)
    token = os.environ.get(STORE_TOKEN, "")

    async def main() -> None:
        index_set = None if indexes is None else IndexSet.load(indexes)
        with Database.open(path, indexes=index_set) as database:
            async with stop_signal() as stop, Server(database, port=port, token=token) as server:
                console.print(f"serving {path or 'memory'} on 127.0.0.1:{server.port}", soft_wrap=True)
                console.print(f"export FIRESTORE_EMULATOR_HOST=127.0.0.1:{server.port}", soft_wrap=True)
                if not token:
                    warning = "every user of this machine can read and write it, as with any Firestore emulator"
                    console.print(warning, style="yellow", soft_wrap=True)
                await stop.wait()
        console.print("stopped; all acknowledged writes are on disk" if path else "stopped")

    run_async(main)


@app.command()
def stats(data: Data = None, root: Root = Path(), as_json: AsJson = False) -> None:
    """Show documents and bytes by collection."""
    from firelite.database import Database
    from firelite.wire import admin

    with Database.open(_path(root, data)) as database:
        stats = admin.stats(database)
    if as_json:
        print_json(asdict(stats))
        return
    console.print(
        f"{stats.documents:,} documents, {stats.document_bytes:,} bytes in a file of {stats.file_bytes:,} bytes"
    )
    rows = [
        (name.partition("/documents/")[2] or name, f"{count:,}") for name, count in sorted(stats.collections.items())
    ]
    table("collections", ["collection", "documents"], rows, none="no collections yet")


@app.command()
def export(
    target: Annotated[Path, typer.Argument(help="File to write, one JSON document per line.")],
    data: Data = None,
    root: Root = Path(),
) -> None:
    """Export every document, with exact types, to a file."""
    from firelite.database import Database
    from firelite.wire import admin

    with Database.open(_path(root, data)) as database:
        count = admin.export_jsonl(database, target)
    console.print(f"exported {count:,} documents to {target}")


@app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(help="File written by `swarm store export`.")],
    data: Data = None,
    root: Root = Path(),
) -> None:
    """Import documents from an exported file."""
    from firelite.database import Database
    from firelite.wire import admin

    if not source.is_file():
        raise InvalidInput(f"{source} does not exist: name a file written by `swarm store export`")
    with Database.open(_path(root, data)) as database:
        count = admin.import_jsonl(database, source)
    console.print(f"imported {count:,} documents from {source}")


@app.command()
def reset(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    data: Data = None,
    root: Root = Path(),
) -> None:
    """Delete every document of the embedded store."""
    from firelite.database import Database
    from firelite.wire import admin

    path = _path(root, data)
    if not yes:
        typer.confirm(f"delete every document in {path}?", abort=True)
    with Database.open(path) as database:
        count = admin.reset(database)
    console.print(f"deleted {count:,} documents, {path} is empty")
