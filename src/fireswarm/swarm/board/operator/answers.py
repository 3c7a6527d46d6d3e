"""Validate answers to a task's questions, whether they come by command, by message or by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fireswarm.contracts import inputs
from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput

_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "array": list,
    "object": dict,
}


def merge_answers(task: Task, given: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the answers *given* into those of *task*.

    Raises InvalidInput with every answer that is missing, mistyped or was not asked for.
    """
    answers = {**task.answers, **given}
    known = {question.name for question in task.questions}
    faults = [f"{name} was not asked for" for name in given if known and name not in known]
    faults += [told for question in task.questions if (told := _fault(question, answers))]
    if faults:
        raise InvalidInput("the answer does not fit the questions: " + "; ".join(faults))
    if wrong := inputs.faults(task.answer_schema, {**task.context, **answers}, partial=True):
        raise InvalidInput(f"the answer does not fit the skill's inputs: {'; '.join(wrong)}")
    return answers


def _fault(question: Question, answers: Mapping[str, Any]) -> str:
    if question.name not in answers:
        return f"{question.name} is missing ({question.description})" if question.required else ""
    expected = _TYPES.get(question.type, object)
    value = answers[question.name]
    if not isinstance(value, expected) or (question.type in ("number", "integer") and isinstance(value, bool)):
        return f"{question.name} must be of type {question.type}"
    return inputs.value_fault(question.name, question.allowed, value)
