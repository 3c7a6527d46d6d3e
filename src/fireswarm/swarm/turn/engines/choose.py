"""Choose the engine of a turn: a skill's code, a model, or a pipeline step that may ask for advice."""

from __future__ import annotations

from fireswarm.contracts.skills.skill import SkillResult
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput
from fireswarm.mind import Mind
from fireswarm.skills.packs.terms import terms_of
from fireswarm.skills.routing import router
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.turn.conversation import TaskConversation
from fireswarm.swarm.turn.engines.by_advice import AdviceEngine
from fireswarm.swarm.turn.engines.by_code import CodeEngine, InlineEngine
from fireswarm.swarm.turn.engines.by_model import ModelEngine
from fireswarm.swarm.turn.engines.pipeline import PipelineEngine
from fireswarm.swarm.turn.models import mind_of
from fireswarm.swarm.turn.outcome import SkillReportedFailure
from fireswarm.swarm.turn.state import Engine, Turn


def choose_engine(turn: Turn) -> Engine:
    """Return the turn's engine, and set the turn's conversation if its skill has one.

    Raises NotFound and InvalidInput for a skill that does not exist or cannot run, and InvalidInput if a task that goes
    on with a conversation has no model, which alone can hear what it is told.
    """
    task, swarm = turn.task, turn.swarm
    inline = swarm.inline.get(task.skill or "")
    mind = mind_of(turn, swarm.mind) if swarm.mind is not None and inline is None else None
    if mind is not None and mind.client is None and task.model is not None and task.skill is None:
        raise SkillReportedFailure(SkillResult.failure(mind.no_model, needs_model=True))  # no code takes its place
    reason = reason_to_skip_model(task, swarm, mind)
    if task.continues is not None and (mind is None or reason):
        reason = "a skill of the engine" if inline is not None else reason
        raise InvalidInput(
            f"task {task.continues} was done without a model ({reason}), and only a model goes on with its work: "
            f"submit the work as a new task"
        )
    if inline is not None:
        return InlineEngine(str(task.skill), inline)
    if turn.card.skills and all(name in swarm.inline for name in turn.card.skills):
        because = "its skills are functions of this process"
    else:
        because = reason
    if mind is not None and not because:
        return ModelEngine(mind)
    skill = router.choose(task.objective, task.skill, turn.card.skills, swarm.catalog)
    if skill.name in swarm.inline:
        return InlineEngine(skill.name, swarm.inline[skill.name], because)
    if skill.name in swarm.pipelines.by_skill:
        return PipelineEngine(skill, because)
    terms = terms_of(skill)
    if terms is not None:
        turn.conversation = TaskConversation.of(turn.lease, swarm, skill, terms)
    if skill.execution_mode is not None:
        return AdviceEngine(skill, skill.execution_mode, because, mind)
    return CodeEngine(skill, because)


def reason_to_skip_model(task: Task, parts: SwarmParts, mind: Mind | None) -> str:
    """Return the reason for using no model, or ""."""
    if mind is None or mind.client is None:
        return mind.no_model if mind is not None else "this swarm works without a model"
    if task.skill is None:
        return ""
    skill = parts.catalog.get(task.skill)
    if task.created_by == task.assigned_to and skill.entry is not None:
        return "a subtask planned by a skill"
    if skill.execution_mode is not None:
        return "a step of a pipeline"
    if skill.entry is not None and terms_of(skill) is not None:
        return "a skill with a conversation"
    return ""
