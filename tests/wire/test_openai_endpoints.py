"""What endpoints with OpenAI's chat completions do differently, each through whole runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fireswarm.capabilities.workspace.writing import workspace_tools
from fireswarm.contracts.llm.chat import ChatMessage, ChatRequest, ToolOutput, ToolSpec
from fireswarm.contracts.skills.artifact import MediaBlock
from fireswarm.contracts.swarm.event import EventType
from fireswarm.errors import ModelRejected, ModelUnavailable
from fireswarm.llm.providers.openai import OpenAiModel
from fireswarm.mind import ConclusionStatus
from fireswarm.runs.model_adapters import make_model
from fireswarm.settings import load_agent_settings
from tests.support.minds import ENVIRONMENT, Bench, Lab, Ran, at, decided
from tests.support.provider_replies import Received
from tests.support.providers import Reply

pytestmark = pytest.mark.anyio
ADD = ToolSpec("add", "Add.", {"type": "object"})
USAGE = {"prompt_tokens": 50, "completion_tokens": 9, "total_tokens": 59}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path, decision_mode="tools").set(skills__prefilter_min_score=1)
    (bench.cwd / "a.txt").write_text("one\n")
    (bench.cwd / "b.txt").write_text("two\n")
    return bench


def streamed(*deltas: dict[str, Any], finish: str | None = "tool_calls", usage: Any = USAGE) -> Reply:
    """A stream with these pieces, written out."""
    events: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    if finish is not None:
        events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage is not None:
        events.append({"choices": [], "usage": usage})
    begin = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    text = "".join(f"data: {json.dumps(begin | event)}\n\n" for event in events)
    return Reply(text + "data: [DONE]\n\n", fault="shape")


def whole(message: dict[str, Any], finish: str = "tool_calls", usage: Any = USAGE) -> Reply:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    answer = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return Reply(json.dumps(answer | ({"usage": usage} if usage else {})), fault="shape")


def piece(index: int | None, arguments: str, name: str | None = None, call_id: str | None = None) -> dict[str, Any]:
    call: dict[str, Any] = {"function": {"arguments": arguments, **({"name": name} if name else {})}}
    call |= {"index": index} if index is not None else {}
    return {"tool_calls": [call | ({"id": call_id, "type": "function"} if call_id is not None else {})]}


READ = json.dumps({"path": "a.txt"})
READ_B = json.dumps({"path": "b.txt"})
TWO_CALLS: dict[str, Reply] = {
    "pieces side by side": streamed(
        piece(0, "", "read_file", "x1"), piece(1, "", "read_file", "x2"), piece(0, READ[:5]), piece(1, READ_B[:7]),
        piece(1, READ_B[7:]), piece(0, READ[5:]),
    ),
    "one index for all calls": streamed(piece(0, READ, "read_file", "x1"), piece(0, READ_B, "read_file", "x2")),
    "no index": streamed(piece(None, READ, "read_file", "x1"), piece(None, READ_B, "read_file", "x2")),
    "no ids": streamed(piece(0, READ, "read_file"), piece(1, READ_B, "read_file")),
    "empty ids": streamed(piece(0, READ, "read_file", ""), piece(1, READ_B, "read_file", "")),
    "the same id twice": streamed(piece(0, READ, "read_file", "x"), piece(1, READ_B, "read_file", "x")),
    "name and id again in each piece": streamed(
        piece(0, READ[:4], "read_file", "x1"), piece(0, READ[4:], "read_file", "x1"),
        piece(1, READ_B, "read_file", "x2"),
    ),
    "finished by stop": streamed(
        piece(0, READ, "read_file", "x1"), piece(1, READ_B, "read_file", "x2"), finish="stop"
    ),
    "no counts": streamed(piece(0, READ, "read_file", "x1"), piece(1, READ_B, "read_file", "x2"), usage=None),
    "thoughts as reasoning": streamed(
        {"role": "assistant", "reasoning": "Both "}, {"reasoning": "files."},
        piece(0, READ, "read_file", "x1"), piece(1, READ_B, "read_file", "x2"),
    ),
    "text in parts": streamed(
        {"role": "assistant", "content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "I read."}]},
        piece(0, READ, "read_file", "x1"), piece(1, READ_B, "read_file", "x2"),
    ),
    "fields nobody knows": streamed(
        {"role": "assistant", "content": None, "x_odd": [1]}, piece(0, READ, "read_file", "x1"), {"tool_calls": None},
        piece(1, READ_B, "read_file", "x2"), {"content": ""},
    ),
}  # fmt: skip


def last_results(lab: Lab) -> list[str]:
    return [message["content"] for message in lab.served.calls[-1].body["messages"] if message["role"] == "tool"]


async def run(lab: Lab, bench: Bench, *replies: Reply, **assigned: Any) -> Ran:
    left = list(replies)
    return await lab.run(
        bench, "openai", lambda _: left.pop(0) if left else replies[-1], tools=workspace_tools(bench.cwd), **assigned
    )


@pytest.mark.parametrize("name", TWO_CALLS)
async def test_two_calls_are_understood_however_they_are_streamed(name: str, lab: Lab, bench: Bench) -> None:
    ran = await run(lab, bench, TWO_CALLS[name], Reply("Both read."))
    assert ran.conclusion.answer == "Both read.", (ran.conclusion, lab.served.refused)
    assert ["one" in text or "two" in text for text in last_results(lab)] == [True, True]
    assert ran.of(EventType.LLM_REQUEST_FAILED) == []
    assert all(told["input_tokens"] > 0 for told in ran.of(EventType.LLM_RESPONSE_RECEIVED))


async def test_arguments_that_are_no_json_are_told_to_the_model_and_sent_back_as_json(lab: Lab, bench: Bench) -> None:
    broken = streamed(piece(0, '{"path": "a.t', "read_file", "x1"), piece(1, "[1]", "read_file", "x2"))
    ran = await run(lab, bench, broken, Reply("I give up."))
    assert ran.conclusion.answer == "I give up.", (ran.conclusion, lab.served.refused)
    first, second = last_results(lab)
    assert "not JSON" in first and "must be a JSON object" in second


async def test_arguments_may_be_missing_or_a_map(lab: Lab, bench: Bench) -> None:
    bench.set(skills__prefilter_min_score=1, model__stream=False)
    calls = [
        {"id": "x1", "type": "function", "function": {"name": "list_files", "arguments": ""}},
        {"id": "x2", "type": "function", "function": {"name": "read_file", "arguments": {"path": "a.txt"}}},
    ]
    ran = await run(lab, bench, whole({"content": "", "tool_calls": calls}), Reply("Seen."))
    assert ran.conclusion.answer == "Seen.", (ran.conclusion, lab.served.refused)
    first, second = last_results(lab)
    assert "a.txt" in first and "one" in second


@pytest.mark.parametrize("stream", [True, False])
async def test_text_in_parts_is_the_answer(stream: bool, lab: Lab, bench: Bench) -> None:
    bench.set(skills__prefilter_min_score=1, model__stream=stream)
    parts = {"content": [{"type": "text", "text": "Two "}, {"type": "other"}, 5, {"type": "text", "text": "parts."}]}
    ran = await run(lab, bench, streamed(parts, finish="stop") if stream else whole(parts, finish="stop"))
    assert ran.conclusion.answer == "Two parts."


async def test_long_refusal_of_an_endpoint_is_truncated(lab: Lab, bench: Bench) -> None:
    ran = await run(lab, bench, Reply(status=400, message="x does not support tools " + "y" * 100_000))
    assert "set model.decision_mode: json" in ran.conclusion.answer
    assert len(ran.conclusion.answer) < 1_500


async def test_content_filter_is_a_refusal(lab: Lab, bench: Bench) -> None:
    ran = await run(lab, bench, streamed({"content": "No."}, finish="content_filter"))
    assert (ran.conclusion.status, ran.conclusion.reason) == (ConclusionStatus.FAILED, "decision_invalid")


async def test_stream_without_an_end_is_repeated(lab: Lab, bench: Bench) -> None:
    ran = await run(lab, bench, streamed({"content": "Half"}, finish=None), Reply("Whole."))
    assert ran.conclusion.answer == "Whole."
    assert len(ran.of(EventType.LLM_RETRY_SCHEDULED)) == 1


@pytest.mark.parametrize(
    ("code", "retried"), [(429, True), ("502", True), (400, False), ("rate_limited", True), (None, True), (2**70, True)]
)
async def test_error_inside_a_stream_is_retried_by_its_code(code: Any, retried: bool, lab: Lab, bench: Bench) -> None:
    error = json.dumps({"error": {"message": "upstream failed", "code": code}})
    ran = await run(lab, bench, Reply(f"data: {error}\n\n", fault="shape"), Reply("Done."))
    assert (ran.conclusion.answer == "Done.") is retried
    assert [failed["retryable"] for failed in ran.of(EventType.LLM_REQUEST_FAILED)] == [retried]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (404, "No endpoints found that support tool use. To learn more about provider routing, visit: x"),
    ],
)
async def test_model_without_tools_names_the_setting_and_works_with_it(
    status: int, message: str, lab: Lab, bench: Bench
) -> None:
    def script(request: Received) -> Reply:
        if request.body.get("tools"):
            return Reply(status=status, message=message)
        return Reply(decided(text="hello Ada"))

    ran = await lab.run(bench, "openai", script)
    assert ran.conclusion.reason == "model_rejected"
    assert "set model.decision_mode: json" in ran.conclusion.answer
    assert len(ran.of(EventType.LLM_REQUEST_SENT)) == 1
    bench.decision_mode = "json"
    ran = await lab.run(bench, "openai", script)
    assert ran.conclusion.answer == "hello Ada"
    assert lab.served.calls[0].body["response_format"]["json_schema"]["strict"] is True


async def test_field_for_the_longest_answer_follows_the_endpoint(lab: Lab, bench: Bench) -> None:
    message = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    )
    ran = await run(lab, bench, Reply(status=400, message=message))
    assert "answer_limit" in ran.conclusion.answer
    async with lab.with_model("openai", bench.settings, answer_limit="max_completion_tokens") as other:
        assert (await run(other, bench, Reply("Done."))).conclusion.answer == "Done."
    assert "max_completion_tokens" in lab.served.calls[0].body
    shown = OpenAiModel("gpt-x", "key").preview(request())
    assert (shown["max_completion_tokens"], "max_tokens" in shown) == (100, False)


def request(**fields: Any) -> ChatRequest:
    return ChatRequest("Be brief.", (ChatMessage("user", "Hello."),), 100, **fields)


async def test_options_are_sent_and_null_removes_a_field(lab: Lab, bench: Bench) -> None:
    options = {
        "effort": "low",
        "temperature": 0.5,
        "stream_options": None,
        "answer_limit": "max_completion_tokens",
        "max_tokens": None,
    }
    async with lab.with_model("openai", bench.settings, **options) as other:
        assert (await run(other, bench, Reply("Done."))).conclusion.answer == "Done."
    body = lab.served.calls[0].body
    assert (body["reasoning_effort"], body["temperature"]) == ("low", 0.5)
    assert "stream_options" not in body and "max_tokens" not in body


async def test_any_json_object_can_be_asked_for_instead_of_a_schema(lab: Lab, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    async with lab.with_model("openai", bench.settings, structured_output="json_object") as other:
        ran = await other.run(bench, "openai", (Reply(decided(text="hi")),))
    assert ran.conclusion.answer == "hi"
    assert lab.served.calls[0].body["response_format"] == {"type": "json_object"}


async def test_endpoint_without_a_key_gets_no_credentials(
    lab: Lab, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "sk-of-openai-0123456789")
    settings = at(load_agent_settings(None, {}), lab.served.url, "openai")
    openai = settings.model.providers.openai.model_copy(update={"api_key_env": None})
    keyless = settings.model.model_copy(
        update={"providers": settings.model.providers.model_copy(update={"openai": openai})}
    )
    model = make_model(settings.model_copy(update={"model": keyless}), Path(), ENVIRONMENT)
    async with lab.using("openai", model) as at_it:
        for stream in (True, False):
            bench.set(skills__prefilter_min_score=1, model__stream=stream)
            assert (await run(at_it, bench, Reply("Done."))).conclusion.answer == "Done."
            [call] = lab.served.calls
            assert "sk-of-openai" not in json.dumps(call.headers)


async def test_documents_and_empty_results_are_told_as_text(lab: Lab) -> None:
    model = lab.adapter("openai", [Reply(calls=(("add", {}), ("add", {}))), Reply("ok")])
    first = await model.complete(request(tools=(ADD,)))
    pdf = ToolOutput(
        call_id=first.calls[0].id, name="add", text="", media=(MediaBlock(media_type="application/pdf", data="QQ=="),)
    )
    none = ToolOutput(call_id=first.calls[1].id, name="add", text="", failed=True)
    turns = (
        ChatMessage("user", "Hello."),
        ChatMessage("assistant", "", content=list(first.content)),
        ChatMessage("user", "", outputs=(pdf, none)),
    )
    assert (await model.complete(ChatRequest("Be brief.", turns, 100, tools=(ADD,)))).text == "ok"
    texts = [message["content"] for message in lab.served.calls[-1].body["messages"] if message["role"] == "tool"]
    assert "application/pdf: not shown" in texts[0] and texts[1]


@pytest.mark.parametrize(
    "body",
    [
        "{}", '{"choices": []}', '{"choices": null}', '{"choices": [{}]}', '{"choices": [{"message": null}]}', "[]",
        "5",
        '{"choices": [{"message": {"tool_calls": [5]}, "finish_reason": "stop"}]}',
        '{"choices": [{"message": {"content": [{"a": 1}]}, "finish_reason": 7}], "usage": {"prompt_tokens": "many"}}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("stream", [True, False])
async def test_answer_that_is_none_is_an_error_of_ours(body: str, stream: bool, lab: Lab) -> None:
    text = f"data: {body.replace('message', 'delta')}\n\ndata: [DONE]\n\n" if stream else body
    openai = lab.adapter("openai", [Reply(text, fault="shape")])
    on_text: Callable[[str], None] | None = (lambda _: None) if stream else None
    with pytest.raises((ModelUnavailable, ModelRejected)):
        await openai.complete(request(tools=(ADD,)), on_text)
