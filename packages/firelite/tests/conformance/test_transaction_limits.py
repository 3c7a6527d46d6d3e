"""Lifetimes of locks, idle transactions and history, on databases with short limits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.firestore import AsyncClient

from firelite.database import Database
from firelite.transactions.transactions import TransactionLimits
from firelite.wire.inprocess import connect

from .test_transactions import begin, commit

pytestmark = pytest.mark.anyio


@pytest.fixture
async def hasty() -> AsyncIterator[AsyncClient]:
    with Database.open(None, lock_wait_seconds=0.02) as db:
        yield connect(db)


async def test_write_that_waits_too_long_for_a_lock_is_aborted(hasty: AsyncClient) -> None:
    ref = hasty.document("c/a")
    transaction = await begin(hasty)
    await ref.get(transaction=transaction)
    with pytest.raises(exceptions.Aborted, match="c/a"):
        await ref.set({"n": 1})
    transaction.set(ref, {"n": 2})
    await commit(transaction)
    assert (await ref.get()).get("n") == 2


async def test_transaction_aborted_while_waiting_releases_its_locks() -> None:
    with Database.open(None, lock_wait_seconds=0.02) as db:
        client = connect(db)
        ref = client.document("c/a")
        first, second = await begin(client), await begin(client)
        await ref.get(transaction=first)
        await ref.get(transaction=second)
        second.set(ref, {"by": "second"})
        with pytest.raises(exceptions.Aborted, match="waited"):
            await commit(second)
        first.set(ref, {"by": "first"})
        await commit(first)
        assert (await ref.get()).get("by") == "first"


async def test_an_idle_transaction_loses_its_locks() -> None:
    limits = TransactionLimits(idle_seconds=0.02, total_seconds=5)
    with Database.open(None, limits=limits) as db:
        client = connect(db)
        ref = client.document("c/a")
        transaction = await begin(client)
        await ref.get(transaction=transaction)
        await ref.set({"n": 1})  # waits until the transaction expires
        transaction.set(ref, {"n": 2})
        with pytest.raises(exceptions.Aborted, match="idle"):
            await commit(transaction)


async def test_busy_transaction_is_aborted_after_its_total_time() -> None:
    limits = TransactionLimits(idle_seconds=5, total_seconds=0.02)
    with Database.open(None, limits=limits) as db:
        client = connect(db)
        ref = client.document("c/a")
        transaction = await begin(client)
        await ref.get(transaction=transaction)
        await ref.set({"n": 1})
        with pytest.raises(exceptions.Aborted, match="longer than"):
            await ref.get(transaction=transaction)


async def test_dropped_history_cannot_be_read() -> None:
    now = [1_000_000_000 * 10**9]
    with Database.open(None, clock=lambda: now[0]) as db:
        client = connect(db)
        ref = client.document("c/a")
        then: Any = (await ref.set({"n": 1})).update_time
        now[0] += 3000 * 10**9
        await ref.set({"n": 2})
        assert (await ref.get(read_time=then)).get("n") == 1
        now[0] += 4000 * 10**9
        await ref.set({"n": 3})
        with pytest.raises(exceptions.FailedPrecondition, match="too old"):
            await ref.get(read_time=then)
