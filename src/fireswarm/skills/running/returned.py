"""The result of a skill's code without what only fireswarm sets: ids and steps of questions, origins, own types."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.conversation import InputField
from fireswarm.contracts.skills.skill import CALL_KEY, Question, SkillRequest, SkillResult
from fireswarm.errors import SkillFailed


def as_returned(result: SkillResult, request: SkillRequest, refusal: Callable[[str], str]) -> SkillResult:
    """Return *result*, which a skill's code gave for *request*, with only those fields that a skill decides.

    Each result of code passes here once, right after the call. A question keeps what an `InputField` has: its id, its
    step and the action to approve are set by fireswarm. An artifact is of the task that runs, unless the request has
    the same one. *refusal* returns why the skill may not make an artifact of a type, or "". Raises SkillFailed for
    such an artifact, and for a task with the key of a call.
    """
    if calls := [task.key for task in result.tasks if task.key.startswith(CALL_KEY)]:
        raise SkillFailed(f"planned the task {calls[0]}: keys that begin with {CALL_KEY} are those of calls")
    given = {_identity(artifact) for artifact in _given_artifacts(request)}
    return result.model_copy(
        update={
            "questions": tuple(_without_own_fields(question) for question in result.questions),
            "facts": tuple(fact.model_copy(update={"fact_id": "", "learned_at": None}) for fact in result.facts),
            "artifacts": tuple(
                artifact if _identity(artifact) in given else _new_artifact(artifact, refusal)
                for artifact in result.artifacts
            ),
        }
    )


def _without_own_fields(question: Question) -> Question:
    return Question(**question.model_dump(include=set(InputField.model_fields)))


def _given_artifacts(request: SkillRequest) -> Iterable[Artifact]:
    yield from request.artifacts
    for child in request.children:
        yield from child.artifacts


def _identity(artifact: Artifact) -> str:
    """Return what makes an artifact the same one: all but its summary, as JSON, in which skills get it."""
    return artifact.model_dump_json(exclude={"summary"})


def _new_artifact(artifact: Artifact, refusal: Callable[[str], str]) -> Artifact:
    if reason := refusal(artifact.type):
        raise SkillFailed(f"returned the artifact {artifact.name or artifact.type!r}: {reason}")
    return artifact.model_copy(update={"source_task_id": None})
