"""`swarm store backup` and `restore`, and imports: complete, consistent, and never over a store that is in use."""

from __future__ import annotations

import io
import json
import re
import shlex
import stat
import subprocess
import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from google.cloud.firestore import Client

from tests.integration.test_cli import ECHO, line_with, ok, running, swarm
from tests.support.fleet import lay_out

BLOB = "session/task/1/report.md"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "first"
    root.mkdir()
    lay_out(root, {"echo": ECHO}, settings={"worker": {"drain_seconds": 1}})
    return root


@pytest.fixture
def second(tmp_path: Path) -> Path:
    root = tmp_path / "second"
    root.mkdir()
    lay_out(root, {"echo": ECHO}, settings={})
    return root


def add_blob(root: Path, content: str) -> Path:
    blob = root / ".fireswarm" / "blobs" / BLOB
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_text(content)
    return blob


def done(root: Path, *arguments: str, **env: str) -> str:
    result = swarm(root, *arguments, **env)
    assert result.returncode == 0, result.stderr
    return result.stdout


def refused(root: Path, *arguments: str) -> str:
    result = swarm(root, *arguments)
    assert result.returncode == 1, result.stdout
    return result.stderr


def tasks(root: Path) -> list[tuple[str, str]]:
    return [(task["task_id"], task["status"]) for task in ok(root, "tasks")]


def contents(root: Path) -> dict[str, bytes]:
    """Everything below the state folder, except for the lock file and SQLite's files, whose documents are compared."""
    files = (path for path in (root / ".fireswarm").rglob("*") if path.is_file() and "store.db" not in path.name)
    return {str(path): path.read_bytes() for path in files}


def test_backup_of_a_running_fleet_is_restored_with_its_blobs(root: Path, second: Path) -> None:
    with running(root, "up") as fleet:
        line_with(fleet, "role processes")
        submitted = ok(root, "submit", "say hello", "--role", "scout", "--skill", "echo")["task"]["task_id"]
        add_blob(root, "of the fleet")
        assert "1 blob" in done(root, "store", "backup", str(second / "a.backup"))
        assert ok(root, "store", "stats")["documents"] >= 2
        assert "exported" in done(root, "store", "export", "all.jsonl")
    assert "1 blob" in done(second, "store", "restore", "a.backup")
    assert submitted in [task for task, _ in tasks(second)]
    assert (second / ".fireswarm" / "blobs" / BLOB).read_text() == "of the fleet"
    assert (second / "a.backup").stat().st_mode & 0o777 == 0o600


def test_backup_under_writes_holds_whole_commits_and_all_acknowledged_ones(root: Path, second: Path) -> None:
    with running(root, "store", "serve", "--port", "0") as server, ThreadPoolExecutor(1) as pool:
        address = line_with(server, "export FIRESTORE_EMULATOR_HOST=").partition("=")[2]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FIRESTORE_EMULATOR_HOST", address)
            client: Any = Client(project="fireswarm-local")
        acknowledged, stopping = [0], Event()

        def write() -> None:
            while not stopping.is_set():
                batch = client.batch()
                for name in ("a", "b"):
                    batch.set(client.document(f"pairs/{name}"), {"n": acknowledged[0] + 1})
                batch.commit()
                acknowledged[0] += 1

        writing = pool.submit(write)
        try:
            for number in range(5):
                known = acknowledged[0]
                done(root, "store", "backup", f"{number}.backup", FIRESTORE_EMULATOR_HOST=address)
                done(second, "store", "restore", str(root / f"{number}.backup"), "--overwrite")
                done(second, "store", "export", "pairs.jsonl")
                lines = (second / "pairs.jsonl").read_text().splitlines()
                values = [int(json.loads(line)["fields"]["n"]["integerValue"]) for line in lines]
                if known or values:
                    assert len(values) == 2
                    assert values[0] == values[1] >= known
        finally:
            stopping.set()
            writing.result()


def test_existing_store_is_restored_only_with_overwrite(root: Path, second: Path) -> None:
    ok(root, "submit", "one", "--role", "scout")
    add_blob(root, "backed up")
    done(root, "store", "backup", "a.backup")
    ok(root, "submit", "two", "--role", "scout")
    blob = add_blob(root, "newer")
    before, files = tasks(root), contents(root)
    message = refused(root, "store", "restore", "a.backup")
    assert (tasks(root), contents(root)) == (before, files)
    assert "--overwrite" in message
    done(root, "store", "restore", "a.backup", "--overwrite")
    assert len(tasks(root)) == 1
    assert blob.read_text() == "backed up"
    add_blob(second, "without documents")
    assert "--overwrite" in refused(second, "store", "restore", str(root / "a.backup"))


@pytest.mark.parametrize("command", [("restore", "a.backup", "--overwrite"), ("import", "a.jsonl"), ("reset", "--yes")])
def test_command_that_changes_a_served_store_says_how_to_end_the_server(root: Path, command: tuple[str, ...]) -> None:
    ok(root, "submit", "one", "--role", "scout")
    done(root, "store", "backup", "a.backup")
    done(root, "store", "export", "a.jsonl")
    more = ("--overwrite",) if command[0] == "import" else ()
    with running(root, "store", "serve", "--port", "0") as server:
        line_with(server, "export FIRESTORE_EMULATOR_HOST=")
        message = refused(root, "store", *command)
        advice = re.search(r"`(kill \d+)`", message)
        assert advice is not None, message
        subprocess.run(shlex.split(advice[1]), check=True)
        server.wait(timeout=20)
        done(root, "store", *command, *more)


