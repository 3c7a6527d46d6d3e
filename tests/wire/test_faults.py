"""The fault matrix: all real SDKs against a local server, through whole runs, with equal sequences of events."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from fireswarm.contracts.swarm.event import EventType
from fireswarm.mind import ConclusionStatus
from tests.support.minds import (
    CLAUDE,
    GEMINI,
    KEY,
    MODELS,
    PROVIDERS,
    TASK,
    Bench,
    Lab,
    asks_for_summary,
    command,
    decided,
)
from tests.support.providers import Received, Reply, in_order
from tests.support.wire_bodies import asks_natively, system_of, turns_of

pytestmark = pytest.mark.anyio

GOOD = Reply(decided(text="hello Ada"))
RETRIES = 20
FIXTURES = Path(__file__).parents[1] / "fixtures" / "provider_responses"


@dataclass(frozen=True)
class Scenario:
    """The server's replies in order, the expected number of requests, and the expected end of the run."""

    replies: tuple[Reply, ...]
    requests: int
    ending: ConclusionStatus = ConclusionStatus.FINISHED
    reason: str = "finished"
    streams: tuple[bool, ...] = (True, False)
    providers: tuple[str, ...] = PROVIDERS


def once(reply: Reply, **fields: Any) -> Scenario:
    """Make a scenario of one faulty reply and then a good one."""
    return Scenario((reply, GOOD), 2, **fields)


def for_good(status: int, requests: int = 1, message: str = "no") -> Scenario:
    reply = Reply(status=status, message=message)
    return Scenario((reply,), requests, ConclusionStatus.FAILED, "model_rejected")


SCENARIOS: dict[str, Scenario] = {
    "plain answer": Scenario((GOOD,), 1),
    "429 with Retry-After in seconds": once(Reply(status=429, headers=(("retry-after", "7"),))),
    "429 with Retry-After in milliseconds": once(Reply(status=429, headers=(("retry-after-ms", "1500"),))),
    "429 without Retry-After": once(Reply(status=429)),
    "529": once(Reply(status=529)),
    "503": once(Reply(status=503)),
    "500": once(Reply(status=500)),
    "504": once(Reply(status=504)),
    "408": once(Reply(status=408)),
    "409": once(Reply(status=409)),
    "connection reset": once(Reply(fault="reset")),
    "answer cut": once(Reply(GOOD.text, fault="cut")),
    "first byte too late": once(Reply(GOOD.text, fault="slow")),
    "malformed JSON": once(Reply(GOOD.text, fault="malformed")),
    "JSON that is no answer": once(Reply('{"content": 5, "candidates": "none"}', fault="shape"), streams=(False,)),
    "a list instead of an answer": once(Reply("[1, 2]", fault="shape"), streams=(False,)),
    "a page of HTML": once(Reply("<html>busy</html>", fault="shape")),
    "an empty body": once(Reply("", fault="shape")),
    "an error in the stream": once(Reply(GOOD.text, fault="error_event"), streams=(True,)),
    "an empty answer": once(Reply("")),
    "refusal": Scenario((Reply("I will not.", stop="refusal"),), 1, ConclusionStatus.FAILED, "decision_invalid"),
    "max_tokens, then repaired": once(Reply(GOOD.text[:20], stop="max_tokens")),
    "max_tokens twice": Scenario(
        (Reply(GOOD.text[:20], stop="max_tokens"),), 2, ConclusionStatus.FAILED, "decision_invalid"
    ),
    "the schema is not taken": once(Reply(status=400, message="the schema is too complex")),
    "400": for_good(400, 2),
    "400 for the key": for_good(400, 1, "API key not valid. Please pass a valid API key."),
    "401": replace(
        for_good(401), providers=("anthropic", "anthropic-bedrock", "gemini", "openai")
    ),  # Vertex: see below
    "403": for_good(403),
    "404": for_good(404),
    "413": Scenario((Reply(status=413),), 1, ConclusionStatus.FAILED, "prompt_too_long"),
    "retries exhausted": Scenario((Reply(status=503),), RETRIES + 1, ConclusionStatus.FAILED, "model_unavailable"),
}


SLOW_SECONDS = 3.0
"""Limit for the first byte, also of the good answer that follows: on a busy machine that takes a second."""


