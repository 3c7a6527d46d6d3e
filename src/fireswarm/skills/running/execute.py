"""Run a skill's code in a separate process: a busy skill cannot delay heartbeats, and a cancel ends it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import anyio
from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.skills.advice import ExecutionMode
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.errors import SandboxRefused, SkillFailed
from fireswarm.processes.child_pool import run_in_child
from fireswarm.skills.packs.catalog import Skill
from fireswarm.skills.running.confined import run_entry_confined
from fireswarm.skills.running.in_child import run_entry


async def run_skill(
    skill: Skill,
    request: SkillRequest,
    limiter: anyio.CapacityLimiter | None = None,
    hold: Callable[[], Awaitable[float]] | None = None,
    confinement: str = "bubblewrap",
) -> SkillResult:
    """Run a skill that has code; cancelling the call kills its process.

    For a request that is ``read_only``, its process can write to the request's workdir only, unless the operator chose
    the *confinement* ``none``.

    *hold* returns the seconds in which the skill may still start, or raises LeaseLost. The skill's process checks the
    clock right before the start: starting a process takes time, and this process may be suspended meanwhile.
    Raises SkillFailed if the skill raises (with its traceback), dies, or does not return a SkillResult, and
    SandboxRefused if it cannot be confined here.
    """
    if skill.entry is None:
        raise SkillFailed(
            f"skill {skill.name!r} has only instructions: run it with a model, or add an entry to its metadata"
        )
    try:
        place = (str(skill.folder), str(skill.entry), skill.execution_mode is ExecutionMode.DETERMINISTIC)
        text, asked = None, request.model_dump_json()
        while text is None:
            until = time.time() + await hold() if hold is not None else float("inf")
            if request.constraints.get("read_only") and confinement != "none":
                text = await run_entry_confined(request.workdir, *place, asked, until, limiter=limiter)
            else:
                text = await run_in_child(run_entry, *place, asked, until, limiter=limiter)
    except anyio.BrokenWorkerProcess as error:
        raise SkillFailed(
            f"the process of skill {skill.name!r} ended unexpectedly: out of memory, killed, or crashed"
        ) from error
    except SandboxRefused as error:
        raise SandboxRefused(
            f"the task is read_only, and the code of skill {skill.name!r} cannot be confined: {error}"
        ) from error
    except SkillFailed as error:
        raise SkillFailed(f"skill {skill.name!r} {error}") from error
    ok, content = text
    if not ok:
        raise SkillFailed(f"skill {skill.name!r} {content}")
    try:
        return SkillResult.model_validate_json(content)
    except ValidationError as error:
        raise SkillFailed(f"skill {skill.name!r} returned an invalid result: {explain_validation(error)}") from error
