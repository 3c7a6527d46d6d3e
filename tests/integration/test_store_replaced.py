"""A served store comes back with another state on the same port: listeners of the swarm drop what is gone."""

from __future__ import annotations

import shutil
import socket
from collections.abc import AsyncGenerator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from google.cloud.firestore_v1.types import ListenRequest

from fireswarm.client import Swarm
from fireswarm.errors import NotFound
from fireswarm.settings import load_settings
from fireswarm.storage.documents import queries
from fireswarm.storage.firestore.listen import _Stream  # pyright: ignore[reportPrivateUsage]
from tests.integration.test_cli import ECHO, line_with, ok, running, swarm
from tests.support.fleet import lay_out, until

pytestmark = pytest.mark.anyio
PATIENCE_SECONDS = 60


@pytest.fixture
def root(tmp_path: Path) -> Path:
    lay_out(tmp_path, {"echo": ECHO}, settings={"worker": {"drain_seconds": 1}})
    return tmp_path


@pytest.fixture
def port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def wipe(root: Path) -> None:
    for file in (root / ".fireswarm").glob("store.db*"):
        file.unlink()


def reset(root: Path) -> None:
    assert swarm(root, "store", "reset", "--yes").returncode == 0


def restore(root: Path) -> None:
    done = swarm(root, "store", "restore", "empty.backup", "--overwrite")
    assert done.returncode == 0, done.stderr


def memory(root: Path) -> None:
    """The server keeps its data in memory, and is only started again."""
    assert not (root / ".fireswarm" / "store.db").exists()


@pytest.mark.parametrize("change", [wipe, reset, restore, memory])
async def test_listeners_of_the_swarm_drop_what_is_gone(root: Path, port: str, change: Callable[[Path], None]) -> None:
    store = f"firelite://127.0.0.1:{port}"
    serve = ("store", "serve", "--port", port, *(("--memory",) if change is memory else ()))
    if change is restore:
        await anyio.to_thread.run_sync(_back_up_empty, root)
    with running(root, *serve) as server:
        line_with(server, "export FIRESTORE_EMULATOR_HOST=")
        async with Swarm.open(store, settings=load_settings(root, environment={})) as client:
            task = (await client.submit("one", role="scout")).task
            listen = client.parts.store.listen(queries.queued_tasks("scout"))
            async with listen as batches, client.follow(task) as changes:
                with anyio.fail_after(PATIENCE_SECONDS):
                    while [item.id for item in await anext(batches)] != [task.task_id]:
                        pass
                    assert [item.task_id for item in await anext(changes)] == [task.task_id]
                server.kill()
                server.wait()
                await anyio.to_thread.run_sync(change, root)
                with running(root, *serve) as again, anyio.fail_after(PATIENCE_SECONDS):
                    line_with(again, "export FIRESTORE_EMULATOR_HOST=")
                    new = (await submit(root, "two", "--role", "scout", "--store", store))["task"]["task_id"]
                    while [item.id for item in await anext(batches)] != [new]:
                        pass
                    with pytest.raises(NotFound, match="is gone"):
                        async for _ in changes:
                            pass


async def test_listener_that_reopens_while_the_store_is_down_goes_on(
    root: Path, port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The official client would try the call again by itself, and send a stream of requests without the query."""
    opened, delivered = anyio.Event(), anyio.Event()
    requests = _Stream._requests  # pyright: ignore[reportPrivateUsage]

    async def noted(stream: _Stream, token: bytes) -> AsyncGenerator[ListenRequest]:
        if token:
            opened.set()
        async for request in requests(stream, token):
            yield request

    monkeypatch.setattr(_Stream, "_requests", noted)
    store = f"firelite://127.0.0.1:{port}"
    with running(root, "store", "serve", "--port", port) as server, anyio.fail_after(PATIENCE_SECONDS):
        line_with(server, "export FIRESTORE_EMULATOR_HOST=")
        async with (
            Swarm.open(store, settings=load_settings(root, environment={})) as client,
            client.parts.store.listen(queries.queued_tasks("scout")) as batches,
            anyio.create_task_group() as group,
        ):
            await anext(batches)

            async def follow() -> None:
                async for batch in batches:
                    if batch:
                        delivered.set()

            group.start_soon(follow)
            server.kill()
            server.wait()
            await opened.wait()
            with running(root, "store", "serve", "--port", port) as again:
                line_with(again, "export FIRESTORE_EMULATOR_HOST=")
                await submit(root, "two", "--role", "scout", "--store", store)
                await delivered.wait()
            group.cancel_scope.cancel()


def _back_up_empty(root: Path) -> None:
    (root / "empty.jsonl").touch()
    assert swarm(root, "store", "import", "empty.jsonl").returncode == 0
    assert swarm(root, "store", "backup", "empty.backup").returncode == 0


async def submit(root: Path, *arguments: str) -> Any:
    return await anyio.to_thread.run_sync(partial(ok, root, "submit", *arguments))


async def test_idle_worker_finds_the_tasks_of_a_store_that_was_wiped(root: Path, port: str) -> None:
    store = ("--store", f"firelite://127.0.0.1:{port}")
    echo = ("--role", "scout", "--skill", "echo", *store)
    with running(root, "store", "serve", "--port", port) as server:
        line_with(server, "export FIRESTORE_EMULATOR_HOST=")
        with running(root, "role", "scout", *store):
            await submit(root, "one", *echo)
            await until(lambda: _blocked(root, store), seconds=PATIENCE_SECONDS)
            server.kill()
            server.wait()
            shutil.rmtree(root / ".fireswarm")
            with running(root, "store", "serve", "--port", port) as again:
                line_with(again, "export FIRESTORE_EMULATOR_HOST=")
                await submit(root, "two", *echo)
                await until(lambda: _blocked(root, store), seconds=PATIENCE_SECONDS)


async def _blocked(root: Path, store: tuple[str, str]) -> bool:
    """The skill asks for a name: the worker took the task."""
    tasks = await anyio.to_thread.run_sync(partial(ok, root, "tasks", *store))
    return [task["status"] for task in tasks] == ["blocked"]
