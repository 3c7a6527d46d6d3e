"""Random queries on random documents, through the official client, against a naive model.

The model works on Python values and knows nothing of encodings, indexes or plans. The same query also runs on a past
moment, which takes the scan instead of the index, and after further writes, which have to maintain the index.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.base_query import And, FieldFilter, Or
from hypothesis import given, settings
from hypothesis import strategies as st

from firelite.database import Database
from firelite.wire.inprocess import connect

FIELDS = ["a", "b", "m.x"]
# Few values, most of them comparable: queries on random data find nothing otherwise.
ORDINARY = st.sampled_from([0, 1, 2, 1.0, 1.5, True, "p"])
SCALARS = st.one_of(ORDINARY, st.sampled_from([0, 1, 2, None]))
ARRAYS = st.lists(st.integers(0, 2), max_size=2)
DOCUMENTS = st.fixed_dictionaries(
    {"a": st.one_of(SCALARS, ARRAYS)}, optional={"b": SCALARS, "m": st.fixed_dictionaries({"x": SCALARS})}
)
KEYS = st.sampled_from([f"k{number}" for number in range(8)])
DATA = st.dictionaries(KEYS, DOCUMENTS, min_size=4, max_size=8)
CHANGES = st.dictionaries(KEYS, st.one_of(st.none(), DOCUMENTS), max_size=4)  # None deletes


@dataclass(frozen=True)
class Condition:
    field: str
    op: str
    value: Any

    def filter(self) -> FieldFilter:
        return FieldFilter(self.field, self.op, self.value)


CONDITIONS = st.one_of(
    st.builds(Condition, st.sampled_from(FIELDS), st.sampled_from(["==", "!="]), SCALARS),
    st.builds(Condition, st.sampled_from(FIELDS), st.sampled_from(["<", "<=", ">", ">="]), ORDINARY),
    st.builds(Condition, st.sampled_from(FIELDS), st.just("in"), st.lists(SCALARS, min_size=1, max_size=3)),
    st.builds(Condition, st.sampled_from(FIELDS), st.just("not-in"), st.lists(SCALARS, min_size=1, max_size=3)),
    st.builds(Condition, st.just("a"), st.just("array_contains"), st.integers(0, 2)),
    st.builds(
        Condition, st.just("a"), st.just("array_contains_any"), st.lists(st.integers(0, 2), min_size=1, max_size=2)
    ),
)


@dataclass(frozen=True)
class Ask:
    all_of: list[Condition]
    any_of: list[Condition]
    orders: list[tuple[str, bool]]
    start: tuple[str, Any] | None
    end: tuple[str, Any] | None
    offset: int
    limit: int | None


@st.composite
def asks(draw: st.DrawFn) -> Ask:
    orders = draw(st.lists(st.tuples(st.sampled_from(FIELDS), st.booleans()), max_size=2, unique_by=lambda o: o[0]))
    cursor = st.one_of(st.none(), ORDINARY) if orders and draw(st.booleans()) else st.none()
    start, end = draw(cursor), draw(cursor)
    return Ask(
        all_of=draw(st.lists(CONDITIONS, max_size=draw(st.sampled_from([1, 1, 2])))),
        any_of=draw(st.lists(CONDITIONS, max_size=draw(st.sampled_from([0, 0, 2])))),
        orders=orders,
        start=None if start is None else (draw(st.sampled_from(["start_at", "start_after"])), start),
        end=None if end is None else (draw(st.sampled_from(["end_at", "end_before"])), end),
        offset=draw(st.sampled_from([0, 0, 0, 1])),
        limit=draw(st.sampled_from([None, None, 1, 3])),
    )


def build(collection: Any, ask: Ask) -> Any:
    filters: list[Any] = [condition.filter() for condition in ask.all_of]
    if ask.any_of:
        filters.append(Or([condition.filter() for condition in ask.any_of]))
    query = collection.where(filter=And(filters)) if filters else collection
    for field, down in ask.orders:
        query = query.order_by(field, direction="DESCENDING" if down else "ASCENDING")
    for cursor in (ask.start, ask.end):
        if cursor is not None:
            query = getattr(query, cursor[0])([cursor[1]])
    query = query.offset(ask.offset) if ask.offset else query
    return query if ask.limit is None else query.limit(ask.limit)


MISSING = object()


def value_at(document: dict[str, Any], field: str) -> Any:
    found: Any = document
    for name in field.split("."):
        if not isinstance(found, dict) or name not in found:
            return MISSING
        found = found[name]  # pyright: ignore[reportUnknownVariableType] - a tree of anything
    return found  # pyright: ignore[reportUnknownVariableType] - as above


def place(value: Any) -> tuple[int, Any]:
    """Return a key that sorts values of the types used here in the documented order."""
    if value is None:
        return (0, 0)
    if isinstance(value, bool):
        return (1, value)
    if isinstance(value, (int, float)):
        return (2, value)
    if isinstance(value, str):
        return (3, value)
    return (4, [place(item) for item in value])


def holds(condition: Condition, document: dict[str, Any]) -> bool:
    value, operand = value_at(document, condition.field), condition.value
    if value is MISSING:
        return False
    here = place(value)
    if condition.op == "in":
        return any(item is not None and here == place(item) for item in operand)
    if condition.op == "not-in":
        return value is not None and all(item is not None and here != place(item) for item in operand)
    if condition.op == "array_contains":
        return isinstance(value, list) and operand is not None and operand in value
    if condition.op == "array_contains_any":
        return isinstance(value, list) and any(item is not None and item in value for item in operand)
    there = place(operand)
    if condition.op == "==":
        return here == there
    if condition.op == "!=":
        return value is not None and here != there
    same_type = here[0] == there[0]
    ranges = {"<": here < there, "<=": here <= there, ">": here > there, ">=": here >= there}
    compared = ranges if same_type and operand is not None else {}
    return compared.get(condition.op, False)


class Down:
    """A sort key in reverse order."""

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: Down) -> bool:
        return other.key < self.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Down) and self.key == other.key

    __hash__ = None  # pyright: ignore[reportAssignmentType] - compared only


INEQUALITIES = {"<", "<=", ">", ">=", "!=", "not-in"}


def sorts(condition: Condition) -> bool:
    """Return True if the query is sorted by the field. A range with null matches nothing, and sorts nothing."""
    if condition.op == "not-in":
        return any(item is not None for item in condition.value)
    return condition.op in INEQUALITIES and (condition.op == "!=" or condition.value is not None)


def model(data: dict[str, dict[str, Any]], ask: Ask) -> list[str]:
    orders = list(ask.orders)
    last = orders[-1][1] if orders else False
    filters = [*ask.all_of, *ask.any_of]
    implied = sorted({c.field for c in filters if sorts(c)} - {f for f, _ in orders})
    orders += [(field, last) for field in implied]
    found: list[tuple[list[Any], str]] = []
    for key, document in data.items():
        values = [value_at(document, field) for field, _ in orders]
        if any(value is MISSING for value in values) or not all(holds(c, document) for c in ask.all_of):
            continue
        if ask.any_of and not any(holds(c, document) for c in ask.any_of):
            continue
        sort_key: list[Any] = [
            Down(place(value)) if down else place(value) for value, (_, down) in zip(values, orders, strict=True)
        ]
        if ask.orders and not within(sort_key[0], ask):
            continue
        found.append(([*sort_key, Down(key) if last else key], key))
    found.sort(key=lambda item: item[0])
    names = [name for _, name in found][ask.offset :]
    return names if ask.limit is None else names[: ask.limit]


def within(first: Any, ask: Ask) -> bool:
    def at(value: Any) -> Any:
        return Down(place(value)) if ask.orders[0][1] else place(value)

    if ask.start is not None:
        start = at(ask.start[1])
        if first < start or (ask.start[0] == "start_after" and first == start):
            return False
    if ask.end is not None:
        end = at(ask.end[1])
        if end < first or (ask.end[0] == "end_before" and first == end):
            return False
    return True


async def write(client: AsyncClient, data: dict[str, Any]) -> Any:
    batch = client.batch()
    for key, document in data.items():
        if document is None:
            batch.delete(client.document(f"c/{key}"))
        else:
            batch.set(client.document(f"c/{key}"), document)
    await batch.commit()
    return batch.commit_time


async def check(data: dict[str, Any], changes: dict[str, Any], questions: list[Ask]) -> None:
    with Database.open(None) as db:
        client = connect(db)
        await write(client, data)
        allowed: list[tuple[Ask, Any]] = []
        for ask in questions:
            query = build(client.collection("c"), ask)
            try:
                found = [snapshot.id async for snapshot in query.stream()]
            except exceptions.InvalidArgument:
                continue  # a combination that production does not allow either
            assert found == model(data, ask)
            allowed.append((ask, query))
        moment = (await client.document("c/none").get()).read_time
        await write(client, changes)
        after = {key: value for key, value in {**data, **changes}.items() if value is not None}
        for ask, query in allowed:
            assert [snapshot.id async for snapshot in query.stream()] == model(after, ask)
            assert [snapshot.id async for snapshot in query.stream(read_time=moment)] == model(data, ask)
            counted: Any = await query.count().get()
            assert counted[0][0].value == len(model(after, ask))


@settings(deadline=None, max_examples=150)
@given(DATA, CHANGES, st.lists(asks(), min_size=6, max_size=10))
def test_query_results_match_the_model(data: dict[str, Any], changes: dict[str, Any], questions: list[Ask]) -> None:
    loop.run(check(data, changes, questions))


loop: asyncio.Runner


@pytest.fixture(autouse=True, scope="module")
def runner() -> Any:
    global loop
    with asyncio.Runner() as loop:  # one loop for all examples: making one costs more than an example
        yield
