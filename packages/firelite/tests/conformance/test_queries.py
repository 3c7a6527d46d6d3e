"""Queries: operators, order, cursors, composite filters, scopes."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.firestore import AsyncClient, GeoPoint
from google.cloud.firestore_v1.base_query import And, FieldFilter, Or
from google.cloud.firestore_v1.field_path import FieldPath
from google.cloud.firestore_v1.vector import Vector

pytestmark = pytest.mark.anyio


def where(field: str, op: str, value: Any) -> FieldFilter:
    return FieldFilter(field, op, value)


async def ids(query: Any) -> list[str]:
    return [snapshot.id async for snapshot in query.stream()]


@pytest.mark.parametrize(
    ("field", "op", "value", "expected"),
    [
        ("country", "==", "USA", ["dc", "la", "sf"]),
        ("population", "<", 860_000, ["dc"]),
        ("population", "<=", 860_000, ["dc", "sf"]),
        ("population", ">", 3_900_000.0, ["tok", "bj"]),
        ("population", ">=", 3_900_000, ["la", "tok", "bj"]),
        ("country", "!=", "USA", ["bj", "tok"]),
        ("country", "in", ["Japan", "China", "Peru"], ["bj", "tok"]),
        ("country", "not-in", ["Japan", "USA"], ["bj"]),
        ("regions", "array_contains", "west", ["la", "sf"]),
        ("regions", "array_contains_any", ["west", "east", "soc"], ["dc", "la", "sf"]),
        ("regions", "==", ["west"], ["sf"]),
        ("regions", "in", [["west"], ["east"]], ["dc", "sf"]),
        ("state", "==", None, ["void"]),
        ("state", "!=", None, ["la", "sf"]),
        ("state", "!=", "NY", ["la", "sf"]),
        ("state", "not-in", ["NY", "CA"], []),
        ("name", "<", 5, []),
    ],
)
async def test_operator_finds_the_expected_documents(
    cities: Any, field: str, op: str, value: Any, expected: list[str]
) -> None:
    assert await ids(cities.where(filter=where(field, op, value))) == expected


async def test_nan_matches_only_nan(client: AsyncClient) -> None:
    await client.document("c/nan").set({"x": math.nan})
    await client.document("c/one").set({"x": 1.0})
    await client.document("c/null").set({"x": None})
    collection = client.collection("c")
    assert await ids(collection.where(filter=where("x", "==", math.nan))) == ["nan"]
    assert await ids(collection.where(filter=where("x", "!=", math.nan))) == ["one"]
    assert await ids(collection.where(filter=where("x", "<", 2))) == ["one"]


async def test_two_equality_filters_are_combined(cities: Any) -> None:
    query = cities.where(filter=where("country", "==", "USA")).where(filter=where("state", "==", "CA"))
    assert await ids(query) == ["la", "sf"]


async def test_equality_with_a_range_is_ordered_by_the_range(cities: Any) -> None:
    query = cities.where(filter=where("country", "==", "USA")).where(filter=where("population", ">", 700_000))
    assert await ids(query) == ["sf", "la"]


async def test_range_with_two_bounds_can_be_ordered_both_ways(cities: Any) -> None:
    query = cities.where(filter=where("population", ">", 700_000)).where(filter=where("population", "<", 9_000_000))
    assert await ids(query) == ["sf", "la"]
    assert await ids(query.order_by("population", direction="DESCENDING")) == ["la", "sf"]


async def test_ranges_on_two_fields_are_ordered_by_field_name(cities: Any) -> None:
    query = cities.where(filter=where("population", ">", 700_000)).where(filter=where("name", "<", "T"))
    assert await ids(query) == ["bj", "la", "sf"]  # by name, then population: fields in lexicographic order
    assert await ids(query.order_by("population")) == ["sf", "la", "bj"]


async def test_order_omits_documents_without_the_field(cities: Any) -> None:
    assert await ids(cities.order_by("population")) == ["dc", "sf", "la", "tok", "bj"]
    assert await ids(cities.order_by("state")) == ["void", "la", "sf"]


async def test_two_orders_may_have_different_directions(cities: Any) -> None:
    query = cities.order_by("country").order_by("population", direction="DESCENDING")
    assert await ids(query) == ["bj", "tok", "la", "sf", "dc"]


async def test_ties_are_broken_by_name_in_the_last_direction(cities: Any) -> None:
    assert await ids(cities.order_by("country")) == ["bj", "tok", "dc", "la", "sf"]
    assert await ids(cities.order_by("country", direction="DESCENDING")) == ["sf", "la", "dc", "tok", "bj"]


async def test_limit_offset_and_limit_to_last_select_the_expected_documents(cities: Any) -> None:
    ordered = cities.order_by("population")
    assert await ids(ordered.limit(2)) == ["dc", "sf"]
    assert await ids(ordered.offset(1).limit(2)) == ["sf", "la"]
    assert await ids(ordered.offset(9)) == []
    assert [snapshot.id for snapshot in await ordered.limit_to_last(2).get()] == ["tok", "bj"]


@pytest.mark.parametrize(
    ("cursor", "expected"),
    [
        ("start_at", ["la", "tok", "bj"]),
        ("start_after", ["tok", "bj"]),
        ("end_at", ["dc", "sf", "la"]),
        ("end_before", ["dc", "sf"]),
    ],
)
async def test_cursor_can_be_a_value_or_a_document(cities: Any, cursor: str, expected: list[str]) -> None:
    ordered = cities.order_by("population")
    assert await ids(getattr(ordered, cursor)({"population": 3_900_000})) == expected
    snapshot = await cities.document("la").get()
    assert await ids(getattr(ordered, cursor)(snapshot)) == expected


async def test_cursors_work_in_descending_order(cities: Any) -> None:
    ordered = cities.order_by("population", direction="DESCENDING")
    assert await ids(ordered.start_after({"population": 9_000_000}).end_at({"population": 860_000})) == ["la", "sf"]


async def test_cursor_may_cover_a_prefix_of_the_order(cities: Any) -> None:
    ordered = cities.order_by("country").order_by("population")
    assert await ids(ordered.start_after({"country": "Japan"})) == ["dc", "sf", "la"]
    assert await ids(ordered.start_at({"country": "USA", "population": 860_000})) == ["sf", "la"]


async def test_paging_by_cursor_visits_every_document_once(cities: Any) -> None:
    ordered, seen, last = cities.order_by("country").limit(2), list[str](), None
    while True:
        page = [s async for s in (ordered if last is None else ordered.start_after(last)).stream()]
        if not page:
            break
        seen += [snapshot.id for snapshot in page]
        last = page[-1]
    assert seen == ["bj", "tok", "dc", "la", "sf"]


async def test_or_combines_filters_on_different_fields(cities: Any) -> None:
    either = Or([where("state", "==", "CA"), where("capital", "==", True)])
    assert await ids(cities.where(filter=either)) == ["dc", "la", "sf", "tok"]


async def test_or_returns_a_document_once_when_both_sides_match(cities: Any) -> None:
    either = Or([where("country", "==", "USA"), where("capital", "==", True)])
    assert await ids(cities.where(filter=either).order_by("population")) == ["dc", "sf", "la", "tok"]
    assert await ids(cities.where(filter=either).order_by("population").limit(2)) == ["dc", "sf"]


async def test_nested_and_or_and_filters_are_evaluated(cities: Any) -> None:
    filters = And(
        [
            where("population", ">", 800_000),
            Or([And([where("country", "==", "USA"), where("state", "==", "CA")]), where("country", "==", "Japan")]),
        ]
    )
    assert await ids(cities.where(filter=filters)) == ["sf", "la", "tok"]


async def test_in_filter_merges_with_order_and_limit(cities: Any) -> None:
    query = cities.where(filter=where("country", "in", ["USA", "Japan"])).order_by("population").limit(3)
    assert await ids(query) == ["dc", "sf", "la"]
    assert await ids(query.order_by("name")) == ["dc", "sf", "la"]


async def test_array_contains_works_with_order_and_range(cities: Any) -> None:
    query = cities.where(filter=where("regions", "array_contains", "west"))
    assert await ids(query.order_by("population")) == ["sf", "la"]
    assert await ids(query.where(filter=where("population", ">", 1_000_000))) == ["la"]


async def test_projection_returns_the_chosen_fields(cities: Any) -> None:
    found = [s.to_dict() async for s in cities.where(filter=where("state", "==", "CA")).select(["name"]).stream()]
    assert found == [{"name": "Los Angeles"}, {"name": "San Francisco"}]
    keys = [s.to_dict() async for s in cities.select([]).limit(1).stream()]
    assert keys == [{}]


async def test_filters_support_nested_fields_and_quoted_names(client: AsyncClient) -> None:
    await client.document("c/a").set({"m": {"odd name": 1, "x": {"y": 2}}})
    await client.document("c/b").set({"m": {"odd name": 2}})
    collection = client.collection("c")
    assert await ids(collection.where(filter=where("m.`odd name`", "==", 2))) == ["b"]
    assert await ids(collection.where(filter=where("m.x.y", ">=", 2))) == ["a"]
    assert await ids(collection.where(filter=where("m", "==", {"odd name": 2.0}))) == ["b"]


async def test_filters_support_the_document_name(cities: Any) -> None:
    name = FieldPath.document_id()
    assert await ids(cities.where(filter=where(name, "==", cities.document("sf")))) == ["sf"]
    assert await ids(cities.where(filter=where(name, "in", [cities.document("tok"), cities.document("bj")]))) == [
        "bj",
        "tok",
    ]
    assert await ids(cities.where(filter=where(name, ">=", cities.document("sf"))).limit(2)) == ["sf", "tok"]
    both = cities.where(filter=where("country", "==", "USA")).where(filter=where(name, "<", cities.document("sf")))
    assert await ids(both) == ["dc", "la"]


@pytest.mark.quirk("descending_key_scan")
async def test_document_names_sort_in_descending_order(cities: Any) -> None:
    descending = cities.order_by(FieldPath.document_id(), direction="DESCENDING").limit(2)
    assert await ids(descending) == ["void", "tok"]


async def test_values_of_all_types_sort_in_the_documented_order(client: AsyncClient) -> None:
    values: list[Any] = [
        None,
        False,
        True,
        math.nan,
        -math.inf,
        -(2**63),
        -1.5,
        -0.0,
        0.5,
        2**53,
        2**53 + 1,
        2**63 - 1,
        2.0**63,
        math.inf,
        datetime(2020, 1, 1, tzinfo=UTC),
        datetime(2020, 1, 1, microsecond=1, tzinfo=UTC),
        "",
        "a",
        "a\x00",
        "aa",
        "é",
        "￿",
        "𐀀",
        b"",
        b"\x00",
        b"\xff",
        client.document("a/b"),
        client.document("a/b/c/d"),
        client.document("a/c"),
        GeoPoint(-90, 0),
        GeoPoint(0, -1),
        GeoPoint(0, 1),
        [],
        [1],
        [1, 2],
        [2],
        Vector([3.0]),
        Vector([1.0, 2.0]),
        {},
        {"a": 1},
        {"a": 1, "b": 1},
        {"a": 2},
        {"b": 0},
    ]
    batch = client.batch()
    for position, value in enumerate(values):
        batch.set(client.document(f"c/{(position * 37) % 101:03}"), {"v": value, "position": position})
    await batch.commit()
    up = [s.get("position") async for s in client.collection("c").order_by("v").stream()]
    assert up == list(range(len(values)))
    down = [s.get("position") async for s in client.collection("c").order_by("v", direction="DESCENDING").stream()]
    assert down == up[::-1]


async def test_numeric_ids_sort_before_names(client: AsyncClient) -> None:
    for key in ["__id10__", "__id9__", "__id-3__", "a", "Z", "10"]:
        await client.document(f"c/{key}").set({})
    assert await ids(client.collection("c")) == ["__id-3__", "__id9__", "__id10__", "10", "Z", "a"]


async def test_collection_group_covers_all_depths(client: AsyncClient) -> None:
    for path in ["marks/1", "a/x/marks/2", "b/y/c/z/marks/3", "a/x/other/4", "a/marks"]:
        await client.document(path).set({"n": int(path[-1]) if path[-1].isdigit() else 0})
    assert await ids(client.collection_group("marks")) == ["2", "3", "1"]  # by the whole path: a/…, b/…, marks/…
    assert await ids(client.collection_group("marks").where(filter=where("n", ">=", 2))) == ["2", "3"]


async def test_recursive_query_covers_all_documents_below_a_collection(client: AsyncClient) -> None:
    for path in ["a/1", "a/1/b/2", "a/1/b/2/c/3", "ab/4", "b/5"]:
        await client.document(path).set({})
    found = [snapshot.reference.path async for snapshot in client.collection("a").recursive().stream()]
    assert found == ["a/1", "a/1/b/2", "a/1/b/2/c/3"]


async def test_queries_see_earlier_writes_and_deletes(client: AsyncClient) -> None:
    collection = client.collection("c")
    query = collection.where(filter=where("s", "==", "on")).order_by("n")
    assert await ids(query) == []
    for number in range(3):
        await collection.document(str(number)).set({"s": "on", "n": number})
    assert await ids(query) == ["0", "1", "2"]
    await collection.document("1").update({"s": "off"})
    await collection.document("2").update({"n": -1})
    await collection.document("0").delete()
    assert await ids(query) == ["2"]


async def test_not_in_with_null_matches_nothing(cities: Any) -> None:
    assert await ids(cities.where(filter=where("state", "not-in", [None, "NY"]))) == []


TOO_MUCH: dict[str, Callable[[Any], Any]] = {
    "31 values": lambda c: c.where(filter=where("a", "in", list(range(31)))),
    "36 disjunctions": lambda c: c.where(filter=where("a", "in", list(range(6)))).where(
        filter=where("b", "in", list(range(6)))
    ),
    "11 not-in": lambda c: c.where(filter=where("a", "not-in", list(range(11)))),
    "empty in": lambda c: c.where(filter=where("a", "in", [])),
    "not-in and !=": lambda c: c.where(filter=where("a", "not-in", [1])).where(filter=where("b", "!=", 2)),
    "not-in and in": lambda c: c.where(filter=where("a", "not-in", [1])).where(filter=where("b", "in", [2, 3])),
    "two array-contains": lambda c: c.where(filter=where("a", "array_contains", 1)).where(
        filter=where("b", "array_contains", 2)
    ),
}


@pytest.mark.parametrize("case", TOO_MUCH)
async def test_a_query_beyond_the_documented_limits_is_invalid(lite: AsyncClient, case: str) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        await ids(TOO_MUCH[case](lite.collection("c")))