def bench_in(folder: Path, **values: Any) -> Bench:
    folder.mkdir()
    return Bench(folder).set(runtime__max_turns=4, **values)


@pytest.mark.parametrize(
    ("name", "stream"),
    [
        pytest.param(name, stream, id=f"{name}, {'streaming' if stream else 'whole'}")
        for name, scenario in SCENARIOS.items()
        for stream in scenario.streams
    ],
)
async def test_fault_produces_the_same_events_with_all_providers(
    name: str, stream: bool, lab: Lab, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    scenario = SCENARIOS[name]
    sequences: list[list[str]] = []
    for provider in scenario.providers:
        bench = bench_in(tmp_path / provider, model__stream=stream)
        async with contextlib.AsyncExitStack() as stack:
            at = lab
            if any(reply.fault == "slow" for reply in scenario.replies):
                hurried = bench.settings.model_copy(
                    update={"model": bench.settings.model.model_copy(update={"request_timeout_seconds": SLOW_SECONDS})}
                )
                at = await stack.enter_async_context(lab.with_model(provider, hurried))
            ran = await at.run(bench, provider, in_order(*scenario.replies))
        assert (ran.conclusion.status, ran.conclusion.reason) == (scenario.ending, scenario.reason), ran.conclusion
        sent = ran.of(EventType.LLM_REQUEST_SENT)
        assert len(lab.served.calls) == len(sent) == scenario.requests  # the SDK itself repeats nothing
        assert KEY not in ran.log
        sequences.append(ran.kinds)
    for provider, sequence in zip(scenario.providers, sequences, strict=True):
        assert sequence == sequences[0], provider
    assert sequences[0] == snapshot(name=name)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("header", "value", "least", "most"),
    [
        ("retry-after", "7", 7.0, 7.7),
        ("retry-after-ms", "1500", 1.5, 1.65),
        ("retry-after", "60", 60.0, 66.0),
        ("retry-after", "nonsense", 0.0, 1.0),
        ("retry-after", "-5", 0.0, 1.0),
    ],
)
async def test_retry_after_is_honoured(
    provider: str, header: str, value: str, least: float, most: float, lab: Lab, tmp_path: Path
) -> None:
    bench = bench_in(tmp_path / "x")
    await lab.run(bench, provider, in_order(Reply(status=429, headers=((header, value),)), GOOD))
    assert least <= sum(bench.clock.pauses) <= most


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("value", "until"),
    [
        ("600", "2026-01-01 00:10:00"),
        ("21600", "2026-01-01 06:00:00"),
        ("a date in nine days", "2026-01-08 00:00:00"),
    ],
)
async def test_long_pause_ends_the_run(provider: str, value: str, until: str, lab: Lab, tmp_path: Path) -> None:
    bench = bench_in(tmp_path / "x")
    if value.startswith("a date"):  # seven days are the longest pause that is believed
        value = format_datetime(datetime.now(UTC) + timedelta(days=9), usegmt=True)
    ran = await lab.run(bench, provider, in_order(Reply(status=429, headers=(("retry-after", value),)), GOOD))
    assert (ran.conclusion.status, ran.conclusion.reason) == (ConclusionStatus.BLOCKED, "model_paused")
    assert f"requests a pause until {until} UTC" in ran.conclusion.answer
    assert (bench.clock.pauses, len(lab.served.calls)) == ([], 1)


