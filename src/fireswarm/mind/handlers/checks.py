"""Run the checks of a task before its run ends."""

from __future__ import annotations

import json

from fireswarm.capabilities.workspace.place import place_of
from fireswarm.contracts.inputs import faults_of_value
from fireswarm.contracts.limits import truncate
from fireswarm.contracts.llm.chat import ToolCall
from fireswarm.contracts.llm.decision import StepStatus
from fireswarm.contracts.skills.skill import Check
from fireswarm.errors import ConfigError, InvalidInput
from fireswarm.llm.calls import RUN_COMMAND
from fireswarm.mind.calls.results import Step
from fireswarm.mind.handlers.run_command import run_once
from fireswarm.mind.tool_run import ToolRun

CHECKS_FAILED = "checks_failed"
"""Reason of a run whose checks failed more often than the task allows."""

MAX_SHOWN_CHARS = 4_000
MAX_FILE_BYTES = 5_000_000


async def find_failed_checks(run: ToolRun) -> list[str]:
    """Run all checks of the task and return the faults for the model, one text for each check that failed."""
    found: list[str] = []
    for number, check in enumerate(run.assignment.checks, 1):
        fault = await (_run_command(run, check, number) if check.command else _look_at_file(run, check, number))
        found += [fault] if fault else []
    return found


def check_steps(decision: int, count: int) -> list[str]:
    """Return the steps of the checks after an answer: of *count* commands or files."""
    numbers = range(1, count + 1)
    commands = [f"{kind}:{_command_name(decision, n)}" for n in numbers for kind in ("act", "denied")]
    return [*commands, *(_file_step(decision, n) for n in numbers)]


def last_try_step(decision: int) -> str:
    """Return the step that records the end of a run by failed checks; after it, a retry has all its tries again."""
    return f"last_try:{decision}"


def _command_name(decision: int, number: int) -> str:
    return f"{decision}.check{number}"


def _file_step(decision: int, number: int) -> str:
    return f"check:{decision}.{number}"


async def _run_command(run: ToolRun, check: Check, number: int) -> str:
    """Run the command of a check as a recorded step, and return its fault, or ""."""
    name = _command_name(run.decision, number)
    call = ToolCall(id=name, name=RUN_COMMAND, input={"command": check.command})
    result = await run_once(run, Step(name, call, run.recorder.earlier_kinds(name)), idempotent=True)
    if result.status is StepStatus.OK:
        return ""
    output = "\n".join(text for text in (result.text, result.errors) if text)
    shown = output if len(output) <= MAX_SHOWN_CHARS else f"...{output[-MAX_SHOWN_CHARS:]}"
    return f"`{check.command}` ended with exit code {result.exit_code}:\n{shown}"


async def _look_at_file(run: ToolRun, check: Check, number: int) -> str:
    """Check a JSON file as a recorded step, and return its fault, or "": a resumed run finds another file there."""

    async def look() -> dict[str, str]:
        return {"fault": _check_file(run, check)}

    return str((await run.recorder.step(_file_step(run.decision, number), look, idempotent=True))["fault"])


def _check_file(run: ToolRun, check: Check) -> str:
    """Return the fault of a JSON file, or ""."""
    assignment = run.assignment
    try:
        place, named = place_of(check.file, assignment.cwd.resolve(), assignment.outputs)
        content = place.read(place.locate(named), MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            return f"{check.file} has more than {MAX_FILE_BYTES:,} bytes"
        wrong = faults_of_value(check.json_schema, json.loads(content))
    except InvalidInput as error:
        return str(error)
    except (ValueError, RecursionError) as error:
        return f"{check.file} is not JSON: {error}"
    except ConfigError as error:
        return f"the check of {check.file} cannot run: {error}"
    return truncate(f"{check.file}: {'; '.join(wrong)}", MAX_SHOWN_CHARS) if wrong else ""
