"""The tools of a run that need no approval: questions, lists, pages, delegated tasks, background commands, the end."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from fireswarm.contracts.limits import MAX_RESULT_SUMMARY_CHARS, truncate
from fireswarm.contracts.skills.permissions import PLAN_TOOL
from fireswarm.contracts.skills.skill import CALL_KEY, PlannedTask, Question
from fireswarm.errors import InvalidInput
from fireswarm.mind import gate
from fireswarm.mind.approvals import NeedsAnswer
from fireswarm.mind.calls.results import CallResult, Step
from fireswarm.mind.calls.texts import number_in, todo_list
from fireswarm.mind.handlers.colleagues import ASKS
from fireswarm.mind.mind import RunFailed
from fireswarm.mind.tool_run import ToolRun

MAX_RESULT_FAULTS = 3
"""Maximum number of rejected structured results before the run ends."""

MAX_NAME_CHARS = 64

DONE = "done"
GAVE_UP = {"failed": "cannot be done", "blocked": "is blocked"}
"""States with which a model ends a task that it has not done, in words."""

EDITED = "[A person changed the tasks of this plan before they were made.]"

NOT_APPROVED = "the plan was not approved"


async def ask_user(run: ToolRun, step: Step) -> CallResult:
    """Ask a person.

    Raises InvalidInput for a call without a question, and NeedsAnswer until the question is answered.
    """
    asked = step.input.get("question")
    if not isinstance(asked, str) or not asked.strip():
        raise InvalidInput("ask_user needs question, a text")
    if (left := await run.steered.leave_out(step)) is not None:
        return left
    name = _identifier(str(step.input.get("name") or "answer"))
    asker = hashlib.sha256(f"{name}\n{asked}".encode()).hexdigest()
    place = f"{run.assignment.phase}/{step.name}/{asker}"
    clean = run.mind.redact.clean
    options = step.input.get("options")
    choices = [clean(str(each)) for each in cast("list[Any]", options)] if isinstance(options, list) else []
    question = Question(
        name=name,
        description=truncate(clean(asked), MAX_RESULT_SUMMARY_CHARS),
        step=place,
        allowed={"examples" if step.input.get("other_answers") is True else "enum": choices} if choices else {},
    )

    async def hear() -> dict[str, Any]:
        answer = run.assignment.answered.get(place, {}).get(name)
        if answer is None and run.assignment.ask is not None:
            answer = await run.assignment.ask(question)
        if answer is None:
            raise NeedsAnswer(question.description, (question,))
        return {"answer": clean(str(answer))}

    async with run.approvals.one_question:
        heard = await run.recorder.step(f"ask:{step.name}", hear, idempotent=True)
    run.kept.hear_answer(asked, heard["answer"])
    return CallResult(text=heard["answer"], acted=True, changes=True)


async def todo(run: ToolRun, step: Step) -> CallResult:
    """Replace the to-do list. Its event shows the list to the operator."""
    run.kept.todo = todo_list(step.input)
    return CallResult(text=run.kept.todo or "[the list is empty]")


async def read_output(run: ToolRun, step: Step) -> CallResult:
    """Return a page of a long output. Raises InvalidInput if the page does not exist."""
    output, page = str(step.input.get("output") or ""), number_in(step.input, "page", 1)
    return CallResult(text=run.outputs.page(output, page))


async def command_output(run: ToolRun, step: Step) -> CallResult:
    """Return the new output of a background command."""
    return CallResult(text=await run.background.read(step.name, step.input))


async def stop_command(run: ToolRun, step: Step) -> CallResult:
    """End a background command."""
    return CallResult(text=await run.background.stop(step.name, step.input), changes=True)


async def delegate(run: ToolRun, step: Step) -> CallResult:
    """Plan a task for another role, or return the result if an earlier turn created the task."""
    key = run.key_of(step.name)
    if key in run.assignment.children:
        return CallResult(text=run.result_of(key), changes=True)
    given = step.input
    try:
        planned = PlannedTask(
            key=key,
            assigned_to=str(given.get("role") or ""),
            objective=str(given.get("objective") or ""),
            context={key: value for key, value in dict(given.get("context") or {}).items() if key != ASKS},
            expected_outcome=str(given.get("expected_outcome") or ""),
            model=given.get("model") or None,
            effort=given.get("effort") or None,
        )
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"delegate: {error}") from error
    if fault := run.fault_of({"tasks": [planned.model_dump(mode="json")]}):
        raise InvalidInput(f"delegate: {fault}")
    run.planned[key] = planned
    return CallResult(text="waiting for the result", changes=True)


async def finish(run: ToolRun, step: Step) -> CallResult:
    """End the run with an answer and a structured result, or as failed.

    Raises InvalidInput for a result that does not match the schema, and RunFailed if the model gives up.
    """
    if run.has_failed:
        raise InvalidInput("an earlier call of this answer failed: look at its output first, then finish")
    if (status := str(step.input.get("status") or DONE)) != DONE:
        reason = str(step.input.get("reason") or step.input.get("answer") or "").strip()
        if status not in GAVE_UP or not reason:
            raise InvalidInput(f"status must be {DONE} or {', '.join(GAVE_UP)}, the latter with a reason")
        raise RunFailed("gave_up", run.mind.redact.clean(f"the model says that the task {GAVE_UP[status]}: {reason}"))
    result = step.input.get("result") or {}
    if fault := await _fault_of(run, f"fault:{step.name}", result):
        run.result_faults += 1
        if run.result_faults > MAX_RESULT_FAULTS:
            raise RunFailed("result_invalid", f"the structured result is invalid: {fault}")
        raise InvalidInput(f"the result was rejected: {fault}")
    if run.assignment.check_result is not None and any(item["key"].startswith(CALL_KEY) for item in _tasks_of(result)):
        raise InvalidInput(f"the result was rejected: keys that begin with {CALL_KEY} are those of calls")
    answer = str(step.input.get("answer") or "")
    if (edited := await _review_plan(run, step, result)) is not None:
        result = {**result, "tasks": edited}
        answer = f"{answer}\n{EDITED}".strip()
        if fault := await _fault_of(run, f"edited:{step.name}", result):
            raise InvalidInput(f"a person wants these tasks: {json.dumps(edited)}. They cannot be created: {fault}")
    redact = run.mind.redact
    run.finished = (redact.clean(answer), dict(redact.value(result)))
    return CallResult(text="finished")


def _tasks_of(result: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the tasks of a result that was checked."""
    return result.get("tasks") or ()