@pytest.mark.parametrize("provider", GEMINI)
async def test_retry_delay_in_a_gemini_error_body_is_honoured(provider: str, lab: Lab, tmp_path: Path) -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}
    bench = bench_in(tmp_path / "x")
    await lab.run(bench, provider, in_order(Reply(status=429, details=({"@type": "quota"}, info)), GOOD))
    assert 17 <= sum(bench.clock.pauses) <= 18.7


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("stream", [True, False])
async def test_cached_and_thinking_tokens_are_counted_once(
    provider: str, stream: bool, lab: Lab, tmp_path: Path
) -> None:
    names = ("claude-sonnet-5-5", "gemini-3.8-flash", MODELS["openai"])
    prices = {name: {"input": 2.0, "output": 10.0, "cached": 0.2} for name in names}
    bench = bench_in(tmp_path / "x", model__stream=stream, budget__prices=prices)
    reply = Reply(GOOD.text, input_tokens=1_000, cached_tokens=600, output_tokens=50, thinking_tokens=30)
    ran = await lab.run(bench, provider, (reply,))
    [told] = ran.of(EventType.LLM_RESPONSE_RECEIVED)
    counted = {key: told[key] for key in ("input_tokens", "output_tokens", "cached_tokens", "thinking_tokens")}
    assert counted == {"input_tokens": 1_000, "output_tokens": 50, "cached_tokens": 600, "thinking_tokens": 30}
    assert told["usd"] == pytest.approx((400 * 2.0 + 600 * 0.2 + 50 * 10.0) / 1e6)
    assert ran.conclusion.spend.tokens == 1_050
    assert ran.conclusion.spend.usd == pytest.approx(told["usd"])


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_streamed_pieces_add_up_to_the_answer(provider: str, lab: Lab, tmp_path: Path) -> None:
    pieces: list[str] = []
    ran = await lab.run(bench_in(tmp_path / "x"), provider, (GOOD,), words=pieces.append)
    assert ran.conclusion.status is ConclusionStatus.FINISHED
    assert len(pieces) > 1
    assert "".join(pieces) == GOOD.text


# ── structured output ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("mode", "native"), [("native_with_json_fallback", True), ("native_only", True), ("json_only", False)]
)
async def test_structured_output_mode_selects_schema_or_prompt(
    provider: str, mode: str, native: bool, lab: Lab, tmp_path: Path
) -> None:
    bench = bench_in(tmp_path / "x", model__structured_output_mode=mode)
    ran = await lab.run(bench, provider, (GOOD,))
    assert ran.conclusion.status is ConclusionStatus.FINISHED
    [request] = lab.served.calls
    assert asks_natively(provider, request.body) is native
    assert ("The JSON Schema of an answer" in system_of(provider, request.body)) is not native


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_run_continues_without_a_schema_after_a_400(provider: str, lab: Lab, tmp_path: Path) -> None:
    def script(request: Received) -> Reply:
        if asks_natively(provider, request.body):
            return Reply(status=400, message="schemas are not supported")
        return Reply(decided(command(f"echo {request.answers}"))) if request.answers < 2 else GOOD

    ran = await lab.run(bench_in(tmp_path / "x"), provider, script)
    assert ran.conclusion.status is ConclusionStatus.FINISHED
    natively = [sent["native"] for sent in ran.of(EventType.LLM_REQUEST_SENT)]
    assert natively == [True, False, False, False]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_native_only_mode_fails_at_once_on_an_invalid_answer(provider: str, lab: Lab, tmp_path: Path) -> None:
    bench = bench_in(tmp_path / "x", model__structured_output_mode="native_only")
    ran = await lab.run(bench, provider, (Reply("no JSON"), GOOD))
    assert ran.conclusion.reason == "decision_invalid"
    assert len(lab.served.calls) == 1
    ran = await lab.run(bench, provider, in_order(Reply(status=400, message="no schemas"), GOOD))
    assert ran.conclusion.reason == "model_rejected"
    assert len(lab.served.calls) == 1


@pytest.mark.parametrize("provider", CLAUDE)
@pytest.mark.parametrize("stream", [True, False])
async def test_decision_of_claude_can_be_requested_with_a_strict_tool(
    stream: bool, provider: str, lab: Lab, tmp_path: Path
) -> None:
    bench = bench_in(tmp_path / "x", model__stream=stream)
    async with lab.with_model(provider, bench.settings, structured_output="tool") as at:
        ran = await at.run(bench, provider, (Reply(decided(command("echo hi"))), GOOD))
    assert ran.conclusion.status is ConclusionStatus.FINISHED, ran.conclusion
    body = lab.served.calls[0].body
    assert body["tools"][0]["strict"] is True
    assert body["tool_choice"] == {"type": "tool", "name": "decide"}
    assert "output_config" not in body


# ── prompt caching ──────────────────────────────────────────────────────────────────────────────────────


def elements(provider: str, body: dict[str, Any]) -> list[bytes]:
    """Return system text and messages as bytes, in the order in which a provider's cache compares them."""
    return [json.dumps(part).encode() for part in (system_of(provider, body), *turns_of(provider, body))]


