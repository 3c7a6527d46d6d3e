"""The tools of a run, and the path of one call: execute, record, check for repetition, show the output."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from functools import cache

import anyio

from fireswarm.contracts.llm.chat import ToolCall, ToolOutput, ToolSpec
from fireswarm.contracts.llm.decision import StepStatus
from fireswarm.errors import InvalidInput
from fireswarm.mind import events
from fireswarm.mind.approvals import NeedsAnswer
from fireswarm.mind.assignment import Assignment
from fireswarm.mind.calls import specs
from fireswarm.mind.calls.outputs import REPLACED
from fireswarm.mind.calls.results import Step, fault
from fireswarm.mind.handlers import colleagues, session_facts, skills, small_tools
from fireswarm.mind.handlers.given_tools import given_tool
from fireswarm.mind.handlers.run_command import run_command
from fireswarm.mind.handlers.skills import Delegates
from fireswarm.mind.progress import waits
from fireswarm.mind.tool_run import RunTool, ToolRun
from fireswarm.signals.current import telemetry_in_use
from fireswarm.signals.spans import record_call

SUSPENDS = (NeedsAnswer, Delegates)
"""What ends a turn in the middle of a call that goes on later."""


def run_tools(assignment: Assignment) -> dict[str, RunTool]:
    """Return the tools of a run by name, in a fixed order: the provider caches their descriptions."""
    own = dict(_own_tools())
    if assignment.memory is not None:
        own[specs.RECALL] = RunTool(specs.RECALL_SPEC, session_facts.recall, reads=True)
        own[specs.REMEMBER] = RunTool(specs.REMEMBER_SPEC, session_facts.remember)
    if assignment.colleagues is not None:
        own[specs.ASK] = RunTool(specs.ASK_SPEC, colleagues.ask)
        own[specs.TELL] = RunTool(specs.TELL_SPEC, colleagues.tell)
    if assignment.result_schema is not None:
        own[specs.FINISH] = RunTool(specs.finish_spec(assignment.result_schema), small_tools.finish)
    if assignment.roles:
        own[specs.DELEGATE] = RunTool(specs.delegate_spec(assignment.roles, assignment.models), small_tools.delegate)
    given = {name: given_tool(tool) for name, tool in assignment.tools.items() if name not in own}
    return given | own


def offered_tools(assignment: Assignment) -> tuple[ToolSpec, ...]:
    """Return the tools of a run as the model sees them."""
    return tuple(tool.spec for tool in run_tools(assignment).values())


@cache
def _own_tools() -> Mapping[str, RunTool]:
    tools = (
        RunTool(specs.RUN_COMMAND_SPEC, run_command),
        RunTool(specs.COMMAND_OUTPUT_SPEC, small_tools.command_output, reads=True),
        RunTool(specs.STOP_COMMAND_SPEC, small_tools.stop_command),
        RunTool(specs.USE_SKILL_SPEC, skills.use_skill),
        RunTool(specs.READ_SKILL_FILE_SPEC, skills.read_skill_file, reads=True),
        RunTool(specs.SEARCH_SKILLS_SPEC, skills.search_skills, reads=True),
        RunTool(specs.READ_OUTPUT_SPEC, small_tools.read_output, reads=True),
        RunTool(specs.TODO_SPEC, small_tools.todo, reads=True),
        RunTool(specs.ASK_USER_SPEC, small_tools.ask_user),
    )
    return {tool.spec.name: tool for tool in tools}


async def call(asked: ToolCall, step: str, run: ToolRun) -> ToolOutput:
    """Execute one call and return its output, or an explanation for the model if the call cannot be made.

    Raises the exceptions that end or suspend the run: RunFailed, NoProgress, NeedsAnswer, Delegates, LeaseLost.
    """
    calling, telemetry = _call(asked, step, run), telemetry_in_use.get()
    if telemetry is None or run.recorder.earlier_kinds(step):  # an earlier start executed and recorded it
        return await calling
    return await record_call(telemetry, calling, asked, run.mind.redact, SUSPENDS)


async def _call(asked: ToolCall, step: str, run: ToolRun) -> ToolOutput:
    this = Step(step, asked, run.recorder.earlier_kinds(step))
    try:
        if asked.fault:
            raise InvalidInput(asked.fault)
        if (tool := run.tools.get(asked.name)) is None:
            raise InvalidInput(f"unknown tool {asked.name!r}; known: {', '.join(sorted(run.tools))}")
        result = await tool.run(run, this)
    except InvalidInput as error:
        result = fault(str(error))
    is_command = asked.name == specs.RUN_COMMAND and result.acted
    parts = [run.mind.redact.clean(part) for part in result.render(command=is_command)]
    text = "\n".join([*parts, REPLACED] if asked.redacted else parts)
    if not result.recorded:
        events.record_step(run.recorder, run.decision, run.skill, this, result)
    # The folder is part of the key: `cd ..` prints nothing, but has a different effect each time.
    output = f"{run.place.cwd}\n{text}"
    waited = waits(asked) and result.status is not StepStatus.REFUSED
    warning = run.progress.saw_call(run.decision, asked, output, changes=result.changes, waited=waited)
    failed = result.status is not StepStatus.OK
    is_output = failed or asked.name in (specs.RUN_COMMAND, specs.COMMAND_OUTPUT, specs.STOP_COMMAND)
    shown = run.outputs.show_ends(step, text, parts) if is_output else run.outputs.show(step, text)
    run.has_failed = run.has_failed or failed
    shown = f"{shown}\n{warning}" if warning else shown
    return ToolOutput(call_id=asked.id, name=asked.name, text=shown, failed=failed, media=result.media)


async def call_side_by_side(calls: Sequence[Awaitable[ToolOutput]]) -> list[ToolOutput]:
    """Run calls at once and return their outputs in order.

    The first exception in that order is raised after all calls have ended.
    """
    outcomes: list[ToolOutput | Exception] = [RuntimeError("the call did not finish")] * len(calls)

    async def run(number: int, call: Awaitable[ToolOutput]) -> None:
        try:
            outcomes[number] = await call
        except Exception as error:  # must leave the task group unwrapped; raised again below
            outcomes[number] = error

    async with anyio.create_task_group() as group:
        for number, call in enumerate(calls):
            group.start_soon(run, number, call)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    return [outcome for outcome in outcomes if not isinstance(outcome, Exception)]
