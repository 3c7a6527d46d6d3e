"""Run the checks of a task before its run ends."""

from __future__ import annotations

import json

from fireswarm.capabilities.workspace.place import place_of
from fireswarm.contracts.inputs import faults_of_value
from fireswarm.contracts.limits import MAX_OBJECTIVE_CHARS, truncate
from fireswarm.contracts.llm.chat import ToolCall
from fireswarm.contracts.llm.decision import StepStatus
from fireswarm.contracts.skills.skill import REVIEW, REVIEW_MARK, Check, PlannedTask
from fireswarm.errors import ConfigError, InvalidInput
from fireswarm.llm.calls import RUN_COMMAND, USE_SKILL
from fireswarm.mind.calls.results import Step
from fireswarm.mind.handlers.run_command import run_once
from fireswarm.mind.handlers.skills import run_code
from fireswarm.mind.tool_run import ToolRun
from fireswarm.skills.running.denied_reads import DeniedReads

CHECKS_FAILED = "checks_failed"
"""Reason of a run whose checks failed more often than the task allows."""

MAX_SHOWN_CHARS = 4_000
MAX_FILE_BYTES = 5_000_000
MAX_FILE_CHARS = 8_000

_HOW_TO_REVIEW = (
    "You see the work in the context, in the files of inputs/ (in a git repository, changes.diff is what changed), and "
    "in the folder itself; change nothing. Look for yourself and run what you need. Finish with your reasons, each "
    f"with evidence, and with one signal in result.signals named {REVIEW}: strength 1 if the work is accepted, 0 if it "
    "has to be mended; its note says what to mend."
)
_LOOK_AGAIN = (
    "sent_back in the context is what a review of an earlier state wanted mended: look whether it is, and whether "
    "something else broke."
)


async def find_failed_checks(run: ToolRun, answer: str) -> list[str]:
    """Run all checks of the task and return the faults for the model, one text for each check that failed.

    Roles review the work when all other checks pass: their tasks are planned, and awaited. *answer* is the work's.
    """
    found: list[str] = []
    reviews: list[tuple[int, Check]] = []
    for number, check in enumerate(run.assignment.checks, 1):
        if check.role:
            reviews.append((number, check))
        elif check.skill:
            found.append(await _run_skill(run, check, number))
        else:
            found.append(await (_run_command if check.command else _look_at_file)(run, check, number))
    if not any(found):
        found += [_hear_review(run, check, number, answer) for number, check in reviews]
    return [fault for fault in found if fault]


def _hear_review(run: ToolRun, check: Check, number: int, answer: str) -> str:
    """Return what a reviewer wants mended, or "" for accepted work; plan the review if there is none yet."""
    assignment, key = run.assignment, run.key_of(f"{run.decision}{REVIEW_MARK}{number}")
    sent_back = _last_review(run, number)
    if key in assignment.children:
        told = run.result_of(key)
        return f"The {check.role} who reviewed the work wants it mended:\n{told}" if told else ""
    others = [str(other) for other in assignment.checks if not other.role]
    context = {"path": str(assignment.cwd)} if assignment.cwd != assignment.outputs else {}
    run.planned[key] = PlannedTask(
        key=key,
        assigned_to=check.role,
        objective=truncate(
            f"Review the work of another agent. {check.question}\n\n{_HOW_TO_REVIEW}"
            f"{f' {_LOOK_AGAIN}' if sent_back else ''}",
            MAX_OBJECTIVE_CHARS,
        ),
        context={
            **context,
            **({"sent_back": truncate(sent_back, MAX_FILE_CHARS)} if sent_back else {}),
            "work": assignment.task,
            "answer": truncate(answer, MAX_FILE_CHARS),
            "passed": others,
        },
        constraints={"read_only": True},
        expected_outcome=assignment.expected_outcome,
        handoff_reason="a check of the work",
    )
    return ""


def _last_review(run: ToolRun, number: int) -> str:
    """Return what the last review of this check before this answer wanted mended, or ""."""
    start, end = run.key_of(""), f"{REVIEW_MARK}{number}"
    found: dict[int, str] = {}
    for key, told in run.assignment.children.items():
        decision = key.removeprefix(start).removesuffix(end)
        if key == f"{start}{decision}{end}" and decision.isdigit() and int(decision) < run.decision:
            found[int(decision)] = told or ""
    return found[max(found)] if found else ""


async def _run_skill(run: ToolRun, check: Check, number: int) -> str:
    """Run the skill of a check as a recorded step, and return its fault, or ""."""
    skill, name = run.mind.catalog.skills.get(check.skill), _command_name(run.decision, number)
    if skill is None or skill.entry is None:
        return f"the check cannot run: there is no skill {check.skill} with code"
    call = ToolCall(id=name, name=USE_SKILL, input={"name": skill.name, "input": check.input})
    result = await run_code(run, skill, Step(name, call, run.recorder.earlier_kinds(name)))
    signals = result.skill_result.signals if result.skill_result is not None else ()
    if result.status is StepStatus.OK and all(signal.strength for signal in signals):
        return ""
    shown = truncate("\n".join(text for text in (result.text, result.errors) if text), MAX_SHOWN_CHARS)
    return f"the skill {skill.name} says no:\n{shown}"


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
        root = assignment.cwd.resolve()
        hides = DeniedReads.of(assignment.grant).hiding(root)
        place, named = place_of(check.file, root, assignment.outputs, hides=hides)
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
