"""Run the node pipeline: plan the next round from the files of the last one. The steps themselves are other skills."""

from __future__ import annotations

from fireswarm import Question, SkillRequest, SkillResult, SkillState, pipelines


def run(request: SkillRequest) -> SkillResult:
    """Return the next steps, or the outcome of the run."""
    context = {**request.context, **request.answers}
    if not (context.get("source") or request.attachments):
        told = "From which file or folder should the node be made?"
        question = Question(name="source", description=told)
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary=told, questions=(question,))
    return pipelines.next_round(request.model_copy(update={"context": context}))
