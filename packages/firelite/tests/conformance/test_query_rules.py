"""Queries that production refuses, and comparisons with null and NaN."""

from __future__ import annotations

import math
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.firestore_v1.types import document, query

from conformance.raw import Raw

pytestmark = pytest.mark.anyio

Value = document.Value
Ops = query.StructuredQuery.FieldFilter.Operator
NULL = Value(null_value=0)
NAN = Value(double_value=math.nan)
ONE = Value(integer_value=1)
FROM = [{"collection_id": "c"}]


def field(path: str) -> dict[str, str]:
    return {"field_path": path}


def compare(path: str, op: Ops, value: Any) -> dict[str, Any]:
    return {"field_filter": {"field": field(path), "op": op, "value": value}}


def listed(*values: Value) -> Value:
    return Value(array_value=document.ArrayValue(values=values))


def combine(*filters: dict[str, Any], op: str = "AND") -> dict[str, Any]:
    return {"composite_filter": {"op": op, "filters": list(filters)}}


def moment(nanos: int) -> Value:
    return Value(timestamp_value={"nanos": nanos})


async def keys(raw: Raw, parent: str = "", **structured: Any) -> list[str]:
    """Return the ids of the documents that a query returns."""
    request = {"parent": raw.name(parent) if parent else raw.root, "structured_query": {"from_": FROM, **structured}}
    stream = await raw.api.run_query(request=request)
    return [response.document.name.rpartition("/")[2] async for response in stream if response.document.name]


async def aggregate(raw: Raw, aggregation: dict[str, Any], **structured: Any) -> Any:
    """Return the result of one aggregation."""
    request = {
        "parent": raw.root,
        "structured_aggregation_query": {
            "structured_query": {"from_": FROM, **structured},
            "aggregations": [{**aggregation, "alias": "x"}],
        },
    }
    stream = await raw.api.run_aggregation_query(request=request)
    return [response.result.aggregate_fields["x"] async for response in stream][0]


async def put(raw: Raw, **values: Value) -> None:
    """Store one document per value, with the value in the field ``a``."""
    for key, value in values.items():
        content = document.Document(name=raw.name(f"c/{key}"), fields={"a": value})
        await raw.api.update_document(request={"document": content})


@pytest.mark.parametrize(
    ("op", "operand", "expected"),
    [
        (Ops.EQUAL, NULL, []),
        (Ops.EQUAL, NAN, []),
        (Ops.LESS_THAN_OR_EQUAL, NAN, []),
        (Ops.GREATER_THAN_OR_EQUAL, NULL, []),
        (Ops.NOT_EQUAL, NULL, []),
        (Ops.NOT_EQUAL, NAN, ["nan", "one", "array"]),
        (Ops.IN, listed(NULL, NAN), []),
        (Ops.IN, listed(NULL, NAN, ONE), ["one"]),
        (Ops.NOT_IN, listed(NAN), ["nan", "one", "array"]),
        (Ops.NOT_IN, listed(NULL), []),
        (Ops.ARRAY_CONTAINS, NULL, []),
        (Ops.ARRAY_CONTAINS, NAN, []),
        (Ops.ARRAY_CONTAINS_ANY, listed(NULL, NAN), []),
        (Ops.ARRAY_CONTAINS_ANY, listed(NULL, NAN, ONE), ["array"]),
    ],
)
async def test_null_and_nan_equal_no_value(raw: Raw, op: Ops, operand: Value, expected: list[str]) -> None:
    await put(raw, null=NULL, nan=NAN, one=ONE, array=listed(NULL, NAN, ONE))
    assert await keys(raw, where=compare("a", op, operand)) == expected


async def test_range_filter_with_null_in_an_or_does_not_sort(raw: Raw) -> None:
    await put(raw, a=ONE)
    both = combine(compare("b", Ops.GREATER_THAN, NULL), compare("a", Ops.EQUAL, ONE), op="OR")
    assert await keys(raw, where=both) == ["a"]


