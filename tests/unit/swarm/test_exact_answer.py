"""A model's answer comes back exactly from a store that sorts keys and removes control characters."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fireswarm.redaction import Redactor
from fireswarm.runs.sinks.exact_answer import ANSWER, CALLS, EXACT, ORDER, exact_answer, with_exact_answer

ANSWERS: list[list[Any]] = [
    [{"type": "tool_use", "id": "1", "name": "f", "input": {"z": 1, "a": [{"y": 1, "b": [[], {"d": 1, "c": None}]}]}}],
    [{"type": "text", "text": "ä\u2028"}, "words", 7, None],
    [{"b": {"": 1, "\x00": 2}, "a": {}}],
    [],
]
CLEAN = Redactor().value


def stored(result: dict[str, Any]) -> dict[str, Any]:
    """The result as Firestore returns it."""
    return json.loads(json.dumps(CLEAN(result), sort_keys=True))


@pytest.mark.parametrize("answer", ANSWERS)
def test_answer_comes_back_in_its_order(answer: list[Any]) -> None:
    restored = exact_answer(stored(with_exact_answer({"text": "t", ANSWER: answer}, CLEAN)))
    assert json.dumps(restored[ANSWER]) == json.dumps(answer)
    assert set(restored) == {"text", ANSWER}


def test_sorted_answer_needs_no_order() -> None:
    result = {ANSWER: [{"a": 1, "b": {"c": 1}}], CALLS: [{"b": 1, "a": 2}]}
    assert with_exact_answer(result, CLEAN) == result


@pytest.mark.parametrize("text", ["a\r\nb", "\x1b[31mred\x1b]0;title\x07", "\x00\x0c\x85", "\u05d0\u200f\u202e"])
def test_control_characters_come_back(text: str) -> None:
    calls = [{"name": "write_file", "id": "1", "input": {"path": "p", "content": text}}]
    for answer in ([{"type": "tool_use", **calls[0]}], [{"type": "thinking", "thinking": text, "signature": "s"}]):
        result = {"text": "t", ANSWER: answer, CALLS: calls}
        restored = exact_answer(stored(with_exact_answer(result, CLEAN)))
        assert restored == result
        assert json.dumps(restored[ANSWER]) == json.dumps(answer), "also in its order"


@pytest.mark.parametrize("packed", ["", "no Base64", "[redacted]", "eJw=", "eJyrVgIAAXMA5Q==", None, 7])
def test_damaged_exact_answer_is_not_used(packed: object) -> None:
    result = {ANSWER: [{"a": 1}], "text": "t"}
    assert exact_answer(result | {EXACT: packed}) == result


@pytest.mark.parametrize("order", ["", "{", "7", '[{"x":null}]', '[{"b":null,"a":null},null]', "[REDACTED]", None])
def test_answer_whose_order_is_damaged_is_used_as_it_is(order: str | None) -> None:
    assert exact_answer({ANSWER: [{"a": 1, "b": 2}], ORDER: order}) == {ANSWER: [{"a": 1, "b": 2}]}


@pytest.mark.parametrize("result", [{}, {"text": "t"}, {ANSWER: "words"}, {ANSWER: None}])
def test_result_without_an_answer_stays(result: dict[str, Any]) -> None:
    assert exact_answer(with_exact_answer(result, CLEAN)) == result


def test_answer_with_sorted_keys_is_restored_from_a_store_that_shuffles_them() -> None:
    answer = [{"id": "a", "input": {"a": 1, "b": 2}, "name": "n", "type": "tool_use"}]
    result = with_exact_answer({ANSWER: answer}, CLEAN)
    shuffled = [{"type": "tool_use", "input": {"b": 2, "a": 1}, "name": "n", "id": "a"}]
    assert json.dumps(exact_answer(result | {ANSWER: shuffled})[ANSWER]) == json.dumps(answer)
