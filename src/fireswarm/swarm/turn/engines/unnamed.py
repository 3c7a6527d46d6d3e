"""Decide, without a model, whether a skill's code can work on an objective that names a role but no skill."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fireswarm.contracts.limits import MAX_RESULT_SUMMARY_CHARS, truncate
from fireswarm.contracts.skills.skill import NEEDS_MODEL, SkillResult, SkillState
from fireswarm.contracts.swarm.task import Task
from fireswarm.skills.packs.catalog import Skill
from fireswarm.skills.routing.fit import Fit, measure_fit
from fireswarm.swarm.turn.outcome import SkillReportedFailure

MOST_UNKNOWN = 8
TABLES = (".csv", ".tsv")
NOT_ANSWERED = "The objective was not answered: it needs a model. "
MAX_CONFIDENCE = 0.1
"""Maximum confidence of a result that does not answer the objective."""


def can_answer(task: Task, skill: Skill) -> bool:
    """Return True if *skill* may answer the objective, False if it runs only because of ``best_effort``. Blocks.

    Raises SkillReportedFailure if the objective needs a model. A planned task, a task that names its skill, and a skill
    without ``asked_for`` are not checked.
    """
    if task.skill is not None or task.parent_task_id is not None or not skill.asked_for:
        return True
    fit = measure_fit_of(task.objective, task.context, skill)
    if fit.enough:
        return True
    if task.context.get("best_effort") is True:
        return False
    words = ", ".join(fit.unknown[:MOST_UNKNOWN]) or "it"
    raise SkillReportedFailure(
        SkillResult.failure(
            f"{NEEDS_MODEL}; without one, {task.assigned_to} would run its skill {skill.name}, which does not know "
            f"{words} (fit {fit.score:.2f}, needed {fit.threshold:.2f}). Set ANTHROPIC_API_KEY or GEMINI_API_KEY "
            f"where the agents run, or submit it with --skill {skill.name}, or with --best-effort for a result "
            f"that does not answer it.",
            needs_model=True,
        )
    )


def without_answer(result: SkillResult) -> SkillResult:
    """Return a result that begins with a note that it does not answer the objective."""
    if result.state is not SkillState.COMPLETED:
        return result
    confidence = min(MAX_CONFIDENCE, 1.0 if result.confidence is None else result.confidence)
    return result.model_copy(
        update={"summary": truncate(NOT_ANSWERED + result.summary, MAX_RESULT_SUMMARY_CHARS), "confidence": confidence}
    )


def measure_fit_of(objective: str, context: Mapping[str, Any], skill: Skill) -> Fit:
    """Compare an objective with the known words of *skill*. Reads the header of a table named in the context."""
    given = context.get("csv") or context.get("path")
    target = Path(given) if isinstance(given, str) and given and "\0" not in given else None
    words = [word for word in skill.asked_for if " " not in word]
    phrases = [word for word in skill.asked_for if " " in word]
    known = (skill.name.replace("-", " "), skill.description, *skill.tags)
    with contextlib.suppress(OSError, UnicodeError):
        if target is not None and target.suffix.lower() in TABLES and target.is_file():
            return measure_fit(objective, words, known, phrases=phrases, target=target, table=target)
    return measure_fit(objective, words, known, phrases=phrases, target=target)
