"""Time-to-live policies of firestore.indexes.json delete expired documents in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.cloud.firestore import AsyncClient

from firelite.database import Database
from firelite.query.index_definitions import IndexSet
from firelite.storage.expiry import SLICE_DOCUMENTS, SWEEP_EVERY_SECONDS
from firelite.storage.versions import Change
from firelite.wire.inprocess import connect
from firelite.wire.server import Server

from .test_listen import listening

pytestmark = pytest.mark.anyio

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
INDEXES = IndexSet.parse({
    "fieldOverrides": [
        {"collectionGroup": "notes", "fieldPath": "expires_at", "indexes": [], "ttl": True},
        {"collectionGroup": "nested", "fieldPath": "meta.until", "indexes": [], "ttl": True},
        {"collectionGroup": "plain", "fieldPath": "expires_at", "indexes": []},
    ]
})  # fmt: skip


class Clock:
    """A database clock that a test sets."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return int((self.now - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1)) * 1000


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def db(clock: Clock) -> Iterator[Database]:
    with Database.open(None, indexes=INDEXES, clock=clock) as database:
        yield database


async def sweep(db: Database, client: AsyncClient, clock: Clock, done: Callable[[], bool]) -> None:
    """Commit after the next sweep is due, and wait until the sweep has had the wanted effect."""
    reached = asyncio.Event()

    def check(_changes: Sequence[Change], _commit_us: int) -> None:
        if done():
            reached.set()

    db.group.listeners.append(check)
    clock.now += timedelta(seconds=SWEEP_EVERY_SECONDS + 1)
    await client.document("ticks/now").set({"at": clock.now})
    async with asyncio.timeout(10):
        await reached.wait()


async def test_expired_document_is_deleted_and_others_stay(db: Database, lite: AsyncClient, clock: Clock) -> None:
    await lite.document("notes/gone").set({"expires_at": START})
    await lite.document("notes/later").set({"expires_at": START + 5 * HOUR})
    for key, value in {"text": "2020-01-01", "none": None, "number": 1, "list": [START]}.items():
        await lite.document(f"notes/{key}").set({"expires_at": value})
    await lite.document("notes/without").set({})
    await lite.document("plain/x").set({"expires_at": START})
    assert (await lite.document("notes/gone").get()).exists
    await sweep(db, lite, clock, lambda: db.store.live == 8)
    assert not (await lite.document("notes/gone").get()).exists
    assert [s.id async for s in lite.collection("notes").stream()] == [
        "later",
        "list",
        "none",
        "number",
        "text",
        "without",
    ]


async def test_policy_holds_for_every_collection_of_the_group_and_for_nested_fields(
    db: Database, lite: AsyncClient, clock: Clock
) -> None:
    await lite.document("a/1/notes/x").set({"expires_at": START})
    await lite.document("a/2/b/3/notes/x").set({"expires_at": START})
    await lite.document("nested/x").set({"meta": {"until": START}})
    await sweep(db, lite, clock, lambda: db.store.live == 1)


async def test_subcollections_of_an_expired_document_stay(db: Database, lite: AsyncClient, clock: Clock) -> None:
    await lite.document("notes/x").set({"expires_at": START})
    await lite.document("notes/x/parts/1").set({"expires_at": START})
    await sweep(db, lite, clock, lambda: db.store.live == 2)
    assert (await lite.document("notes/x/parts/1").get()).exists


async def test_listener_sees_the_deletion(db: Database, lite: AsyncClient, clock: Clock) -> None:
    await lite.document("notes/x").set({"expires_at": START})
    async with listening(lite) as listener:
        listener.add_query(lite.collection("notes"))
        assert "x +[1] -" in await listener.until_snapshot()
        await sweep(db, lite, clock, lambda: db.store.live == 1)
        assert await listener.until_snapshot() == ["x gone [1]"]


async def test_more_documents_than_one_slice_are_deleted_in_one_sweep(
    db: Database, lite: AsyncClient, clock: Clock
) -> None:
    batches: list[Any] = []
    db.group.listeners.append(lambda changes, _: batches.append(changes))
    batch = lite.batch()
    for number in range(2 * SLICE_DOCUMENTS + 1):
        batch.set(lite.document(f"notes/{number}"), {"expires_at": START})
    await batch.commit()
    batches.clear()
    await sweep(db, lite, clock, lambda: db.store.live == 1)
    assert [len(changes) for changes in batches] == [1, SLICE_DOCUMENTS, SLICE_DOCUMENTS, 1]


async def test_document_locked_by_a_transaction_is_left_to_the_next_sweep(
    db: Database, lite: AsyncClient, clock: Clock
) -> None:
    locked, free = lite.document("notes/locked"), lite.document("notes/free")
    await locked.set({"expires_at": START})
    await free.set({"expires_at": START})
    transaction = lite.transaction()
    await transaction._begin()  # pyright: ignore[reportPrivateUsage] - an open transaction without a retry loop
    await locked.get(transaction=transaction)
    await sweep(db, lite, clock, lambda: db.store.live == 2)
    assert (await locked.get()).exists
    await transaction._rollback()  # pyright: ignore[reportPrivateUsage] - as above
    await sweep(db, lite, clock, lambda: db.store.live == 1)


async def test_document_that_was_extended_is_kept(db: Database, lite: AsyncClient, clock: Clock) -> None:
    await lite.document("notes/x").set({"expires_at": START})
    await lite.document("notes/y").set({"expires_at": START})
    await lite.document("notes/x").update({"expires_at": START + 9 * HOUR})
    await sweep(db, lite, clock, lambda: db.store.live == 2)
    assert (await lite.document("notes/x").get()).exists


async def test_deletion_is_durable(tmp_path: Path, clock: Clock) -> None:
    with Database.open(tmp_path / "x.db", indexes=INDEXES, clock=clock) as db:
        client = connect(db)
        await client.document("notes/x").set({"expires_at": START})
        await sweep(db, client, clock, lambda: db.store.live == 1)
    with Database.open(tmp_path / "x.db") as db:
        assert db.store.get(f"{client._database_string}/documents/notes/x") is None  # pyright: ignore[reportPrivateUsage] - no public name


async def test_close_leaves_no_timer_behind(clock: Clock) -> None:
    with Database.open(None, indexes=INDEXES, clock=clock) as db:
        async with Server(db):
            assert db.expiry.armed
    assert not db.expiry.armed


@pytest.mark.parametrize("indexes", [None, IndexSet.parse({})])
async def test_database_without_policies_sets_no_timer(indexes: IndexSet | None) -> None:
    with Database.open(None, indexes=indexes) as db:
        async with Server(db):
            await connect(db).document("notes/x").set({"expires_at": START})
            assert not db.expiry.armed
