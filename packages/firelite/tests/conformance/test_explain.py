"""Query explain: the plan, and the statistics of a run. Google's emulator ignores the option."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.base_query import FieldFilter
from google.cloud.firestore_v1.base_vector_query import DistanceMeasure
from google.cloud.firestore_v1.query_profile import ExplainOptions, QueryExplainError
from google.cloud.firestore_v1.vector import Vector

pytestmark = pytest.mark.anyio

PLAN, ANALYZE = ExplainOptions(analyze=False), ExplainOptions(analyze=True)


async def fill(client: AsyncClient) -> Any:
    for number in range(5):
        await client.document(f"c/{number}").set({"n": number, "even": number % 2 == 0, "v": Vector([float(number)])})
    return client.collection("c")


async def test_plan_names_the_index_and_runs_nothing(lite: AsyncClient) -> None:
    query = (await fill(lite)).where(filter=FieldFilter("even", "==", True)).order_by("n", direction="DESCENDING")
    results = await query.get(explain_options=PLAN)
    assert list(results) == []
    metrics = results.get_explain_metrics()
    assert metrics.plan_summary.indexes_used == [
        {"query_scope": "Collection", "properties": "(even ASC, n DESC, __name__ DESC)"}
    ]
    with pytest.raises(QueryExplainError):
        _ = metrics.execution_stats


@pytest.mark.parametrize(("offset", "results", "reads"), [(0, 5, 5), (2, 3, 5), (9, 0, 5)])
async def test_analyzed_query_returns_documents_and_statistics(
    lite: AsyncClient, offset: int, results: int, reads: int
) -> None:
    found = await (await fill(lite)).offset(offset).get(explain_options=ANALYZE)
    stats = found.get_explain_metrics().execution_stats
    assert len(found) == stats.results_returned == results
    assert stats.read_operations == reads
    assert stats.execution_duration >= timedelta(0)


async def test_empty_result_costs_one_read(lite: AsyncClient) -> None:
    found = await lite.collection("none").get(explain_options=ANALYZE)
    metrics: Any = found.get_explain_metrics()
    assert (metrics.execution_stats.results_returned, metrics.execution_stats.read_operations) == (0, 1)


async def test_aggregation_is_planned_and_analyzed(lite: AsyncClient) -> None:
    query: Any = (await fill(lite)).sum("n", alias="sum")
    planned = await query.get(explain_options=PLAN)
    assert list(planned) == []
    assert len(planned.get_explain_metrics().plan_summary.indexes_used) == 1
    found = await query.get(explain_options=ANALYZE)
    assert found[0][0].value == 10
    stats = found.get_explain_metrics().execution_stats
    assert (stats.results_returned, stats.read_operations) == (1, 1)


async def test_vector_search_is_planned_and_analyzed(lite: AsyncClient) -> None:
    query = (await fill(lite)).find_nearest("v", Vector([1.0]), limit=2, distance_measure=DistanceMeasure.EUCLIDEAN)
    planned = await query.get(explain_options=PLAN)
    assert "v VECTOR" in planned.get_explain_metrics().plan_summary.indexes_used[0]["properties"]
    found = await query.get(explain_options=ANALYZE)
    assert [s.id for s in found] == ["1", "0"]
    assert found.get_explain_metrics().execution_stats.results_returned == 2
