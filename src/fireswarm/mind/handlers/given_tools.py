"""Call a tool of the assignment: one for files, of a capability, or of an MCP server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import anyio

from fireswarm.contracts.llm.chat import ToolSpec
from fireswarm.contracts.llm.decision import StepStatus
from fireswarm.contracts.skills.skill import SkillResult
from fireswarm.contracts.skills.tool import Tool, ToolAnswer
from fireswarm.errors import FireswarmError, LeaseLost
from fireswarm.mind import gate
from fireswarm.mind.approvals import PreviewFailed
from fireswarm.mind.calls.results import CallResult, Record, Step
from fireswarm.mind.tool_run import RunTool, ToolRun


def given_tool(tool: Tool) -> RunTool:
    """Return a tool of the assignment as a tool of the run."""

    async def run(run: ToolRun, step: Step) -> CallResult:
        return await _call(tool, run, step)

    return RunTool(ToolSpec(tool.name, tool.description, tool.parameters), run, reads=not tool.writes)


async def _call(tool: Tool, run: ToolRun, step: Step) -> CallResult:
    """Call the tool as one step, if the gate allows it."""
    call = gate.tool_call(tool, step.input)

    async def work() -> Record:
        value, seconds = None, run.place.longest_seconds
        try:
            with anyio.move_on_after(seconds) as limit:
                value = await tool.call(step.input)
            if limit.cancelled_caught:
                return _end_of_slow_call(tool, seconds).record()
        except LeaseLost:
            raise
        except Exception as error:  # foreign code may raise anything; every error becomes a typed failure
            return _failure(_readable(error_text(error), step.input, run), run).record()
        if not isinstance(value, ToolAnswer):
            value = ToolAnswer(value if isinstance(value, str) else _json(value))
        text = _readable(value.text, step.input, run) if tool.writes else value.text
        return CallResult(text=run.cut(text), media=value.media, artifacts=value.artifacts).record()

    async def preview() -> str:
        return await _preview(tool, step.input, run)

    result = await run.act(step, call, work, idempotent=tool.idempotent, preview=preview)
    if result.artifacts:
        run.results.append(SkillResult(summary="stored an artifact", artifacts=result.artifacts))
    return result.model_copy(update={"changes": tool.writes and result.status is not StepStatus.REFUSED})


async def _preview(tool: Tool, inputs: Mapping[str, Any], run: ToolRun) -> str:
    """Return the change that a call would make, or "" if the tool has no preview. Raises PreviewFailed.

    The error contains no text of a file that the model may not read without approval.
    """
    try:
        return await tool.show_change(inputs)
    except LeaseLost:
        raise
    except Exception as error:  # foreign code may raise anything; the call would fail in the same way
        raise PreviewFailed(_failure(_readable(error_text(error), inputs, run), run)) from error


def _readable(text: str, inputs: Mapping[str, Any], run: ToolRun) -> str:
    """Return a result without the lines of a file, behind the first line, that the model may not read."""
    may_read = isinstance(gate.decide(gate.read_call(gate.argument_of(inputs)), run.grant), gate.Allow)
    return text if may_read else text.partition("\n")[0]


def _failure(reason: str, run: ToolRun) -> CallResult:
    return CallResult(errors=run.cut(reason), exit_code=1, status=StepStatus.FAILED)


def _end_of_slow_call(tool: Tool, seconds: float) -> CallResult:
    """Return the result of a call that took too long."""
    effect = ", and may have taken effect: check that first" if tool.writes else ""
    errors = f"stopped after {seconds:g} s, its time limit{effect}"
    return CallResult(errors=errors, exit_code=1, status=StepStatus.TIMEOUT)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def error_text(error: Exception) -> str:
    """Return an error's message; for an error of foreign code, the type comes first."""
    return str(error) if isinstance(error, FireswarmError) else f"{type(error).__name__}: {error}"