def test_import_never_brings_an_older_status_back_unless_told(root: Path) -> None:
    task_id = ok(root, "submit", "one", "--role", "scout")["task"]["task_id"]
    done(root, "store", "export", "a.jsonl")
    ok(root, "cancel", task_id)
    ok(root, "submit", "two", "--role", "scout")
    before = tasks(root)
    message = refused(root, "store", "import", "a.jsonl")
    assert "agent_tasks" in message or "exist already" in message
    assert tasks(root) == before, "nothing was imported"
    assert "--overwrite" in message
    done(root, "store", "import", "a.jsonl", "--overwrite")
    assert (task_id, "queued") in tasks(root)


def cut(path: Path, *, at: int) -> None:
    path.write_bytes(path.read_bytes()[:at])


def spoil(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)


def rewrite(path: Path, change: Callable[[list[tuple[str, bytes]]], object]) -> None:
    with tarfile.open(path) as archive:
        members = [(info.name, stream.read()) for info in archive if (stream := archive.extractfile(info))]
    change(members)
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def damaged_document(members: list[tuple[str, bytes]]) -> None:
    members[0] = (members[0][0], members[0][1].replace(b"agent_tasks", b"agent_\xffasks"))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut": lambda path: cut(path, at=700),
    "empty": lambda path: cut(path, at=0),
    "spoiled": spoil,
    "without-summary": lambda path: rewrite(path, lambda members: members.pop()),
    "outside": lambda path: rewrite(path, lambda members: members.insert(0, ("blobs/../../../outside", b"x"))),
    "unknown": lambda path: rewrite(path, lambda members: members.insert(0, ("other", b"x"))),
    "document": lambda path: rewrite(path, damaged_document),
    "not-a-backup": lambda path: path.write_text("not a backup"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_damaged_backup_is_refused_without_changes(root: Path, damage: Any) -> None:
    ok(root, "submit", "one", "--role", "scout")
    blob = add_blob(root, "backed up")
    done(root, "store", "backup", "a.backup")
    damage(root / "a.backup")
    ok(root, "submit", "two", "--role", "scout")
    blob.write_text("newer")
    before, files = tasks(root), contents(root)
    message = refused(root, "store", "restore", "a.backup", "--overwrite")
    assert "a.backup is not a complete file of `swarm store backup`" in message
    assert (tasks(root), contents(root)) == (before, files)


def test_backup_replaces_a_file_only_with_overwrite(root: Path) -> None:
    ok(root, "submit", "one", "--role", "scout")
    (root / "a.backup").write_text("mine")
    assert "--overwrite" in refused(root, "store", "backup", "a.backup")
    assert (root / "a.backup").read_text() == "mine"
    done(root, "store", "backup", "a.backup", "--overwrite")
    assert sorted(path.name for path in root.iterdir() if "a.backup" in path.name) == ["a.backup"]


def test_backup_of_another_store_than_the_configured_one_is_refused(root: Path) -> None:
    ok(root, "submit", "one", "--role", "scout")
    elsewhere = swarm(root, "store", "backup", "a.backup", FIRESTORE_EMULATOR_HOST="127.0.0.1:1")
    assert (elsewhere.returncode, "--data" in elsewhere.stderr) == (1, True)
    done(root, "store", "backup", "a.backup", "--data", ".fireswarm/store.db", FIRESTORE_EMULATOR_HOST="127.0.0.1:1")


def test_damaged_store_is_replaced_as_its_error_advises(root: Path) -> None:
    ok(root, "submit", "one", "--role", "scout")
    done(root, "store", "backup", "a.backup")
    (root / ".fireswarm" / "store.db").write_bytes(b"no database at all" * 1000)
    message = refused(root, "tasks")
    advice = re.search(r"`(mv [^`]+)`", message)
    assert advice is not None, message
    subprocess.run(shlex.split(advice[1]), check=True)
    done(root, "store", "restore", "a.backup")
    assert len(tasks(root)) == 1


def test_reset_of_a_served_store_refuses_before_it_asks(root: Path) -> None:
    ok(root, "submit", "one", "--role", "scout")
    with running(root, "store", "serve", "--port", "0") as server:
        line_with(server, "export FIRESTORE_EMULATOR_HOST=")
        assert "needs it alone" in refused(root, "store", "reset")  # without an answer, since nothing is asked


@pytest.mark.parametrize("command", ["export", "backup"])
def test_written_file_and_its_new_folders_are_private(root: Path, command: str) -> None:
    ok(root, "submit", "one", "--role", "scout")
    target = root / "new" / "folder" / "all.out"
    done(root, "store", command, str(target))
    for path, mode in ((target, 0o600), (target.parent, 0o700), (target.parent.parent, 0o700)):
        assert stat.S_IMODE(path.stat().st_mode) == mode, path
    target.chmod(0o644)
    done(root, "store", command, str(target), *(("--overwrite",) if command == "backup" else ()))
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
