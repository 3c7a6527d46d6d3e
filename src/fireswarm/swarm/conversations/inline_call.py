"""Skills that a model calls inside a run of its own: what of a conversation they can have there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.errors import ConfigError, InvalidInput, SkillFailed, SkillRefused
from fireswarm.skills.packs.catalog import Skill
from fireswarm.skills.packs.terms import terms_of
from fireswarm.swarm.conversations import rules

Run = Callable[[Skill, SkillRequest], Awaitable[SkillResult]]


async def call_within(skill: Skill, request: SkillRequest, instead: str, run: Run) -> SkillResult:
    """Run a skill that a model calls inside a run of its own. SkillRefused tells the model what it cannot have.

    What a skill keeps is kept with its turn, and a call is none: it may be repeated, and the run goes on behind it. So
    a skill that keeps something is for a task; *instead* says how to get there. One that keeps nothing is called.
    """
    try:
        terms = terms_of(skill)
        if terms is None:
            return await run(skill, request)
        if terms.keeps_state:
            raise SkillRefused(
                f"skill {skill.name!r} keeps a conversation over the turns of a task, and a call inside your run is no "
                f"such turn: it was not run. {instead}"
            )
        inputs = {**request.context, **request.answers}
        rules.check_inputs(terms, inputs)
    except (ConfigError, InvalidInput) as error:
        raise SkillRefused(str(error)) from error
    seen = rules.view(None, request.task_id, 1, terms, inputs)
    result = await run(skill, request.model_copy(update={"conversation": seen}))
    _, fault = rules.checked_state(result, terms, skill.name, router=True)
    if fault:
        raise SkillFailed(fault)
    return result
