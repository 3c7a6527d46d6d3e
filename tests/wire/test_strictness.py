"""The local servers refuse what the providers refuse, so that a run that passes them says something."""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from fireswarm.contracts.llm.chat import ChatMessage, ChatRequest, ChatResponse, ToolOutput, ToolSpec
from fireswarm.errors import ModelRejected
from tests.support.minds import CLAUDE, PROVIDERS, Lab
from tests.support.providers import Reply

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("provider", PROVIDERS)]

ADD = ToolSpec("add", "Add two numbers.", {"type": "object", "properties": {"a": {"type": "integer"}}})
ASKED = ChatRequest("You add.", (ChatMessage("user", "Add 1 and 2."),), 500, tools=(ADD,))
CALLS = Reply("I add.", thinking="Twice.", calls=(("add", {"a": 1}), ("add", {"a": 2})))


@pytest.fixture
async def lab(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Lab]:
    async with Lab.open(monkeypatch) as opened:
        yield opened


async def first_answer(lab: Lab, provider: str) -> ChatResponse:
    """Return the model's answer to ASKED: a thought and two calls."""
    lab.served.script = [CALLS, Reply("3")]
    lab.models[provider] = lab.model(provider)
    return await lab.models[provider].complete(fresh())


def fresh() -> ChatRequest:
    """Return ASKED with messages that no adapter has converted."""
    return replace(ASKED, messages=(ChatMessage("user", "Add 1 and 2."),))


def continued(answer: ChatResponse, *outputs: int, content: Any = None) -> ChatRequest:
    """Return the next request, with the results of the calls by number."""
    given = list(answer.content) if content is None else content
    results = tuple(ToolOutput(call_id=answer.calls[at].id, name="add", text=str(at)) for at in outputs)
    spoken = ChatMessage("assistant", answer.text, content=given)
    return replace(ASKED, messages=(*fresh().messages, spoken, ChatMessage("user", "And?", outputs=results)))


async def refusal(lab: Lab, provider: str, request: ChatRequest) -> ModelRejected:
    """Return the error of a request that the server refuses with 400."""
    with pytest.raises(ModelRejected) as refused:
        await lab.models[provider].complete(request)
    assert refused.value.status == 400
    return refused.value


async def test_answer_with_its_results_is_accepted(provider: str, lab: Lab) -> None:
    answer = await first_answer(lab, provider)
    assert [call.input for call in answer.calls] == [{"a": 1}, {"a": 2}]
    assert (await lab.models[provider].complete(continued(answer, 0, 1))).text == "3"
    assert lab.served.refused == []


async def test_call_without_its_result_is_refused(provider: str, lab: Lab) -> None:
    answer = await first_answer(lab, provider)
    await refusal(lab, provider, continued(answer, 0))


async def test_result_without_its_call_is_refused(provider: str, lab: Lab) -> None:
    answer = await first_answer(lab, provider)
    stray = ToolOutput(call_id="toolu_other", name="other", text="9")
    await refusal(lab, provider, replace(ASKED, messages=(ChatMessage("user", "And?", outputs=(stray,)),)))
    request = continued(answer, 0, 1)
    more = replace(request.messages[-1], wire=None, outputs=(*request.messages[-1].outputs, stray))
    await refusal(lab, provider, replace(request, messages=(*request.messages[:-1], more)))


async def test_changed_thought_or_signature_is_refused(provider: str, lab: Lab) -> None:
    answer = await first_answer(lab, provider)
    content = copy.deepcopy(list(answer.content))
    for block in content:
        for name in ("signature", "thought_signature"):
            if name in block:
                block[name] = ("B" if block[name][0] == "A" else "A") + block[name][1:]
    assert content != list(answer.content)
    error = await refusal(lab, provider, continued(answer, 0, 1, content=content))
    assert "thinking" in str(error) or "thought signature" in str(error).lower()


async def test_schema_that_the_provider_refuses_is_refused(provider: str, lab: Lab) -> None:
    await first_answer(lab, provider)
    text = replace(ADD, parameters={"type": "string"})
    await refusal(lab, provider, replace(fresh(), tools=(text,)))
    if provider in CLAUDE:
        for keyword in ("oneOf", "anyOf", "allOf"):
            either = replace(ADD, parameters=ADD.parameters | {keyword: [{"required": ["a"]}]})
            await refusal(lab, provider, replace(fresh(), tools=(either,)))
    unnamed = replace(ADD, name="add numbers")
    await refusal(lab, provider, replace(fresh(), tools=(unnamed,)))
    is_open = {"type": "object", "properties": {"a": {"type": "integer"}}}
    await refusal(lab, provider, replace(fresh(), tools=(), schema=is_open))


async def test_request_without_credentials_is_refused(provider: str, lab: Lab) -> None:
    await first_answer(lab, provider)
    [call] = lab.served.calls
    headers = {
        name: value
        for name, value in call.headers.items()
        if name not in ("authorization", "x-api-key", "x-goog-api-key", "content-length", "host", "x-amz-date")
    }
    if provider == "openai":
        headers["authorization"] = "Basic x"
    async with httpx2.AsyncClient() as http:
        answer = await http.post(lab.served.url + call.target, content=call.raw, headers=headers)
    direct = provider in ("anthropic", "gemini")
    assert answer.status_code == (400 if direct else 403 if provider == CLAUDE[2] else 401)
