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
from fireswarm.skills.routing.asking import widen
from fireswarm.skills.routing.fit import IGNORED, Fit, measure_fit
from fireswarm.swarm.turn.outcome import SkillReportedFailure

MOST_UNKNOWN = 8
TABLES = (".csv", ".tsv")
NOT_ANSWERED = "The objective was not answered: it needs a model. "
DONE_IN_PART = "Only a part of the objective was done. Not done, because it needs a model: {undone}. "
MAX_CONFIDENCE = 0.1
"""Maximum confidence of a result that does not answer the objective."""

MAX_CONFIDENCE_IN_PART = 0.5
"""Maximum confidence of a result that leaves a part of the objective undone."""


def reason_not_answered(task: Task, skill: Skill, *, alone: bool) -> str:
    """Return the note for a result that runs only because of ``best_effort``, or "" for a full answer. Blocks.

    Raises SkillReportedFailure if the objective, or a part of it, needs a model. A planned task, a task that names its
    skill, and a skill that plans work for a swarm are not checked. A skill without ``asked_for`` is refused only for a
    part that it leaves undone. *alone*: it is the only skill of its role, so that other words for its work count too.
    """
    if task.skill is not None or task.parent_task_id is not None or (skill.needs_swarm and not skill.asked_for):
        return ""
    fit = measure_fit_of(task.objective, task.context, skill, alone=alone)
    if fit.enough or (not skill.asked_for and not fit.undone):
        return ""
    in_part = fit.in_part or (not skill.asked_for and bool(fit.undone))
    if task.context.get("best_effort") is True:
        return DONE_IN_PART.format(undone=fit.quoted_parts) if in_part else NOT_ANSWERED
    raise SkillReportedFailure(SkillResult.failure(_refusal(task, skill, fit), needs_model=True))


def _refusal(task: Task, skill: Skill, fit: Fit) -> str:
    """Say what needs a model, and what to do."""
    keys = "Set ANTHROPIC_API_KEY or GEMINI_API_KEY where the agents run"
    if fit.undone:
        return (
            f"{NEEDS_MODEL}; without one, nothing here can do this part: {fit.quoted_parts}. {task.assigned_to} would "
            f"run its skill {skill.name} for the rest. {keys}, or submit the rest alone, or submit it with "
            f"--best-effort for a result that leaves this part undone and says so."
        )
    words = ", ".join(fit.unknown[:MOST_UNKNOWN]) or "it"
    return (
        f"{NEEDS_MODEL}; without one, {task.assigned_to} would run its skill {skill.name}, which does not know "
        f"{words} (fit {fit.score:.2f}, needed {fit.threshold:.2f}). {keys}, or submit it with --skill {skill.name}, "
        f"or with --best-effort for a result that does not answer it."
    )


def with_note(result: SkillResult, note: str) -> SkillResult:
    """Return a completed result that begins with *note*, which says what it does not answer, and is less confident."""
    if result.state is not SkillState.COMPLETED:
        return result
    most = MAX_CONFIDENCE if note == NOT_ANSWERED else MAX_CONFIDENCE_IN_PART
    confidence = min(most, 1.0 if result.confidence is None else result.confidence)
    return result.model_copy(
        update={"summary": truncate(note + result.summary, MAX_RESULT_SUMMARY_CHARS), "confidence": confidence}
    )


def measure_fit_of(objective: str, context: Mapping[str, Any], skill: Skill, *, alone: bool = False) -> Fit:
    """Compare an objective with the known words of *skill*. Reads the header of a table named in the context.

    *alone* widens the words that ask for something, for the only skill of a role.
    """
    given = context.get("csv") or context.get("path")
    target = Path(given) if isinstance(given, str) and given and "\0" not in given else None
    widened = widen(skill.asked_for, skill.description) - set(skill.asked_for) if alone else frozenset[str]()
    words = [word for word in (*skill.asked_for, *widened) if " " not in word and word not in IGNORED]
    phrases = [word for word in skill.asked_for if " " in word]
    hints = [word for word in widened if " " in word or word in IGNORED]
    known = (skill.name.replace("-", " "), skill.description, *skill.tags)
    with contextlib.suppress(OSError, UnicodeError):
        if target is not None and target.suffix.lower() in TABLES and target.is_file():
            return measure_fit(objective, words, known, phrases=phrases, hints=hints, target=target, table=target)
    return measure_fit(objective, words, known, phrases=phrases, hints=hints, target=target)
