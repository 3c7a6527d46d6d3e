"""Run a model's shell command, in the foreground or in the background."""

from __future__ import annotations

import contextlib
from functools import partial

import anyio.to_thread

from fireswarm.contracts.llm.decision import StepStatus
from fireswarm.contracts.skills.given_files import INPUT_FOLDER
from fireswarm.errors import InvalidInput, SandboxRefused
from fireswarm.mind import events
from fireswarm.mind.calls.results import CallResult, Record, Step, refusal
from fireswarm.mind.commands.hints import describe_limit
from fireswarm.mind.commands.place import MAX_TIMES
from fireswarm.mind.gate import command_call, may_change
from fireswarm.mind.tool_run import ToolRun
from fireswarm.processes.confinement.view import View
from fireswarm.processes.output import CANNOT_START
from fireswarm.processes.run import CannotStart
from fireswarm.processes.shell import Ran

_WAY_OUT = (
    "; only the operator can allow commands without it (`runtime.confinement: none`, or `container` in a container)"
)
IN_BACKGROUND = "(in the background, until this run ends)"


async def run_command(run: ToolRun, step: Step) -> CallResult:
    """Run a command in the current folder of the shell, if the gate allows it. Raises InvalidInput."""
    _check(step)
    result = await run.act_by_policy(step, partial(run_once, run))
    # If there is an output folder, a command with a read-only view may also change something there.
    ran = result.status is not StepStatus.REFUSED
    return result.model_copy(update={"changes": ran and (result.changes or run.assignment.outputs is not None)})


def _check(step: Step) -> None:
    given = step.input
    command, seconds = given.get("command"), given.get("timeout_seconds")
    if not isinstance(command, str) or not command.strip():
        raise InvalidInput("run_command needs command, a text")
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if seconds is not None and not (is_number and seconds > 0):
        raise InvalidInput("timeout_seconds must be a number greater than 0")
    if not isinstance(given.get("background") or False, bool):
        raise InvalidInput("background must be true or false")


async def run_once(run: ToolRun, step: Step, *, idempotent: bool = False) -> CallResult:
    """Run a command, if the gate allows it; one that is *idempotent* runs again if a crash cut it off."""
    command, in_background = str(step.input["command"]), step.input.get("background") is True
    place, skill = run.place, run.mind.catalog.skills.get(run.skill)
    call = command_call(command, place.cwd, IN_BACKGROUND if in_background else "")
    writes = may_change(call, run.grant)
    wanted, retry = step.input.get("timeout_seconds"), int(step.name != step.question)

    async def work() -> Record:
        if run.assignment.inputs is not None:
            with contextlib.suppress(InvalidInput):  # the command finds the others
                await run.assignment.inputs.fetch(INPUT_FOLDER)
        try:
            shown, used = command, skill
            if writes and not run.grant.writes and skill is not None:  # it was judged as scripts of the skill
                shown, used = await anyio.to_thread.run_sync(run.pinned.pin, call, skill)
            line, view = place.line_of(shown, used), place.view(used, writes=writes)
            if not in_background:
                return (await _run_to_end(run, step, line, place.seconds(wanted), view)).record()
            seconds = place.seconds(wanted, usual=MAX_TIMES)
            name, text = await run.background.start(line, run.assignment.cwd, seconds, view)
            return CallResult(text=text, started=name, retry=retry).record()
        except SandboxRefused as error:
            return refusal(f"{error}{_WAY_OUT}").record()
        except CannotStart as error:
            return CallResult(
                errors=run.mind.redact.clean(str(error)), exit_code=CANNOT_START, status=StepStatus.FAILED, retry=retry
            ).record()

    result = await run.act(step, call, work, idempotent=idempotent or not writes)
    if result.folder:
        place.go_to(result.folder)
    if result.started:
        run.background.note_started(result.started)
    return result.model_copy(update={"changes": writes})


async def _run_to_end(run: ToolRun, step: Step, line: str, seconds: float, view: View | None) -> CallResult:
    """Run a command line to its end. If the run is stopped meanwhile, record what it has printed.

    Raises SandboxRefused.
    """
    clean, retry = run.mind.redact.clean, int(step.name != step.question)

    def record_interrupted(ran: Ran) -> None:
        status = StepStatus.INTERRUPTED
        result = CallResult(text=clean(ran.stdout), errors=clean(ran.stderr), status=status, retry=retry, acted=True)
        events.record_step(run.recorder, run.decision, run.skill, step, result)

    ran = await run.shell.run(line, run.assignment.cwd, seconds, view, record_interrupted)
    status = StepStatus.TIMEOUT if ran.timed_out else StepStatus.FAILED if ran.exit_code else StepStatus.OK
    errors = f"killed after {seconds:g} s\n{ran.stderr}" if ran.timed_out else ran.stderr
    errors = f"killed: {ran.ended}\n{ran.stderr}" if ran.ended else errors
    hint = describe_limit(view, ran) if view is not None and ran.exit_code else ""
    notes = (hint, run.place.describe_return(ran.folder or ""), *(f"[{line}]" for line in ran.set_aside))
    errors = "\n".join(filter(None, (errors, *notes)))
    return CallResult(
        text=clean(ran.stdout),
        errors=clean(errors),
        exit_code=ran.exit_code,
        status=status,
        retry=retry,
        folder=ran.folder or "",
    )
