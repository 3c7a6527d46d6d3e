"""Tool calls on the wire of each provider, through its own SDK, against a server as strict as the API."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from fireswarm.capabilities.workspace.writing import workspace_tools
from fireswarm.contracts.llm.chat import ChatMessage, ChatRequest, ToolSpec
from fireswarm.contracts.swarm.event import EventType
from fireswarm.mind import ConclusionStatus
from tests.support.experts import PIXEL
from tests.support.minds import CLAUDE, PROVIDERS, Bench, Lab, Ran
from tests.support.providers import Reply
from tests.support.wire_bodies import (
    is_streamed,
    longest_answer_of,
    may_call,
    schemas_of,
    standard,
    system_of,
    thought_signature,
    turns_of,
)

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("provider", PROVIDERS)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path, decision_mode="tools").set(skills__prefilter_min_score=1)
    (bench.cwd / "a.txt").write_text("one\n")
    (bench.cwd / "b.txt").write_text("two\n")
    return bench


async def run(lab: Lab, bench: Bench, provider: str, *replies: Reply, **assigned: Any) -> Ran:
    return await lab.run(bench, provider, replies, tools=workspace_tools(bench.cwd), **assigned)


READ_BOTH = Reply(
    "I look at both files.",
    thinking="Both are needed.",
    calls=(("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"})),
)
LOOK = Reply(calls=(("run_command", {"command": "ls"}),))


@pytest.mark.parametrize("stream", [True, False])
async def test_calls_thoughts_and_results_pass_the_providers_checks(
    stream: bool, provider: str, lab: Lab, bench: Bench
) -> None:
    bench.set(skills__prefilter_min_score=1, model__stream=stream)
    ran = await run(lab, bench, provider, READ_BOTH, LOOK, Reply("One and two.", thinking="Now I know."))
    assert (ran.conclusion.status, ran.conclusion.answer) == (ConclusionStatus.FINISHED, "One and two.")
    assert ran.of(EventType.LLM_REQUEST_FAILED) == []
    assert lab.served.refused == []
    sent = turns_of(provider, lab.served.calls[-1].body)
    assert "     1\\tone" in json.dumps(sent) and "     1\\ttwo" in json.dumps(sent)
    assert thought_signature(provider, "Both are needed.", "read_file") in standard(sent)


async def test_each_request_begins_with_the_one_before_byte_for_byte(provider: str, lab: Lab, bench: Bench) -> None:
    await run(
        lab, bench, provider, READ_BOTH, LOOK, Reply(calls=(("run_command", {"command": "pwd"}),)), Reply("Done.")
    )
    requests = [call.body for call in lab.served.calls]
    turns = [turns_of(provider, body) for body in requests]
    assert len(turns) == 4
    for before, after in zip(turns, turns[1:], strict=False):
        assert json.dumps(after[: len(before)]) == json.dumps(before)
    assert len({json.dumps(body["tools"]) for body in requests}) == 1
    assert len({system_of(provider, body) for body in requests}) == 1


async def test_cache_reaches_up_to_the_last_message(provider: str, lab: Lab, bench: Bench) -> None:
    many = Reply(calls=tuple(("run_command", {"command": f"echo {number}"}) for number in range(15)))
    await run(lab, bench, provider, LOOK, many, LOOK, Reply("Done."))
    before = 0
    for call in lab.served.calls:
        if provider in CLAUDE:  # the end of the request before is marked, as it was then, however many blocks follow
            messages = call.body["messages"]
            for place in {max(0, before - 1), len(messages) - 1}:
                assert messages[place]["content"][-1]["cache_control"] == {"type": "ephemeral"}
            assert call.body["system"][0]["cache_control"] == {"type": "ephemeral"}
            assert json.dumps(call.body).count('"cache_control"') <= 3
            before = len(messages)
        else:  # the others cache prefixes by themselves
            assert "cachedContent" not in call.body and "cache_control" not in json.dumps(call.body)


async def test_cache_holds_the_tools_that_all_roles_have_apart_from_the_others(provider: str, lab: Lab) -> None:
    shared, own = (ToolSpec(name, "Says something.", {"type": "object"}, name == "own") for name in ("say", "own"))
    model = lab.adapter(provider, [Reply("Hello.")])
    for tools in ((shared, own), (shared,)):
        await model.complete(ChatRequest("Be kind.", (ChatMessage("user", "Hi."),), 100, tools=tools))
    assert lab.served.refused == []
    bodies = [json.dumps(call.body.get("tools")) for call in lab.served.calls]
    marked = ['{"type": "ephemeral"}' in body.partition('"own"')[0] for body in bodies]
    assert marked == [provider in CLAUDE, False]
    assert all(json.dumps(call.body).count('"cache_control"') <= 4 for call in lab.served.calls)


async def test_image_is_sent_as_an_image(provider: str, lab: Lab, bench: Bench) -> None:
    (bench.cwd / "dot.png").write_bytes(PIXEL)
    await run(lab, bench, provider, Reply(calls=(("read_file", {"path": "dot.png"}),)), Reply("A dot."))
    assert base64.b64encode(PIXEL).decode() in standard(lab.served.calls[-1].body)
    assert lab.served.refused == []


async def test_schemas_are_sent_with_descriptions_bounds_and_nested_properties(
    provider: str, lab: Lab, bench: Bench
) -> None:
    await run(lab, bench, provider, Reply("Done."))
    schemas = schemas_of(provider, lab.served.calls[0].body)
    assert schemas["read_file"]["properties"]["offset"]["minimum"] == 1
    assert schemas["todo"]["properties"]["items"]["items"]["properties"]["state"]["enum"][0] == "pending"
    assert "description" in schemas["run_command"]["properties"]["command"]


async def test_last_turn_forbids_calls_without_changing_the_tools(provider: str, lab: Lab, bench: Bench) -> None:
    bench.set(skills__prefilter_min_score=1, runtime__max_turns=2)
    ran = await run(lab, bench, provider, LOOK, Reply("Done."))
    assert ran.conclusion.answer == "Done."
    first, last = (call.body for call in lab.served.calls)
    assert first["tools"] == last["tools"]
    assert (may_call(provider, first), may_call(provider, last)) == (True, False)


async def test_answer_has_the_tokens_that_the_settings_allow(provider: str, lab: Lab, bench: Bench) -> None:
    bench.set(skills__prefilter_min_score=1, model__max_tokens=12_000)
    await run(lab, bench, provider, Reply("Done."))
    assert longest_answer_of(provider, lab.served.calls[0].body) == 12_000


async def test_refusal_ends_the_run_with_the_reason(provider: str, lab: Lab, bench: Bench) -> None:
    ran = await run(lab, bench, provider, Reply("I will not.", stop="refusal"))
    assert ran.conclusion.status is ConclusionStatus.FAILED
    assert "refused to answer" in ran.conclusion.answer


async def test_text_is_streamed_as_text_without_the_input_of_calls(provider: str, lab: Lab, bench: Bench) -> None:
    heard: list[str] = []
    await run(lab, bench, provider, READ_BOTH, Reply("One and two."), words=heard.append)
    assert "".join(heard) == "I look at both files.One and two."


async def test_secrets_are_cleaned_and_signed_thoughts_stay_as_they_are(provider: str, lab: Lab, bench: Bench) -> None:
    secret = "ghp_" + "a1B2" * 9
    (bench.cwd / "dot.png").write_bytes(PIXEL + b"AKIA" + b"A1B2" * 4)
    calls = (("run_command", {"command": f"echo {secret}"}), ("read_file", {"path": "dot.png"}))
    ran = await run(lab, bench, provider, Reply(f"It is {secret}.", thinking="Hm.", calls=calls), Reply(f"{secret}!"))
    assert ran.conclusion.status is ConclusionStatus.FINISHED
    last = standard(lab.served.calls[-1].body)
    assert base64.b64encode((bench.cwd / "dot.png").read_bytes()).decode() in last
    assert thought_signature(provider, "Hm.", "run_command") in last
    for text in (last, ran.conclusion.answer, *(path.read_text() for path in ran.folder.glob("*.jsonl"))):
        assert secret not in text


async def test_model_is_told_that_a_secret_in_a_call_was_replaced(provider: str, lab: Lab, bench: Bench) -> None:
    secret = "ghp_" + "a1B2" * 9
    calls = (("write_file", {"path": "env", "content": f"URL=x\nTOKEN={secret}\n"}), ("read_file", {"path": "env"}))
    await run(lab, bench, provider, Reply(calls=calls), Reply("Done."))
    assert (bench.cwd / "env").read_text() == "URL=x\nTOKEN=[redacted]\n"
    said = standard(lab.served.calls[-1].body)
    assert said.count("was replaced by [redacted] before the call") == 1
    assert "environment" in said


async def test_answer_cut_at_its_limit_is_not_taken_and_its_calls_are_not_executed(
    provider: str, lab: Lab, bench: Bench
) -> None:
    cut = Reply("I wri", stop="max_tokens", thinking="Hm.", calls=(("run_command", {"command": "touch cut"}),))
    ran = await run(lab, bench, provider, cut, Reply("Done."))
    assert ran.conclusion.answer == "Done.", (ran.conclusion, lab.served.refused)
    assert not (bench.cwd / "cut").exists()
    assert len(lab.served.calls) == 2


async def test_prompt_that_is_too_long_ends_the_run_with_the_setting_to_change(
    provider: str, lab: Lab, bench: Bench
) -> None:
    message = {
        "gemini": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "openai": "This model's maximum context length is 8192 tokens. Please reduce the length of the messages.",
    }.get(provider.partition("-")[0], "prompt is too long: 204999 tokens > 200000 maximum")
    ran = await run(lab, bench, provider, Reply(status=400, message=message))
    assert ran.conclusion.reason == "prompt_too_long"
    assert "lower model.max_context_tokens" in ran.conclusion.answer
    assert len(lab.served.calls) == 1


async def test_long_thought_and_many_calls_in_one_answer_pass(provider: str, lab: Lab, bench: Bench) -> None:
    names = ("a.txt", "b.txt", 'no\n"such\u00e9\U0001f600')
    calls = tuple(("read_file", {"path": name, "offset": at}) for name in names for at in range(1, 6))
    ran = await run(lab, bench, provider, Reply("", thinking="So " * 20_000, calls=calls), Reply("Done."))
    assert ran.conclusion.answer == "Done.", (ran.conclusion, lab.served.refused)
    assert lab.served.refused == []


async def test_answer_is_streamed_though_it_is_not_shown(provider: str, lab: Lab, bench: Bench) -> None:
    """A whole answer of thousands of tokens would take longer than the wait for the next bytes."""
    await run(lab, bench, provider, LOOK, Reply("Done."))
    assert all(is_streamed(provider, request) for request in lab.served.calls)
