"""A PostgreSQL server for tests: Debian's package, started on a free port in a folder of its own, never as root."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Generator
from pathlib import Path
from tempfile import mkdtemp

import pytest


def binaries() -> Path | None:
    """The folder of ``initdb`` and ``pg_ctl``, of the newest version there is."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3].split(".")[0]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def _account() -> pwd.struct_passwd | None:
    """Whom the server runs as: this user, or one without rights where this one is root."""
    if os.getuid() != 0:
        return pwd.getpwuid(os.getuid())
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    return None


@contextlib.contextmanager
def postgres() -> Generator[str]:
    """Run a server; yields its URL. Skips the test, with the reason, where there is none to run."""
    programs, account = binaries(), _account()
    if programs is None or account is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    folder = Path(mkdtemp(prefix="fireswarm-pg-"))
    os.chown(folder, account.pw_uid, account.pw_gid)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c shared_buffers=16MB"
    change = {"user": account.pw_uid, "group": account.pw_gid} if os.getuid() == 0 else {}

    def run(*command: str) -> None:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **change)  # pyright: ignore[reportCallIssue, reportArgumentType] - user and group are numbers
        assert done.returncode == 0, done.stdout + done.stderr

    data = str(folder / "data")
    try:
        run(
            str(programs / "initdb"), "-D", data, "-U", "tester", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"
        )
        run(str(programs / "pg_ctl"), "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield f"postgresql://tester@127.0.0.1:{port}/postgres"
        finally:
            run(str(programs / "pg_ctl"), "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
