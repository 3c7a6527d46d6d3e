"""A model without a network: replays recorded answers, or calls a Python function as the model.

For tests of roles and skills, for demos, and for this project's tests. The answer depends only on the conversation, so
that a resumed run gets the same answer.
"""

from __future__ import annotations

import inspect
import json
import traceback
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from fireswarm.contracts.limits import MAX_DETAIL_CHARS, truncate
from fireswarm.contracts.llm.chat import ChatRequest, ChatResponse, StopReason, TokenUsage, ToolCall
from fireswarm.errors import ConfigError, FireswarmError, ModelRejected
from fireswarm.llm.providers.faults import from_status
from fireswarm.llm.recording import recording_of
from fireswarm.llm.tokens import estimate_tokens, estimate_tool

PROVIDER = "scripted"

Answer = str | dict[str, Any] | ChatResponse
Script = Callable[[ChatRequest], Answer | Awaitable[Answer]]


class ScriptedModel:
    """Answers from *script*: a function of the request, or a list with one answer for each request.

    An answer is a text, ``{"calls": [{"name": ..., "input": {...}}], "text": ...}``, or ``{"error": 529, "message":
    ...}`` for an error. A model without *tools* gives the same answer as JSON text.
    """

    provider = PROVIDER
    knows_schema = True

    def __init__(self, script: Script | Sequence[Answer], name: str = PROVIDER, *, tools: bool | None = None) -> None:
        """Use a sequence by index: the next answer is the number of answers in the conversation, without summaries.

        *tools* defaults to the attribute ``tools`` of a function, to False for a sequence with an answer in JSON text,
        and otherwise to True.
        """
        self.name = name
        self.knows_tools = _calls_tools(script) if tools is None else tools
        self.calls = 0
        self._script: Script = script if callable(script) else _one_by_one(tuple(script))

    async def complete(
        self,
        request: ChatRequest,
        on_text: Callable[[str], None] | None = None,
        on_broken: Callable[[TokenUsage], None] | None = None,
    ) -> ChatResponse:
        """Return the answer of the script. Raises ModelRejected if the script fails."""
        self.calls += 1
        try:
            answer = self._script(request)
            if inspect.isawaitable(answer):
                answer = await answer
        except FireswarmError:
            raise
        except Exception as error:  # foreign code may raise anything
            where = traceback.extract_tb(error.__traceback__)[-1]
            told = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
            raise ModelRejected(truncate(f"the script failed: {told}", MAX_DETAIL_CHARS)) from error
        response = _response(answer, request, self.name)
        if on_text is not None:
            on_text(response.text)
        return response

    def preview(self, request: ChatRequest) -> dict[str, Any]:
        """Return the request in the form that the script gets."""
        messages = [{"role": message.role, "text": message.text} for message in request.messages]
        tools = [tool.name for tool in request.tools]
        return {"system": request.system, "messages": messages, "schema": request.schema, "tools": tools}

    async def count_tokens(self, request: ChatRequest) -> int | None:
        """Return None: a script has no token count."""
        return None


def load_script(spec: str, root: Path) -> Script | tuple[Answer, ...]:
    """Load ``FILE.json`` (a list of answers, or a recording) or ``FILE.py:FUNCTION``. Raises ConfigError."""
    named, _, function = spec.partition(".py:")
    path = (root / (f"{named}.py" if function else named)).resolve()
    if not path.is_file():
        raise ConfigError(f"model.script: {path} does not exist")
    if function:
        return _function(path, function)
    try:
        answers = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        hint = f"; name the function of a Python file: {spec}:FUNCTION" if path.suffix == ".py" else ""
        raise ConfigError(f"model.script: {path} is not JSON: {error}{hint}") from error
    if isinstance(answers, dict):
        return recording_of(cast("dict[str, Any]", answers), path)
    if not isinstance(answers, list):
        raise ConfigError(f"model.script: {path} must hold a list of answers, or a recording of several roles")
    return tuple(cast("list[Answer]", answers))


def _function(path: Path, name: str) -> Script:
    """Load a function from a Python file. Raises ConfigError."""
    module = ModuleType(f"fireswarm_script_{path.stem}")
    module.__file__ = str(path)
    try:  # an import would take compiled code beside it, which may be of another author
        exec(compile(path.read_bytes(), path, "exec"), vars(module))
    except (Exception, SystemExit) as error:  # foreign code may raise anything
        raise ConfigError(f"model.script: {path} cannot be loaded: {type(error).__name__}: {error}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise ConfigError(f"model.script: {path} has no function {name!r}")
    return cast("Script", function)


def _one_by_one(answers: tuple[Answer, ...]) -> Script:
    def script(request: ChatRequest) -> Answer:
        if request.for_summary:
            return f"The script has given {request.answers} of its {len(answers)} answers."
        number = max(request.answers, sum(message.role == "assistant" for message in request.messages))
        if number >= len(answers):
            raise ModelRejected(f"the script has {len(answers)} answers, and this is call {number + 1}")
        return answers[number]

    return script


def _calls_tools(script: Script | Sequence[Answer]) -> bool:
    if callable(script):
        return bool(getattr(script, "tools", True))
    return not any(isinstance(answer, str) and answer.lstrip().startswith("{") for answer in script)


def _calls_of(answer: dict[str, Any], request: ChatRequest) -> tuple[ToolCall, ...]:
    """Return the calls of a scripted answer. Calls without an id in the script are numbered across the conversation."""
    first = sum(len(message.content or ()) for message in request.messages if message.role == "assistant")
    try:
        return tuple(
            ToolCall(
                id=str(call.get("id") or f"call-{first + number}"), name=call["name"], input=call.get("input") or {}
            )
            for number, call in enumerate(answer["calls"])
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelRejected('the script has an answer whose calls are not [{"name": ..., "input": {...}}]') from error


def _response(answer: Answer, request: ChatRequest, name: str) -> ChatResponse:
    """Convert an answer of the script, with estimated token counts; an ``error`` answer is raised."""
    if isinstance(answer, ChatResponse):
        return answer
    if isinstance(answer, dict) and "error" in answer:
        headers = {"retry-after": str(answer["retry_after"])} if "retry_after" in answer else {}
        raise from_status(PROVIDER, int(answer["error"]), str(answer.get("message", "as scripted")), headers)
    stop, calls = StopReason.END, ()
    if isinstance(answer, dict) and "calls" in answer and request.tools:
        calls, answer = _calls_of(answer, request), {**answer, "text": answer.get("text", "")}
    if isinstance(answer, dict) and "text" in answer and (request.tools or "calls" not in answer):
        stop, answer = StopReason(answer.get("stop", "end")), str(answer["text"])
    text = answer if isinstance(answer, str) else json.dumps(answer)
    content: list[Any] = [{"type": "text", "text": text}] if text and request.tools else []
    content += [{"type": "tool_use", **call.model_dump(include={"id", "name", "input"})} for call in calls]
    asked = estimate_tokens(request.system) + sum(map(estimate_tool, request.tools))
    asked += sum(
        estimate_tokens(message.text) + sum(estimate_tokens(output.text) for output in message.outputs)
        for message in request.messages
    )
    written = text + "".join(json.dumps(call.input) for call in calls)
    usage = TokenUsage(input_tokens=asked, output_tokens=estimate_tokens(written))
    return ChatResponse(text=text, calls=calls, content=tuple(content), stop=stop, usage=usage, model=name)
