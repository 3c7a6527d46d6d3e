"""The command ``firelite serve``: serve a data file until SIGTERM or SIGINT.

Prints one line of JSON, ``{"endpoint": "host:port", …}``, once it is serving.
"""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import json
import os
import signal
import sys
from pathlib import Path

from firelite.database import Database
from firelite.errors import FireliteError
from firelite.query.index_definitions import IndexSet
from firelite.storage.versions import HISTORY_MAX_DISK_BYTES, HISTORY_SECONDS, HistoryLimits
from firelite.wire.server import Server

TOKEN = "FIRELITE_TOKEN"
"""Environment variable with the token that calls need. Without it, calls need none."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command. Returns the exit status: 1, with a message on stderr, if the server could not start."""
    options = _parse(arguments)
    if not _is_loopback(options.host) and not os.environ.get(TOKEN):
        print(
            f"--host {options.host} is open to other machines: set the environment variable {TOKEN} to a secret, which "
            "every client then sends as `authorization: Bearer TOKEN`",
            file=sys.stderr,
        )
        return 1
    try:
        asyncio.run(_serve(options))
    except FireliteError as error:
        print(error.message, file=sys.stderr)
        return 1
    return 0


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="firelite", description="An embedded, durable Firestore.")
    about = "Serve Firestore's protocol for any official client until SIGTERM or SIGINT."
    serve = parser.add_subparsers(required=True, metavar="COMMAND").add_parser("serve", help=about, description=about)
    serve.add_argument(
        "--host",
        default="127.0.0.1",
        help=f"address to listen on (default: loopback only); another one needs a token in {TOKEN}",
    )
    serve.add_argument("--port", type=int, default=0, help="port to listen on (default: any free one)")
    serve.add_argument("--data", type=Path, help="data file (default: in memory, lost at the end)")
    serve.add_argument("--indexes", type=Path, help="firestore.indexes.json to enforce (default: no enforcement)")
    serve.add_argument(
        "--history-seconds",
        type=float,
        default=HISTORY_SECONDS,
        help="age of old versions that read-only transactions and read_time can read (default: an hour)",
    )
    serve.add_argument(
        "--history-disk-bytes",
        type=int,
        default=HISTORY_MAX_DISK_BYTES,
        help="size of old versions on the disk; the oldest are dropped first (default: 1 GiB)",
    )
    return parser.parse_args(arguments)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


async def _serve(options: argparse.Namespace) -> None:
    indexes = IndexSet.load(options.indexes) if options.indexes is not None else None
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    history = HistoryLimits(options.history_seconds, disk_bytes=options.history_disk_bytes)
    with Database.open(options.data, indexes=indexes, history=history) as db:
        async with Server(db, options.host, options.port, token=os.environ.get(TOKEN, "")) as server:
            print(json.dumps({"endpoint": server.endpoint, "pid": os.getpid()}), flush=True)
            await stopping.wait()


if __name__ == "__main__":
    sys.exit(main())