def ten_turns(request: Received) -> Reply:
    if request.answers == 9:
        return GOOD
    return Reply(decided(command(f"echo turn {request.answers}; seq 1 40")))


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_prompt_prefix_stays_identical_over_ten_turns(provider: str, lab: Lab, tmp_path: Path) -> None:
    bench = bench_in(tmp_path / "x").set(runtime__max_turns=12)
    ran = await lab.run(bench, provider, ten_turns)
    assert ran.conclusion.status is ConclusionStatus.FINISHED, ran.conclusion
    prompts = [elements(provider, call.body) for call in lab.served.calls]
    assert len(prompts) == 10
    for earlier, later in pairwise(prompts):
        assert later[: len(earlier)] == earlier
        assert len(later) == len(earlier) + 2
    raw = [call.raw for call in lab.served.calls]
    wire = b'"contents":[' if provider in GEMINI else b'"messages":['
    assert all(wire in body.replace(b'": ', b'":') for body in raw)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_prompt_prefix_changes_only_when_a_summary_is_made(provider: str, lab: Lab, tmp_path: Path) -> None:
    bench = bench_in(tmp_path / "x").set(
        runtime__max_turns=20, model__max_context_tokens=3_000, model__response_headroom_tokens=500
    )
    turns = iter(range(14))

    def script(request: Received) -> Reply:
        tokens = sum(map(len, elements(provider, request.body))) // 4
        if asks_for_summary(request):
            return Reply("Turns were counted.", input_tokens=tokens)
        if (turn := next(turns, None)) is None:
            return Reply(GOOD.text, input_tokens=tokens)
        return Reply(decided(command(f"echo turn {turn}; seq 1 200")), input_tokens=tokens)

    ran = await lab.run(bench, provider, script)
    assert ran.conclusion.status is ConclusionStatus.FINISHED, ran.conclusion
    prompts = [elements(provider, call.body) for call in lab.served.calls if not asks_for_summary(call)]
    broken = [later[: len(earlier)] != earlier for earlier, later in pairwise(prompts)]
    trimmed = [bool(budget["trimmed"]) for budget in ran.of(EventType.PROMPT_BUDGET_COMPUTED)][1:]
    assert broken == trimmed
    assert 1 <= sum(trimmed) <= 5
    assert all(prompt[0] == prompts[0][0] for prompt in prompts)  # the system text
    assert all(TASK.encode() in prompt[1] for prompt in prompts)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_provider_counts_tokens_only_when_the_prompt_is_near_its_limit(
    provider: str, lab: Lab, tmp_path: Path
) -> None:
    bench = bench_in(tmp_path / "x")
    await lab.run(bench, provider, (GOOD,))
    assert [request.kind for request in lab.served.received] == ["generate"]
    bench.set(model__max_context_tokens=5_000, model__response_headroom_tokens=200)
    ran = await lab.run(bench, provider, (GOOD,), system="word " * 2_200)
    counts = provider not in ("anthropic-bedrock", "openai")  # these have no count, so the estimate stays
    assert [request.kind for request in lab.served.received] == (["count"] if counts else []) + ["generate"]
    [budget] = ran.of(EventType.PROMPT_BUDGET_COMPUTED)
    assert budget["counted_by"] == ("provider" if counts else "estimate")


# ── recorded answers of both providers ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("stream", [True, False])
async def test_recorded_answer_is_parsed_with_its_token_counts(
    provider: str, stream: bool, lab: Lab, tmp_path: Path
) -> None:
    kind = "stream.txt" if stream else "answer.json"
    recorded = (FIXTURES / f"{provider.partition('-')[0]}_{kind}").read_bytes()
    bench = bench_in(tmp_path / "x", model__stream=stream)
    ran = await lab.run(bench, provider, (Reply(recorded.decode(), fault="shape"),))
    assert ran.conclusion.status is ConclusionStatus.FINISHED, ran.conclusion
    assert ran.conclusion.answer == "The task asks for a greeting: Hello, Ada."
    [told] = ran.of(EventType.LLM_RESPONSE_RECEIVED)
    assert (told["input_tokens"], told["output_tokens"], told["thinking_tokens"]) == (412, 73, 21)
