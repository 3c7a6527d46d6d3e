"""Listen, as the async GAPIC client sends it. Listeners in threads are tested in test_sync_client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.base_query import FieldFilter
from google.cloud.firestore_v1.types import firestore as types

pytestmark = pytest.mark.anyio

# A listener that is silent for this long is broken; no passing test waits this long.
PATIENCE_SECONDS = 10
TYPES = types.TargetChange.TargetChangeType


class Listener:
    """One Listen stream driven by hand."""

    def __init__(self, client: AsyncClient) -> None:
        self.client: Any = client
        self.requests: asyncio.Queue[Any] = asyncio.Queue()
        self.stream: Any = None
        self.token = b""

    async def _outgoing(self) -> AsyncIterator[Any]:
        while (request := await self.requests.get()) is not None:
            yield request

    async def open(self) -> None:
        api = self.client._firestore_api
        stream = await api.listen(requests=self._outgoing(), metadata=self.client._rpc_metadata)
        self.stream = aiter(stream)

    def send(self, **content: Any) -> None:
        self.requests.put_nowait(types.ListenRequest(database=self.client._database_string, **content))

    def add_query(self, query: Any, target_id: int = 1, **options: Any) -> None:
        query = query._query() if hasattr(query, "_query") else query
        parent, _ = query._parent._parent_info()
        target = types.Target.QueryTarget(parent=parent, structured_query=query._to_protobuf())
        self.send(add_target=types.Target(query=target, target_id=target_id, **options))

    def add_documents(self, *paths: str, target_id: int = 1, **options: Any) -> None:
        names = [self.client.document(path)._document_path for path in paths]
        target = types.Target.DocumentsTarget(documents=names)
        self.send(add_target=types.Target(documents=target, target_id=target_id, **options))

    async def next(self) -> Any:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await anext(self.stream)

    async def until_snapshot(self) -> list[str]:
        """Read up to the next consistent snapshot; return one description per message."""
        words: list[str] = []
        while True:
            message = await self.next()
            change = message.target_change
            kind = message._pb.WhichOneof("response_type")
            if kind == "target_change" and change.target_change_type == TYPES.NO_CHANGE and not change.target_ids:
                assert change.read_time is not None
                self.token = change.resume_token
                return words
            words.append(describe(kind, message))


def describe(kind: str, message: Any) -> str:
    if kind == "target_change":
        return f"{message.target_change.target_change_type.name} {list(message.target_change.target_ids)}"
    if kind == "document_change":
        change = message.document_change
        name = change.document.name.rpartition("/")[2]
        return f"{name} +{list(change.target_ids)} -{list(change.removed_target_ids)}".replace("[]", "")
    if kind == "filter":
        return f"filter {message.filter.count}"
    deleted = message.document_delete if kind == "document_delete" else message.document_remove
    return f"{deleted.document.rpartition('/')[2]} gone {list(deleted.removed_target_ids)}"


@asynccontextmanager
async def listening(client: AsyncClient) -> AsyncGenerator[Listener]:
    listener = Listener(client)
    await listener.open()
    try:
        yield listener
    finally:
        listener.requests.put_nowait(None)
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for _ in listener.stream:
                pass


async def test_document_target_reports_creation_change_and_deletion(client: AsyncClient) -> None:
    ref = client.document("c/a")
    async with listening(client) as listener:
        listener.add_documents("c/a")
        assert await listener.until_snapshot() == ["ADD [1]", "a gone [1]", "CURRENT [1]"]
        await ref.set({"n": 1})
        assert await listener.until_snapshot() == ["a +[1] -"]
        await ref.update({"n": 2})
        assert await listener.until_snapshot() == ["a +[1] -"]
        await ref.delete()
        assert await listener.until_snapshot() == ["a gone [1]"]


@pytest.mark.quirk("listener_resets")
async def test_query_target_reports_added_changed_and_removed_documents(client: AsyncClient) -> None:
    await client.document("c/a").set({"on": True})
    query = client.collection("c").where(filter=FieldFilter("on", "==", True))
    async with listening(client) as listener:
        listener.add_query(query)
        assert await listener.until_snapshot() == ["ADD [1]", "a +[1] -", "CURRENT [1]"]
        await client.document("c/b").set({"on": True})
        assert await listener.until_snapshot() == ["b +[1] -"]
        await client.document("c/ignored").set({"on": False})
        await client.document("c/b").update({"on": False})
        assert await listener.until_snapshot() == ["b + -[1]"]
        await client.document("c/a").delete()
        assert await listener.until_snapshot() == ["a gone [1]"]


@pytest.mark.quirk("listener_resets")
async def test_one_commit_produces_one_snapshot(client: AsyncClient) -> None:
    async with listening(client) as listener:
        listener.add_query(client.collection("c"))
        await listener.until_snapshot()
        batch = client.batch()
        for key in "xyz":
            batch.set(client.document(f"c/{key}"), {})
        await batch.commit()
        assert sorted(await listener.until_snapshot()) == ["x +[1] -", "y +[1] -", "z +[1] -"]


@pytest.mark.quirk("listener_resets")
async def test_limited_query_is_refilled_after_a_deletion(client: AsyncClient) -> None:
    for number in range(4):
        await client.document(f"c/{number}").set({"n": number})
    query = client.collection("c").order_by("n").limit(2)
    async with listening(client) as listener:
        listener.add_query(query)
        assert await listener.until_snapshot() == ["ADD [1]", "0 +[1] -", "1 +[1] -", "CURRENT [1]"]
        await client.document("c/0").delete()
        assert sorted(await listener.until_snapshot()) == ["0 gone [1]", "2 +[1] -"]
        await client.document("c/first").set({"n": -1})
        assert sorted(await listener.until_snapshot()) == ["2 + -[1]", "first +[1] -"]


@pytest.mark.quirk("listener_resets")
async def test_collection_group_listener_covers_all_depths(client: AsyncClient) -> None:
    async with listening(client) as listener:
        listener.add_query(client.collection_group("g"))
        await listener.until_snapshot()
        await client.document("a/b/g/x").set({})
        assert await listener.until_snapshot() == ["x +[1] -"]


async def test_targets_on_one_stream_share_a_change_message(lite: AsyncClient) -> None:
    async with listening(lite) as listener:
        listener.add_query(lite.collection("c"), target_id=1)
        await listener.until_snapshot()
        listener.add_documents("c/a", target_id=2)
        await listener.until_snapshot()
        await lite.document("c/a").set({})
        assert await listener.until_snapshot() == ["a +[1, 2] -"]
        listener.send(remove_target=1)
        removed = await listener.next()
        assert removed.target_change.target_change_type == TYPES.REMOVE
        await lite.document("c/a").delete()
        assert await listener.until_snapshot() == ["a gone [2]"]


async def test_read_times_never_decrease(client: AsyncClient) -> None:
    times: list[Any] = []
    async with listening(client) as listener:
        listener.add_query(client.collection("c"))
        for number in range(5):
            message = await listener.next()
            while not message.target_change.read_time:
                message = await listener.next()
            times.append(message.target_change.read_time)
            await client.document("c/a").set({"n": number})
    assert times == sorted(times)


@pytest.mark.quirk("listener_resets")
async def test_resume_token_returns_only_later_changes(client: AsyncClient) -> None:
    for key in ["kept", "changed", "deleted", "left"]:
        await client.document(f"c/{key}").set({"on": True})
    query = client.collection("c").where(filter=FieldFilter("on", "==", True))
    async with listening(client) as first:
        first.add_query(query)
        await first.until_snapshot()
    await client.document("c/changed").update({"n": 1})
    await client.document("c/deleted").delete()
    await client.document("c/left").update({"on": False})
    await client.document("c/new").set({"on": True})
    async with listening(client) as second:
        second.add_query(query, resume_token=first.token)
        words = await second.until_snapshot()
    assert {"changed +[1] -", "new +[1] -"} <= set(words)
    assert "kept +[1] -" not in words


@pytest.mark.parametrize("target", ["query", "document"])
async def test_token_of_another_server_resets_the_target(client: AsyncClient, target: str) -> None:
    await client.document("c/a").set({})
    async with listening(client) as listener:
        if target == "query":
            listener.add_query(client.collection("c"), resume_token=b"not one of ours")
        else:
            listener.add_documents("c/a", resume_token=b"not one of ours")
        assert await listener.until_snapshot() == ["ADD [1]", "RESET [1]", "a +[1] -", "CURRENT [1]"]


async def test_resumed_limit_query_returns_only_the_difference(lite: AsyncClient) -> None:
    for number in range(3):
        await lite.document(f"c/{number}").set({"n": number})
    query = lite.collection("c").order_by("n").limit(2)
    async with listening(lite) as first:
        first.add_query(query)
        await first.until_snapshot()
    await lite.document("c/0").delete()
    async with listening(lite) as second:
        second.add_query(query, resume_token=first.token)
        assert sorted(await second.until_snapshot()) == ["0 gone [1]", "2 +[1] -", "ADD [1]", "CURRENT [1]"]


async def test_once_target_is_removed_when_it_is_current(lite: AsyncClient) -> None:
    await lite.document("c/a").set({})
    async with listening(lite) as listener:
        listener.add_query(lite.collection("c"), once=True)
        assert await listener.until_snapshot() == ["ADD [1]", "a +[1] -", "CURRENT [1]"]
        removed = await listener.next()
        assert removed.target_change.target_change_type == TYPES.REMOVE
        assert list(removed.target_change.target_ids) == [1]


async def test_projection_of_a_listened_query_is_applied(lite: AsyncClient) -> None:
    await lite.document("c/a").set({"n": 1, "secret": 2})
    async with listening(lite) as listener:
        listener.add_query(lite.collection("c").select(["n"]))
        await listener.next()
        message = await listener.next()
        assert list(message.document_change.document.fields) == ["n"]


async def test_invalid_target_is_removed_with_a_cause(lite: AsyncClient) -> None:
    async with listening(lite) as listener:
        listener.send(add_target=types.Target(target_id=3))
        removed = (await listener.next()).target_change
        assert (removed.target_change_type, list(removed.target_ids)) == (TYPES.REMOVE, [3])
        assert removed.cause.code == 3
        listener.add_documents("c/a", target_id=5)
        assert await listener.until_snapshot() == ["ADD [5]", "a gone [5]", "CURRENT [5]"]


async def test_duplicate_target_id_ends_the_stream(lite: AsyncClient) -> None:
    listener = Listener(lite)
    await listener.open()
    listener.add_documents("c/a")
    await listener.until_snapshot()
    listener.add_documents("c/b")
    with pytest.raises(exceptions.InvalidArgument, match="in use"):
        await listener.next()
    listener.requests.put_nowait(None)


async def test_write_without_changes_is_not_reported(lite: AsyncClient) -> None:
    ref = lite.document("c/a")
    await ref.set({"n": 1})
    async with listening(lite) as listener:
        listener.add_query(lite.collection("c"))
        await listener.until_snapshot()
        await ref.set({"n": 1})
        await lite.document("c/b").set({})
        assert await listener.until_snapshot() == ["b +[1] -"]


@pytest.mark.quirk("listener_resets")
async def test_failed_commit_is_not_reported(client: AsyncClient) -> None:
    async with listening(client) as listener:
        listener.add_query(client.collection("c"))
        await listener.until_snapshot()
        batch = client.batch()
        batch.set(client.document("c/a"), {})
        batch.update(client.document("c/none"), {"n": 1})
        with pytest.raises(exceptions.NotFound):
            await batch.commit()
        await client.document("c/b").set({})
        assert await listener.until_snapshot() == ["b +[1] -"]
