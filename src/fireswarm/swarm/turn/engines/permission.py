"""Permissions of a turn: its grant, and the decision on a skill that runs without a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fireswarm.contracts.grant import Grant
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult, SkillState
from fireswarm.errors import InvalidInput
from fireswarm.mind import approvals, gate
from fireswarm.runs.assemble import grant_of
from fireswarm.skills.packs.catalog import Skill
from fireswarm.swarm.turn.given.workspace import named_workspace
from fireswarm.swarm.turn.state import Turn

STEP = "skill"
"""Name of the step in which a skill runs without a model."""


def grant_for(turn: Turn, cwd: Path) -> Grant:
    """Return the grant of the turn's task.

    A change that matches no rule is allowed, since no person is at a terminal.
    """
    limits = turn.task.constraints
    rules = (turn.card.permissions, limits.permissions)
    grant = grant_of(turn.swarm.settings, cwd, *rules, constraints=limits, role=turn.task.assigned_to)
    return replace(grant, base=turn.objective_folder)


def waiting_for_approval(turn: Turn, skill: Skill, request: SkillRequest) -> SkillResult | None:
    """Return a question for a person if *skill* needs approval, or None if it may run.

    Raises InvalidInput if it may not run.
    """
    grant = grant_for(turn, named_workspace(turn) or turn.swarm.settings.path(Path()))
    call = gate.skill_call(skill, request.context)
    match gate.decide(call, grant):
        case gate.Allow():
            return None
        case gate.Deny(reason):
            raise InvalidInput(f"skill {skill.name!r} was not run: {reason}")
        case gate.Ask(because):
            pass
    call = approvals.bind_call(call, grant)
    if reason := approvals.reason_too_long(call, str):
        raise InvalidInput(f"skill {skill.name!r}: {reason}")
    place = approvals.place_of(call, STEP)
    answers = approvals.decision_on(call, place, turn.task.answered)
    if answers is None:
        asked = approvals.questions_for(call, place, because, str)  # the store removes secrets
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary=asked[0].description, questions=asked)
    if reason := approvals.refusal_reason(answers):
        raise InvalidInput(f"skill {skill.name!r} was not run: {reason}")
    return None
