"""What the settings give to a provider's SDK reaches its server, and what the SDK does not know is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fireswarm.mind import ConclusionStatus
from tests.support.minds import PROVIDERS, Bench, Lab, decided
from tests.support.providers import Reply

pytestmark = pytest.mark.anyio

GOOD = Reply(decided(text="hello Ada"))


def bench_in(folder: Path, **values: Any) -> Bench:
    folder.mkdir()
    return Bench(folder).set(runtime__max_turns=4, **values)


async def test_options_pass_through_to_both_providers(lab: Lab, tmp_path: Path) -> None:
    bench = bench_in(tmp_path / "x")
    thinking = {"type": "enabled", "budget_tokens": 1_024}
    async with lab.with_model("anthropic", bench.settings, effort="low", thinking=thinking) as at:
        await at.run(bench, "anthropic", (GOOD,))
    body = lab.served.calls[0].body
    assert body["thinking"] == thinking
    assert body["output_config"]["effort"] == "low"
    async with lab.with_model("gemini", bench.settings, temperature=0.5, thinking_config={"thinking_budget": 99}) as at:
        await at.run(bench, "gemini", (GOOD,))
    config = lab.served.calls[0].body["generationConfig"]
    assert config["temperature"] == 0.5
    assert list(config["thinkingConfig"].values()) == [99]


@pytest.mark.parametrize("stream", [True, False])
async def test_option_that_is_a_header_is_sent_as_one(stream: bool, lab: Lab, tmp_path: Path) -> None:
    bench = bench_in(tmp_path / "x", model__stream=stream)
    beta = {"anthropic-beta": "context-1m-2025-08-07"}
    async with lab.with_model("anthropic", bench.settings, extra_headers=beta) as at:
        ran = await at.run(bench, "anthropic", (GOOD,))
    assert ran.conclusion.status is ConclusionStatus.FINISHED, ran.conclusion
    [call] = lab.served.calls
    assert call.headers["anthropic-beta"] == beta["anthropic-beta"]
    assert "extra_headers" not in call.body


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("stream", [True, False])
async def test_unknown_sdk_options_are_reported_by_their_setting(
    provider: str, stream: bool, lab: Lab, tmp_path: Path
) -> None:
    bench = bench_in(tmp_path / "x", model__stream=stream)
    async with lab.with_model(provider, bench.settings, no_such_option=1) as at:
        ran = await at.run(bench, provider, (GOOD,))
    assert ran.conclusion.reason == "model_rejected"
    assert f"model.providers.{provider}.options" in ran.conclusion.answer
    assert not lab.served.calls
