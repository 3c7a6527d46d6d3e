"""An answer that breaks off is billed: its tokens are counted for the budgets, and the run goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from fireswarm.contracts.llm.chat import ChatMessage, ChatRequest, TokenUsage
from fireswarm.errors import ModelUnavailable
from fireswarm.llm.spend import FileLedger
from fireswarm.mind import ConclusionStatus
from tests.support.minds import PROVIDERS, Bench, Lab
from tests.support.providers import Reply

pytestmark = pytest.mark.anyio

LONG = "It has many words. " * 60
GOOD = Reply("Seven.", input_tokens=90, output_tokens=3)
BROKEN = Reply(LONG, fault="cut", input_tokens=100, output_tokens=400)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path, decision_mode="tools").set(skills__prefilter_min_score=1)
    bench.ledger = FileLedger(tmp_path / "spend.jsonl", bench.clock, "s", "r")
    return bench


def request() -> ChatRequest:
    return ChatRequest("You help. " * 40, (ChatMessage("user", "How many?"),), 1_000, None, native=False)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_answer_that_breaks_off_is_counted(provider: str, lab: Lab, bench: Bench) -> None:
    left = iter((BROKEN, GOOD))
    ran = await lab.run(bench, provider, lambda _: next(left))
    assert (ran.conclusion.status, ran.conclusion.answer) == (ConclusionStatus.FINISHED, "Seven.")
    lines = [json.loads(line)["tokens"] for line in (bench.root / "spend.jsonl").read_text().splitlines()]
    assert len(lines) == 2
    assert lines[1] == 93
    half = len(LONG) // 4 // 3
    assert lines[0] > half, "a half of the answer, and its prompt"
    assert ran.conclusion.spend.tokens == sum(lines)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("fault", ["reset", "status"])
async def test_answer_that_does_not_begin_costs_nothing(provider: str, fault: str, lab: Lab, bench: Bench) -> None:
    failed = Reply(status=500) if fault == "status" else Reply(LONG, fault=fault)
    left = iter((failed, GOOD))
    await lab.run(bench, provider, lambda _: next(left))
    assert [json.loads(line)["tokens"] for line in (bench.root / "spend.jsonl").read_text().splitlines()] == [93]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_answer_that_is_cancelled_is_counted(provider: str, lab: Lab) -> None:
    def cancel(text: str) -> None:
        raise anyio.get_cancelled_exc_class()

    told: list[TokenUsage] = []
    adapter = lab.adapter(provider, lambda _: Reply(LONG, input_tokens=100))
    with pytest.raises(anyio.get_cancelled_exc_class()):
        await adapter.complete(request(), cancel, told.append)
    [usage] = told
    assert usage.prompt_tokens >= 100 and usage.output_tokens > 0


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_pieces_that_are_no_answer_do_not_hide_the_error(provider: str, lab: Lab) -> None:
    told: list[Any] = []
    adapter = lab.adapter(provider, lambda _: Reply('data: {"type": 5, "choices": 7}\n\n', fault="shape"))
    with pytest.raises(ModelUnavailable):
        await adapter.complete(request(), str, told.append)
