"""Long queries leave the event loop to other requests, and still see one state."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from google.cloud.firestore import AsyncClient, async_transactional
from google.cloud.firestore_v1.base_query import FieldFilter

from firelite.query import slices
from firelite.storage import versions

from .test_listen import listening

pytestmark = pytest.mark.anyio

DOCUMENTS = 1_500


@pytest.fixture(autouse=True)
def shortest_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pause after every step of few documents, however fast the machine is, and take a few hundred for many."""
    monkeypatch.setattr(slices, "SLICE_SECONDS", 0.0)
    for module in ("query.aggregate", "query.sorted_index", "storage.snapshot_scan"):
        monkeypatch.setattr(f"firelite.{module}.STEP_DOCUMENTS", 8)
    monkeypatch.setattr(versions, "SMALL_DOCUMENTS", DOCUMENTS // 2)


class FirstPause:
    """The first pause of long work: it lasts until ``over`` is set, so that no test depends on the machine's speed."""

    def __init__(self) -> None:
        self.begun, self.over = asyncio.Event(), asyncio.Event()

    async def sleep(self, _seconds: float) -> None:
        self.begun.set()
        await self.over.wait()
        await asyncio.sleep(0)


@pytest.fixture
def first_pause(monkeypatch: pytest.MonkeyPatch) -> FirstPause:
    pause = FirstPause()
    monkeypatch.setattr(slices, "asyncio", SimpleNamespace(sleep=pause.sleep))
    return pause


async def fill(client: AsyncClient) -> None:
    for start in range(0, DOCUMENTS, 300):
        batch = client.batch()
        for number in range(start, start + 300):
            batch.set(client.document(f"c/{number:04}"), {"n": 1, "even": number % 2 == 0})
        await batch.commit()


def large(client: Any) -> Any:
    return client.collection("c").where(filter=FieldFilter("n", ">", 0))


async def in_transaction(client: Any) -> None:
    """Read all documents and write in one transaction."""
    transaction = client.transaction()

    @async_transactional
    async def work(transaction: Any) -> None:
        found = await large(client).get(transaction=transaction)
        transaction.set(client.document("sums/one"), {"count": len(found)})

    await work(transaction)


async def listened(client: Any) -> None:
    async with listening(client) as listener:
        listener.add_query(large(client))
        assert len(await listener.until_snapshot()) == DOCUMENTS + 2


LONG: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "index": lambda client: large(client).order_by("n").order_by("even").limit(1).get(),
    "sum": lambda client: large(client).sum("n").get(),
    "count": lambda client: large(client).where(filter=FieldFilter("even", ">", False)).count().get(),
    "query": lambda client: large(client).get(),
    "transaction": in_transaction,
    "listener": listened,
    "group": lambda client: client.collection_group("c").where(filter=FieldFilter("n", ">", 0)).avg("n").get(),
}


@pytest.mark.parametrize("work", LONG)
async def test_gets_finish_while_a_long_query_pauses(lite: AsyncClient, work: str, first_pause: FirstPause) -> None:
    await fill(lite)
    task = asyncio.ensure_future(LONG[work](lite))
    with anyio.fail_after(120):
        await first_pause.begun.wait()
        for number in range(3):
            assert (await lite.document(f"c/{number:04}").get()).exists
    assert not task.done()
    first_pause.over.set()
    await task


@pytest.mark.parametrize("work", ["sum", "query", "transaction", "listener"])
async def test_gets_finish_while_a_long_query_reads_with_an_index_that_exists(
    lite: AsyncClient, work: str, first_pause: FirstPause
) -> None:
    await fill(lite)
    first_pause.over.set()
    await LONG[work](lite)  # builds the index
    first_pause.begun.clear()
    first_pause.over.clear()
    task = asyncio.ensure_future(LONG[work](lite))
    with anyio.fail_after(20):
        await first_pause.begun.wait()
        assert (await lite.document("c/0001").get()).exists
    assert not task.done()
    first_pause.over.set()
    await task


