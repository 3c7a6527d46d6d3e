"""Checks of call inputs, and texts for the model. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

from fireswarm.contracts.llm.chat import StopReason, ToolCall, ToolOutput
from fireswarm.errors import InvalidInput
from fireswarm.llm.calls import FINISH
from fireswarm.mind.calls.specs import TODO_STATES

CUT_SHORT: Mapping[StopReason, str] = {
    StopReason.MAX_TOKENS: "at the limit of tokens (model.max_tokens)",
    StopReason.CONTEXT: "at the end of the model's context",
    StopReason.OTHER: "before it was complete",
}
"""Where an incomplete answer was cut off."""

_TODO_MARKS: dict[str, str] = dict(zip(TODO_STATES, ("[ ]", "[>]", "[x]"), strict=True))

NOT_EXECUTED = "This call was not executed: the run was stopped here."


FAILED, UNANSWERED = "failed", "unanswered"
"""The two kinds of failure after which a person's message can resume a run: after an answer, and without one."""


class NoAnswer(Exception):
    """An earlier start of the run got no answer here."""


def cut_call(stop: StopReason) -> str:
    """Return the error for the last call of an incomplete answer: a part of the call's input may be missing."""
    return f"The answer was cut off {CUT_SHORT[stop]}, and this call with it. Work in smaller parts."


def cut_answer(stop: StopReason) -> str:
    """Return the message to the model after an incomplete answer."""
    return f"Your answer was cut off {CUT_SHORT[stop]}. Answer more briefly, or in parts."


def describe_answers_left(left: int, *, finishes: bool = False) -> str:
    """Return the warning about the number of answers left; *finishes* is True if the run ends with the tool finish."""
    if left > 1:
        return f"[{left} answers left.]"
    return f"[This is your last answer. {f'Call {FINISH}' if finishes else 'Answer'} now, and say what is unfinished.]"


def outputs_of_all(calls: Iterable[ToolCall], known: Collection[ToolOutput]) -> list[ToolOutput]:
    """Return one output for each call: providers refuse a conversation in which a call has no output."""
    by_id = {output.call_id: output for output in known}
    return [
        by_id.get(call.id) or ToolOutput(call_id=call.id, name=call.name, text=NOT_EXECUTED, failed=True)
        for call in calls
    ]


def number_in(given: Mapping[str, Any], name: str, usual: int) -> int:
    """Return an input that must be a number of at least 1, or *usual* if it is missing.

    Raises InvalidInput for another value.
    """
    value = given.get(name)
    if value is None:
        return usual
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 1:
        raise InvalidInput(f"{name} must be a number of at least 1")
    return int(value)


def todo_list(given: Mapping[str, Any]) -> str:
    """Return the items of a to-do list, one a line."""
    lines: list[str] = []
    for item in cast("list[Any]", given.get("items")) if isinstance(given.get("items"), list) else [None]:
        fields = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
        mark = _TODO_MARKS.get(str(fields.get("state")))
        if mark is None or not isinstance(fields.get("text"), str):
            raise InvalidInput(f"items must be a list of objects with text and state: {', '.join(TODO_STATES)}")
        lines.append(f"{mark} {fields['text']}")
    return "\n".join(lines)