async def _review_plan(run: ToolRun, step: Step, result: Mapping[str, Any]) -> Any:
    """Return the tasks of the plan if a person changed them, or None.

    Raises NeedsAnswer until a person decides, and InvalidInput if the person refused.
    """
    if "denied" in step.begun:
        raise InvalidInput(f"{NOT_APPROVED}: {await run.approvals.recall_denial(step)}")
    plan = run.assignment.plan_to_approve(result) if run.assignment.plan_to_approve is not None else ""
    if not plan:
        return None
    tasks = result.get("tasks") or ()
    names = [f"{item.get('key')} ({item.get('assigned_to')})" for item in tasks]
    call = gate.Call(PLAN_TOOL, "", "plan", inputs={"tasks": names}, diff=plan)
    reason, edited = await run.approvals.review(step, call, "the objective asks for a review of its plan", tasks)
    if reason:
        raise InvalidInput(f"{NOT_APPROVED}: {reason}")
    return edited


async def _fault_of(run: ToolRun, known: str, result: Any) -> str:
    """Return the fault of a structured result, or "".

    A fault is recorded as *known*: a resumed run goes on behind it.
    """
    fault = ""
    if not run.recorder.has_begun(known):
        fault = run.fault_of(cast("Mapping[str, Any]", result)) if isinstance(result, dict) else "it must be an object"
        if not fault:
            return ""

    async def record() -> dict[str, Any]:
        return {"fault": fault}

    return str((await run.recorder.step(known, record, idempotent=True))["fault"])


def _identifier(text: str) -> str:
    name = "".join(char if char.isascii() and (char.isalnum() or char == "_") else "_" for char in text)
    name = name[:MAX_NAME_CHARS]
    return name if name[:1].isalpha() or name[:1] == "_" else f"q_{name}"[:MAX_NAME_CHARS]
