"""count, sum and avg."""

from __future__ import annotations

from typing import Any

import pytest
from google.cloud.firestore_v1.base_query import Or

from .test_queries import where

pytestmark = pytest.mark.anyio


async def test_aggregation_returns_count_sum_and_average(cities: Any) -> None:
    usa = cities.where(filter=where("country", "==", "USA"))
    results = await usa.count(alias="n").sum("population", alias="all").avg("population", alias="mean").get()
    assert {result.alias: result.value for result in results[0]} == {
        "n": 3,
        "all": 5_440_000,
        "mean": 5_440_000 / 3,
    }


async def test_counts_respect_filters_limits_and_or(cities: Any) -> None:
    async def count(query: Any) -> int:
        return (await query.count().get())[0][0].value

    assert await count(cities) == 6
    assert await count(cities.limit(4)) == 4
    assert await count(cities.order_by("state")) == 3
    assert await count(cities.where(filter=where("population", ">", 800_000))) == 4
    assert await count(cities.where(filter=where("country", "!=", "USA"))) == 2
    assert await count(cities.where(filter=Or([where("country", "==", "USA"), where("capital", "==", True)]))) == 4
    assert await count(cities.where(filter=where("country", "==", "Peru"))) == 0


async def test_only_documents_with_every_summed_field_are_counted(client: Any) -> None:
    await client.document("c/both").set({"x": 1, "y": 1})
    await client.document("c/one").set({"x": 1})
    results = (await client.collection("c").count(alias="n").sum("x", alias="x").sum("y", alias="y").get())[0]
    assert {result.alias: result.value for result in results} == {"n": 1, "x": 1, "y": 1}


async def test_sums_keep_integers_and_ignore_non_numbers(client: Any) -> None:
    for key, value in {"a": 1, "b": 2, "c": "three", "d": None}.items():
        await client.document(f"c/{key}").set({"x": value})
    total = (await client.collection("c").sum("x").get())[0][0].value
    assert (total, type(total)) == (3, int)
    assert (await client.collection("c").avg("x").get())[0][0].value == 1.5
    await client.document("c/e").set({"x": 0.5})
    assert (await client.collection("c").sum("x").get())[0][0].value == 3.5


async def test_a_sum_beyond_64_bits_becomes_a_double(client: Any) -> None:
    await client.document("c/a").set({"x": 2**63 - 1})
    await client.document("c/b").set({"x": 2**63 - 1})
    value = (await client.collection("c").sum("x").get())[0][0].value
    assert isinstance(value, float)
    assert value == 2.0**64
