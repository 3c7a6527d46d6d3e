"""Answers that are complete and paid for, but odd: each is taken once, and the run goes on."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from fireswarm.capabilities.workspace.writing import workspace_tools
from fireswarm.contracts.swarm.event import EventType
from fireswarm.mind import ConclusionStatus
from tests.support.experts import PIXEL
from tests.support.minds import Bench, Lab, Ran
from tests.support.providers import Reply

DIRECT = ("anthropic", "gemini", "openai")
pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("provider", DIRECT)]


def nested(levels: int) -> Any:
    return "x" if levels == 0 else {"a": nested(levels - 1)}


def whole(provider: str, text: str, given: Any = None, stop: str = "") -> Reply:
    """An answer with a text and a call of ``read_file`` with more inputs, in the provider's form, as JSON text."""
    if provider == "anthropic":
        blocks: list[Any] = [{"type": "text", "text": text}]
        if given is not None:
            blocks.append({"type": "tool_use", "id": "t1", "name": "read_file", "input": given})
        usual = "tool_use" if given is not None else "end_turn"
        usage = {"input_tokens": 10, "output_tokens": 5}
        fields = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
        body: dict[str, Any] = {**fields, "content": blocks, "stop_reason": stop or usual, "usage": usage}
    elif provider == "gemini":
        parts: list[Any] = [{"text": text}]
        if given is not None:
            parts.append({"functionCall": {"name": "read_file", "args": given}})
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": stop or "STOP"}
        body = {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5}}
    else:
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if given is not None:
            function = {"name": "read_file", "arguments": json.dumps(given)}
            message["tool_calls"] = [{"id": "c1", "type": "function", "function": function}]
        choice = {"index": 0, "message": message, "finish_reason": stop or ("tool_calls" if given else "stop")}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        body |= {"usage": usage}
    return Reply(json.dumps(body), fault="shape")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path, decision_mode="tools").set(skills__prefilter_min_score=1, model__stream=False)
    (bench.cwd / "a.txt").write_text("one\n")
    return bench


async def run(lab: Lab, bench: Bench, provider: str, *replies: Reply) -> Ran:
    ran = await lab.run(bench, provider, replies, tools=workspace_tools(bench.cwd))
    assert lab.served.refused == []
    return ran


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"path": "\ud800"}, "does not exist"),
        ({"path": "a.txt", "more": nested(30)}, "nested more than"),
        ({"path": "a.txt", "more": 2**70}, "does not fit into 64 bits"),
    ],
)
async def test_call_with_an_input_that_cannot_be_stored_is_told_why(
    given: Any, told: str, provider: str, lab: Lab, bench: Bench
) -> None:
    ran = await run(lab, bench, provider, whole(provider, "I look.", given), Reply("Done."))
    assert (ran.conclusion.status, ran.conclusion.answer) == (ConclusionStatus.FINISHED, "Done.")
    assert len(lab.served.calls) == 2, "the answer was taken the first time"
    assert ran.of(EventType.LLM_REQUEST_FAILED) == []
    [step] = ran.of(EventType.SKILL_STEP_EXECUTED)
    assert told in f"{step['stdout_summary']}{step['stderr_summary']}"


async def test_lone_surrogates_in_a_text_are_replaced(provider: str, lab: Lab, bench: Bench) -> None:
    first = whole(provider, "odd \ud800 text", {"path": "a.txt"})
    ran = await run(lab, bench, provider, first, whole(provider, "Done \udfff."))
    assert (ran.conclusion.status, ran.conclusion.answer) == (ConclusionStatus.FINISHED, "Done \ufffd.")
    assert len(lab.served.calls) == 2


async def test_answer_nested_without_end_is_malformed_and_no_crash(provider: str, lab: Lab, bench: Bench) -> None:
    depth = 100_000
    endless = whole(provider, "x", {"path": 0}).text.replace("0}", "[" * depth + "]" * depth + "}")
    replies = iter([Reply(endless, fault="shape"), Reply("Done.")])
    ran = await lab.run(bench, provider, lambda _: next(replies), tools=workspace_tools(bench.cwd))
    assert (ran.conclusion.status, ran.conclusion.answer) == (ConclusionStatus.FINISHED, "Done.")


@pytest.mark.parametrize("blank", ["", "\n\n"])
@pytest.mark.parametrize("given", [{"path": "a.txt"}, None])
async def test_text_without_words_is_not_sent_back(
    given: Any, blank: str, provider: str, lab: Lab, bench: Bench
) -> None:
    """The providers give such texts before calls, and refuse them in a request."""
    ran = await run(lab, bench, provider, whole(provider, blank, given), Reply("Done."))
    assert (ran.conclusion.status, ran.conclusion.answer) == (ConclusionStatus.FINISHED, "Done.")


async def test_images_follow_the_results_of_all_calls(provider: str, lab: Lab, bench: Bench) -> None:
    for name in ("a.png", "b.png"):
        (bench.cwd / name).write_bytes(PIXEL)
    look = Reply(calls=(("read_file", {"path": "a.png"}), ("read_file", {"path": "b.png"})))
    await run(lab, bench, provider, look, Reply("Two dots."))
    body = lab.served.calls[-1].body
    last = (body.get("contents") or body["messages"])[-1]
    if provider == "gemini":
        kinds = [next(iter(part.keys() - {"thoughtSignature"})) for part in last["parts"]]
        assert kinds == ["functionResponse", "functionResponse", "text", "inlineData", "text", "inlineData"]
    assert str(body).count(base64.b64encode(PIXEL).decode()[:40].replace("+", "-").replace("/", "_")) == 2 or (
        str(body).count(base64.b64encode(PIXEL).decode()[:40]) == 2
    )
