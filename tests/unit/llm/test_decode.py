"""Decoding a model's text to a decision: tolerated forms, rejected forms, and robustness to any input."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fireswarm.contracts.llm.decision import ActionType, decision_schema
from fireswarm.llm.decode import Undecodable, decode, json_params, repair_request

ACTION = {"type": "run_command", "params": {"command": "ls"}, "expected_output": ""}
DECISION: dict[str, Any] = {
    "selected_skill": "greeter",
    "reasoning_summary": "why not",
    "required_disclosure_paths": ["a.md"],
    "planned_actions": [ACTION],
}
TEXT = json.dumps(DECISION)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"  \n{TEXT}\n ",
        f"\ufeff{TEXT}",
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```",
        f"Here is what I would do:\n\n{TEXT}\n\nI hope that helps.",
        json.dumps(DECISION, indent=4),
    ],
)
def test_decision_is_found_with_and_without_surrounding_text(text: str) -> None:
    decision = decode(text)
    assert decision.selected_skill == "greeter"
    assert decision.planned_actions[0].params == {"command": "ls"}


def test_missing_keys_get_defaults() -> None:
    assert decode("{}").planned_actions == ()


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("", "the answer is empty"),
        ("   \n", "the answer is empty"),
        ("I cannot decide.", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ('"text"', "no JSON object"),
        (TEXT[:-20], "not valid JSON"),
        (TEXT + TEXT, "more than one JSON object"),
        (f"{TEXT}\nor else\n{TEXT}", "more than one JSON object"),
        ('{"planned_actions": "none"}', "planned_actions: Input should be a list"),
        ('{"selected_skill": 5}', "selected_skill"),
        ('{"thoughts": "hm"}', "thoughts: Extra inputs"),
        ('{"planned_actions": [{"type": "dance"}]}', "planned_actions.0.type"),
        ('{"planned_actions": [{"type": "finish", "params": [1]}]}', "planned_actions.0.params"),
        (json.dumps({"planned_actions": [{"type": "finish"}] * 21}), "at most 20"),
        ('{"planned_actions": [{"type": "finish", "params": {"x": NaN}}]}', "NaN is not a JSON number"),
        ("{" * 100_000, "not valid JSON"),
        ('{"planned_actions":' + "[" * 100_000, "not valid JSON"),
        ('{"a": ' + "9" * 5_000 + "}", "not valid JSON"),
    ],
)
def test_invalid_decision_is_explained(text: str, because: str) -> None:
    with pytest.raises(Undecodable) as raised:
        decode(text)
    assert because in str(raised.value)


@pytest.mark.parametrize(
    ("kind", "missing"),
    [("call_skill", "skill"), ("run_command", "command"), ("ask_user", "question"), ("call_tool", "tool")],
)
@pytest.mark.parametrize("given_value", [None, "", "  ", 0, [], {}])
def test_action_without_its_parameter_is_named_in_the_error(kind: str, missing: str, given_value: Any) -> None:
    plan = {"planned_actions": [{"type": "finish"}, {"type": kind, "params": {missing: given_value}}]}
    with pytest.raises(Undecodable, match=rf"planned_actions.1: {kind} needs params.{missing}"):
        decode(json.dumps(plan))


def test_lone_surrogate_becomes_a_question_mark() -> None:
    decision = decode('{"reasoning_summary": "a\\ud83d b", "planned_actions": []}')
    assert decision.reasoning_summary == "a? b"
    assert json_params('{"\\udfff": ["\\ud800"]}') == {"?": ["?"]}
    assert decode('{"reasoning_summary": "\\ud83d\\ude00"}').reasoning_summary == "\N{GRINNING FACE}"


@pytest.mark.parametrize(
    ("value", "found"),
    [(None, {}), ("", {}), ("  ", {}), ("{}", {}), ('{"a": 1}', {"a": 1}), ({"a": 1}, {"a": 1})],
)
def test_json_parameters_are_decoded(value: Any, found: dict[str, Any]) -> None:
    assert json_params(value) == found


@pytest.mark.parametrize("value", ["[]", "5", "nonsense", "{", ["a"], 5, "[" * 100_000, '{"a": Infinity}'])
def test_parameters_other_than_an_object_are_undecodable(value: Any) -> None:
    with pytest.raises(Undecodable):
        json_params(value)


def safely(read: Any, value: Any) -> None:
    try:
        found = read(value)
    except Undecodable as error:
        assert str(error)
    else:
        json.dumps(found if isinstance(found, dict) else found.model_dump(mode="json"), allow_nan=False).encode()


JSONISH = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from([*DECISION, "type", "params", "x"]), inner, max_size=4), max_leaves=12
)  # fmt: skip


@settings(deadline=None)
@given(st.text() | st.text(alphabet='{}[]":,\\ \ud800ntruefals0123'))
def test_decoder_survives_any_text(text: str) -> None:
    safely(decode, text)
    safely(json_params, text)


@settings(deadline=None)
@given(JSONISH)
def test_decoder_survives_any_json(value: Any) -> None:
    safely(decode, json.dumps(value))
    safely(json_params, json.dumps(value))
    safely(json_params, value if not isinstance(value, dict) else {})


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(list(DECISION)), JSONISH), st.sampled_from(list(ActionType)), JSONISH)
def test_decoder_survives_any_plan(fields: dict[str, Any], kind: ActionType, params: Any) -> None:
    plan = fields | {"planned_actions": [{"type": kind.value, "params": params}]}
    safely(decode, json.dumps(plan))


def test_repair_request_contains_fault_and_schema() -> None:
    told = repair_request("it was empty", decision_schema())
    assert "it was empty" in told
    assert json.dumps(decision_schema(), separators=(",", ":")) in told


def test_decision_schema_is_closed_at_every_level() -> None:
    def check(part: dict[str, Any]) -> None:
        assert not {"$ref", "anyOf", "oneOf", "allOf"} & set(part)
        if part["type"] == "object":
            assert part["additionalProperties"] is False
            assert set(part.get("required", ())) <= set(part["properties"])
            for inner in part["properties"].values():
                check(inner)
        if part["type"] == "array":
            check(part["items"])

    check(decision_schema())
