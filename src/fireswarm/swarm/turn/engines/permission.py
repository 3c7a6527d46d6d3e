"""Permissions of a turn: the rules that bind it, and the decision on a skill that runs without a model."""

from __future__ import annotations

from fireswarm.contracts.skills.skill import SkillRequest, SkillResult, SkillState
from fireswarm.errors import InvalidInput
from fireswarm.mind import permissions
from fireswarm.mind.guard import profile_of, refuse_skill
from fireswarm.mind.permissions import Action, Policy, Verdict, policy_of
from fireswarm.skills.packs.catalog import Skill
from fireswarm.swarm.turn.state import Turn


def policy_for(turn: Turn) -> Policy:
    """Return the policy of the turn's task. What no rule names is allowed: a swarm has no person at a terminal."""
    rules = turn.swarm.settings.permissions
    return policy_of(rules, Verdict.ALLOW, turn.card.permissions, turn.task.constraints.permissions)


def waiting_for_approval(turn: Turn, skill: Skill, request: SkillRequest) -> SkillResult | None:
    """Return a result that asks a person whether *skill* may run, or None if it may.

    Raises InvalidInput if it may not.
    """
    task = turn.task
    profile = profile_of(task.constraints, turn.swarm.settings.runtime.profile)
    if reason := refuse_skill(skill, profile, turn.swarm.settings.skills.outside_scripts):
        raise InvalidInput(reason)
    shown = f"{skill.name} {permissions.input_text(request.context)}"
    action = Action("Skill", skill.name, shown, request.workdir, changes=skill.writes)
    judged = policy_for(turn).judge(action)
    if judged.verdict is Verdict.ALLOW:
        return None
    if judged.verdict is Verdict.DENY:
        raise InvalidInput(f"skill {skill.name!r} was not run: {judged.because}")
    if reason := permissions.too_long(action, str):
        raise InvalidInput(f"skill {skill.name!r}: {reason}")
    place = action.place("skill")
    answers = permissions.decision_on(action, place, task.answered)
    if answers is None:
        asked = permissions.questions_for(action, place, judged.because, str)  # the store removes secrets
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary=asked[0].description, questions=asked)
    if reason := permissions.refusal_reason(answers):
        raise InvalidInput(f"skill {skill.name!r} was not run: {reason}")
    return None
