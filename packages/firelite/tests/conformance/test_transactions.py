"""Transactions: isolation, conflicts, snapshots."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.firestore import AsyncClient, AsyncTransaction, async_transactional
from google.cloud.firestore_v1.base_query import FieldFilter
from google.cloud.firestore_v1.types import write as types

from firelite.database import Database
from firelite.wire.inprocess import connect

pytestmark = pytest.mark.anyio


async def begin(client: AsyncClient, **options: Any) -> AsyncTransaction:
    transaction = client.transaction(**options)
    await transaction._begin()  # pyright: ignore[reportPrivateUsage] - to interleave two by hand
    return transaction


async def commit(transaction: AsyncTransaction) -> None:
    await transaction._commit()  # pyright: ignore[reportPrivateUsage] - as above


@pytest.mark.quirk("starvation_under_contention")
async def test_increments_from_32_clients_lose_none(client: AsyncClient) -> None:
    ref = client.document("c/counter")
    await ref.set({"n": 0})

    async def increment() -> None:
        # One decorated function shares its retry id between calls, so each call decorates its own.
        @async_transactional
        async def add(transaction: AsyncTransaction) -> None:
            seen = await ref.get(transaction=transaction)
            transaction.update(ref, {"n": (seen.get("n") or 0) + 1})

        await add(client.transaction(max_attempts=10))

    async with asyncio.TaskGroup() as group:
        for _ in range(32):
            group.create_task(increment())
    assert (await ref.get()).get("n") == 32


async def test_a_transaction_reads_then_writes_atomically(client: AsyncClient) -> None:
    a, b = client.document("c/a"), client.document("c/b")
    await a.set({"n": 5})

    @async_transactional
    async def move(transaction: AsyncTransaction) -> int:
        seen = await a.get(transaction=transaction)
        transaction.update(a, {"n": 0})
        transaction.set(b, {"n": seen.get("n")})
        return int(seen.get("n") or 0)

    assert await move(client.transaction()) == 5
    assert [(await a.get()).get("n"), (await b.get()).get("n")] == [0, 5]


async def test_error_inside_a_transaction_rolls_it_back(client: AsyncClient) -> None:
    ref = client.document("c/a")
    await ref.set({"n": 1})

    @async_transactional
    async def fail(transaction: AsyncTransaction) -> None:
        await ref.get(transaction=transaction)
        transaction.update(ref, {"n": 2})
        raise LookupError

    with pytest.raises(LookupError):
        await fail(client.transaction())
    await ref.update({"m": 1})  # the lock is gone
    assert (await ref.get()).to_dict() == {"n": 1, "m": 1}


@pytest.mark.quirk("victim_of_a_deadlock")
async def test_first_reader_commits_and_the_second_is_aborted(client: AsyncClient) -> None:
    ref = client.document("c/a")
    await ref.set({"n": 0})
    late, early = await begin(client), await begin(client)
    await ref.get(transaction=early)
    await ref.get(transaction=late)
    early.update(ref, {"by": "early"})
    late.update(ref, {"by": "late"})
    results = await asyncio.gather(commit(late), commit(early), return_exceptions=True)
    assert isinstance(results[0], exceptions.Aborted)
    assert results[1] is None
    assert (await ref.get()).get("by") == "early"


async def test_first_reader_does_not_wait_for_an_idle_later_reader(lite: AsyncClient) -> None:
    ref = lite.document("c/a")
    await ref.set({"n": 0})
    early, late = await begin(lite), await begin(lite)
    await ref.get(transaction=early)
    query: Any = lite.collection("c").where(filter=FieldFilter("n", "==", 0))
    assert [s.id async for s in query.stream(transaction=late)] == ["a"]
    early.update(ref, {"n": 1})
    await commit(early)
    late.set(lite.document("c/other"), {"seen": 0})
    with pytest.raises(exceptions.Aborted, match="older"):
        await commit(late)
    assert not (await lite.document("c/other").get()).exists


@pytest.mark.parametrize("reads", [True, False], ids=["later-reader", "without-a-read"])
async def test_writer_waits_for_an_earlier_reader(lite: AsyncClient, reads: bool) -> None:
    ref = lite.document("c/a")
    await ref.set({"n": 0})
    late, early = await begin(lite), await begin(lite)
    await ref.get(transaction=early)
    if reads:
        await ref.get(transaction=late)
    late.update(ref, {"n": 1})
    committing = asyncio.ensure_future(commit(late))
    await lite.document("c/other").set({})
    assert not committing.done()
    assert (await ref.get(transaction=early)).get("n") == 0
    await commit(early)
    await committing


async def test_losing_transaction_reads_one_snapshot_and_is_aborted_at_commit(lite: AsyncClient) -> None:
    a, b = lite.document("c/a"), lite.document("c/b")
    await asyncio.gather(a.set({"n": 1}), b.set({"n": 1}))
    old, young = await begin(lite), await begin(lite)
    await a.get(transaction=old)
    await b.get(transaction=young)
    old.update(b, {"n": 2})
    committing = asyncio.ensure_future(commit(old))  # waits for young
    await lite.document("c/other").set({"n": 1})
    outside = asyncio.ensure_future(a.set({"n": 9}))  # waits for old
    await lite.document("c/other").set({"n": 1})
    # Behind the write that waits for old, which waits for young: a circle, and young loses.
    assert (await a.get(transaction=young)).get("n") == 1
    await committing
    await outside
    assert (await b.get(transaction=young)).get("n") == 1
    query: Any = lite.collection("c").where(filter=FieldFilter("n", "==", 1))
    assert [s.id async for s in query.stream(transaction=young)] == ["a", "b", "other"]
    young.update(a, {"n": 3})
    with pytest.raises(exceptions.Aborted, match="older"):
        await commit(young)
    assert [(await a.get()).get("n"), (await b.get()).get("n")] == [9, 2]


async def test_a_plain_write_waits_for_a_reading_transaction(client: AsyncClient) -> None:
    ref = client.document("c/a")
    await ref.set({"n": 1})
    transaction = await begin(client)
    seen = await ref.get(transaction=transaction)
    outside = asyncio.ensure_future(ref.update({"outside": True}))
    await client.document("c/other").set({})  # a round trip on which the write could have overtaken
    assert not outside.done()
    transaction.update(ref, {"n": seen.get("n") + 1})
    await commit(transaction)
    await outside
    assert (await ref.get()).to_dict() == {"n": 2, "outside": True}


async def test_a_missing_document_is_locked_too(client: AsyncClient) -> None:
    ref = client.document("c/missing")
    transaction = await begin(client)
    assert not (await ref.get(transaction=transaction)).exists
    outside = asyncio.ensure_future(ref.create({"by": "outside"}))
    await client.document("c/other").set({})
    assert not outside.done()
    transaction.create(ref, {"by": "transaction"})
    await commit(transaction)
    with pytest.raises(exceptions.AlreadyExists):
        await outside
    assert (await ref.get()).get("by") == "transaction"


async def test_documents_returned_by_a_query_are_locked(client: AsyncClient) -> None:
    ref = client.document("c/a")
    await ref.set({"s": "on"})
    transaction = await begin(client)
    query = client.collection("c").where(filter=FieldFilter("s", "==", "on"))
    assert [s.id async for s in query.stream(transaction=transaction)] == ["a"]
    outside = asyncio.ensure_future(ref.update({"s": "off"}))
    await client.document("d/other").set({})
    assert not outside.done()
    await commit(transaction)
    await outside


async def test_new_match_of_a_query_aborts_the_transaction(lite: AsyncClient) -> None:
    query = lite.collection("c").where(filter=FieldFilter("s", "==", "on"))
    transaction = await begin(lite)
    assert [s.id async for s in query.stream(transaction=transaction)] == []
    await lite.document("c/phantom").set({"s": "on"})
    transaction.set(lite.document("c/leader"), {"alone": True})
    with pytest.raises(exceptions.Aborted, match="query"):
        await commit(transaction)
    assert not (await lite.document("c/leader").get()).exists


@pytest.mark.quirk("range_locks_of_queries")
async def test_write_to_a_non_matching_document_does_not_abort_the_transaction(client: AsyncClient) -> None:
    query = client.collection("c").where(filter=FieldFilter("s", "==", "on"))
    transaction = await begin(client)
    assert [s.id async for s in query.stream(transaction=transaction)] == []
    await client.document("c/other").set({"s": "off"})
    transaction.set(client.document("c/leader"), {"alone": True})
    await commit(transaction)
    assert (await client.document("c/leader").get()).exists


async def test_transactions_on_different_documents_do_not_conflict(client: AsyncClient) -> None:
    for key in "ab":
        await client.document(f"c/{key}").set({})
    one, two = await begin(client), await begin(client)
    await client.document("c/a").get(transaction=one)
    await client.document("c/b").get(transaction=two)
    one.update(client.document("c/a"), {"n": 1})
    two.update(client.document("c/b"), {"n": 1})
    await asyncio.gather(commit(one), commit(two))
    assert [s.get("n") async for s in client.collection("c").stream()] == [1, 1]


@pytest.mark.quirk("starvation_under_contention")
async def test_transfers_keep_the_total_in_every_snapshot(client: AsyncClient) -> None:
    accounts = [client.document(f"bank/{number}") for number in range(4)]
    await asyncio.gather(*(account.set({"n": 100}) for account in accounts))

    async def transfer(source: Any, target: Any) -> None:
        @async_transactional
        async def move(transaction: AsyncTransaction) -> None:
            have = (await source.get(transaction=transaction)).get("n")
            other = (await target.get(transaction=transaction)).get("n")
            transaction.update(source, {"n": have - 1})
            transaction.update(target, {"n": other + 1})

        await move(client.transaction(max_attempts=20))

    async def total() -> int:
        transaction: Any = await begin(client, read_only=True)
        found = [s.get("n") async for s in client.collection("bank").stream(transaction=transaction)]
        found.append((await accounts[0].get(transaction=transaction)).get("n") - found[0])
        return sum(found)

    pairs = [(a, b) for a in accounts for b in accounts if a is not b]
    async with asyncio.TaskGroup() as group:
        for source, target in pairs * 2:
            group.create_task(transfer(source, target))
        totals = [group.create_task(total()) for _ in range(10)]
    assert {task.result() for task in totals} == {400}
    assert [(await account.get()).get("n") for account in accounts] == [100] * 4


async def test_write_skew_is_impossible(client: AsyncClient) -> None:
    a, b = client.document("c/a"), client.document("c/b")
    await asyncio.gather(a.set({"on": True}), b.set({"on": True}))

    async def leave(mine: Any, other: Any) -> None:
        @async_transactional
        async def turn_off(transaction: AsyncTransaction) -> None:
            if (await other.get(transaction=transaction)).get("on"):
                transaction.update(mine, {"on": False})

        await turn_off(client.transaction())

    await asyncio.gather(leave(a, b), leave(b, a))
    assert sorted([(await a.get()).get("on"), (await b.get()).get("on")]) == [False, True]


async def test_a_failed_precondition_in_a_transaction_is_not_retried(client: AsyncClient) -> None:
    attempts = 0

    @async_transactional
    async def run(transaction: AsyncTransaction) -> None:
        nonlocal attempts
        attempts += 1
        await client.document("c/a").get(transaction=transaction)
        transaction.update(client.document("c/none"), {"n": 1})

    with pytest.raises(exceptions.NotFound):
        await run(client.transaction())
    assert attempts == 1


async def test_read_only_transaction_reads_one_snapshot(client: AsyncClient) -> None:
    a, b = client.document("c/a"), client.document("c/b")
    await asyncio.gather(a.set({"n": 1}), b.set({"n": 1}))
    transaction = await begin(client, read_only=True)
    assert (await a.get(transaction=transaction)).get("n") == 1
    await b.set({"n": 2})
    await client.document("c/new").set({"n": 1})
    await a.delete()
    assert (await b.get(transaction=transaction)).get("n") == 1
    query = client.collection("c").where(filter=FieldFilter("n", "==", 1))
    assert [s.id async for s in query.stream(transaction=transaction)] == ["a", "b"]
    assert (await query.count().get(transaction=transaction))[0][0].value == 2
    await commit(transaction)
    assert [s.id async for s in query.stream()] == ["new"]


async def test_read_at_a_past_time_returns_the_old_state(client: AsyncClient) -> None:
    ref = client.document("c/a")
    first = await ref.set({"n": 1})
    await ref.set({"n": 2})
    await ref.delete()
    then: Any = first.update_time
    assert (await ref.get(read_time=then)).get("n") == 1
    assert [s.get("n") async for s in client.collection("c").stream(read_time=then)] == [1]
    assert not (await ref.get()).exists


async def test_read_at_a_future_time_is_refused(lite: AsyncClient) -> None:
    ref = lite.document("c/a")
    await ref.set({})
    with pytest.raises(exceptions.InvalidArgument, match="future"):
        await ref.get(read_time=datetime.now(UTC) + timedelta(hours=1))


async def test_read_only_transaction_does_not_block_writers(client: AsyncClient) -> None:
    ref = client.document("c/a")
    await ref.set({"n": 1})
    transaction = await begin(client, read_only=True)
    await ref.get(transaction=transaction)
    await ref.set({"n": 2})
    await commit(transaction)


@pytest.mark.quirk("canceled_calls")
async def test_cancelled_waiting_write_does_not_block_others(client: AsyncClient) -> None:
    ref = client.document("c/a")
    transaction = await begin(client)
    await ref.get(transaction=transaction)
    outside = asyncio.ensure_future(ref.set({"by": "outside"}))
    await client.document("c/other").set({})
    outside.cancel()
    with pytest.raises(asyncio.CancelledError):
        await outside
    transaction.set(ref, {"by": "transaction"})
    await commit(transaction)
    await ref.update({"n": 1})
    assert (await ref.get()).to_dict() == {"by": "transaction", "n": 1}


async def test_a_read_only_transaction_cannot_write(lite: AsyncClient) -> None:
    api: Any = lite
    database = f"projects/{lite.project}/databases/(default)"
    transaction: Any = await begin(lite, read_only=True)
    written = types.Write(delete=f"{database}/documents/c/a")
    request = {"database": database, "writes": [written], "transaction": transaction.id}
    with pytest.raises(exceptions.InvalidArgument, match="read-only"):
        await api._firestore_api.commit(request=request)


async def test_write_waiting_for_a_lock_fails_when_the_database_closes() -> None:
    db = Database.open(None)
    client = connect(db)
    ref = client.document("c/a")
    transaction = await begin(client)
    await ref.get(transaction=transaction)
    waiting = asyncio.ensure_future(ref.set({}, retry=None))
    await client.document("c/other").set({})
    db.close()
    with pytest.raises(exceptions.ServiceUnavailable, match="closed"):
        await waiting


async def test_finished_transaction_cannot_be_committed_again(client: AsyncClient) -> None:
    transaction = await begin(client)
    used: Any = transaction.id
    await commit(transaction)
    with pytest.raises(exceptions.InvalidArgument):
        await client._firestore_api.commit(  # pyright: ignore[reportPrivateUsage] - the client would not send it
            request={"database": f"projects/{client.project}/databases/(default)", "transaction": used}
        )
