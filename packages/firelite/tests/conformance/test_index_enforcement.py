"""Queries without a required index in ``firestore.indexes.json`` are refused. Firelite only: emulators accept them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.base_query import FieldFilter, Or
from google.cloud.firestore_v1.field_path import FieldPath

from firelite.database import Database
from firelite.errors import InvalidArgument
from firelite.query.index_definitions import IndexSet
from firelite.wire.inprocess import connect

pytestmark = pytest.mark.anyio

UP, DOWN = "ASCENDING", "DESCENDING"


def index(*fields: tuple[str, str], scope: str = "COLLECTION", group: str = "tasks") -> dict[str, Any]:
    entries = [{"fieldPath": path, "arrayConfig" if mode == "CONTAINS" else "order": mode} for path, mode in fields]
    return {"collectionGroup": group, "queryScope": scope, "fields": entries}


DEPLOYED: dict[str, Any] = {
    "indexes": [
        index(("status", UP), ("priority", DOWN)),
        index(("owner", UP), ("priority", DOWN)),
        index(("tags", "CONTAINS"), ("created", UP), ("__name__", UP)),
        index(("status", UP), ("cost", UP)),
        index(("status", UP), ("created", UP), scope="COLLECTION_GROUP"),
        index(("a", UP), ("b", UP), ("c", UP)),
    ],
    "fieldOverrides": [
        {"collectionGroup": "tasks", "fieldPath": "blob", "indexes": []},
        {"collectionGroup": "tasks", "fieldPath": "at", "indexes": [{"queryScope": "COLLECTION", "order": UP}]},
        {
            "collectionGroup": "runs",
            "fieldPath": "state",
            "indexes": [
                {"queryScope": "COLLECTION", "order": UP},
                {"queryScope": "COLLECTION_GROUP", "order": UP},
                {"queryScope": "COLLECTION_GROUP", "arrayConfig": "CONTAINS"},
            ],
        },
        {"collectionGroup": "closed", "fieldPath": "*", "indexes": []},
    ],
}


@pytest.fixture
def db() -> Iterator[Database]:
    with Database.open(None, indexes=IndexSet.parse(DEPLOYED)) as database:
        yield database


@pytest.fixture
async def strict(db: Database) -> AsyncIterator[AsyncClient]:
    yield connect(db)


def w(query: Any, *conditions: tuple[str, str, Any]) -> Any:
    for condition in conditions:
        query = query.where(filter=FieldFilter(*condition))
    return query


def tasks(client: AsyncClient) -> Any:
    return client.collection("tasks")


type Make = Callable[[Any], Any]

ALLOWED: dict[str, Make] = {
    "no condition": tasks,
    "one equality": lambda c: w(tasks(c), ("x", "==", 1)),
    "equalities merge": lambda c: w(tasks(c), ("x", "==", 1), ("y", "==", 2), ("z", "array_contains", 3)),
    "one range": lambda c: w(tasks(c), ("x", ">", 1), ("x", "<", 5)),
    "one order": lambda c: tasks(c).order_by("x", direction=DOWN),
    "order on an equality field": lambda c: w(tasks(c), ("x", "==", 1)).order_by("x", direction=DOWN),
    "array-contains": lambda c: w(tasks(c), ("tags", "array_contains", 1)),
    "in": lambda c: w(tasks(c), ("x", "in", [1, 2, 3])),
    "composite": lambda c: w(tasks(c), ("status", "==", 1)).order_by("priority", direction=DOWN),
    "composite by a range": lambda c: w(tasks(c), ("status", "==", 1), ("cost", ">", 1)),
    "composites merge": lambda c: w(tasks(c), ("status", "==", 1), ("owner", "==", 2)).order_by(
        "priority", direction=DOWN
    ),
    "composite with an array": lambda c: w(tasks(c), ("tags", "array_contains", 1)).order_by("created"),
    "prefix of two equalities": lambda c: w(tasks(c), ("b", "==", 1), ("a", "==", 1)).order_by("c"),
    "either side has its index": lambda c: tasks(c).where(
        filter=Or([FieldFilter("x", "==", 1), FieldFilter("y", "==", 2)])
    ),
    "exempt but up": lambda c: tasks(c).order_by("at"),
    "group order by name": lambda c: c.collection_group("tasks"),
    "group with an override": lambda c: w(c.collection_group("runs"), ("state", "==", 1)),
    "group composite": lambda c: w(c.collection_group("tasks"), ("status", "==", 1)).order_by("created"),
    "below the root without a collection": lambda c: tasks(c).recursive(),
    "names": lambda c: w(tasks(c), (FieldPath.document_id(), ">", c.document("tasks/a"))),
}

REFUSED: dict[str, tuple[Make, dict[str, Any]]] = {
    "equality and order": (
        lambda c: w(tasks(c), ("x", "==", 1)).order_by("y"),
        {"collectionGroup": "tasks", "fields": [("x", UP), ("y", UP)]},
    ),
    "wrong direction": (
        lambda c: w(tasks(c), ("status", "==", 1)).order_by("priority"),
        {"collectionGroup": "tasks", "fields": [("status", UP), ("priority", UP)]},
    ),
    "two orders": (
        lambda c: tasks(c).order_by("x").order_by("y", direction=DOWN),
        {"collectionGroup": "tasks", "fields": [("x", UP), ("y", DOWN)]},
    ),
    "one equality too many": (
        lambda c: w(tasks(c), ("status", "==", 1), ("x", "==", 2)).order_by("priority", direction=DOWN),
        {"collectionGroup": "tasks", "fields": [("status", UP), ("x", UP), ("priority", DOWN)]},
    ),
    "array and range": (
        lambda c: w(tasks(c), ("tags", "array_contains", 1), ("x", ">", 1)),
        {"collectionGroup": "tasks", "fields": [("tags", "CONTAINS"), ("x", UP)]},
    ),
    "ranges on two fields": (
        lambda c: w(tasks(c), ("x", ">", 1), ("y", ">", 1)),
        {"collectionGroup": "tasks", "fields": [("x", UP), ("y", UP)]},
    ),
    "names downwards": (
        lambda c: tasks(c).order_by(FieldPath.document_id(), direction=DOWN),
        {"collectionGroup": "tasks", "fields": [("__name__", DOWN)]},
    ),
    "one side of an or": (
        lambda c: w(tasks(c), ("status", "in", [1, 2])).order_by("x"),
        {"collectionGroup": "tasks", "fields": [("status", UP), ("x", UP)]},
    ),
}

REFUSED_FIELDS: dict[str, tuple[Make, str, dict[str, str]]] = {
    "exempt": (lambda c: w(tasks(c), ("blob", "==", 1)), "blob", {"queryScope": "COLLECTION", "order": UP}),
    "below an exempt map": (
        lambda c: tasks(c).order_by("blob.inner"),
        "blob.inner",
        {"queryScope": "COLLECTION", "order": UP},
    ),
    "exempt downwards": (
        lambda c: tasks(c).order_by("at", direction=DOWN),
        "at",
        {"queryScope": "COLLECTION", "order": DOWN},
    ),
    "exempt array": (
        lambda c: w(tasks(c), ("at", "array_contains", 1)),
        "at",
        {"queryScope": "COLLECTION", "arrayConfig": "CONTAINS"},
    ),
    "group without an override": (
        lambda c: w(c.collection_group("tasks"), ("x", "==", 1)),
        "x",
        {"queryScope": "COLLECTION_GROUP", "order": UP},
    ),
    "everything exempt": (
        lambda c: c.collection("closed").order_by("x"),
        "x",
        {"queryScope": "COLLECTION", "order": UP},
    ),
}


async def run(query: Any) -> None:
    assert [snapshot async for snapshot in query.stream()] == []


@pytest.mark.parametrize("case", ALLOWED)
async def test_query_with_a_sufficient_index_is_served(strict: AsyncClient, case: str) -> None:
    await run(ALLOWED[case](strict))


@pytest.mark.parametrize("case", REFUSED)
async def test_query_without_its_composite_index_is_refused_with_the_entry_to_add(
    strict: AsyncClient, case: str
) -> None:
    make, expected = REFUSED[case]
    with pytest.raises(exceptions.FailedPrecondition, match="requires an index") as refused:
        await run(make(strict))
    text = str(refused.value.message)
    entry = json.loads(text[text.index("{") :])
    modes = [(field["fieldPath"], field.get("order") or field["arrayConfig"]) for field in entry["fields"]]
    assert {"collectionGroup": entry["collectionGroup"], "fields": modes} == expected


@pytest.mark.parametrize("case", REFUSED)
async def test_adding_the_suggested_index_entry_allows_the_query(strict: AsyncClient, case: str) -> None:
    make, _ = REFUSED[case]
    with pytest.raises(exceptions.FailedPrecondition) as refused:
        await run(make(strict))
    text = str(refused.value.message)
    entry = json.loads(text[text.index("{") :])
    with Database.open(None, indexes=IndexSet.parse({"indexes": [entry]})) as db:
        await run(make(connect(db)))


@pytest.mark.parametrize("case", REFUSED_FIELDS)
async def test_query_without_its_single_field_index_is_refused_with_the_entry_to_add(
    strict: AsyncClient, case: str
) -> None:
    make, field, expected = REFUSED_FIELDS[case]
    with pytest.raises(exceptions.FailedPrecondition, match="fieldOverrides") as refused:
        await run(make(strict))
    text = str(refused.value.message)
    entry = json.loads(text[text.index("{") :])
    assert (entry["fieldPath"], entry["indexes"]) == (field, [expected])


async def test_aggregated_field_must_be_in_the_index(strict: AsyncClient) -> None:
    filtered = w(tasks(strict), ("status", "==", 1))
    await filtered.count().get()
    await tasks(strict).sum("x").get()
    await filtered.sum("cost").get()
    with pytest.raises(exceptions.FailedPrecondition, match="requires an index"):
        await filtered.avg("x").get()


async def test_count_without_its_index_is_refused(strict: AsyncClient) -> None:
    bad = w(tasks(strict), ("x", "==", 1)).order_by("y")
    with pytest.raises(exceptions.FailedPrecondition):
        await bad.count().get()


async def test_queries_need_no_index_without_an_index_file() -> None:
    with Database.open(None) as db:
        await run(w(tasks(connect(db)), ("x", "==", 1)).order_by("y"))


def test_index_file_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "firestore.indexes.json"
    path.write_text(json.dumps(DEPLOYED))
    assert len(IndexSet.load(path).composites) == 6


@pytest.mark.parametrize("content", ["", "[]", '{"indexes": [{}]}', '{"fieldOverrides": [{"fieldPath": "a"}]}'])
def test_malformed_index_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "firestore.indexes.json"
    path.write_text(content)
    with pytest.raises(InvalidArgument):
        IndexSet.load(path)


def test_missing_index_file_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="none.json"):
        IndexSet.load(tmp_path / "none.json")


def test_vector_index_entry_is_parsed() -> None:
    entry = index(("status", UP))
    entry["fields"].append({"fieldPath": "v", "vectorConfig": {"dimension": 3, "flat": {}}})
    assert IndexSet.parse({"indexes": [entry]}).composites[0].fields[-1] == (("v",), "VECTOR")
