"""The lock table by itself: sharing, order, deadlocks."""

from __future__ import annotations

import asyncio

import pytest

from firelite.errors import Aborted
from firelite.transactions.locks import LockTable, Owner

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def locks() -> LockTable:
    return LockTable(wait_seconds=5)


def ask(locks: LockTable, owner: Owner, *names: str, exclusive: bool) -> asyncio.Task[None]:
    return asyncio.ensure_future(locks.acquire(owner, names, exclusive=exclusive))


async def settle() -> None:
    """Let every task run as far as it can."""
    for _ in range(5):
        await asyncio.get_running_loop().run_in_executor(None, int)


async def test_writer_waits_for_all_readers_sharing_a_lock(locks: LockTable) -> None:
    one, two, writer = Owner("one", 1), Owner("two", 2), Owner("writer")
    assert locks.try_acquire(one, ["a"], exclusive=False)
    assert locks.try_acquire(two, ["a"], exclusive=False)
    writing = ask(locks, writer, "a", exclusive=True)
    await settle()
    locks.release(one)
    await settle()
    assert not writing.done()
    locks.release(two)
    await writing
    locks.release(writer)
    assert locks.idle


async def test_later_reader_waits_behind_a_waiting_writer(locks: LockTable) -> None:
    reader, writer, late = Owner("reader", 1), Owner("writer"), Owner("late", 2)
    locks.try_acquire(reader, ["a"], exclusive=False)
    writing = ask(locks, writer, "a", exclusive=True)
    await settle()
    reading = ask(locks, late, "a", exclusive=False)
    await settle()
    assert not reading.done()
    locks.release(reader)
    await writing
    assert not reading.done()
    locks.release(writer)
    await reading


async def test_lock_holder_can_upgrade_ahead_of_waiting_writers(locks: LockTable) -> None:
    holder, writer = Owner("holder", 1), Owner("writer")
    locks.try_acquire(holder, ["a"], exclusive=False)
    writing = ask(locks, writer, "a", exclusive=True)
    await settle()
    await locks.acquire(holder, ["a"], exclusive=True)
    await locks.acquire(holder, ["a"], exclusive=False)  # and stays exclusive
    locks.release(holder)
    await writing


async def test_writer_of_unrelated_documents_does_not_wait(locks: LockTable) -> None:
    reader, writer, other = Owner("reader", 1), Owner("writer"), Owner("other")
    locks.try_acquire(reader, ["a"], exclusive=False)
    writing = ask(locks, writer, "a", "b", exclusive=True)
    await settle()
    assert locks.try_acquire(other, ["c"], exclusive=True)
    assert not locks.try_acquire(Owner("behind"), ["b"], exclusive=True)
    writing.cancel()
    await settle()
    assert locks.try_acquire(Owner("behind"), ["b"], exclusive=True)


async def test_younger_transaction_in_a_deadlock_is_aborted(locks: LockTable) -> None:
    old, young = Owner("old", 1), Owner("young", 2)
    aborted: list[str] = []
    young.on_abort = aborted.append
    for owner in (old, young):
        locks.try_acquire(owner, ["a"], exclusive=False)
    young_writing = ask(locks, young, "a", exclusive=True)
    await settle()
    old_writing = ask(locks, old, "a", exclusive=True)
    with pytest.raises(Aborted, match="older"):
        await young_writing
    await old_writing
    assert len(aborted) == 1


async def test_younger_transaction_is_aborted_even_when_it_completes_the_deadlock(locks: LockTable) -> None:
    old, young = Owner("old", 1), Owner("young", 2)
    for owner in (old, young):
        locks.try_acquire(owner, ["a"], exclusive=False)
    old_writing = ask(locks, old, "a", exclusive=True)
    await settle()
    with pytest.raises(Aborted):
        await ask(locks, young, "a", exclusive=True)
    await old_writing


async def test_deadlock_of_three_owners_is_resolved(locks: LockTable) -> None:
    owners = [Owner(name, age) for age, name in enumerate("xyz")]
    for owner, name in zip(owners, "abc", strict=True):
        locks.try_acquire(owner, [name], exclusive=True)
    tasks = [ask(locks, owner, name, exclusive=True) for owner, name in zip(owners, "bca", strict=True)]
    with pytest.raises(Aborted):
        await tasks[2]
    await tasks[1]
    locks.release(owners[1])
    await tasks[0]


async def test_deadlock_through_a_plain_write_does_not_abort_the_write(locks: LockTable) -> None:
    old, young, plain = Owner("old", 1), Owner("young", 2), Owner("plain")
    locks.try_acquire(old, ["a"], exclusive=False)
    locks.try_acquire(young, ["b"], exclusive=False)
    writing = ask(locks, plain, "a", exclusive=True)  # waits for old
    await settle()
    reading = ask(locks, young, "a", exclusive=False)  # waits behind the write
    await settle()
    closing = ask(locks, old, "b", exclusive=True)  # waits for young: a circle of three
    with pytest.raises(Aborted):
        await reading
    await closing
    locks.release(old)
    await writing


async def test_lock_wait_over_its_limit_is_aborted_and_names_the_documents() -> None:
    locks = LockTable(wait_seconds=0.01)
    locks.try_acquire(Owner("holder", 1), ["c/a", "c/b"], exclusive=False)
    with pytest.raises(Aborted, match=r"c/a and 1 more"):
        await locks.acquire(Owner("writer"), ["c/a", "c/b"], exclusive=True)
    locks.try_acquire(Owner("reader", 2), ["c/a"], exclusive=False)
    assert not locks.idle
