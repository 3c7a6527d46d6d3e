"""The tools with which a role talks to other agents: ask, which waits for the answer, and tell."""

from __future__ import annotations

from typing import Any

from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.errors import InvalidInput
from fireswarm.mind.calls.results import CallResult, Step
from fireswarm.mind.tool_run import ToolRun

ASKS = "asks_task"
"""Key in the context of a planned task: the id of the task whose conversation answers its question."""

MAX_QUESTION_CHARS = 6_000

MAX_ASKED = 10
"""Maximum number of questions to other agents in one run."""


async def ask(run: ToolRun, step: Step) -> CallResult:
    """Ask another agent, or return the answer if an earlier turn asked. Raises InvalidInput for an unknown agent."""
    to, question = _text(step, "to"), _text(step, "question")
    run.asked += 1
    if run.asked > MAX_ASKED:
        raise InvalidInput(f"you have asked {MAX_ASKED} questions, the most of one task: go on with what you know")
    key = run.key_of(step.name)
    if key in run.assignment.children:
        return CallResult(text=run.result_of(key), changes=True)
    assert run.assignment.colleagues is not None
    colleague = await run.assignment.colleagues.find(to)
    if len(question) > MAX_QUESTION_CHARS:
        raise InvalidInput(f"a question has at most {MAX_QUESTION_CHARS:,} characters: store the rest as an artifact")
    run.planned[key] = PlannedTask(
        key=key,
        assigned_to=colleague.role,
        objective=f"Answer a question: {question}",
        context={ASKS: colleague.task_id} if colleague.task_id else {},
        handoff_reason=question,
    )
    return CallResult(text="waiting for the answer", changes=True)


async def tell(run: ToolRun, step: Step) -> CallResult:
    """Tell another agent something, once. Raises InvalidInput for an unknown agent, or one that has ended."""
    to, message = _text(step, "to"), _text(step, "message")
    others = run.assignment.colleagues
    assert others is not None

    async def work() -> dict[str, Any]:
        hears = await others.tell(to, run.mind.redact.clean(message), f"{run.assignment.phase}/{step.name}")
        return CallResult(text=f"{hears} hears it before its next step", acted=True, changes=True).record()

    return CallResult.model_validate(await run.recorder.step(f"act:{step.name}", work, idempotent=True))


def _text(step: Step, name: str) -> str:
    value = step.input.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{step.call.name} needs {name}, a text")
    return value.strip()
