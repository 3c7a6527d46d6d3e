"""Indexes saved in the data file: loaded instead of built, and never wrong, whatever happened in between."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from google.cloud.firestore_v1.base_query import FieldFilter

from firelite.database import Database
from firelite.documents.protos import StructuredQuery, Write, WritePb
from firelite.query import sorted_index
from firelite.query.parse import parse_query
from firelite.query.slices import at_once
from firelite.storage import saved_indexes
from firelite.wire.inprocess import connect

pytestmark = pytest.mark.anyio

ROOT = "projects/p/databases/(default)/documents"
DOCUMENTS = 60


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firelite.storage.versions.SMALL_DOCUMENTS", 10)
    monkeypatch.setattr(saved_indexes, "SAVED_MIN_ENTRIES", 10)
    monkeypatch.setattr(saved_indexes, "PAGE_ENTRIES", 7)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names of the documents that were entered into an index one by one."""
    names: list[str] = []
    update = sorted_index.OrderedIndex.update

    def counting(self: Any, name: str, fields: Any) -> None:
        names.append(name)
        update(self, name, fields)

    monkeypatch.setattr(sorted_index.OrderedIndex, "update", counting)
    yield names


def put(number: int, value: int) -> WritePb:
    write = Write()
    write.update.name = f"{ROOT}/c/{number:03}"
    write.update.fields["n"].integer_value = value
    for tag in (value % 3, value % 5 + 10):
        write.update.fields["tags"].array_value.values.add(integer_value=tag)
    return write


def remove(number: int) -> WritePb:
    return Write(delete=f"{ROOT}/c/{number:03}")


async def answers(db: Database) -> list[list[str]]:
    """The results of queries with several indexes."""
    collection: Any = connect(db, project="p").collection("c")
    queries = [
        collection.where(filter=FieldFilter("n", ">", 5)),
        collection.order_by("n", direction="DESCENDING"),
        collection.where(filter=FieldFilter("tags", "array_contains", 11)).order_by("n"),
    ]
    return [[snapshot.id for snapshot in await query.get()] for query in queries]


async def fill(path: Path) -> list[list[str]]:
    with Database.open(path) as db:
        db.group.commit_now([put(number, number * 7 % DOCUMENTS) for number in range(DOCUMENTS)])
        return await answers(db)


async def test_unchanged_index_is_loaded_without_reading_the_documents(path: Path, parsed: list[str]) -> None:
    expected = await fill(path)
    parsed.clear()
    for _ in range(2):
        with Database.open(path) as db:
            assert await answers(db) == expected
    assert parsed == []


async def test_only_documents_changed_since_are_read_again(path: Path, parsed: list[str]) -> None:
    await fill(path)
    with Database.open(path) as db:
        db.group.commit_now([put(3, 1000), remove(4), put(900, 6)])
    parsed.clear()
    with Database.open(path) as db:
        found = await answers(db)
    assert {name.rpartition("/")[2] for name in parsed} == {"003", "900"}
    assert "003" in found[0]
    assert "004" not in found[0]


@pytest.mark.parametrize("seed", range(15))
async def test_loaded_index_answers_as_a_built_one(path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    await fill(path)
    for _ in range(3):
        with Database.open(path) as db:
            writes = {
                number: put(number, rng.randrange(99)) if rng.random() < 0.6 else remove(number)
                for number in rng.sample(range(DOCUMENTS + 9), 12)
            }
            if rng.random() < 0.5:
                await answers(db)
            db.group.commit_now(list(writes.values()))
            loaded = await answers(db)
        with monkeypatch.context() as patch, Database.open(path) as db:
            patch.setattr(db.store, "saved", None)
            assert await answers(db) == loaded


async def test_commits_during_the_load_are_in_the_index(path: Path) -> None:
    await fill(path)
    message = StructuredQuery()
    message.from_.add(collection_id="c")
    message.order_by.add().field.field_path = "n"
    query = parse_query(ROOT, message)
    with Database.open(path) as db:
        steps = db.store.all_index_steps(query)
        for number in range(3):
            next(steps)
            db.group.commit_now([put(number * 20, 500 + number), remove(number * 20 + 1), put(700 + number, 400)])
        at_once(steps)
        loaded = [record.name for record in db.store.run(query)[0]]
    with Database.open(path) as db:
        db.store.saved = None
        assert [record.name for record in db.store.run(query)[0]] == loaded


DAMAGES: dict[str, str] = {
    "entry": "UPDATE index_entries SET row = row + 1 WHERE key = (SELECT max(key) FROM index_entries)",
    "fewer": "DELETE FROM index_entries WHERE row = 5",
    "none": "DELETE FROM index_entries",
    "table": "DROP TABLE index_entries",
    "definition": "UPDATE indexes SET definition = definition || 'x'",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
async def test_damaged_index_is_built_again(path: Path, damage: str) -> None:
    expected = await fill(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(damage)
        connection.commit()
    for _ in range(2):
        with Database.open(path) as db:
            assert await answers(db) == expected


async def test_index_of_another_format_is_built_again(
    path: Path, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = await fill(path)
    parsed.clear()
    monkeypatch.setattr(saved_indexes, "FORMAT", 2)
    with Database.open(path) as db:
        assert await answers(db) == expected
    assert parsed


async def test_index_that_cannot_be_saved_does_not_disturb_the_close(path: Path) -> None:
    with Database.open(path) as db:
        db.group.commit_now([put(number, number) for number in range(DOCUMENTS)])
        expected = await answers(db)
        refuse: Callable[..., object] = vars(db)["_storage"]._connection.execute
        refuse("PRAGMA query_only=ON")
    with Database.open(path) as db:
        assert await answers(db) == expected
