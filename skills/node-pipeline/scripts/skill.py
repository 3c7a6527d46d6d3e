"""Run the node pipeline: plan its next round from what the last one left. The steps themselves are other skills."""

from __future__ import annotations

from fireswarm import Question, SkillRequest, SkillResult, SkillState, pipelines


def run(request: SkillRequest) -> SkillResult:
    """The next steps, or how the run ended."""
    context = {**request.context, **request.answers}
    if not (context.get("source") or request.attachments):
        told = "Which file or folder is the node to be made from?"
        question = Question(name="source", description=told)
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary=told, questions=(question,))
    return pipelines.next_round(request.model_copy(update={"context": context}))
