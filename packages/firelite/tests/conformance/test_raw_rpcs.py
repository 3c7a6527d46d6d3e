"""RPCs that other languages' clients send, through the generated client."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.firestore_v1.types import (
    aggregation_result,
    common,
    document,
    firestore,
    query,
    write,
)

from conformance.clients import Says
from conformance.raw import Raw

pytestmark = pytest.mark.anyio


def numbers(found: document.Document) -> dict[str, int]:
    return {key: value.integer_value for key, value in found.fields.items()}


async def test_document_can_be_created_read_updated_and_deleted(raw: Raw) -> None:
    made = await raw.api.create_document(
        request={"parent": raw.root, "collection_id": "c", "document_id": "d", "document": raw.document(n=1, m=1)}
    )
    assert (made.name, numbers(made)) == (raw.name("c/d"), {"n": 1, "m": 1})
    got = await raw.api.get_document(request={"name": made.name, "mask": {"field_paths": ["n"]}})
    assert (numbers(got), got.create_time) == ({"n": 1}, made.create_time)
    changed = await raw.api.update_document(
        request={"document": raw.document("c/d", n=2), "update_mask": {"field_paths": ["n"]}}
    )
    assert numbers(changed) == {"n": 2, "m": 1}
    replaced = await raw.api.update_document(
        request={"document": raw.document("c/d", x=2), "current_document": {"exists": True}}
    )
    assert numbers(replaced) == {"x": 2}
    await raw.api.delete_document(request={"name": made.name, "current_document": {"exists": True}})
    with pytest.raises(exceptions.NotFound, match="c/d"):
        await raw.api.get_document(request={"name": made.name})


async def test_create_document_generates_an_id_and_refuses_a_taken_one(raw: Raw) -> None:
    request = {"parent": raw.root, "collection_id": "c", "document": raw.document(n=1)}
    made = await raw.api.create_document(request=request)
    assert len(made.name.rpartition("/")[2]) == 20
    with pytest.raises(exceptions.AlreadyExists):
        await raw.api.create_document(request={**request, "document_id": made.name.rpartition("/")[2]})


async def test_batch_write_returns_one_status_per_write(raw: Raw, says: Says) -> None:
    response = await raw.api.batch_write(
        request={
            "database": raw.database,
            "writes": [
                write.Write(update=raw.document("c/a", n=1)),
                write.Write(update=raw.document("c/b"), current_document=common.Precondition(exists=True)),
                write.Write(delete=raw.name("c/c")),
            ],
        },
        metadata=raw.admin,
    )
    assert [status.code for status in response.status] == [0, 5, 0]
    assert re.search(says("c/b"), response.status[1].message)
    assert len(response.write_results) == 3


async def test_batch_write_refuses_two_writes_to_one_document(raw_lite: Raw) -> None:
    writes = [write.Write(delete=raw_lite.name("c/a")), write.Write(update=raw_lite.document("c/a"))]
    with pytest.raises(exceptions.InvalidArgument, match="more than once"):
        await raw_lite.api.batch_write(request={"database": raw_lite.database, "writes": writes})


async def test_list_documents_supports_order_by_and_pages(raw_lite: Raw) -> None:
    for number in range(5):
        await raw_lite.api.update_document(request={"document": raw_lite.document(f"c/{number}", n=-number)})
    request = {"parent": raw_lite.root, "collection_id": "c", "page_size": 2}
    pager = await raw_lite.api.list_documents(request={**request, "order_by": "n"})
    assert [found.name[-1] async for found in pager] == ["4", "3", "2", "1", "0"]
    pager = await raw_lite.api.list_documents(request={**request, "order_by": "n desc", "mask": {"field_paths": []}})
    assert [found.name[-1] async for found in pager] == ["0", "1", "2", "3", "4"]
    for bad in ({"order_by": "n sideways"}, {"order_by": "n", "show_missing": True}, {"page_token": "?"}):
        with pytest.raises(exceptions.InvalidArgument):
            await raw_lite.api.list_documents(request={**request, **bad})


async def test_deleting_listed_documents_between_pages_skips_none(raw: Raw) -> None:
    for number in range(6):
        await raw.api.update_document(request={"document": raw.document(f"c/{number}", n=number)})
    seen: list[str] = []
    token = ""
    while True:
        request = {"parent": raw.root, "collection_id": "c", "page_size": 2, "page_token": token}
        page = (await raw.api.list_documents(request=request))._response
        for found in page.documents:
            seen.append(found.name[-1])
            await raw.api.delete_document(request={"name": found.name})
        token = page.next_page_token
        if not token:
            break
    assert seen == ["0", "1", "2", "3", "4", "5"]


async def test_write_to_another_database_is_refused(raw_lite: Raw) -> None:
    foreign = raw_lite.name("c/d").replace("(default)", "other")
    with pytest.raises(exceptions.InvalidArgument, match="other"):
        await raw_lite.api.commit(request={"database": raw_lite.database, "writes": [write.Write(delete=foreign)]})


@pytest.mark.parametrize(
    "value",
    [
        {"geo_point_value": {"latitude": 91}},
        {"geo_point_value": {"longitude": float("nan")}},
        {"field_reference_value": "a"},
        {"map_value": {"fields": {"__type__": {"string_value": "__vector__"}}}},
        {
            "map_value": {
                "fields": {
                    "__type__": {"string_value": "__vector__"},
                    "value": {"array_value": {"values": [{"string_value": "x"}]}},
                }
            }
        },
        {"array_value": {"values": [{"integer_value": 1}] * 40_000}},
    ],
)
async def test_a_value_that_cannot_be_stored_is_refused(raw_lite: Raw, value: dict[str, Any]) -> None:
    bad = document.Document(name=raw_lite.name("c/d"), fields={"f": document.Value(value)})
    with pytest.raises(exceptions.InvalidArgument, match="c/d"):
        await raw_lite.api.update_document(request={"document": bad})


TRANSFORM = write.DocumentTransform.FieldTransform


@pytest.mark.parametrize(
    "transform",
    [
        TRANSFORM(field_path="a"),
        TRANSFORM(field_path="a", set_to_server_value=0),
        TRANSFORM(field_path="a", increment={"string_value": "x"}),
        TRANSFORM(field_path="__name__", increment={"integer_value": 1}),
        TRANSFORM(field_path="a..b", increment={"integer_value": 1}),
    ],
)
async def test_a_malformed_transform_is_refused(raw_lite: Raw, transform: Any) -> None:
    written = write.Write(update=raw_lite.document("c/d"), update_transforms=[transform])
    with pytest.raises(exceptions.InvalidArgument):
        await raw_lite.api.commit(request={"database": raw_lite.database, "writes": [written]})


KIND = query.StructuredAggregationQuery.Aggregation


@pytest.mark.parametrize(
    "aggregations",
    [[], [KIND()], [KIND(alias="a", count={}), KIND(alias="a", count={})], [KIND(count={})] * 6],
    ids=["none", "no operator", "one alias twice", "six"],
)
async def test_a_malformed_aggregation_is_refused(raw_lite: Raw, aggregations: list[Any]) -> None:
    structured = {"structured_query": {"from_": [{"collection_id": "c"}]}, "aggregations": aggregations}
    with pytest.raises(exceptions.InvalidArgument):
        stream = await raw_lite.api.run_aggregation_query(
            request={"parent": raw_lite.root, "structured_aggregation_query": structured}
        )
        assert [response async for response in stream]


async def test_partition_query_with_order_limit_or_zero_partitions_is_refused(raw_lite: Raw) -> None:
    plain = {"from_": [{"collection_id": "c", "all_descendants": True}]}
    ordered = {**plain, "order_by": [{"field": {"field_path": "n"}}]}
    for structured, count in ((ordered, 2), ({**plain, "limit": 2}, 2), (plain, 0)):
        with pytest.raises(exceptions.InvalidArgument):
            await raw_lite.api.partition_query(
                request={"parent": raw_lite.root, "structured_query": structured, "partition_count": count}
            )


async def test_list_collection_ids_supports_pages(raw: Raw) -> None:
    for key in "abc":
        await raw.api.update_document(request={"document": raw.document(f"top/x/{key}/d")})
    pager = await raw.api.list_collection_ids(request={"parent": raw.name("top/x"), "page_size": 2}, metadata=raw.admin)
    assert [key async for key in pager] == ["a", "b", "c"]


async def test_legacy_transform_write_increments_the_field(raw: Raw) -> None:
    increment = write.DocumentTransform.FieldTransform(field_path="n", increment=document.Value(integer_value=4))
    transform = write.DocumentTransform(document=raw.name("c/d"), field_transforms=[increment])
    for expected in (4, 8):
        response = await raw.api.commit(
            request={"database": raw.database, "writes": [write.Write(transform=transform)]}
        )
        assert response.write_results[0].transform_results[0].integer_value == expected


async def test_average_of_no_documents_is_null_and_sum_is_zero(raw: Raw) -> None:
    kind: Any = query.StructuredAggregationQuery.Aggregation
    aggregation = query.StructuredAggregationQuery(
        structured_query=query.StructuredQuery(from_=[{"collection_id": "none"}]),
        aggregations=[
            kind(alias="mean", avg=kind.Avg(field={"field_path": "n"})),
            kind(alias="total", sum=kind.Sum(field={"field_path": "n"})),
            kind(alias="few", count=kind.Count(up_to=3)),
        ],
    )
    stream = await raw.api.run_aggregation_query(
        request={"parent": raw.root, "structured_aggregation_query": aggregation}
    )
    results: list[aggregation_result.AggregationResult] = [response.result async for response in stream]
    fields: Any = results[0].aggregate_fields
    kinds = {key: value._pb.WhichOneof("value_type") for key, value in fields.items()}
    assert kinds == {"mean": "null_value", "total": "integer_value", "few": "integer_value"}


async def test_reads_can_begin_a_new_transaction(raw: Raw) -> None:
    options = common.TransactionOptions(read_write={})
    stream = await raw.api.batch_get_documents(
        request={"database": raw.database, "documents": [raw.name("c/d")], "new_transaction": options}
    )
    responses = [response async for response in stream]
    transaction = responses[0].transaction
    assert transaction
    assert [response.missing for response in responses if response.missing] == [raw.name("c/d")]
    written = write.Write(update=raw.document("c/d", n=1))
    await raw.api.commit(request={"database": raw.database, "writes": [written], "transaction": transaction})
    stream = await raw.api.run_query(
        request={
            "parent": raw.root,
            "structured_query": {"from_": [{"collection_id": "c"}]},
            "new_transaction": options,
        }
    )
    responses = [response async for response in stream]
    assert responses[0].transaction
    assert [numbers(r.document) for r in responses if r.document] == [{"n": 1}]
    await raw.api.rollback(request={"database": raw.database, "transaction": responses[0].transaction})


async def test_write_stream_commits_in_order(raw_lite: Raw) -> None:
    async def requests() -> AsyncIterator[firestore.WriteRequest]:
        yield firestore.WriteRequest(database=raw_lite.database)
        for number in (1, 2):
            written = write.Write(update=raw_lite.document("c/d", n=number))
            yield firestore.WriteRequest(database=raw_lite.database, writes=[written])

    responses = [response async for response in await raw_lite.api.write(requests())]
    assert responses[0].stream_id
    assert [len(response.write_results) for response in responses] == [0, 1, 1]
    assert responses[1].commit_time < responses[2].commit_time
    found = await raw_lite.api.get_document(request={"name": raw_lite.name("c/d")})
    assert numbers(found) == {"n": 2}


@pytest.mark.parametrize(
    ("method", "request_"),
    [
        ("get_document", {"name": "nonsense"}),
        ("get_document", {"name": "projects/p/databases/(default)/documents/c"}),
        ("get_document", {"name": "projects/p/databases/(default)/documents/c//"}),
        ("commit", {"database": "x", "writes": [write.Write()]}),
        ("commit", {"database": "x", "transaction": b"unknown"}),
        ("rollback", {"database": "x", "transaction": b"unknown"}),
        ("begin_transaction", {"options": {"read_write": {"retry_transaction": b"?"}}}),
        ("list_documents", {"parent": "projects/p/databases/(default)/documents", "collection_id": ""}),
        ("list_collection_ids", {"parent": "projects/p/databases/(default)/documents/c"}),
    ],
)
async def test_a_malformed_request_is_invalid(raw_lite: Raw, method: str, request_: dict[str, Any]) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        await getattr(raw_lite.api, method)(request=request_)


FILTER = query.StructuredQuery.FieldFilter
NAME_FIELD = {"field_path": "__name__"}


@pytest.mark.parametrize(
    "structured",
    [
        {"from_": [{"collection_id": "a"}, {"collection_id": "b"}]},
        {"from_": [{"collection_id": "a"}], "offset": -1},
        {"from_": [{"collection_id": "a"}], "limit": -1},
        {"from_": [{"collection_id": "a"}], "where": {"composite_filter": {"op": 2}}},
        {"from_": [{"collection_id": "a"}], "where": {"field_filter": {"field": {"field_path": "x"}}}},
        {"from_": [{"collection_id": "a"}], "where": {"unary_filter": {"field": {"field_path": "x"}}}},
        {"from_": [{"collection_id": "a"}], "where": {"field_filter": {"field": {"field_path": "a..b"}, "op": 5}}},
        {"from_": [{"collection_id": "a"}], "where": {"field_filter": {"field": NAME_FIELD, "op": 5}}},
        {"from_": [{"collection_id": "a"}], "where": {"unary_filter": {"field": NAME_FIELD, "op": 2}}},
        {"from_": [{"collection_id": "a"}], "where": {"field_filter": {"field": NAME_FIELD, "op": 7}}},
        {"from_": [{"collection_id": "a"}], "order_by": [{"field": {"field_path": "x"}}] * 2},
        {"from_": [{"collection_id": "a"}], "start_at": {"values": [{"integer_value": 1}] * 2}},
        {"from_": [{"collection_id": "a/b"}]},
    ],
)
async def test_a_malformed_query_is_invalid(raw_lite: Raw, structured: dict[str, Any]) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        stream = await raw_lite.api.run_query(request={"parent": raw_lite.root, "structured_query": structured})
        assert [response async for response in stream]


async def test_query_without_a_collection_returns_the_children_of_a_document(raw_lite: Raw) -> None:
    for path in ["a/1", "a/1/b/2", "a/1/c/3", "a/1/c/3/d/4"]:
        await raw_lite.api.update_document(request={"document": raw_lite.document(path)})
    stream = await raw_lite.api.run_query(request={"parent": raw_lite.name("a/1"), "structured_query": {"from_": [{}]}})
    assert [response.document.name[-1] async for response in stream] == ["2", "3"]