async def test_not_in_with_null_and_a_value_sorts(raw: Raw) -> None:
    excluded = compare("a", Ops.NOT_IN, listed(NULL, ONE))
    assert await keys(raw, where=excluded) == []
    with pytest.raises(exceptions.InvalidArgument):
        await keys(raw, where=excluded, order_by=[{"field": field("__name__")}])


@pytest.mark.parametrize("op", [Ops.GREATER_THAN, Ops.NOT_EQUAL, Ops.NOT_IN])
async def test_inequality_with_null_does_not_sort(raw: Raw, op: Ops) -> None:
    operand = listed(NULL, NULL) if op == Ops.NOT_IN else NULL
    assert await keys(raw, where=compare("a", op, operand), order_by=[{"field": field("__name__")}]) == []


@pytest.mark.parametrize(
    "structured",
    [
        {"where": combine(compare("a", Ops.NOT_EQUAL, ONE), compare("b", Ops.NOT_EQUAL, ONE))},
        {"where": combine(compare("a", Ops.NOT_IN, listed(ONE)), compare("b", Ops.IN, listed(ONE)))},
        {"where": combine(combine(compare("a", Ops.NOT_IN, listed(ONE))), op="OR")},
        {"where": compare("a", Ops.LESS_THAN, ONE), "order_by": [{"field": field("__name__")}]},
        {"order_by": [{"field": field("__name__")}, {"field": field("a")}]},
        {"start_at": {"values": [ONE]}},
        {"order_by": [{"field": field("a")}], "end_at": {"values": [ONE, ONE]}},
        {"where": compare("a", Ops.EQUAL, Value())},
        {"where": compare("a", Ops.EQUAL, Value(reference_value="x"))},
        {"where": combine(*(compare("a", Ops.LESS_THAN, Value(integer_value=n)) for n in range(101)))},
    ],
)
async def test_query_that_no_index_can_serve_is_invalid(raw: Raw, structured: dict[str, Any]) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        await keys(raw, **structured)


async def test_equal_name_with_an_inequality_on_another_field_is_invalid(raw: Raw) -> None:
    name = compare("__name__", Ops.EQUAL, Value(reference_value=raw.name("c/a")))
    with pytest.raises(exceptions.InvalidArgument):
        await keys(raw, where=combine(name, compare("a", Ops.GREATER_THAN, ONE)))


async def test_array_contains_any_on_the_name_is_invalid(raw: Raw) -> None:
    names = listed(Value(reference_value=raw.name("c/a")))
    with pytest.raises(exceptions.InvalidArgument):
        await keys(raw, where=compare("__name__", Ops.ARRAY_CONTAINS_ANY, names))


async def test_collection_group_query_under_a_document_sorts_by_name_only(raw: Raw) -> None:
    await raw.api.update_document(request={"document": raw.document("x/y/c/z", a=1)})
    group = [{"collection_id": "c", "all_descendants": True}]
    assert await keys(raw, "x/y", from_=group) == ["z"]
    with pytest.raises(exceptions.InvalidArgument):
        await keys(raw, "x/y", from_=group, order_by=[{"field": field("a")}])


async def test_repeated_filters_count_as_one_disjunction(raw: Raw) -> None:
    await put(raw, a=ONE)
    assert await keys(raw, where=combine(*[compare("a", Ops.EQUAL, ONE)] * 31, op="OR")) == ["a"]


async def test_timestamps_in_filter_lists_are_truncated_to_microseconds(raw: Raw) -> None:
    await put(raw, a=moment(1_999))
    assert await keys(raw, where=compare("a", Ops.IN, listed(moment(1_999)))) == ["a"]
    assert await keys(raw, where=compare("a", Ops.EQUAL, moment(1_999))) == []


