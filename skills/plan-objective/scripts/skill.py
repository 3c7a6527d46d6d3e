"""Plan an objective as a task graph, and on the second turn answer it from the tasks' results."""

from __future__ import annotations

from typing import Any

from fireswarm import (
    Artifact,
    Fit,
    PlannedTask,
    Question,
    SkillRequest,
    SkillResult,
    SkillState,
    count_noun,
    format_number,
    format_score,
    truncate,
)

from .fit import measure
from .graph import PlanInvalid, fill, validate
from .match import Match, choose, rank_templates, wanted
from .review import review
from .target import Target, TargetMissing, find_target, keywords_of
from .templates import FALLBACK, TemplateBroken, load_templates

MAX_QUOTED_CHARS = 1_500
MOST_UNKNOWN = 8

PASSED_ON = ("target", "task", "exclude", "level", "shard_files", "max_files", "max_commits")
"""Keys of the objective's context that templates may pass on to tasks unchanged."""


def run(request: SkillRequest) -> SkillResult:
    """Plan on the first turn, review on the second."""
    try:
        if request.children:
            fit = _fit(request) if _is_best_effort(request) else None
            answered = fit is None or fit.enough or fit.in_part
            return review(request, answered=answered, undone=fit.quoted_parts if fit and fit.in_part else "")
        return _plan(request)
    except TargetMissing as reason:
        return _ask_for_path(f"{reason} Give the path of a folder or CSV file on the workers' machine.")
    except (PlanInvalid, TemplateBroken) as reason:
        return SkillResult.failure(str(reason))


def _plan(request: SkillRequest) -> SkillResult:
    target = find_target(request)
    templates = load_templates()
    fit = measure(request.objective, templates, target)
    if not fit.enough and not _is_best_effort(request):
        return _needs_model(fit)
    matches = rank_templates(templates, request.objective, target)
    if target is None:
        return _ask_for_path("The objective names no folder or file. Which one is it about?")
    if not fit.enough and not fit.in_part:
        fallback = next(match for match in matches if match.template.name == FALLBACK)
        return _delegate(request, target, fallback, matches, not_answered=True)
    asked = wanted(matches)
    if asked is not None and asked.template.needs.path == "csv" and target.csv is None and target.candidates:
        return _ask_for_table(target)
    chosen = choose(matches)
    if chosen is None:
        return _ask_for_path(f"No plan fits {target.path.name}. Give a folder or a CSV file.")
    return _delegate(request, target, chosen, matches, not_answered=fit.quoted_parts or None)


def _is_best_effort(request: SkillRequest) -> bool:
    return request.context.get("best_effort") is True


def _fit(request: SkillRequest) -> Fit:
    return measure(request.objective, load_templates(), find_target(request))


def _needs_model(fit: Fit) -> SkillResult:
    """Refuse an objective that no template fits, and say what it needs."""
    words = fit.quoted_parts or ", ".join(fit.unknown[:MOST_UNKNOWN])
    unknown = f": it knows no plan for {words}" if words else ""
    without = (
        "for a report that leaves this part undone and says so"
        if fit.in_part
        else "for a report that does not answer it"
    )
    return SkillResult.failure(
        f"This objective needs a model; the code cannot answer it{unknown} (fit {format_score(fit.score)}, needed "
        f"{format_score(fit.threshold)}). Set ANTHROPIC_API_KEY or GEMINI_API_KEY where the agents run, or submit it "
        f"with --skill NAME, or with --best-effort {without}.",
        needs_model=True,
    )


def _delegate(
    request: SkillRequest,
    target: Target,
    chosen: Match,
    matches: list[Match],
    *,
    not_answered: str | bool | None,
) -> SkillResult:
    """Hand the tasks of a template over. *not_answered* has the parts that they leave undone, or is True for all."""
    if chosen.template.needs.path == "csv" and target.csv is not None:
        target = Target(target.csv, "csv", target.csv)
    tasks, notes = fill(chosen.template, _values(request, target, not_answered), request.roles)
    waves = validate(tasks, request.roles)
    plan = _plan_artifact(chosen, tasks, waves, matches)
    why = ", ".join(chosen.reasons) or "nothing more specific fits"
    summary = f"Plan {chosen.template.name} for {target.path.name}: {count_noun(len(tasks), 'task')} in "
    summary += f"{count_noun(len(waves), 'step')}."
    insights = (
        f"Chose the template {chosen.template.name} with score {format_number(chosen.score)}: {why}.",
        "Scores: " + ", ".join(f"{match.template.name} {format_number(match.score)}" for match in matches) + ".",
        *notes,
    )
    return SkillResult(
        state=SkillState.DELEGATING,
        summary=summary,
        artifacts=(plan,),
        insights=insights,
        tasks=tuple(tasks),
        confidence=_confidence(chosen, matches),
    )


def _values(request: SkillRequest, target: Target, not_answered: str | bool | None) -> dict[str, Any]:
    known = request.context | request.answers
    return {
        "objective": truncate(" ".join(request.objective.split()), MAX_QUOTED_CHARS),
        "path": str(target.path),
        "name": target.path.name or str(target.path),
        "bucket": target.bucket,
        "keywords": keywords_of(request.objective, target),
        "not_answered": not_answered,
        **{name: known.get(name) for name in PASSED_ON},
    }


def _plan_artifact(chosen: Match, tasks: list[PlannedTask], waves: list[list[str]], matches: list[Match]) -> Artifact:
    value = {
        "template": chosen.template.name,
        "scores": {match.template.name: match.score for match in matches},
        "reasons": list(chosen.reasons),
        "steps": [", ".join(wave) for wave in waves],
        "tasks": [
            {
                "key": task.key,
                "assigned_to": task.assigned_to,
                "skill": task.skill,
                "objective": task.objective,
                "depends_on": list(task.depends_on),
            }
            for task in tasks
        ],
    }
    return Artifact(type="plan", name="plan", summary=chosen.template.description, value=value)


def _confidence(chosen: Match, matches: list[Match]) -> float:
    """Confidence of the choice: its score over the sum of the two best scores; 0.5 is a draw."""
    others = [match.score for match in matches if match.usable and match.template.name != chosen.template.name]
    runner_up = max(others, default=0.0)
    return round(chosen.score / (chosen.score + runner_up), 4) if chosen.score else 0.3


def _ask_for_path(why: str) -> SkillResult:
    question = Question(name="path", description="Absolute path of the folder or CSV file to work on", type="path")
    return SkillResult(state=SkillState.INPUT_REQUIRED, summary=why, questions=(question,))


def _ask_for_table(target: Target) -> SkillResult:
    names = ", ".join(target.candidates)
    question = Question(
        name="path", description=f"Absolute path of the CSV file in {target.path}: {names}", type="path"
    )
    summary = f"{target.path.name} holds {count_noun(len(target.candidates), 'CSV file')}: {names}. Which one is it?"
    return SkillResult(state=SkillState.INPUT_REQUIRED, summary=truncate(summary), questions=(question,))