async def test_large_listener_misses_no_change_that_was_made_while_it_opened(
    lite: AsyncClient, first_pause: FirstPause
) -> None:
    await fill(lite)
    async with listening(lite) as listener:
        listener.add_query(large(lite))
        words = asyncio.ensure_future(listener.until_snapshot())
        with anyio.fail_after(20):
            await first_pause.begun.wait()
            await lite.document("c/0000").delete()
            await lite.document("c/0001").set({"n": 0})
            await lite.document("c/new").set({"n": 7})
        first_pause.over.set()
        shown = {word.partition(" ")[0] for word in await words}
    assert {"new", "0002"} < shown
    assert not {"0000", "0001"} & shown
    assert len(shown - {"ADD", "CURRENT"}) == DOCUMENTS - 1


async def test_query_of_a_transaction_sees_changes_that_were_made_while_it_ran(
    lite: AsyncClient, first_pause: FirstPause
) -> None:
    await fill(lite)
    transaction: Any = lite.transaction()
    await transaction._begin()
    task = asyncio.ensure_future(large(lite).sum("n").get(transaction=transaction))
    with anyio.fail_after(20):
        await first_pause.begun.wait()
        await lite.document("c/new").set({"n": 1000})
    first_pause.over.set()
    [[result]] = await task
    assert result.value == DOCUMENTS + 1000
    await transaction._commit()


async def test_sum_sees_one_state_while_values_move_between_documents(
    lite: AsyncClient, first_pause: FirstPause
) -> None:
    await fill(lite)
    everything: Any = lite.collection("c")
    task = asyncio.ensure_future(everything.sum("n", alias="sum").count(alias="count").get())
    moves = 0
    with anyio.fail_after(120):
        await first_pause.begun.wait()
    while not task.done():
        if moves == 2:
            first_pause.over.set()
        batch = lite.batch()
        batch.set(lite.document(f"c/{moves % DOCUMENTS:04}"), {"n": 0})
        batch.set(lite.document(f"c/{(DOCUMENTS - 1 - moves) % DOCUMENTS:04}"), {"n": 2})
        batch.set(lite.document(f"c/new{moves}"), {"n": -5})
        batch.set(lite.document(f"c/more{moves}"), {"n": 5})
        batch.delete(lite.document(f"c/more{moves - 1}"))
        await batch.commit()
        moves += 1
    [results] = await task
    values = {result.alias: result.value for result in results}
    assert moves > 1
    # Each commit adds one document with -5 and replaces the one with 5.
    commits = max(0, values["count"] - DOCUMENTS - 1)
    assert values["sum"] == DOCUMENTS - 5 * commits + (5 if commits else 0)


async def test_long_query_reports_the_time_of_the_state_that_it_returns(lite: AsyncClient) -> None:
    await fill(lite)
    task = asyncio.ensure_future(large(lite).get())
    await asyncio.sleep(0)
    written = await lite.document("c/0000").set({"n": 5})
    snapshots = await task
    [first] = [snapshot for snapshot in snapshots if snapshot.id == "0000"]
    assert (first.get("n") == 5) == (first.read_time >= written.update_time)
    assert len(snapshots) == DOCUMENTS


async def test_listener_gets_every_document_after_the_index_was_built_in_slices(lite: AsyncClient) -> None:
    await fill(lite)
    async with listening(lite) as listener:
        listener.add_query(large(lite))
        words: list[str] = []
        while len(words) < DOCUMENTS:
            words += [word for word in await listener.until_snapshot() if "+[1]" in word]
        assert len(words) == DOCUMENTS


async def test_canceled_query_leaves_the_index_to_the_next_one(lite: AsyncClient) -> None:
    await fill(lite)
    task = asyncio.ensure_future(LONG["index"](lite))
    for _ in range(10):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await lite.document("c/first").set({"n": 1, "even": False})
    snapshots = await large(lite).order_by("n").order_by("even").order_by("__name__").get()
    assert len(snapshots) == DOCUMENTS + 1
    assert snapshots[DOCUMENTS // 2].id == "first"