async def test_geo_points_with_zeros_of_different_signs_differ(raw: Raw) -> None:
    zero, negative = (Value(geo_point_value={"latitude": latitude}) for latitude in (0.0, -0.0))
    await put(raw, a=zero, b=negative)
    assert await keys(raw, where=compare("a", Ops.EQUAL, zero)) == ["a"]
    assert await keys(raw, order_by=[{"field": field("a")}]) == ["b", "a"]


async def test_sum_with_a_limit_reads_the_smallest_values(raw: Raw) -> None:
    await put(raw, **{key: Value(integer_value=value) for key, value in {"x": 3, "y": 2, "z": 1}.items()})
    assert (await aggregate(raw, {"sum": {"field": field("a")}}, limit=2)).integer_value == 3
    assert (await aggregate(raw, {"avg": {"field": field("a")}}, limit=2)).double_value == 1.5


@pytest.mark.parametrize(
    ("aggregation", "structured"),
    [
        ({"sum": {"field": field("__name__")}}, {}),
        ({"sum": {"field": field("a")}}, {"order_by": [{"field": field("__name__")}]}),
        ({"avg": {"field": field("a")}}, {"select": {"fields": [field("a")]}}),
        ({"count": {"up_to": -1}}, {}),
    ],
)
async def test_aggregation_that_no_index_can_serve_is_invalid(
    raw: Raw, aggregation: dict[str, Any], structured: dict[str, Any]
) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        await aggregate(raw, aggregation, **structured)


HAS_ONE = compare("a", Ops.ARRAY_CONTAINS, ONE)
HAS_DOUBLE = compare("a", Ops.ARRAY_CONTAINS, Value(double_value=1.0))
EQUAL_B = compare("b", Ops.EQUAL, ONE)
EITHER = combine(HAS_ONE, EQUAL_B, op="OR")
TWO = Value(integer_value=2)


def has_any(*values: Value) -> dict[str, Any]:
    return compare("a", Ops.ARRAY_CONTAINS_ANY, listed(*values))


@pytest.mark.parametrize(
    "where",
    [
        combine(HAS_ONE, HAS_ONE),
        combine(HAS_ONE, HAS_ONE, EQUAL_B),
        combine(combine(HAS_ONE, HAS_ONE), EQUAL_B),
        combine(EITHER, EITHER),
        combine(has_any(ONE, ONE), has_any(ONE)),
        combine(has_any(ONE, TWO), has_any(TWO, ONE)),
        combine(has_any(NULL, ONE), has_any(listed(), ONE)),
    ],
)
async def test_repeated_filter_of_one_composite_filter_is_one_filter(raw: Raw, where: dict[str, Any]) -> None:
    content = document.Document(name=raw.name("c/d"), fields={"a": listed(ONE), "b": ONE})
    await raw.api.update_document(request={"document": content})
    assert await keys(raw, where=where) == ["d"]


async def test_array_contains_of_null_nan_and_an_empty_list_are_one_filter(raw: Raw) -> None:
    never = (NULL, listed(), NAN)
    filters = [compare("a", Ops.ARRAY_CONTAINS, value) for value in never]
    assert await keys(raw, where=combine(*filters)) == []


@pytest.mark.parametrize(
    "where",
    [
        combine(HAS_ONE, combine(HAS_ONE, EQUAL_B)),
        combine(HAS_ONE, HAS_DOUBLE),
        combine(EITHER, HAS_ONE),
        combine(HAS_ONE, has_any(ONE)),
        combine(compare("a", Ops.ARRAY_CONTAINS, NULL), has_any(NULL)),
        combine(has_any(NULL, ONE), has_any(ONE)),
        combine(has_any(listed()), has_any(listed(ONE))),
        combine(has_any(ONE, TWO), has_any(ONE)),
    ],
)
async def test_second_array_contains_of_another_level_or_spelling_is_refused(raw: Raw, where: dict[str, Any]) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        await keys(raw, where=where)


