"""Search the facts of the session, and add to them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

from fireswarm.errors import InvalidInput
from fireswarm.mind.assignment import SessionMemory
from fireswarm.mind.calls.results import CallResult, Record, Step
from fireswarm.mind.tool_run import ToolRun


async def recall(run: ToolRun, step: Step) -> CallResult:
    """Return the facts that fit a query. Raises InvalidInput for a call without one."""
    query = _text(step, "query")
    if not query:
        raise InvalidInput("recall needs query, a text")
    return await _act(run, step, lambda memory: memory.recall(query), changes=False)


async def remember(run: ToolRun, step: Step) -> CallResult:
    """Store a fact once. Raises InvalidInput for a call without a fact or its evidence."""
    clean = run.mind.redact.clean
    given = step.input.get("evidence")
    items = cast("list[Any]", given) if isinstance(given, list) else [given]
    evidence = [clean(str(item)).strip() for item in items if item is not None and str(item).strip()]
    fact, name, replaces = clean(_text(step, "fact")), clean(_text(step, "name")), _text(step, "replaces")
    if not fact or not evidence:
        raise InvalidInput("remember needs fact and evidence: say where the fact can be checked")
    place = f"{run.assignment.phase}/{step.name}"
    return await _act(
        run, step, lambda memory: memory.remember(place, fact, evidence, name=name, replaces=replaces), changes=True
    )


async def _act(
    run: ToolRun, step: Step, work: Callable[[SessionMemory], Awaitable[str]], *, changes: bool
) -> CallResult:
    """Call the memory as one recorded step."""
    memory = run.assignment.memory
    if memory is None:
        raise InvalidInput("this run has no memory")
    if (left := await run.steered.leave_out(step)) is not None:
        return left

    async def record() -> Record:
        return CallResult(text=run.cut(await work(memory)), acted=True).record()

    stored = await run.recorder.step(f"act:{step.name}", record, idempotent=True)
    return CallResult.model_validate(stored | {"changes": changes})


def _text(step: Step, name: str) -> str:
    given = step.input.get(name)
    return given.strip() if isinstance(given, str) else ""
