"""The second turn: check if the tasks of the plan answered the objective."""

from __future__ import annotations

from fireswarm import Artifact, ChildResult, SkillRequest, SkillResult, SkillState, count_noun, truncate

ANSWERS = ("report", "content_summary", "keyword_hits", "checklist")
"""Artifacts that answer an objective, the most complete first."""

CARRIED = (*ANSWERS, "chart")
"""Artifacts that answer the objective and are copied to this task; others stay with their tasks."""


NOT_ANSWERED = 0.1
"""Maximum confidence of a report that does not answer the objective."""

IN_PART = 0.5
"""Maximum confidence of a report that leaves a part of the objective undone."""


def review(request: SkillRequest, *, answered: bool = True, undone: str = "") -> SkillResult:
    """Return the report if there is one, and name every task that did not finish.

    *answered* is False if the plan was made with ``best_effort`` and does not fit the objective; *undone* has the parts
    of the objective that it does not fit.
    """
    unfinished = [child for child in request.children if child.status != "done"]
    carried = _carried(request.children)
    report = next((artifact for artifact in carried if artifact.type in ANSWERS), None)
    insights = tuple(_line(child) for child in request.children)
    missing = "; ".join(f"{child.key or child.task_id} ({child.assigned_to}) is {child.status}" for child in unfinished)
    if report is None:
        reason = missing or "every task finished, but none produced a report artifact"
        return SkillResult(
            state=SkillState.FAILED,
            summary=truncate(f"There is no report: {reason}."),
            artifacts=tuple(carried),
            insights=insights,
            next_recommended_actions=tuple(_remedy(child) for child in unfinished),
        )
    done = len(request.children) - len(unfinished)
    summary = "" if answered else "The objective was not answered: it needs a model. "
    if undone:
        summary = f"Only a part of the objective was done. Not done, because it needs a model: {undone}. "
    summary += (
        f"{report.name or 'The report'} is ready: {done} of {count_noun(len(request.children), 'task')} finished."
    )
    if report.summary:
        summary += f" {report.summary}"
    most = NOT_ANSWERED if not answered else IN_PART if undone else 1.0
    if missing:
        summary += f" Not finished: {missing}."
    return SkillResult(
        summary=truncate(summary),
        artifacts=tuple(carried),
        insights=insights,
        confidence=min(_confidence(request.children, done), most),
        next_recommended_actions=tuple(_remedy(child) for child in unfinished),
    )


def _carried(children: tuple[ChildResult, ...]) -> list[Artifact]:
    found: list[Artifact] = []
    for child in children:
        for artifact in child.artifacts:
            if artifact.type in CARRIED:
                source = artifact.source_task_id or child.task_id
                found.append(artifact.model_copy(update={"source_task_id": source}))
    return sorted(found, key=lambda artifact: CARRIED.index(artifact.type))


def _line(child: ChildResult) -> str:
    made = ", ".join(artifact.name or artifact.type for artifact in child.artifacts)
    return f"{child.key or child.task_id} [{child.assigned_to}] {child.status}: {child.summary or made or 'no result'}"


def _remedy(child: ChildResult) -> str:
    return f"Look at task {child.task_id} ({child.key or child.objective[:60]}): {child.summary or child.status}."


def _confidence(children: tuple[ChildResult, ...], done: int) -> float:
    """Return the lowest confidence of a finished task, lowered by the share of unfinished tasks."""
    known = [child.confidence for child in children if child.status == "done" and child.confidence is not None]
    return round(min(known, default=1.0) * done / len(children), 4)
