"""The keys of a model's answer keep their order in a store that sorts them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fireswarm.swarm.turn.key_order import ANSWER, ORDER, in_key_order, with_key_order

ANSWERS: list[list[Any]] = [
    [{"type": "tool_use", "id": "1", "name": "f", "input": {"z": 1, "a": [{"y": 1, "b": [[], {"d": 1, "c": None}]}]}}],
    [{"type": "text", "text": "ä\u2028"}, "words", 7, None],
    [{"b": {"": 1, "\x00": 2}, "a": {}}],
    [],
]


def stored(result: dict[str, Any]) -> dict[str, Any]:
    """The result as Firestore returns it."""
    return json.loads(json.dumps(result, sort_keys=True))


@pytest.mark.parametrize("answer", ANSWERS)
def test_answer_comes_back_in_its_order(answer: list[Any]) -> None:
    restored = in_key_order(stored(with_key_order({"text": "t", ANSWER: answer})))
    assert json.dumps(restored[ANSWER]) == json.dumps(answer)
    assert set(restored) == {"text", ANSWER}


def test_sorted_answer_needs_no_order() -> None:
    assert ORDER not in with_key_order({ANSWER: [{"a": 1, "b": {"c": 1}}]})


@pytest.mark.parametrize("order", ["", "{", "7", '[{"x":null}]', '[{"b":null,"a":null},null]', "[REDACTED]", None])
def test_answer_whose_order_is_damaged_is_used_as_it_is(order: str | None) -> None:
    assert in_key_order({ANSWER: [{"a": 1, "b": 2}], ORDER: order}) == {ANSWER: [{"a": 1, "b": 2}]}


@pytest.mark.parametrize("result", [{}, {"text": "t"}, {ANSWER: "words"}, {ANSWER: None}])
def test_result_without_an_answer_stays(result: dict[str, Any]) -> None:
    assert in_key_order(with_key_order(result)) == result
