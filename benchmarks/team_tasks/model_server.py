"""A local model server that answers from a recording after a fixed time, and refuses what a provider would."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import anyio

from benchmarks.agent_tasks.chosen_model import ALWAYS, Chosen
from benchmarks.team_tasks.prompt_cache import PromptCache
from benchmarks.team_tasks.task import TeamTask, recorded_answers
from fireswarm.contracts.llm.chat import ChatMessage, ChatRequest, ToolOutput
from fireswarm.errors import ModelRejected
from fireswarm.llm.recording import recording_of
from fireswarm.llm.tokens import estimate_tokens
from fireswarm.settings import AgentSettings
from tests.support.providers import FakeProviders, Received, Reply

MODEL = "claude-sonnet-5-5"
"""The model whose prices apply to recorded answers."""

KEY_VARIABLE, KEY = "ANTHROPIC_API_KEY", "no-key-for-a-local-server"


@contextlib.asynccontextmanager
async def recorded_model(task: TeamTask, chosen: Chosen, delay_seconds: float) -> AsyncGenerator[Chosen]:
    """Serve the recorded answers of a task; yields the settings with which its runs call this server."""
    recording = recording_of(recorded_answers(task), task.recording)
    cache = PromptCache()

    async def answer(received: Received) -> Reply:
        counted = cache.count(received.body)
        await anyio.sleep(delay_seconds)
        cache.keep(counted)
        try:
            said = recording(request_of(received))
        except ModelRejected as error:
            return Reply(status=400, message=str(error))
        calls = tuple((str(call["name"]), dict(call.get("input") or {})) for call in said.get("calls", ()))
        return Reply(
            str(said.get("text", "")),
            calls=calls,
            input_tokens=counted.full + counted.read + counted.written,
            cached_tokens=counted.read,
            cache_write_tokens=counted.written,
            output_tokens=estimate_tokens(str(said.get("text", "")) + json.dumps(calls, ensure_ascii=False)),
        )

    async with FakeProviders(answer).serving() as served:
        model = {"name": MODEL, "provider": "anthropic", "providers": {"anthropic": {"base_url": served.url}}}
        always = {"capabilities": ALWAYS["capabilities"], "logging": {"jsonl_dir": ALWAYS["logging.jsonl_dir"]}}
        settings = AgentSettings.model_validate({"model": model, **always})
        yield replace(chosen, settings=settings, environment={KEY_VARIABLE: KEY})


def request_of(received: Received) -> ChatRequest:
    """Return a request of Anthropic's form as the adapter was given it, as far as a recording reads it."""
    system = "\n".join(str(block["text"]) for block in received.body.get("system") or ())
    messages = tuple(_message(message["role"], message["content"]) for message in received.body["messages"])
    return ChatRequest(system, messages, received.body["max_tokens"], answers=received.answers)


def _message(role: Any, content: list[dict[str, Any]]) -> ChatMessage:
    text = "\n".join(str(block["text"]) for block in content if block["type"] == "text")
    outputs = tuple(
        ToolOutput(call_id=block["tool_use_id"], name="", text=_text_of(block.get("content") or ""))
        for block in content
        if block["type"] == "tool_result"
    )
    return ChatMessage(role, text, outputs=outputs)


def _text_of(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in content)