async def test_equal_numbers_of_two_types_are_two_disjunctions(raw: Raw) -> None:
    numbers = [compare("a", Ops.EQUAL, Value(integer_value=number)) for number in range(30)]
    assert await keys(raw, where=combine(*numbers, numbers[0], op="OR")) == []
    with pytest.raises(exceptions.InvalidArgument):
        await keys(raw, where=combine(*numbers, compare("a", Ops.EQUAL, Value(double_value=1.0)), op="OR"))


def vector(*coordinates: float) -> Value:
    values = listed(*(Value(double_value=coordinate) for coordinate in coordinates))
    return Value(map_value={"fields": {"__type__": Value(string_value="__vector__"), "value": values}})


VECTOR_OF_NAN = vector(math.nan)


@pytest.mark.parametrize(
    ("op", "operand", "expected"),
    [
        (Ops.EQUAL, VECTOR_OF_NAN, []),
        (Ops.NOT_EQUAL, VECTOR_OF_NAN, ["low", "one", "long"]),
        (Ops.LESS_THAN, VECTOR_OF_NAN, ["low", "one"]),
        (Ops.GREATER_THAN, VECTOR_OF_NAN, ["long"]),
        (Ops.IN, listed(VECTOR_OF_NAN, vector(1.0)), ["one"]),
        (Ops.NOT_IN, listed(VECTOR_OF_NAN, vector(1.0)), ["low", "long"]),
        (Ops.ARRAY_CONTAINS, VECTOR_OF_NAN, []),
    ],
)
async def test_vector_of_nan_in_a_filter_sorts_after_numbers(
    raw: Raw, op: Ops, operand: Value, expected: list[str]
) -> None:
    stored = {"one": vector(1.0), "low": vector(-math.inf), "long": vector(1.0, 1.0)}
    writes = [{"update": document.Document(name=raw.name(f"c/{name}"), fields={"a": stored[name]})} for name in stored]
    await raw.api.commit(request={"database": raw.database, "writes": writes})
    assert await keys(raw, where=compare("a", op, operand)) == expected


async def test_zeros_of_different_signs_in_vectors_differ(raw: Raw) -> None:
    stored = {"minus": vector(-0.0), "plus": vector(0.0)}
    writes = [{"update": document.Document(name=raw.name(f"c/{name}"), fields={"a": stored[name]})} for name in stored]
    await raw.api.commit(request={"database": raw.database, "writes": writes})
    for name, value in stored.items():
        assert await keys(raw, where=compare("a", Ops.EQUAL, value)) == [name]
    assert await keys(raw, where=compare("a", Ops.LESS_THAN, vector(0.0))) == ["minus"]


def one_of(path: str, *numbers: int) -> dict[str, Any]:
    return compare(path, Ops.IN, listed(*(Value(integer_value=number) for number in numbers)))


@pytest.mark.parametrize(
    ("filters", "disjunctions_of_b"),
    [
        ([one_of("a", 1, 2), one_of("a", 1, 3)], 7),  # {1}, {1, 3}, {2, 1}, {2, 3}
        ([one_of("a", 1, 2, 3), one_of("a", 1, 2)], 6),  # {1}, {1, 2}, {2}, {3, 1}, {3, 2}
        ([one_of("a", 1, 2), combine(one_of("a", 1, 2))], 15),  # a repeated filter, also of a nested AND
        ([combine(one_of("a", 1, 2)), combine(combine(one_of("a", 1, 2)))], 15),
    ],
)
async def test_disjunctions_of_the_same_filters_count_once(
    raw: Raw, filters: list[dict[str, Any]], disjunctions_of_b: int
) -> None:
    content = document.Document(name=raw.name("c/d"), fields={"a": ONE, "b": ONE})
    await raw.api.update_document(request={"document": content})
    most = one_of("b", *range(disjunctions_of_b))
    assert await keys(raw, where=combine(*filters, most)) == ["d"]
    with pytest.raises(exceptions.InvalidArgument):
        await keys(raw, where=combine(*filters, one_of("b", *range(disjunctions_of_b + 1))))
