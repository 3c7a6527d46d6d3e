"""An objective whose answer is that of a task: when the plan is done as it was made, its planner is not asked again."""

from __future__ import annotations

from typing import Any

from fireswarm.contracts.limits import MAX_RESULT_SUMMARY_CHARS, truncate
from fireswarm.contracts.skills.skill import SkillResult
from fireswarm.contracts.swarm.task import TaskResult, TaskStatus
from fireswarm.runs.steps import step_id
from fireswarm.swarm.board.rounds import base_key
from fireswarm.swarm.turn.engines.role_result import planned_children
from fireswarm.swarm.turn.state import PLANNED, Turn
from fireswarm.swarm.turn.thread import Hearing


def answer_of_plan(turn: Turn, phase: int, hearing: Hearing) -> SkillResult | None:
    """Return the result of the task whose answer the last round of the plan named as its own, or None.

    None also if there is something to judge: a task that is not done, checks or files of the planner's own, words for
    it, or a call of its model that an earlier start of this round has made.
    """
    kept = turn.journal.known.finished.get(step_id(PLANNED, phase - 1)) or {}
    named = (kept.get("result") or {}).get("answer_of")
    children = planned_children(turn)
    if not named or hearing.has_news or _has_own_part(turn) or _has_asked(turn, phase):
        return None
    if any(child.status is not TaskStatus.DONE for child in children.values()):
        return None
    chosen = [child for child in children.values() if base_key(child.plan_key) == named]
    if not chosen:
        return None
    last = max(chosen, key=lambda child: (len(child.plan_key), child.plan_key))  # the last one that was sent back
    if last.result is None:  # a person ended it
        return None
    turn.journal.note("answer_passed_on", task=last.task_id, key=last.plan_key)
    fields: dict[str, Any] = {name: getattr(last.result, name) for name in TaskResult.model_fields}
    fields["summary"] = truncate(last.result.summary, MAX_RESULT_SUMMARY_CHARS)
    return SkillResult(**fields)


def _has_own_part(turn: Turn) -> bool:
    result = turn.task.result
    return bool(turn.task.checks) or (result is not None and any(artifact.uri for artifact in result.artifacts))


def _has_asked(turn: Turn, phase: int) -> bool:
    known = turn.journal.known
    return any(step.startswith(f"{phase}/") for step in (*known.finished, *known.in_doubt, *known.skipped))
