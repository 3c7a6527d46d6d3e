"""The store of a swarm is closed to the other users of the machine; one that is open to others needs a token."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from google.api_core import exceptions as google
from google.cloud.firestore_v1 import AsyncClient

from firelite.database import Database
from firelite.wire.server import Server
from fireswarm.contracts.ports import Create
from fireswarm.contracts.swarm.task import TaskSpec
from fireswarm.errors import StoreError
from fireswarm.settings import STORE_TOKEN, Settings, load_settings
from fireswarm.storage.firestore.channel import close
from fireswarm.swarm.opening.embedded_store import serving
from fireswarm.swarm.opening.open_parts import open_parts
from tests.support.fleet import environment
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.anyio

OTHER_USER = 65_534
CONNECT = (
    "import os, socket, sys; os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2])); "
    "socket.socket(socket.AF_UNIX).connect(sys.argv[1]); print('connected')"
)


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder that every user may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="fs-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def settings_of(root: Path) -> Settings:
    return load_settings(root, environment={})


def connect_as(user: int, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", CONNECT, path, str(user)], capture_output=True, text=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
@pytest.mark.parametrize("open_folder", [False, True], ids=["new-folder", "folder-that-all-may-enter"])
async def test_another_user_cannot_connect_to_the_store(root: Path, open_folder: bool) -> None:
    if open_folder:
        (root / ".fireswarm").mkdir(mode=0o755)
    async with serving(settings_of(root)) as uri:
        path = uri.removeprefix("firelite://unix:")
        mine = await anyio.to_thread.run_sync(connect_as, 0, path)
        theirs = await anyio.to_thread.run_sync(connect_as, OTHER_USER, path)
    assert mine.stdout == "connected\n"
    assert theirs.returncode != 0 and "PermissionError" in theirs.stderr
    assert (root / ".fireswarm").stat().st_mode & 0o077 == (0o055 if open_folder else 0)


async def test_another_process_of_the_same_user_works_on_the_store(root: Path) -> None:
    settings = settings_of(root)
    async with serving(settings) as uri, open_parts(settings) as swarm:
        assert uri == f"firelite://unix:{root}/.fireswarm/store.sock"
        await swarm.store.commit([Create("agent_tasks/one", {"status": "queued"})])
        command = [sys.executable, "-m", "fireswarm.cli", "tasks", "--json", "--root", str(root)]
        listed = await anyio.run_process(command, env=environment(), check=False)
    assert listed.returncode == 0, listed.stderr.decode()


async def test_the_socket_of_a_killed_process_is_replaced(root: Path) -> None:
    (root / ".fireswarm").mkdir()
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(root / ".fireswarm" / "store.sock"))
    left.close()
    async with serving(settings_of(root)) as uri:
        assert (root / ".fireswarm" / "store.sock").is_socket() and uri.endswith("store.sock")
    assert not (root / ".fireswarm" / "store.sock").exists()


async def test_a_path_too_long_for_a_socket_is_served_from_another_folder(root: Path) -> None:
    deep = root / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    async with serving(settings_of(deep)) as uri, open_parts(settings_of(deep)) as swarm:
        path = Path(uri.removeprefix("firelite://unix:"))
        assert path.parent.stat().st_mode & 0o077 == 0
        assert await swarm.board.list() == []
    assert list(path.parent.iterdir()) == []  # the folder stays: in its place, another user would get the clients
    path.parent.rmdir()


async def test_a_path_too_long_for_a_socket_is_served_also_where_temporary_folders_have_long_names(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = root / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    async with serving(settings_of(deep)) as uri, open_parts(settings_of(deep)) as swarm:
        assert uri.startswith("firelite://unix:/tmp/fireswarm-")
        assert await swarm.board.list() == []
    Path(uri.removeprefix("firelite://unix:")).parent.rmdir()


async def test_data_files_that_differ_in_their_last_part_alone_have_sockets_of_their_own(root: Path) -> None:
    known = settings_of(root)
    old, new = (
        known.model_copy(update={"store": known.store.model_copy(update={"data": Path(f"data/store.{name}")})})
        for name in ("a", "b")
    )
    async with serving(old) as first, serving(new) as second:
        assert first != second
        async with open_parts(old) as swarm:
            await swarm.board.submit(TaskSpec(objective="in a", assigned_to="scout", session_hash="s1"))
        async with open_parts(new) as swarm:
            assert await swarm.board.list() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of another user")
@pytest.mark.parametrize("how", ["folder of another user", "folder that all may enter", "link", "file"])
async def test_a_folder_that_another_user_made_in_its_place_is_not_used(root: Path, how: str) -> None:
    deep = root / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    async with serving(settings_of(deep)) as uri:
        usual = Path(uri.removeprefix("firelite://unix:")).parent
    usual.rmdir()
    target = root / "made"
    target.mkdir(mode=0o700)
    if how == "link":
        usual.symlink_to(target)
    elif how == "file":
        usual.touch(mode=0o600)
    else:
        usual.mkdir(mode=0o755 if "all" in how else 0o700)
        os.chown(usual, OTHER_USER if "another" in how else os.geteuid(), -1)
    try:
        async with serving(settings_of(deep)) as uri, open_parts(settings_of(deep)) as swarm:
            other = Path(uri.removeprefix("firelite://unix:")).parent
            assert other != usual and other.stat().st_mode & 0o077 == 0
            assert await swarm.board.list() == []
    finally:
        usual.rmdir() if usual.is_dir() and not usual.is_symlink() else usual.unlink()


async def test_a_port_is_open_to_every_local_client(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(settings_of(root), port=0) as uri:
        monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", uri.removeprefix("firelite://"))
        client = AsyncClient(project="p")
        await client.document("a/b").set({"x": 1})
        await close(client)


async def test_calls_without_the_token_are_refused(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    with Database.open(None) as database:
        async with Server(database, token="a-secret") as server:
            monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", server.endpoint)
            client = AsyncClient(project="p")
            with pytest.raises(google.Unauthenticated, match="needs a token"):
                await client.document("a/b").set({"x": 1}, timeout=PATIENCE_SECONDS)
            with pytest.raises(google.Unauthenticated, match="needs a token"):
                _ = [found async for found in client.collection("a").stream(timeout=PATIENCE_SECONDS)]
            await close(client)
            settings = load_settings(root, environment={"FIRESTORE_EMULATOR_HOST": server.endpoint})
            for token, allowed in (("wrong", False), ("a-secret", True)):
                monkeypatch.setenv(STORE_TOKEN, token)
                async with open_parts(settings) as swarm:
                    if allowed:
                        assert await swarm.board.list() == []
                        continue
                    with pytest.raises(StoreError, match=f"needs a token.*{STORE_TOKEN}"):
                        await swarm.board.list()


async def test_opening_a_served_store_leaves_the_environment_as_it_was(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for before in (None, "127.0.0.1:1"):
        if before is not None:
            monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", before)
        async with (
            serving(settings_of(root)) as uri,
            open_parts(load_settings(root, environment={}, overrides={"store.uri": uri})),
        ):
            assert os.environ.get("FIRESTORE_EMULATOR_HOST") == before
