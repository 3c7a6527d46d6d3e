"""Calls of a skill by a model, inside another task's run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.errors import ConfigError, InvalidInput, SkillFailed, SkillRefused
from fireswarm.skills.packs.catalog import Skill
from fireswarm.skills.packs.terms import terms_of
from fireswarm.skills.running import conversation_rules

Run = Callable[[Skill, SkillRequest], Awaitable[SkillResult]]


async def call_within(skill: Skill, request: SkillRequest, instead: str, run: Run) -> SkillResult:
    """Run a skill that a model calls inside its run.

    Such a call may be repeated and has no turn that could store state. A skill that stores state therefore needs a
    task: it raises SkillRefused, and *instead* tells the model how to get one. Steps of a pipeline, whose inputs only
    the pipeline gives, and invalid inputs raise SkillRefused as well; a result that breaks the skill's contract raises
    SkillFailed.
    """
    if skill.execution_mode is not None:
        raise SkillRefused(f"skill {skill.name!r} runs only in tasks that its pipeline planned; it was not run")
    try:
        terms = terms_of(skill)
        if terms is None:
            return await run(skill, request)
        if terms.keeps_state:
            raise SkillRefused(
                f"skill {skill.name!r} stores a conversation across the turns of a task and needs its own task; it "
                f"was not run. {instead}"
            )
        inputs = {**request.context, **request.answers}
        conversation_rules.check_inputs(terms, inputs)
    except (ConfigError, InvalidInput) as error:
        raise SkillRefused(str(error)) from error
    seen = conversation_rules.view(None, request.task_id, 1, terms, inputs)
    result = await run(skill, request.model_copy(update={"conversation": seen}))
    _, fault = conversation_rules.checked_state(result, terms, skill.name, router=True)
    if fault:
        raise SkillFailed(fault)
    return result
