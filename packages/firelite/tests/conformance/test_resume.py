"""Listeners whose server comes back with another state: they drop what is gone, whatever became of the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from google.cloud.firestore import AsyncClient, Client

from conformance.clients import close_client, make_client
from conformance.test_listen import listening
from replaced import CHANGES, free_port, restart, serving, write_before

PATIENCE_SECONDS = 60


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.mark.parametrize("kind", ["query", "limit", "document"])
@pytest.mark.parametrize("change", [*CHANGES, None], ids=lambda change: change.__name__ if change else "memory")
def test_python_listener_drops_what_is_gone(
    tmp_path: Path, port: int, change: Callable[[Path], None] | None, kind: str
) -> None:
    path = None if change is None else tmp_path / "data.db"
    shown: Queue[list[str]] = Queue()

    def show(snapshots: Any, *_: Any) -> None:
        shown.put(sorted(snapshot.id for snapshot in snapshots if snapshot.exists))

    def wait_for(expected: list[str]) -> None:
        while shown.get(timeout=PATIENCE_SECONDS) != expected:
            pass

    with serving(port, path) as endpoint:
        client: Any = make_client(Client, endpoint, "resume")
        write_before(client, path)
        watched: Any = client.collection("c")
        if kind == "document":
            watched = client.document("c/a")
        elif kind == "limit":
            watched = watched.limit(5)
        watch = watched.on_snapshot(show)
        wait_for(["a"] if kind == "document" else ["a", "b", "old"])
    if change is not None and path is not None:
        change(path)
    with serving(port, path) as endpoint:
        other: Any = make_client(Client, endpoint, "resume")
        if change is restart:
            other.document("c/a").delete()
        else:
            other.document("c/b").set({"x": 3})  # the same number of documents as before in the restored copies
            other.document("c/new").set({"x": 9})
        truth = sorted(document.id for document in other.collection("c").stream())
        wait_for([] if kind == "document" else truth)
        if kind != "document":
            assert "a" not in truth
        watch.unsubscribe()


@pytest.mark.anyio
async def test_listener_of_a_restarted_server_gets_only_what_changed(tmp_path: Path, port: int) -> None:
    path = tmp_path / "data.db"
    with serving(port, path) as endpoint:
        client = make_client(AsyncClient, endpoint, "resume")
        await client.document("c/a").set({})
        async with listening(client) as first:
            first.add_query(client.collection("c"))
            await first.until_snapshot()
        await close_client(client)
    with serving(port, path) as endpoint:
        client = make_client(AsyncClient, endpoint, "resume")
        await client.document("c/b").set({})
        async with listening(client) as second:
            second.add_query(client.collection("c"), resume_token=first.token)
            assert await second.until_snapshot() == ["ADD [1]", "b +[1] -", "CURRENT [1]"]
        await close_client(client)
