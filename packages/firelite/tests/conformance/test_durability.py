"""Acknowledged commits survive a kill, and commits that cannot be stored are refused completely."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.firestore import SERVER_TIMESTAMP, AsyncClient
from google.cloud.firestore_v1.types import firestore

from conformance.clients import close_client, make_client
from firelite.database import Database
from firelite.errors import DataFileInUse, PortInUse, Unavailable
from firelite.storage.lockfile import read_endpoint
from firelite.wire.inprocess import connect
from firelite.wire.server import Server

pytestmark = pytest.mark.anyio

PATIENCE_SECONDS = 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


def serve(path: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "firelite", "serve", "--data", str(path), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def announced(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    return json.loads(server.stdout.readline())["endpoint"]


@asynccontextmanager
async def client_of(endpoint: str) -> AsyncGenerator[AsyncClient]:
    client = make_client(AsyncClient, endpoint, "durable")
    try:
        yield client
    finally:
        await close_client(client)


async def contents(client: AsyncClient, collection: str) -> dict[str, Any]:
    return {snapshot.id: snapshot.to_dict() async for snapshot in client.collection(collection).stream()}


async def test_everything_survives_a_restart(path: Path) -> None:
    with Database.open(path) as db:
        client = connect(db)
        await client.document("c/a").set({"n": 1, "at": SERVER_TIMESTAMP})
        await client.document("c/b").set({"n": 2})
        await client.document("c/b").delete()
        before = await client.document("c/a").get()
    with Database.open(path) as db:
        client = connect(db)
        after = await client.document("c/a").get()
        assert (after.to_dict(), after.create_time, after.update_time) == (
            before.to_dict(),
            before.create_time,
            before.update_time,
        )
        assert not (await client.document("c/b").get()).exists
        await client.document("c/new").set({})  # its row must not be another document's
    with Database.open(path) as db:
        assert sorted(await contents(connect(db), "c")) == ["a", "new"]


async def test_update_times_increase_after_a_restart_with_a_clock_set_back(path: Path) -> None:
    with Database.open(path, clock=lambda: 2_000_000_000 * 10**9) as db:
        first: Any = await connect(db).document("c/a").set({"n": 1})
    with Database.open(path, clock=lambda: 1_000_000_000 * 10**9) as db:
        second = await connect(db).document("c/a").set({"n": 2})
    assert second.update_time > first.update_time


async def test_read_time_before_the_restart_is_too_old(path: Path) -> None:
    with Database.open(path) as db:
        then: Any = (await connect(db).document("c/a").set({"n": 1})).update_time
        await connect(db).document("c/a").set({"n": 2})
    with Database.open(path) as db, pytest.raises(exceptions.FailedPrecondition, match="too old"):
        await connect(db).document("c/a").get(read_time=then)


@pytest.mark.chaos
async def test_kill_9_between_commits_loses_no_acknowledged_commit(path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    acknowledged = 0
    for _ in range(4):
        server = serve(path)
        async with client_of(announced(server)) as client:
            for _ in range(chance.randint(1, 60)):
                number = acknowledged + 1
                batch = client.batch()
                # Both halves name the number: a torn commit would show as two different ones.
                batch.set(client.document(f"log/{number:06}"), {"n": number})
                batch.set(client.document("head/one"), {"n": number, "text": "x" * chance.randint(0, 4000)})
                await batch.commit()
                acknowledged = number
            # One more in flight when the signal comes: it may be kept or not, but not by half.
            batch = client.batch()
            batch.set(client.document(f"log/{acknowledged + 1:06}"), {"n": acknowledged + 1})
            batch.set(client.document("head/one"), {"n": acknowledged + 1})
            call = in_flight(client, batch)
            server.send_signal(signal.SIGKILL)
            server.wait(PATIENCE_SECONDS)
            call.cancel()
        with Database.open(path) as db:
            local = connect(db, "durable")
            log, head = await contents(local, "log"), (await local.document("head/one").get()).get("n")
            assert len(log) == head
            assert head in (acknowledged, acknowledged + 1)
            assert sorted(log) == [f"{number:06}" for number in range(1, head + 1)]
            acknowledged = head
        for stream in (server.stdout, server.stderr):
            assert stream is not None
            stream.close()


def in_flight(client: Any, batch: Any) -> Any:
    """Send a commit without waiting for the answer."""
    request = firestore.CommitRequest(database=client._database_string, writes=batch._write_pbs)
    return client._firestore_api.transport._stubs["commit"](request)


async def test_sigterm_stops_the_server_cleanly(path: Path) -> None:
    with serve(path) as server:
        async with client_of(announced(server)) as client:
            await client.document("c/a").set({"n": 1})
        server.terminate()
        assert server.wait(PATIENCE_SECONDS) == 0
    with Database.open(path) as db:
        assert await contents(connect(db, "durable"), "c") == {"a": {"n": 1}}


async def test_a_file_in_use_is_refused_and_names_the_holder(path: Path) -> None:
    with Database.open(path) as db:
        assert read_endpoint(path) is None
        async with Server(db) as server:
            assert read_endpoint(path) == server.endpoint
            with pytest.raises(DataFileInUse, match=server.endpoint) as refused:
                Database.open(path)
            assert (refused.value.path, refused.value.pid) == (path, os.getpid())
            assert refused.value.endpoint == server.endpoint
        assert read_endpoint(path) is None
        with pytest.raises(DataFileInUse, match="end that process"):
            Database.open(path)
    with Database.open(path) as db:
        assert not db.closed


async def test_endpoint_of_a_killed_server_is_ignored(path: Path) -> None:
    with serve(path) as server:
        endpoint = announced(server)
        assert read_endpoint(path) == endpoint
        server.kill()
    assert read_endpoint(path) is None
    assert read_endpoint(path.with_name("never.db")) is None


async def test_second_server_on_the_file_names_the_owning_process(path: Path) -> None:
    with Database.open(path), serve(path) as second:
        _, complaint = second.communicate(timeout=PATIENCE_SECONDS)
    assert second.returncode == 1
    assert f"is open in process {os.getpid()}" in complaint


async def test_port_in_use_is_named_in_the_error() -> None:
    with Database.open(None) as db, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=str(port)):
            await Server(db, port=port).start()


async def test_two_servers_cannot_share_a_port() -> None:
    with Database.open(None) as db:
        async with Server(db) as first:
            with pytest.raises(PortInUse, match=str(first.port)):
                await Server(db, port=first.port).start()


async def test_listening_on_the_address_of_another_machine_fails() -> None:
    with Database.open(None) as db, pytest.raises(Unavailable, match="192.0.2.1"):
        await Server(db, host="192.0.2.1").start()


def limit_pages(db: Database, more: int) -> None:
    """Simulate a full disk: let the file grow by so many pages only."""
    connection: Any = vars(db)["_storage"]._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count={pages + more}")


async def test_full_disk_refuses_the_whole_commit_and_the_database_stays_usable(path: Path) -> None:
    with Database.open(path) as db:
        client = connect(db)
        await client.document("c/kept").set({"n": 1})
        limit_pages(db, 3)
        batch = client.batch()
        batch.set(client.document("c/small"), {"n": 1})
        batch.set(client.document("c/large"), {"x": "y" * 500_000})
        batch.update(client.document("c/kept"), {"n": 2})
        with pytest.raises(exceptions.ResourceExhausted, match="full") as refused:
            await batch.commit(retry=None)
        assert str(path) in str(refused.value.message)
        assert await contents(client, "c") == {"kept": {"n": 1}}
        limit_pages(db, 1000)
        await batch.commit(retry=None)
        assert sorted(await contents(client, "c")) == ["kept", "large", "small"]
    with Database.open(path) as db:
        assert sorted(await contents(connect(db), "c")) == ["kept", "large", "small"]


async def test_unwritable_file_refuses_commits_and_serves_reads(path: Path) -> None:
    with Database.open(path) as db:
        client = connect(db)
        await client.document("c/kept").set({"n": 1})
        connection: Any = vars(db)["_storage"]._connection
        connection.execute("PRAGMA query_only=ON")
        with pytest.raises(exceptions.ServiceUnavailable, match="Nothing of this commit was kept"):
            await client.document("c/kept").set({"n": 2}, retry=None)
        assert await contents(client, "c") == {"kept": {"n": 1}}
        connection.execute("PRAGMA query_only=OFF")
        await client.document("c/kept").set({"n": 3}, retry=None)
        assert await contents(client, "c") == {"kept": {"n": 3}}


async def test_full_disk_fails_every_commit_of_the_group(path: Path) -> None:
    with Database.open(path) as db:
        client = connect(db)
        await client.document("c/kept").set({"n": 1})
        limit_pages(db, 1)
        results = await asyncio.gather(
            client.document("c/large").set({"x": "y" * 500_000}, retry=None),
            client.document("c/small").set({"n": 1}, retry=None),
            client.document("c/kept").create({}, retry=None),
            return_exceptions=True,
        )
        assert [type(result) for result in results] == [exceptions.ResourceExhausted] * 3
        assert await contents(client, "c") == {"kept": {"n": 1}}


async def test_transaction_can_commit_after_a_full_disk_is_freed(path: Path) -> None:
    with Database.open(path) as db:
        client = connect(db)
        ref = client.document("c/a")
        await ref.set({"n": 1})
        transaction: Any = client.transaction()
        await transaction._begin()
        await ref.get(transaction=transaction)
        transaction.update(ref, {"x": "y" * 500_000})
        request = {"database": f"projects/{client.project}/databases/(default)", "writes": transaction._write_pbs}
        api: Any = client
        limit_pages(db, 1)
        with pytest.raises(exceptions.ResourceExhausted):
            await api._firestore_api.commit(request={**request, "transaction": transaction.id}, retry=None)
        limit_pages(db, 1000)
        await transaction._commit()
        assert len((await ref.get()).get("x")) == 500_000


async def test_missing_folder_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="nowhere"):
        Database.open(tmp_path / "nowhere" / "data.db")


async def test_a_copy_of_the_file_opens(path: Path, tmp_path: Path) -> None:
    with Database.open(path) as db:
        await connect(db).document("c/a").set({"n": 1})
    copied = tmp_path / "copy.db"
    shutil.copy(path, copied)
    with Database.open(path), Database.open(copied) as db:
        assert await contents(connect(db), "c") == {"a": {"n": 1}}


async def test_closed_database_refuses_reads_and_writes(path: Path) -> None:
    db = Database.open(path)
    client = connect(db)
    db.close()
    db.close()
    with pytest.raises(exceptions.ServiceUnavailable, match="closed"):
        await client.document("c/a").set({}, retry=None)
    with pytest.raises(exceptions.ServiceUnavailable, match="closed"):
        await client.document("c/a").get(retry=None)
    with pytest.raises(exceptions.ServiceUnavailable, match="closed"):
        assert [snapshot async for snapshot in client.collection("c").stream(retry=None)]


SYNCS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
#define COUNT(name) int name(int fd) { write(2, "sync\n", 5); return ((int (*)(int))dlsym(RTLD_NEXT, #name))(fd); }
COUNT(fsync)
COUNT(fdatasync)
"""
COMMITS = """
import asyncio, sys
from pathlib import Path
from firelite.database import Database
from firelite.wire.inprocess import connect

async def main():
    with Database.open(Path(sys.argv[1])) as database:
        client = connect(database)
        for number in range(5):
            sys.stderr.write("commit\\n")
            sys.stderr.flush()
            await client.document(f"a/{number}").set({"n": number})
            sys.stderr.write("acknowledged\\n")
            sys.stderr.flush()

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler")
def test_every_commit_is_on_the_disk_before_it_is_acknowledged(tmp_path: Path) -> None:
    """A kill loses nothing even without a sync; only a loss of power would. So the calls of the kernel are counted."""
    (tmp_path / "syncs.c").write_text(SYNCS)
    library = tmp_path / "syncs.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "syncs.c", "-ldl"], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    command = [sys.executable, "-c", COMMITS.replace("\\\\n", "\\n"), str(tmp_path / "data.db")]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    commits = ran.stderr.split("commit\n")[1:]
    assert len(commits) == 5
    for lines in commits:
        before, _, _ = lines.partition("acknowledged")
        assert "sync" in before
