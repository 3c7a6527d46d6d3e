"""Codes and texts of production's errors that programs compare: aggregations, queries of descendants, listeners.

The texts are those that Google's own tests of the Python client and the recorded answers of production expect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.base_query import FieldFilter
from google.cloud.firestore_v1.types import StructuredAggregationQuery, StructuredQuery, Target

from conformance.raw import Raw
from conformance.test_listen import listening

pytestmark = pytest.mark.anyio

AT_ROOT_ONLY = "^400 collection group queries are only allowed at the root parent$"
NEEDS_KIND = "^400 kind is required for all orders except __key__ ascending$"


def descendants(collection: str, *orders: str, field: str = "") -> StructuredQuery:
    """Return a query of the descendants, in the collections of that id or, without one, in all."""
    selector = StructuredQuery.CollectionSelector(collection_id=collection, all_descendants=True)
    query = StructuredQuery(from_=[selector])
    for order in orders:
        direction = StructuredQuery.Direction.DESCENDING if order[0] == "-" else StructuredQuery.Direction.ASCENDING
        reference = StructuredQuery.FieldReference(field_path=order.lstrip("-"))
        query.order_by.append(StructuredQuery.Order(field=reference, direction=direction))
    if field:
        operator = StructuredQuery.FieldFilter.Operator.EQUAL
        reference = StructuredQuery.FieldReference(field_path=field)
        query.where = StructuredQuery.Filter(
            field_filter=StructuredQuery.FieldFilter(field=reference, op=operator, value={"integer_value": 3})
        )
    return query


@pytest.mark.parametrize(
    ("query", "error", "text"),
    [
        (descendants("", "value"), exceptions.InvalidArgument, AT_ROOT_ONLY),
        (descendants("a", "value"), exceptions.InvalidArgument, AT_ROOT_ONLY),
        (descendants("", field="value"), exceptions.InvalidArgument, AT_ROOT_ONLY),
        (descendants("a", field="value"), exceptions.InvalidArgument, AT_ROOT_ONLY),
        (descendants("", "-__name__"), exceptions.InvalidArgument, NEEDS_KIND),
        (descendants("a", "-__name__"), exceptions.FailedPrecondition, "^400 The query requires an index."),
    ],
)
async def test_query_of_descendants_fails_as_in_production(
    lite: AsyncClient, query: Any, error: type[Exception], text: str
) -> None:
    raw = Raw(lite)
    with pytest.raises(error, match=text):
        await read_all(raw.api.run_query({"parent": raw.name("top/doc"), "structured_query": query}))


async def read_all(call: Any) -> list[Any]:
    return [response async for response in await call]


@pytest.mark.parametrize("collection", ["", "a"])
async def test_average_of_descendants_fails_as_in_production(lite: AsyncClient, collection: str) -> None:
    raw = Raw(lite)
    average = StructuredAggregationQuery.Aggregation(avg={"field": {"field_path": "value"}}, alias="avg")
    query = StructuredAggregationQuery(structured_query=descendants(collection), aggregations=[average])
    with pytest.raises(exceptions.InvalidArgument, match=r"fields \[value\] after __name__ and Firestore does not"):
        await read_all(
            raw.api.run_aggregation_query({"parent": raw.name("top/doc"), "structured_aggregation_query": query})
        )


@pytest.mark.parametrize(
    ("aliases", "text"),
    [
        ([], r"^400 Aggregations can not be empty\.$"),
        (["total", "total"], r"^400 Aggregation aliases contain duplicate alias: total\.$"),
        (list("abcdef"), r"^400 The maximum number of aggregations .* is 5\. Received: 6$"),
    ],
)
async def test_wrong_aggregations_are_refused_in_the_words_of_production(
    lite: AsyncClient, aliases: Sequence[str], text: str
) -> None:
    raw = Raw(lite)
    count = StructuredAggregationQuery.Aggregation.Count()
    aggregations = [StructuredAggregationQuery.Aggregation(count=count, alias=alias) for alias in aliases]
    inner = StructuredQuery(from_=[StructuredQuery.CollectionSelector(collection_id="c")])
    query = StructuredAggregationQuery(structured_query=inner, aggregations=aggregations)
    with pytest.raises(exceptions.InvalidArgument, match=text):
        await read_all(raw.api.run_aggregation_query({"parent": raw.root, "structured_aggregation_query": query}))


async def test_second_array_contains_is_refused_in_the_words_of_production(lite: AsyncClient) -> None:
    query: Any = lite.collection("c")
    for value in (1, 2):
        query = query.where(filter=FieldFilter("a", "array_contains", value))
    with pytest.raises(exceptions.InvalidArgument, match="A maximum of 1 'ARRAY_CONTAINS' filter is allowed per disj"):
        await query.get()


@pytest.mark.parametrize(
    ("collection", "text"),
    [("", "All-collection queries are not supported"), ("a", "'all_descendants' in CollectionSelector with document")],
)
async def test_listener_of_descendants_is_refused_as_in_production(
    lite: AsyncClient, collection: str, text: str
) -> None:
    parent = Raw(lite).name("top/doc")
    async with listening(lite) as listener:
        target = Target.QueryTarget(parent=parent, structured_query=descendants(collection))
        listener.send(add_target=Target(query=target, target_id=1))
        cause = (await listener.next()).target_change.cause
        assert (cause.code, text in cause.message) == (3, True)
