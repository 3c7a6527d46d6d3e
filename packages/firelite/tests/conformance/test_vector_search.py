"""Vector search with ``find_nearest``."""

from __future__ import annotations

import math
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.base_query import FieldFilter
from google.cloud.firestore_v1.base_vector_query import DistanceMeasure
from google.cloud.firestore_v1.vector import Vector

from firelite.database import Database
from firelite.query.index_definitions import IndexSet
from firelite.wire.inprocess import connect

pytestmark = pytest.mark.anyio

EUCLIDEAN, COSINE, DOT_PRODUCT = DistanceMeasure.EUCLIDEAN, DistanceMeasure.COSINE, DistanceMeasure.DOT_PRODUCT
VECTORS = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [3.0, 4.0], "neg": [-1.0, -1.0], "zero": [0.0, 0.0]}
ORDERS = {
    EUCLIDEAN: {"a": 0.0, "zero": 1.0, "b": math.sqrt(2), "neg": math.sqrt(5), "c": math.sqrt(20)},
    COSINE: {"a": 0.0, "c": 0.4, "b": 1.0, "neg": 1 + math.sqrt(0.5), "zero": math.nan},
    DOT_PRODUCT: {"c": 3.0, "a": 1.0, "b": 0.0, "zero": 0.0, "neg": -1.0},
}


async def fill(client: AsyncClient) -> Any:
    collection = client.collection("c")
    for key, vector in VECTORS.items():
        await collection.document(key).set({"v": Vector(vector), "even": len(key) % 2 == 0})
    for key, value in {"longer": Vector([1.0, 0.0, 0.0]), "list": [1.0, 0.0], "text": "x", "none": None}.items():
        await collection.document(key).set({"v": value, "even": True})
    await collection.document("without").set({"even": True})
    return collection


async def nearest(query: Any, measure: DistanceMeasure = EUCLIDEAN, **options: Any) -> dict[str, float]:
    """Return the distances by id, in the order of the results."""
    vector = options.pop("vector", Vector([1.0, 0.0]))
    options = {"limit": 10, "distance_result_field": "distance", **options}
    search = query.find_nearest("v", vector, distance_measure=measure, **options)
    return {snapshot.id: snapshot.to_dict().get("distance") async for snapshot in search.stream()}


@pytest.mark.parametrize("measure", ORDERS)
async def test_documents_come_in_the_order_of_their_distance(client: AsyncClient, measure: DistanceMeasure) -> None:
    found = await nearest(await fill(client), measure)
    assert list(found) == list(ORDERS[measure])
    assert list(found.values()) == pytest.approx(list(ORDERS[measure].values()), nan_ok=True)


async def test_documents_without_a_vector_of_the_dimension_are_skipped(client: AsyncClient) -> None:
    assert list(await nearest(await fill(client), vector=Vector([1.0, 1.0, 1.0]))) == ["longer"]


@pytest.mark.parametrize(
    ("measure", "threshold", "expected"),
    [
        (EUCLIDEAN, 1.0, ["a", "zero"]),
        (COSINE, 1.0, ["a", "c", "b"]),
        (COSINE, 5.0, ["a", "c", "b", "neg"]),
        (DOT_PRODUCT, 1.0, ["c", "a"]),
        (DOT_PRODUCT, -1.0, ["c", "a", "b", "zero", "neg"]),
    ],
)
async def test_threshold_keeps_the_nearer_documents(
    client: AsyncClient, measure: DistanceMeasure, threshold: float, expected: list[str]
) -> None:
    assert list(await nearest(await fill(client), measure, distance_threshold=threshold)) == expected


async def test_limit_keeps_the_nearest(client: AsyncClient) -> None:
    assert list(await nearest(await fill(client), limit=2)) == ["a", "zero"]


async def test_filter_is_applied_before_the_search(client: AsyncClient) -> None:
    collection = await fill(client)
    even = collection.where(filter=FieldFilter("even", "==", True))
    assert list(await nearest(even, limit=1)) == ["zero"]
    assert list(await nearest(client.collection_group("c"), limit=1)) == ["a"]


async def test_distance_is_returned_only_if_it_is_asked_for_and_selected(client: AsyncClient) -> None:
    collection = await fill(client)
    assert await nearest(collection, limit=1, distance_result_field=None) == {"a": None}
    assert await nearest(collection.select(["even"]), limit=1) == {"a": None}
    assert await nearest(collection.select(["even", "distance"]), limit=1) == {"a": 0.0}
    assert "distance" not in ((await collection.document("a").get()).to_dict() or {})


@pytest.mark.parametrize("limit", [0, 1001])
async def test_limit_out_of_range_is_invalid(client: AsyncClient, limit: int) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="no more than 1000"):
        await nearest(await fill(client), limit=limit)


async def test_limit_or_offset_of_the_query_and_odd_vectors_are_invalid(client: AsyncClient) -> None:
    collection = await fill(client)
    for query in (collection.limit(1), collection.offset(1)):
        with pytest.raises(exceptions.InvalidArgument, match="cannot be used with FindNearest"):
            await nearest(query)
    for vector in ([], [1.0] * 2049):
        with pytest.raises(exceptions.InvalidArgument):
            await nearest(collection, vector=Vector(vector))


async def test_vector_in_a_map_is_found(lite: AsyncClient) -> None:
    await lite.document("c/a").set({"deep": {"v": Vector([1.0])}})
    query: Any = lite.collection("c")
    search = query.find_nearest("deep.v", Vector([3.0]), limit=1, distance_measure=EUCLIDEAN, distance_result_field="d")
    assert [s.get("d") async for s in search.stream()] == [2.0]


async def test_vector_search_without_its_index_is_refused_with_the_index_to_add() -> None:
    vector = {"fieldPath": "v", "vectorConfig": {"dimension": 2, "flat": {}}}
    entry = {"collectionGroup": "c", "queryScope": "COLLECTION", "fields": [vector]}
    with Database.open(None, indexes=IndexSet.parse({"indexes": [entry]})) as db:
        collection = await fill(connect(db))
        assert list(await nearest(collection, limit=1)) == ["a"]
        with pytest.raises(exceptions.FailedPrecondition, match='"fieldPath": "even".*"vectorConfig"'):
            await nearest(collection.where(filter=FieldFilter("even", "==", True)))
