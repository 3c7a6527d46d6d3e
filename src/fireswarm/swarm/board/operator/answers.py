"""Validate answers to a task's questions, given by command, by message or by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fireswarm.contracts import inputs
from fireswarm.contracts.skills.permissions import ALWAYS, APPROVE
from fireswarm.contracts.skills.skill import QUESTION_ID, Question
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput, StaleAnswer
from fireswarm.storage.documents.build import plain

NOTHING: Mapping[str, Any] = {}

_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "array": list,
    "object": dict,
}


def ask_fields(task: Task, turn: int, questions: Sequence[Question]) -> dict[str, Any]:
    """Return the fields by which *task* asks *questions* at the end of *turn*.

    Each question gets a new id, and earlier answers to the same name or step are removed: an answer is valid for one
    question only.
    """
    asked = [question.model_copy(update={"id": f"{turn}-{number}"}) for number, question in enumerate(questions, 1)]
    fields: dict[str, Any] = {"questions": [plain(question) for question in asked]}
    names = {question.name for question in asked}
    if names & task.answers.keys():
        fields["answers"] = {name: value for name, value in task.answers.items() if name not in names}
    if again := {question.step for question in asked} & task.answered.keys():
        fields["answered"] = {
            step: {name: value for name, value in given.items() if step not in again or name not in names}
            for step, given in task.answered.items()
        }
    return fields


def check_open(task: Task, given: Mapping[str, Any]) -> None:
    """Raise StaleAnswer if *given* has the id of a question that is not open."""
    stale = [key for key in given if QUESTION_ID.fullmatch(key) and key not in {item.id for item in task.questions}]
    if stale:
        raise StaleAnswer(
            f"question {', '.join(stale)} of task {task.task_id} is not open: it was answered, or the task has "
            f"continued. {describe_open(task)}"
        )


def check_by_id(task: Task, given: Mapping[str, Any]) -> None:
    """Raise StaleAnswer or InvalidInput unless the keys of *given* are ids of open questions."""
    check_open(task, given)
    names = [key for key in given if key not in {question.key for question in task.questions}]
    if names:
        raise InvalidInput(
            f"answers need the id of their question, and {', '.join(names)} is not the id of an open one. "
            f"{describe_open(task)}"
        )


def describe_open(task: Task) -> str:
    """Return a sentence with the ids and names of the open questions."""
    listed = ", ".join(f"{question.key} ({question.name})" for question in task.questions)
    return f"Open questions: {listed or 'none'}."


def merge_answers(task: Task, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields ``answers`` and ``answered`` of *task* with the answers *given*, by question name or id.

    Raises StaleAnswer for the id of a question that is not open, and InvalidInput with all answers that are missing,
    mistyped, given twice, or unexpected.
    """
    check_open(task, given)
    ids = {question.key: question.name for question in task.questions}
    named = [ids.get(key, key) for key in given]
    answers = {**task.answers, **dict(zip(named, given.values(), strict=True))}
    known = set(ids.values())
    faults = [f"{name} is not an open question" for name in named if known and name not in known]
    faults += [f"{name} is answered twice" for name in known if named.count(name) > 1]
    faults += [told for question in task.questions if (told := _fault(question, answers))]
    if faults:
        raise InvalidInput("the answer does not fit the questions: " + "; ".join(faults))
    if wrong := inputs.faults(task.answer_schema, {**task.context, **answers}, partial=True):
        raise InvalidInput(f"the answer does not fit the skill's inputs: {'; '.join(wrong)}")
    answered = {step: dict(values) for step, values in task.answered.items()}
    for question in task.questions:
        if _has_step_to_answer(task, question) and question.name in answers:
            answered.setdefault(question.step, {})[question.name] = answers[question.name]
    approvals = {
        item.name for item in task.questions if item.approval is not None or item.step.startswith(f"{APPROVE}/")
    }
    kept = {name: value for name, value in answers.items() if name not in approvals}
    return {"answers": kept} | ({"answered": answered} if answered != task.answered else {})


def _has_step_to_answer(task: Task, question: Question) -> bool:
    """Return True if a step gets the answer: that of an approval, only if one of its questions shows the action."""
    if question.step.startswith(f"{APPROVE}/"):
        return any(item.approval is not None and item.step == question.step for item in task.questions)
    return bool(question.step)


def with_approval(
    task: Task, key: str, word: str, *, always: bool = False, also: Mapping[str, Any] = NOTHING
) -> dict[str, Any]:
    """Return the answers, by question id, that decide on the request *key*, or the first one, with *word*.

    *also* are answers to the other questions about it, by name: a ``reason``, or another ``plan``. Raises StaleAnswer
    or InvalidInput for a request or question that is not open.
    """
    asked = task.approval(key)
    others = {item.name: item.key for item in task.questions if item.step == asked.step and item is not asked}
    if unknown := [name for name in also if name not in others]:
        raise InvalidInput(f"task {task.task_id} takes no {', '.join(unknown)} with this approval")
    return {asked.key: ALWAYS if always else word, **{others[name]: value for name, value in also.items()}}


def _fault(question: Question, answers: Mapping[str, Any]) -> str:
    if question.name not in answers:
        return f"{question.name} is missing ({question.description})" if question.required else ""
    expected = _TYPES.get(question.type, object)
    value = answers[question.name]
    if not isinstance(value, expected) or (question.type in ("number", "integer") and isinstance(value, bool)):
        return f"{question.name} must be of type {question.type}"
    return inputs.value_fault(question.name, question.allowed, value)
