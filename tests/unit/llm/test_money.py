"""Costs of calls, budgets, and the ledgers that record spending."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.llm.chat import TokenUsage
from fireswarm.contracts.ports import Merge
from fireswarm.contracts.swarm.event import EventType
from fireswarm.errors import BudgetExceeded
from fireswarm.llm.budget import Meter, Spend
from fireswarm.llm.spend import FileLedger, StoreLedger
from fireswarm.mind import ConclusionStatus
from fireswarm.settings.agent import BudgetSettings
from fireswarm.settings.model_limits import MODEL_LIMITS, UNKNOWN, limits_of
from tests.support.minds import Bench, LeapingClock, command, decided
from tests.support.swarm import open_test_swarm

pytestmark = pytest.mark.anyio
SCRIPT = [decided(command(f"echo {number}")) for number in range(5)] + [decided(text="done")]


def meter(model: str, **budget: Any) -> Meter:
    return Meter(BudgetSettings(**budget), model)


def test_cost_uses_a_price_per_token_kind_and_counts_thinking_as_output() -> None:
    usage = TokenUsage(
        input_tokens=1_000, output_tokens=500, cached_tokens=2_000, cache_write_tokens=100, thinking_tokens=400
    )
    usd = meter("claude-sonnet-4-6").cost(usage)
    assert usd == pytest.approx((1_000 * 3 + 500 * 15 + 2_000 * 0.3 + 100 * 3.75) / 1e6)
    assert usage.prompt_tokens == 3_100
    assert usage.total_tokens == 3_600


def test_cached_tokens_without_a_separate_price_cost_the_input_price() -> None:
    priced = meter("m", prices={"m": {"input": 1.0, "output": 2.0}})
    assert priced.cost(TokenUsage(cached_tokens=10, cache_write_tokens=10)) == pytest.approx(20 / 1e6)


@pytest.mark.parametrize(
    ("model", "like"),
    [
        ("claude-sonnet-4-6", "claude-sonnet-4-6"),
        ("claude-sonnet-4-6-20260301", "claude-sonnet-4-6"),
        ("claude-haiku-4-5-latest", "claude-haiku-4-5"),
        ("claude-opus-4-8@20260301", "claude-opus-4-8"),
        ("claude-opus-4-8@default", "claude-opus-4-8"),
        ("anthropic.claude-opus-4-8-20260301-v1:0", "claude-opus-4-8"),
        ("us.anthropic.claude-opus-4-8-v1", "claude-opus-4-8"),
        ("global.anthropic.claude-haiku-4-5-20251001-v1:0:200k", "claude-haiku-4-5"),
        ("us-gov.anthropic.claude-sonnet-5", "claude-sonnet-5"),
        (
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-6-v1:0",
            "claude-sonnet-4-6",
        ),
        ("anthropic/claude-sonnet-4.6", "claude-sonnet-4-6"),
        ("google/gemini-2.5-flash", "gemini-2.5-flash"),
        ("publishers/google/models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("anthropic/claude-sonnet-4.6:free", None),
        ("somebody/claude-sonnet-4-6", None),
        ("anthropic.claude-opus-4-8-turbo-v1:0", None),
        ("llama3.1:8b", None),
        ("", None),
        ("gemini-2.5-flash-lite", "gemini-2.5-flash-lite"),
        ("claude-sonnet-5-7", None),
        ("gemini-2.5-flash-image", None),
        ("my-own", None),
    ],
)
def test_only_a_dated_model_name_inherits_the_price_of_its_base_name(model: str, like: str | None) -> None:
    assert meter(model).price == (MODEL_LIMITS[like].price if like else None)


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("us.anthropic.claude-opus-9-v1:0", 200_000),
        ("claude-next@20270101", 200_000),
        ("google/gemini-9-pro", 1_000_000),
        ("anthropic/claude-sonnet-4.6:free", 200_000),
        ("qwen3:32b", UNKNOWN.window),
        ("somebody/claude-like", UNKNOWN.window),
        ("\n" * 9_000, UNKNOWN.window),
    ],
)
def test_window_follows_the_model_at_whatever_platform(model: str, window: int) -> None:
    assert limits_of(model).window == window


def test_own_price_of_the_platforms_name_comes_before_that_of_the_plain_name() -> None:
    prices = {"claude-opus-5@default": {"input": 7.0}, "claude-opus-5": {"input": 6.0}}
    assert meter("claude-opus-5@default", prices=prices).price == {"input": 7.0}
    assert meter("anthropic.claude-opus-5-v1:0", prices=prices).price == {"input": 6.0}


def test_configured_prices_override_the_table() -> None:
    assert meter("claude-sonnet-4-6", prices={"claude-sonnet-4-6": {"input": 1.0}}).price == {"input": 1.0}


@pytest.mark.parametrize(
    ("budget", "spent", "prompt", "breaks"),
    [
        ({}, Spend(9, 10**9, 10**6), 10**9, False),
        ({"task_tokens": 1_000}, Spend(1, 900), 100, False),
        ({"task_tokens": 1_000}, Spend(1, 900), 101, True),
        ({"task_usd": 0.01}, Spend(1, 0, 0.009), 400, False),
        ({"task_usd": 0.01}, Spend(1, 0, 0.009), 600, True),
        ({"task_usd": 0.01}, Spend(1, 0, 0.01), 0, True),
    ],
)
async def test_task_budget_is_checked_before_the_call(
    budget: dict[str, float], spent: Spend, prompt: int, breaks: bool
) -> None:
    held = meter("claude-sonnet-5", **budget)
    if not breaks:
        return await held.check(prompt, spent, None)
    with pytest.raises(BudgetExceeded, match="raise budget.task_"):
        await held.check(prompt, spent, None)
    return None


async def test_usd_budget_without_a_price_is_rejected_with_the_reason() -> None:
    with pytest.raises(BudgetExceeded, match=r"set budget.prices.my-own"):
        await meter("my-own", task_usd=5.0).check(1, Spend(), None)


@pytest.mark.parametrize("scope", ["session", "day"])
@pytest.mark.parametrize("unit", ["tokens", "usd"])
async def test_session_and_day_budgets_apply_across_runs(scope: str, unit: str, tmp_path: Path) -> None:
    clock = LeapingClock()

    def ledger(session: str = "s") -> FileLedger:
        return FileLedger(tmp_path / "spend.jsonl", clock, session, "r")

    await ledger().add(Spend.of_call(800, 0.8))
    held = meter("claude-sonnet-5", **{f"{scope}_{unit}": 1_000 if unit == "tokens" else 1.0})
    await held.check(100, Spend(), ledger())
    await ledger().add(Spend.of_call(200, 0.2))
    with pytest.raises(BudgetExceeded, match=f"bring the {scope} to"):
        await held.check(100, Spend(), ledger())
    if scope == "session":
        await held.check(100, Spend(), ledger("another"))
    await clock.sleep(timedelta(days=1).total_seconds())
    if scope == "day":
        await held.check(100, Spend(), ledger())


async def test_a_line_cut_off_by_a_crash_is_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "spend.jsonl"
    clock = LeapingClock()
    await FileLedger(path, clock, "s", "r").add(Spend.of_call(10, None))
    with path.open("ab") as file:
        file.write(b'{"ts": "2026-01-01T00:00:00+00:00", "session": "s\xc3')
    spent = await FileLedger(path, clock, "s", "r").session()
    assert (spent.calls, spent.tokens, spent.unpriced) == (1, 10, 1)
    await FileLedger(path, clock, "s", "r").add(Spend.of_call(5, None))
    assert (await FileLedger(path, clock, "s", "r").session()).tokens == 15


async def test_store_ledger_sums_all_processes() -> None:
    async with open_test_swarm() as swarm:
        one, other = (StoreLedger(swarm.store, swarm.clock, "s1", name) for name in ("a", "b"))
        await one.add(Spend.of_call(100, 0.1))
        await swarm.store.commit(list(one.writes()))
        await swarm.store.commit([*one.writes(), *StoreLedger(swarm.store, swarm.clock, "s2", "c").writes()] or [])
        await other.add(Spend.of_call(50, None))
        assert (await other.session()).tokens == 150
        assert (await other.day()).calls == 2
        await one.add(Spend.of_call(100, 0.1))
        await swarm.store.commit(list(one.writes()))
        assert (await other.session()).tokens == 150  # as of ten seconds ago
        await swarm.clock.advance(10)
        assert (await other.session()).tokens == 250
        await swarm.clock.advance(86_400)
        assert (await other.day()).tokens == 0
        assert (await other.session()).tokens == 250


async def test_spend_is_added_to_commits_until_one_succeeds() -> None:
    async with open_test_swarm() as swarm:
        ledger = StoreLedger(swarm.store, swarm.clock, "s1", "a")
        await ledger.add(Spend.of_call(100, 0.1))
        lost = ledger.writes()  # of a commit that failed
        assert [write.path for write in ledger.writes()] == [write.path for write in lost]
        await ledger.add(Spend.of_call(50, 0.1))  # while the commit is under way
        await swarm.store.commit(list(lost))
        ledger.mark_stored(lost)
        assert [write.data["tokens"] for write in ledger.writes() if isinstance(write, Merge)] == [150]
        await swarm.store.commit(list(again := ledger.writes()))
        ledger.mark_stored(again)
        assert ledger.writes() == []
        assert (await StoreLedger(swarm.store, swarm.clock, "s1", "b").session()).tokens == 150


async def test_exceeded_budget_ends_the_run_before_the_call(tmp_path: Path) -> None:
    bench = Bench(tmp_path).set(budget__task_tokens=1_200)
    ran = await bench.run(SCRIPT)
    assert (ran.conclusion.status, ran.conclusion.reason) == (ConclusionStatus.FAILED, "budget_exceeded")
    assert "budget.task_tokens" in ran.conclusion.answer
    assert ran.conclusion.spend.tokens <= 1_200
    assert len(ran.of(EventType.LLM_REQUEST_SENT)) == ran.conclusion.spend.calls >= 1
    assert ran.kinds[-1] == "run_failed"


async def test_each_call_is_counted_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.ledger = FileLedger(tmp_path / "spend.jsonl", bench.clock, "s", "r")
    ran = await bench.run(SCRIPT)
    assert ran.conclusion.spend.calls == 6
    assert (await bench.ledger.session()).tokens == ran.conclusion.spend.tokens
    told = sum(e["input_tokens"] + e["output_tokens"] for e in ran.of(EventType.LLM_RESPONSE_RECEIVED))
    assert told == ran.conclusion.spend.tokens
