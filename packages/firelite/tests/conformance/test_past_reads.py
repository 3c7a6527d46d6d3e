"""``read_time`` in every read: the state of a past moment, whatever was written since."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.base_query import FieldFilter

pytestmark = pytest.mark.anyio


async def change_everything(client: AsyncClient) -> Any:
    """Write documents, take the time, then change, delete and add some. Returns the time."""
    for path, number in {"c/kept": 1, "c/changed": 2, "c/deleted": 4, "c/parent/sub/x": 8, "gone/x": 16}.items():
        await client.document(path).set({"n": number})
    await client.document("c/ghost/deep/x").set({"n": 32})
    then = (await client.document("c/kept").get()).read_time
    await client.document("c/changed").update({"n": 1000})
    for path in ("c/deleted", "gone/x", "c/ghost/deep/x"):
        await client.document(path).delete()
    for path in ("c/added", "new/x", "c/added/sub/x", "c/later/sub/x"):
        await client.document(path).set({"n": 1000})
    return then


async def test_get_and_get_all_return_the_past_version(client: AsyncClient) -> None:
    then = await change_everything(client)
    assert (await client.document("c/changed").get(read_time=then)).get("n") == 2
    assert not (await client.document("c/added").get(read_time=then)).exists
    references = [client.document(f"c/{key}") for key in ("changed", "deleted", "added")]
    found = {s.id: s.to_dict() async for s in client.get_all(references, read_time=then)}
    assert found == {"changed": {"n": 2}, "deleted": {"n": 4}, "added": None}


async def test_get_document_returns_the_past_version(client: AsyncClient) -> None:
    then = await change_everything(client)
    api: Any = client._firestore_api  # pyright: ignore[reportPrivateUsage] - other languages send this request
    name = f"{client._database_string}/documents/c/deleted"  # pyright: ignore[reportPrivateUsage] - no public name
    document = await api.get_document(request={"name": name, "read_time": then})
    assert document.fields["n"].integer_value == 4
    with pytest.raises(exceptions.NotFound):
        await api.get_document(request={"name": name})


async def test_query_runs_on_the_past_state(client: AsyncClient) -> None:
    then = await change_everything(client)
    query = client.collection("c").where(filter=FieldFilter("n", ">", 1)).order_by("n", direction="DESCENDING")
    assert [s.id async for s in query.stream(read_time=then)] == ["deleted", "changed"]
    assert [s.id for s in await query.offset(1).limit(1).get(read_time=then)] == ["changed"]
    assert [s.id for s in await query.get()] == ["changed", "added"]


async def test_aggregations_run_on_the_past_state(client: AsyncClient) -> None:
    then = await change_everything(client)
    collection: Any = client.collection("c")
    query = collection.count(alias="count").sum("n", alias="sum").avg("n", alias="avg")
    [[*results]] = await query.get(read_time=then)
    assert {result.alias: result.value for result in results} == {"count": 3, "sum": 7, "avg": 7 / 3}
    gone: Any = client.collection("gone")
    [[count]] = await gone.count().get(read_time=then)
    assert count.value == 1


async def test_collection_group_query_runs_on_the_past_state(client: AsyncClient) -> None:
    then = await change_everything(client)
    assert [s.reference.path async for s in client.collection_group("sub").stream(read_time=then)] == ["c/parent/sub/x"]


async def test_documents_are_listed_as_they_were(client: AsyncClient) -> None:
    then = await change_everything(client)
    listed = [ref.id async for ref in client.collection("c").list_documents(read_time=then)]
    assert listed == ["changed", "deleted", "ghost", "kept", "parent"]
    assert [ref.id async for ref in client.collection("gone").list_documents(read_time=then)] == ["x"]
    assert [ref.id async for ref in client.collection("new").list_documents(read_time=then)] == []
    now = [ref.id async for ref in client.collection("c").list_documents()]
    assert now == ["added", "changed", "kept", "later", "parent"]


async def test_documents_are_listed_in_pages_as_they_were(client: AsyncClient) -> None:
    then = await change_everything(client)
    listed = [ref.id async for ref in client.collection("c").list_documents(page_size=2, read_time=then)]
    assert listed == ["changed", "deleted", "ghost", "kept", "parent"]


async def test_collections_are_listed_as_they_were(client: AsyncClient) -> None:
    then = await change_everything(client)
    assert [ref.id async for ref in client.collections(read_time=then)] == ["c", "gone"]
    assert [ref.id async for ref in client.collections()] == ["c", "new"]
    assert [ref.id async for ref in client.document("c/ghost").collections(read_time=then)] == ["deep"]
    assert [ref.id async for ref in client.document("c/ghost").collections()] == []
    assert [ref.id async for ref in client.document("c/later").collections(read_time=then)] == []


async def test_listing_at_a_time_without_history_is_refused(lite: AsyncClient) -> None:
    await lite.document("c/a").set({})
    future = datetime.now(UTC) + timedelta(hours=1)
    with pytest.raises(exceptions.InvalidArgument, match="future"):
        _ = [ref async for ref in lite.collections(read_time=future)]
