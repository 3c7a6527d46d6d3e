"""The limiter: rates hold for one process and for a fleet, and after a 429 all processes pause with jitter."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fireswarm.clocks import VirtualClock
from fireswarm.contracts.ports import Store
from fireswarm.llm.limiter import Bucket, FirestoreLimits, Limiter
from fireswarm.mind import ConclusionStatus
from tests.support.minds import Bench, Heard, LeapingClock, decided
from tests.support.swarm import open_test_swarm

pytestmark = pytest.mark.anyio
START = datetime(2026, 1, 1, tzinfo=UTC)


@settings(deadline=None)
@given(st.integers(1, 10_000), st.lists(st.tuples(st.floats(0, 200), st.integers(1, 20_000)), max_size=40))
def test_bucket_allows_one_minute_at_once_and_then_the_rate(rate: int, calls: list[tuple[float, int]]) -> None:
    bucket, now, taken = Bucket(rate), START, 0
    for pause, amount in calls:
        now += timedelta(seconds=pause)
        if wait := bucket.wait(amount, now):
            assert 0 < wait <= 60 + max(0.0, taken / rate * 60)
            now += timedelta(seconds=wait + 1e-3)
            assert bucket.wait(amount, now) == 0
        taken += amount
    largest = max((amount for _, amount in calls), default=0)
    assert taken <= rate + (now - START).total_seconds() * rate / 60 + largest + 1


async def test_calls_without_limits_do_not_wait() -> None:
    assert await Limiter(LeapingClock()).admit(10**9) == 0


async def test_request_over_the_minute_allowance_waits() -> None:
    clock = LeapingClock()
    limiter = Limiter(clock, requests_per_minute=30)
    waited = [await limiter.admit(1) for _ in range(33)]
    assert waited[:30] == [0.0] * 30
    assert waited[30:] == pytest.approx([2.0, 2.0, 2.0])


async def test_request_waiting_for_tokens_is_counted_once() -> None:
    clock = LeapingClock()
    limiter = Limiter(clock, requests_per_minute=3, tokens_per_minute=600)
    assert await limiter.admit(600) == 0
    assert await limiter.admit(300) == pytest.approx(30)
    assert await limiter.admit(10) == pytest.approx(1)


async def test_call_larger_than_the_minute_allowance_delays_the_next_one() -> None:
    clock = LeapingClock()
    limiter = Limiter(clock, tokens_per_minute=100)
    assert await limiter.admit(250) == 0
    assert await limiter.admit(100) == pytest.approx(150)


async def test_calls_resume_with_jitter_after_a_back_off() -> None:
    clock = VirtualClock()
    limiter = Limiter(clock, chance=random.Random(1))
    admitted: list[float] = []

    async def call() -> None:
        await limiter.admit(1)
        admitted.append((clock.now() - START).total_seconds())

    await limiter.back_off(10)
    await limiter.back_off(4)  # a shorter pause does not end a longer one
    async with anyio.create_task_group() as tasks:
        for _ in range(40):
            tasks.start_soon(call)
        await clock.advance(9.9)
        assert not admitted
        await clock.advance(5)
    assert min(admitted) >= 10
    assert max(admitted) <= 12
    assert len({round(moment, 3) for moment in admitted}) > 30


async def fleet(
    store: Store, clock: VirtualClock, seed: int, processes: int, requests: int | None, tokens: int | None, minutes: int
) -> tuple[Counter[int], Counter[int]]:
    """Run *processes* that make calls all the time; return the requests and the tokens sent in each minute."""
    chance = random.Random(seed)
    sent, used = Counter[int](), Counter[int]()

    async def process() -> None:
        shared = FirestoreLimits(store, clock, "anthropic", requests, tokens)
        limiter = Limiter(clock, requests, tokens, shared, chance=random.Random(chance.random()))
        while True:
            amount = chance.randint(50, 400)
            await limiter.admit(amount)
            minute = int((clock.now() - START).total_seconds() // 60)
            sent[minute] += 1
            used[minute] += amount
            await clock.sleep(chance.uniform(0.2, 20))

    async with anyio.create_task_group() as tasks:
        for _ in range(processes):
            tasks.start_soon(process)
        for _ in range(minutes * 12):
            await clock.advance(5)
        tasks.cancel_scope.cancel()
    return sent, used


@pytest.mark.parametrize(("seed", "requests", "tokens"), [(1, 100, None), (2, 200, 12_000), (3, None, 20_000)])
async def test_forty_processes_never_exceed_the_minute_allowance(
    seed: int, requests: int | None, tokens: int | None
) -> None:
    clock = VirtualClock(turns=120)
    async with open_test_swarm(clock=clock) as swarm:
        sent, used = await fleet(swarm.store, clock, seed, 40, requests, tokens, 3)
    for minute in range(3):
        assert requests is None or sent[minute] <= requests
        assert tokens is None or used[minute] <= tokens
    # and the allowance is put to use
    share = [used[minute] / tokens if tokens else sent[minute] / (requests or 1) for minute in range(3)]
    assert min(share) > 0.6, share


async def test_unused_share_expires_with_its_minute() -> None:
    clock = LeapingClock()
    async with open_test_swarm() as swarm:
        limits = [FirestoreLimits(swarm.store, clock, "gemini", 600) for _ in range(2)]
        first, second = (Limiter(clock, 600, shared=shared) for shared in limits)
        await first.admit(1)  # takes a block of ten, and uses one
        clock.pauses.clear()
        await clock.sleep(60)
        for _ in range(600):
            assert await second.admit(1) == 0
        assert await first.admit(1) == pytest.approx(60)


async def test_block_limited_by_requests_reserves_no_extra_tokens() -> None:
    clock = LeapingClock()
    async with open_test_swarm() as swarm:
        limits = FirestoreLimits(swarm.store, clock, "gemini", 10, 60_000)
        limiter = Limiter(clock, 10, 60_000, limits)
        for _ in range(5):
            await limiter.admit(10)
        data = (await swarm.store.get(limits.path)).data
    assert (data["requests"], data["tokens"]) == (5, 1_000)


async def test_rest_of_the_minute_is_granted_when_no_whole_block_is_left() -> None:
    clock = LeapingClock()
    async with open_test_swarm() as swarm:
        limits = FirestoreLimits(swarm.store, clock, "gemini", 600)
        assert await limits.take(595, 0) == 0
        limiter = Limiter(clock, 600, shared=limits)
        assert [await limiter.admit(1) for _ in range(5)] == [0.0] * 5
        assert await limiter.admit(1) == pytest.approx(60)


async def test_process_with_a_slow_clock_does_not_reset_the_minute() -> None:
    ahead, behind = LeapingClock(), LeapingClock()
    await ahead.sleep(61)
    await behind.sleep(59)
    async with open_test_swarm() as swarm:
        assert await FirestoreLimits(swarm.store, ahead, "x", 5).take(5, 0) == 0
        assert await FirestoreLimits(swarm.store, behind, "x", 5).take(1, 0) == pytest.approx(61)
        assert await FirestoreLimits(swarm.store, ahead, "x", 5).take(1, 0) == pytest.approx(59)


async def test_back_off_pauses_every_process_on_the_store() -> None:
    clock = LeapingClock()
    async with open_test_swarm() as swarm:
        first, second = (Limiter(clock, shared=FirestoreLimits(swarm.store, clock, "x")) for _ in range(2))
        await first.back_off(30)
        assert 30 <= await second.admit(1) <= 32
        assert await first.admit(1) == 0


async def test_shared_pause_is_read_at_most_once_per_interval() -> None:
    clock = LeapingClock()
    async with open_test_swarm() as swarm:
        limiter = Limiter(clock, shared=FirestoreLimits(swarm.store, clock, "x"))
        before = swarm.store.usage.reads
        for _ in range(50):
            await limiter.admit(1)
        assert swarm.store.usage.reads - before == 1


async def test_429_in_a_run_pauses_every_process_on_the_store(tmp_path: Path) -> None:
    answer = decided(text="done")
    async with open_test_swarm() as swarm:
        bench = Bench(tmp_path)
        bench.store = swarm.store
        ran = await bench.run(Heard({"error": 429, "retry_after": 30}, answer))
        assert ran.conclusion.status is ConclusionStatus.FINISHED
        data = (await swarm.store.get(FirestoreLimits(swarm.store, bench.clock, "scripted").path)).data
        assert 30 <= (data["paused_until"] - START).total_seconds() <= 33
        bench.clock = LeapingClock()  # another process, at the time of the refusal
        await bench.run(Heard(answer))
        assert 30 <= sum(bench.clock.pauses) <= 35


async def test_short_pause_does_not_end_a_longer_one_of_another_process() -> None:
    clock = LeapingClock()
    async with open_test_swarm() as swarm:
        one, other, third = (FirestoreLimits(swarm.store, clock, "x") for _ in range(3))
        assert await other.pause_left() == 0
        await one.pause(60)
        await other.pause(1)
        assert await third.pause_left() == 60
        assert await other.pause_left() == 60
        await other.pause(90)
        await clock.sleep(5)
        assert await one.pause_left() == 85
