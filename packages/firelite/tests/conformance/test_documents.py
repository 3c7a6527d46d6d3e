"""Reading and writing single documents."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.api_core import exceptions
from google.api_core.datetime_helpers import DatetimeWithNanoseconds
from google.cloud.firestore import DELETE_FIELD, SERVER_TIMESTAMP, AsyncClient, GeoPoint
from google.cloud.firestore_v1.vector import Vector

from conformance.clients import Says

pytestmark = pytest.mark.anyio


async def test_values_of_all_types_are_read_back_after_set(client: AsyncClient) -> None:
    data = {
        "null": None,
        "true": True,
        "int": 2**63 - 1,
        "negative": -(2**63),
        "double": 0.1,
        "text": "π \x00 `quoted`.dotted",
        "bytes": b"\x00\xff",
        "time": datetime(2026, 5, 4, 3, 2, 1, 987654, tzinfo=UTC),
        "point": GeoPoint(1.5, -2.5),
        "ref": client.document("a/b"),
        "array": [1, "two", {"three": 3.0}],
        "map": {"inner": {"deep": [None]}},
        "vector": Vector([1.0, 2.0]),
        "empty": {},
        "none": [],
    }
    ref = client.document("types/all")
    await ref.set(data)
    snapshot = await ref.get()
    assert snapshot.to_dict() == data


async def test_missing_document_is_read_with_a_read_time(client: AsyncClient) -> None:
    snapshot = await client.document("c/none").get()
    assert not snapshot.exists
    assert snapshot.read_time is not None


async def test_create_and_update_times_equal_the_commit_times(client: AsyncClient) -> None:
    ref: Any = client.document("c/d")
    first = await ref.set({"a": 1})
    second = await ref.set({"a": 2})
    snapshot = await ref.get()
    assert snapshot.create_time == first.update_time
    assert snapshot.update_time == second.update_time
    assert first.update_time < second.update_time <= snapshot.read_time


async def test_set_replaces_the_document_and_merge_keeps_other_fields(client: AsyncClient) -> None:
    ref = client.document("c/d")
    await ref.set({"a": 1, "m": {"x": 1, "y": 2}})
    await ref.set({"m": {"y": 3}, "b": 2}, merge=True)
    assert (await ref.get()).to_dict() == {"a": 1, "m": {"x": 1, "y": 3}, "b": 2}
    await ref.set({"b": 5})
    assert (await ref.get()).to_dict() == {"b": 5}


async def test_merge_with_a_field_list_writes_only_those_fields(client: AsyncClient) -> None:
    ref: Any = client.document("c/d")
    await ref.set({"a": 1, "b": 1})
    await ref.set({"a": 2, "b": 3}, merge=["a"])
    assert (await ref.get()).to_dict() == {"a": 2, "b": 1}


async def test_merge_creates_a_missing_document(client: AsyncClient) -> None:
    ref = client.document("c/new")
    await ref.set({"a": 1}, merge=True)
    assert (await ref.get()).to_dict() == {"a": 1}


async def test_update_changes_only_the_named_fields(client: AsyncClient) -> None:
    ref = client.document("c/d")
    await ref.set({"a": {"b": 1, "c": 2}, "keep": True, "drop": 1})
    await ref.update({"a.b": 5, "drop": DELETE_FIELD, "new.deep.path": "x", "a.gone": DELETE_FIELD})
    assert (await ref.get()).to_dict() == {"a": {"b": 5, "c": 2}, "keep": True, "new": {"deep": {"path": "x"}}}


async def test_update_of_a_map_field_replaces_the_whole_map(client: AsyncClient) -> None:
    ref = client.document("c/d")
    await ref.set({"lease": {"owner": "me", "epoch": 1}})
    await ref.update({"lease": {"epoch": 2}})
    assert (await ref.get()).to_dict() == {"lease": {"epoch": 2}}


async def test_update_below_a_scalar_field_replaces_it_with_a_map(client: AsyncClient) -> None:
    ref = client.document("c/d")
    await ref.set({"a": 1})
    await ref.update({"a.b": 2})
    assert (await ref.get()).to_dict() == {"a": {"b": 2}}


async def test_quoted_field_names_can_be_updated(client: AsyncClient) -> None:
    ref = client.document("c/d")
    await ref.set({"odd name": 1, "back`tick\\": 1})
    await ref.update({"`odd name`": 2, client.field_path("back`tick\\"): 3})
    assert (await ref.get()).to_dict() == {"odd name": 2, "back`tick\\": 3}


async def test_update_of_a_missing_document_fails_with_not_found_and_names_it(client: AsyncClient, says: Says) -> None:
    with pytest.raises(exceptions.NotFound, match=says("c/none")):
        await client.document("c/none").update({"a": 1})


async def test_create_of_an_existing_document_fails_with_already_exists_and_names_it(client: AsyncClient) -> None:
    ref = client.document("c/d")
    await ref.create({"a": 1})
    with pytest.raises(exceptions.AlreadyExists, match="c/d"):
        await ref.create({"a": 2})
    assert (await ref.get()).to_dict() == {"a": 1}


async def test_update_with_the_current_update_time_succeeds_once(client: AsyncClient, says: Says) -> None:
    ref = client.document("c/d")
    await ref.set({"n": 0})
    seen = (await ref.get()).update_time
    await ref.update({"n": 1}, option=client.write_option(last_update_time=seen))
    with pytest.raises(exceptions.FailedPrecondition, match=says("c/d")):
        await ref.update({"n": 2}, option=client.write_option(last_update_time=seen))
    assert (await ref.get()).to_dict() == {"n": 1}


async def test_update_time_precondition_on_a_deleted_document_fails(client: AsyncClient, says: Says) -> None:
    ref = client.document("c/d")
    await ref.set({"n": 0})
    seen = (await ref.get()).update_time
    await ref.delete()
    with pytest.raises(exceptions.FailedPrecondition, match=says("c/d")):
        await ref.update({"n": 1}, option=client.write_option(last_update_time=seen))


async def test_an_update_time_in_the_future_is_invalid(lite: AsyncClient) -> None:
    ref = lite.document("c/d")
    result = await ref.set({"n": 0})
    future = result.update_time + timedelta(hours=1)
    with pytest.raises(exceptions.InvalidArgument, match="future"):
        await ref.update({"n": 1}, option=lite.write_option(last_update_time=future))


async def test_delete_of_a_missing_document_fails_only_with_an_exists_precondition(
    client: AsyncClient, says: Says
) -> None:
    ref = client.document("c/d")
    await ref.delete()
    with pytest.raises(exceptions.NotFound, match=says("c/d")):
        await ref.delete(option=client.write_option(exists=True))
    await ref.set({})
    await ref.delete(option=client.write_option(exists=True))
    assert not (await ref.get()).exists


async def test_write_without_changes_keeps_the_update_time(client: AsyncClient) -> None:
    ref = client.document("c/d")
    first = await ref.set({"a": 1, "m": {"x": [1, 2]}})
    again = await ref.set({"m": {"x": [1, 2]}, "a": 1})
    touched = await ref.update({"a": 1})
    assert again.update_time == touched.update_time == first.update_time
    assert (await ref.get()).update_time == first.update_time


async def test_an_integer_and_an_equal_double_are_different_content(client: AsyncClient) -> None:
    ref: Any = client.document("c/d")
    first = await ref.set({"a": 1})
    second = await ref.set({"a": 1.0})
    assert second.update_time > first.update_time
    assert isinstance((await ref.get()).get("a"), float)


async def test_timestamps_are_stored_in_microseconds_rounded_down(client: AsyncClient) -> None:
    ref = client.document("c/d")
    exact = DatetimeWithNanoseconds(2026, 1, 1, nanosecond=123456789, tzinfo=UTC)
    await ref.set({"t": exact, "in": [exact]})
    stored = await ref.get()
    rounded = datetime(2026, 1, 1, microsecond=123456, tzinfo=UTC)
    assert stored.to_dict() == {"t": rounded, "in": [rounded]}


async def test_get_with_field_paths_returns_only_those_fields(client: AsyncClient) -> None:
    ref = client.document("c/d")
    await ref.set({"a": {"b": 1, "c": 2}, "d": 3})
    snapshot = await ref.get(field_paths=["a.c", "missing"])
    assert snapshot.to_dict() == {"a": {"c": 2}}


async def test_get_all_returns_each_document_once_found_or_missing(client: AsyncClient) -> None:
    await client.document("c/a").set({"n": 1})
    refs = [client.document("c/a"), client.document("c/missing"), client.document("c/a")]
    found = {snapshot.id: snapshot.exists async for snapshot in client.get_all(refs)}
    assert found == {"a": True, "missing": False}


async def test_a_batch_is_all_or_nothing(client: AsyncClient) -> None:
    batch = client.batch()
    batch.set(client.document("c/a"), {"n": 1})
    batch.create(client.document("c/b"), {"n": 1})
    results = await batch.commit()
    assert len(results) == 2
    assert results[0].update_time == results[1].update_time
    bad = client.batch()
    bad.set(client.document("c/a"), {"n": 2})
    bad.update(client.document("c/missing"), {"n": 2})
    with pytest.raises(exceptions.NotFound):
        await bad.commit()
    assert (await client.document("c/a").get()).to_dict() == {"n": 1}


async def test_writes_to_one_document_in_a_batch_apply_in_order(client: AsyncClient) -> None:
    ref = client.document("c/d")
    batch = client.batch()
    batch.set(ref, {"a": 1})
    batch.update(ref, {"b": 2})
    batch.delete(client.document("c/other"))
    await batch.commit()
    assert (await ref.get()).to_dict() == {"a": 1, "b": 2}


async def test_add_makes_a_document_with_a_random_id(client: AsyncClient) -> None:
    _, ref = await client.collection("c").add({"n": 1})
    assert len(ref.id) == 20
    assert (await ref.get()).to_dict() == {"n": 1}


async def test_deleted_document_can_be_created_again_with_a_new_create_time(client: AsyncClient) -> None:
    ref: Any = client.document("c/d")
    first = await ref.create({"a": 1})
    await ref.delete()
    second = await ref.create({"b": 2})
    snapshot = await ref.get()
    assert snapshot.to_dict() == {"b": 2}
    assert snapshot.create_time == second.update_time > first.update_time


async def test_subcollections_remain_after_their_document_is_deleted(client: AsyncClient) -> None:
    await client.document("c/d").set({})
    await client.document("c/d/sub/x").set({"n": 1})
    await client.document("c/d").delete()
    assert (await client.document("c/d/sub/x").get()).exists
    assert [ref.id async for ref in client.collection("c").list_documents()] == ["d"]
    assert [ref.id async for ref in client.document("c/d").collections()] == ["sub"]


async def test_collections_lists_root_collections_with_documents_at_any_depth(client: AsyncClient) -> None:
    await client.document("b/1").set({})
    await client.document("a/1/deep/2").set({})
    assert [ref.id async for ref in client.collections()] == ["a", "b"]
    await client.document("b/1").delete()
    await client.document("a/1/deep/2").delete()
    assert [ref.id async for ref in client.collections()] == []


async def test_list_documents_pages_through_a_collection(client: AsyncClient) -> None:
    batch = client.batch()
    for number in range(25):
        batch.set(client.document(f"c/{number:02}"), {"n": number})
    await batch.commit()
    refs = [ref.id async for ref in client.collection("c").list_documents(page_size=10)]
    assert refs == [f"{number:02}" for number in range(25)]


@pytest.mark.parametrize(
    "data",
    [
        {"nested": [[1]]},
        {"__reserved__": 1},
        {"deep": {"1": {"2": {"3": {"4": {"5": {"6": {"7": {"8": {"9": {"10": {"11": {"12": {"13": {"14": {"15": {
            "16": {"17": {"18": {"19": {"20": {"21": 1}}}}}}}}}}}}}}}}}}}}}},
        {"large": "x" * (1024 * 1024)},
    ],
    ids=["array in array", "reserved name", "too deep", "too large"],
)  # fmt: skip
async def test_document_over_a_limit_is_refused_and_named(lite: AsyncClient, data: dict[str, object]) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="c/d"):
        await lite.document("c/d").set(data)
    assert not (await lite.document("c/d").get()).exists


@pytest.mark.parametrize("path", ["c/__reserved__", "c/..", "c/" + "x" * 1501, "/".join(["c/d"] * 101)])
async def test_document_name_over_a_limit_is_refused(lite: AsyncClient, path: str) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        await lite.document(path).set({})


async def test_more_than_500_transforms_are_refused(lite: AsyncClient) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="transforms"):
        await lite.document("c/d").set({f"f{number}": SERVER_TIMESTAMP for number in range(501)})


async def test_a_request_over_10_mib_is_refused(lite: AsyncClient) -> None:
    batch = lite.batch()
    for number in range(11):
        batch.set(lite.document(f"c/{number}"), {"x": "y" * 1_000_000})
    with pytest.raises(exceptions.InvalidArgument, match="bytes"):
        await batch.commit()


async def test_pipeline_fails_as_unimplemented_and_names_the_method(lite: AsyncClient) -> None:
    with pytest.raises(exceptions.MethodNotImplemented, match="ExecutePipeline"):
        await lite.pipeline().collection("c").execute()
