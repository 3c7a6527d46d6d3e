"""``swarm store``: serve, inspect, back up, restore, export, import and reset the embedded store."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from firelite.errors import AlreadyExists, DataFileInUse
from fireswarm.cli.shared.fleet import print_address, stop_signal
from fireswarm.cli.shared.options import AsJson, Root, board_settings, console, print_json, run_async, settings_for
from fireswarm.cli.shared.tables import table
from fireswarm.errors import InvalidInput
from fireswarm.settings import STORE_TOKEN, Settings
from fireswarm.settings.run_folders import make_private_folder, make_state_folder
from fireswarm.swarm.opening import archive
from fireswarm.swarm.opening.embedded_store import history_limits
from fireswarm.swarm.opening.open_parts import local_project

if TYPE_CHECKING:
    from firelite.database import Database

app = typer.Typer(
    help="Manage the embedded Firestore: serve, stats, backup, restore, export, import, reset.", no_args_is_help=True
)

Data = Annotated[Path | None, typer.Option("--data", help="Data file; default: store.data of the settings.")]
DEFAULT_PORT = 8080


def _path(root: Path, data: Path | None) -> Path:
    """Return the data file, in a folder that is made if it does not exist. Raises InvalidInput for another store."""
    settings = settings_for(root, None)
    path = data if data is not None else _data_file(settings)
    make_state_folder(path.parent)
    return path


def _existing(settings: Settings, data: Path | None) -> Path:
    """Return the data file. Raises InvalidInput if it does not exist, or if the settings name another kind of store."""
    path = data if data is not None else _data_file(settings)
    if not path.is_file():
        raise InvalidInput(f"{path} does not exist: name the data file with --data, or its swarm with --root")
    return path


def _data_file(settings: Settings) -> Path:
    data = archive.data_in_use(settings)
    if data is not None:
        return data
    path, uri = settings.path(settings.store.data), settings.store.uri
    raise InvalidInput(
        f"the settings or the environment name the store {uri}, which is not served from {path}: name a data file with "
        f"--data, on the machine where it is"
    )


@contextmanager
def _reading(root: Path, data: Path | None) -> Generator[Database]:
    """Open the last commit of the data file, also while a fleet or a server uses it."""
    from firelite.database import Database

    with Database.open(_existing(board_settings(root, None), data), read_only=True) as database:
        yield database


@contextmanager
def _alone(command: str) -> Generator[None]:
    """Say how to end the process that has the data file open, which a command that changes the file needs alone."""
    try:
        yield
    except DataFileInUse as held:
        raise InvalidInput(
            f"{held.path} is open in {held.holder}, and `swarm store {command}` needs it alone: end that "
            f"process{held.command}, then repeat the command"
        ) from held


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

    settings = settings_for(root, None)
    path = None if memory else _path(root, data)
    history = history_limits(settings)
    token = os.environ.get(STORE_TOKEN, "")

    async def main() -> None:
        index_set = None if indexes is None else IndexSet.load(indexes)
        with Database.open(path, indexes=index_set, history=history) as database:
            async with stop_signal() as stop, Server(database, port=port, token=token) as server:
                console.print(f"serving {path or 'memory'} on 127.0.0.1:{server.port}", soft_wrap=True)
                print_address(f"127.0.0.1:{server.port}", local_project(settings))
                if not token:
                    warning = "every user of this machine can read and write it, as with any Firestore emulator"
                    console.print(warning, style="yellow", soft_wrap=True)
                await stop.wait()
        console.print("stopped; all acknowledged writes are on disk" if path else "stopped")

    run_async(main)


@app.command()
def stats(data: Data = None, root: Root = Path(), as_json: AsJson = False) -> None:
    """Show documents and bytes by collection."""
    from firelite.wire import admin

    with _reading(root, data) as database:
        stats = admin.stats(database)
    if as_json:
        print_json(asdict(stats))
        return
    console.print(
        f"{stats.documents:,} documents, {stats.document_bytes:,} bytes in a file of {stats.file_bytes:,} bytes",
        soft_wrap=True,
    )
    rows = [(name, f"{count:,}") for name, count in sorted(_by_kind(stats.collections).items())]
    table("collections", ["collection", "documents"], rows, none="no collections yet")


def _by_kind(collections: Mapping[str, int]) -> dict[str, int]:
    """Return the documents by the kind of their collection: `mcp_memory/*/versions` for those of all facts."""
    kinds: dict[str, int] = {}
    for path, count in collections.items():
        parts = (path.partition("/documents/")[2] or path).split("/")
        kind = "/".join("*" if number % 2 else part for number, part in enumerate(parts))
        kinds[kind] = kinds.get(kind, 0) + count
    return kinds


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(help="File to write.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
    data: Data = None,
    root: Root = Path(),
) -> None:
    """Write the store, with its local blobs, to one file. Works while the store is in use."""
    if target.exists() and not overwrite:
        raise InvalidInput(f"{target} exists: repeat the command with --overwrite to replace it, or name another file")
    make_private_folder(target.resolve().parent)
    settings = board_settings(root, None)
    written = archive.back_up(_existing(settings, data), archive.blobs_folder(settings), target)
    console.print(f"wrote {written} to {target}", soft_wrap=True)


@app.command()
def restore(
    source: Annotated[Path, typer.Argument(help="File written by `swarm store backup`.")],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing store: its data file, and blobs of the same name.")
    ] = False,
    data: Data = None,
    root: Root = Path(),
) -> None:
    """Restore the store, with its local blobs, from a file written by `swarm store backup`."""
    if not source.is_file():
        raise InvalidInput(f"{source} does not exist: name a file written by `swarm store backup`")
    path = _path(root, data)
    with _alone("restore"):
        restored = archive.restore(source, path, archive.blobs_folder(settings_for(root, None)), overwrite=overwrite)
    console.print(f"restored {restored} from {source} to {path}", soft_wrap=True)


@app.command()
def export(
    target: Annotated[Path, typer.Argument(help="File to write, one JSON document per line.")],
    data: Data = None,
    root: Root = Path(),
) -> None:
    """Export every document, with exact types, to a file. Works while the store is in use; leaves blobs out."""
    from firelite.wire import admin

    with _reading(root, data) as database:
        make_private_folder(target.resolve().parent)
        count = admin.export_jsonl(database, target)
    console.print(f"exported {count:,} documents to {target}", soft_wrap=True)
    console.print("blobs are not in it; `swarm store backup` includes them", style="dim", soft_wrap=True)


@app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(help="File written by `swarm store export`.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace documents that exist.")] = False,
    data: Data = None,
    root: Root = Path(),
) -> None:
    """Import all documents from an exported file, or none if one of them exists."""
    from firelite.database import Database
    from firelite.wire import admin

    if not source.is_file():
        raise InvalidInput(f"{source} does not exist: name a file written by `swarm store export`")
    path = _path(root, data)
    try:
        with _alone("import"), Database.open(path) as database:
            count = admin.import_jsonl(database, source, overwrite=overwrite)
    except AlreadyExists as error:
        raise InvalidInput(
            f"{error.message} Import into an empty data file (--data), or repeat the command with --overwrite to "
            f"replace the existing documents"
        ) from error
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

    path = _existing(settings_for(root, None), data)
    with _alone("reset"), Database.open(path) as database:  # before the question, so that nobody answers it in vain
        if not yes:
            typer.confirm(f"delete every document in {path}?", abort=True)
        count = admin.reset(database)
    console.print(f"deleted {count:,} documents, {path} is empty")
