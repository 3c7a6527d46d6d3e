"""A model that knows what to do: answers in order, given by a script or through a provider's own SDK."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from fireswarm.capabilities.workspace.writing import workspace_tools
from fireswarm.contracts.llm.chat import ChatRequest, ChatResponse, ToolOutput
from fireswarm.llm.providers.scripted import ScriptedModel
from tests.support.minds import Bench, Lab, Ran
from tests.support.providers import Received, Reply

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Expert:
    """A model that gives its answers in order, and remembers what it was asked and what its calls returned."""

    def __init__(self, *answers: Any) -> None:
        self.answers = answers
        self.requests: list[ChatRequest] = []

    def __call__(self, request: ChatRequest) -> Any:
        self.requests.append(request)
        return self.answer(sum(message.role == "assistant" for message in request.messages))

    def answer(self, number: int) -> Any:
        return self.answers[min(number, len(self.answers) - 1)]

    @property
    def outputs(self) -> list[ToolOutput]:
        """The outputs of all calls, in order."""
        return [output for message in self.requests[-1].messages for output in message.outputs]

    @property
    def told(self) -> list[str]:
        return [output.text for output in self.outputs]


def calls(*named: tuple[str, Mapping[str, Any]], text: str = "") -> dict[str, Any]:
    return {"calls": [{"name": name, "input": dict(given)} for name, given in named], "text": text}


def bash(line: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "run_command", {"command": line, **more}


async def run(bench: Bench, expert: Expert, **assigned: Any) -> Ran:
    """One run with the tools of a workspace."""
    tools = workspace_tools(bench.cwd) | assigned.pop("tools", {})
    return await bench.run(ScriptedModel(expert, tools=True), tools=tools, **assigned)


async def run_on_the_wire(lab: Lab, provider: str, bench: Bench, expert: Expert, **assigned: Any) -> Ran:
    """One run with the tools of a workspace, through the provider's SDK; its server refused nothing."""
    tools = workspace_tools(bench.cwd) | assigned.pop("tools", {})
    ran = await bench.run(on_the_wire(lab, provider, expert), tools=tools, **assigned)
    assert lab.served.refused == []
    return ran


def on_the_wire(lab: Lab, provider: str, expert: Expert) -> Any:
    """The adapter of a provider whose server gives the expert's answers."""
    return Overheard(lab.adapter(provider, script_of(expert)), expert)


def script_of(expert: Expert) -> Callable[[Received], Reply]:
    """What the provider's server answers."""

    def script(request: Received) -> Reply:
        answer = expert.answer(request.answers)
        if isinstance(answer, str):
            return Reply(answer)
        return Reply(answer["text"], calls=tuple((call["name"], call["input"]) for call in answer["calls"]))

    return script


class Overheard:
    """A provider's adapter whose requests *expert* remembers."""

    def __init__(self, model: Any, expert: Expert) -> None:
        self._model, self._expert = model, expert

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def complete(self, request: ChatRequest, on_text: Any = None, on_broken: Any = None) -> ChatResponse:
        self._expert.requests.append(request)
        return await self._model.complete(request, on_text, on_broken)
