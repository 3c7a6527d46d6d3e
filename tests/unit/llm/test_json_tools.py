"""The codec for models without tools: what they are told, the forms of an answer, and robustness to any text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fireswarm.contracts.llm.chat import ChatMessage, ChatRequest, ChatResponse, ToolCall, ToolOutput, ToolSpec
from fireswarm.contracts.skills.artifact import MediaBlock
from fireswarm.llm.codecs.json_text import Undecodable, json_params, object_in, repair_request
from fireswarm.llm.codecs.json_tools import NOT_SHOWN, JsonTools, answer_schema, describe_tools

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
LIST = {"type": "object", "properties": {"items": {"type": "array", "items": {"type": "string"}}}}
TOOLS = (ToolSpec("read_file", "Reads a file.", PATH), ToolSpec("todo", "Keeps a list.", LIST))
CODEC = JsonTools("# How you answer")
ANSWER: dict[str, Any] = {"text": "why not", "calls": [{"name": "read_file", "input": '{"path": "a"}'}]}
TEXT = json.dumps(ANSWER)


def decode(text: str) -> ChatResponse:
    return CODEC.decode(ChatResponse(text=text), 3, TOOLS)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"  \n{TEXT}\n ",
        f"\ufeff{TEXT}",
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```",
        f"Here is what I would do:\n\n{TEXT}\n\nI hope that helps.",
        json.dumps(ANSWER, indent=4),
        json.dumps({"text": "why not", "calls": [{"name": "read_file", "input": {"path": "a"}}]}),
    ],
)
def test_calls_are_found_with_and_without_surrounding_text(text: str) -> None:
    decoded = decode(text)
    assert decoded.text == "why not"
    assert decoded.calls == (ToolCall(id="call-3-1", name="read_file", input={"path": "a"}),)


def test_answer_without_calls_is_a_text() -> None:
    assert (decode('{"text": "42"}').text, decode('{"text": "42", "calls": []}').calls) == ("42", ())
    assert decode("{}").text == ""


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
        ('{"calls": "none"}', "calls must be a list"),
        ('{"text": 5}', "text must be a string"),
        ('{"thoughts": "hm"}', "unknown fields thoughts"),
        ('{"calls": [{"name": "dance"}]}', "calls.1: unknown tool 'dance'; known: read_file, todo"),
        ('{"calls": ["todo"]}', 'calls.1 must be an object with "name"'),
        ('{"calls": [{"name": "todo", "input": {"x": NaN}}]}', "NaN is not a JSON number"),
        ("{" * 100_000, "not valid JSON"),
        ('{"calls":' + "[" * 100_000, "not valid JSON"),
        ('{"a": ' + "9" * 5_000 + "}", "not valid JSON"),
    ],
)
def test_answer_that_cannot_be_used_is_explained(text: str, because: str) -> None:
    with pytest.raises(Undecodable) as raised:
        decode(text)
    assert because in str(raised.value)


@pytest.mark.parametrize("given_input", ["[1]", "nonsense", "{", 5])
def test_input_that_cannot_be_used_is_a_fault_of_its_call_alone(given_input: Any) -> None:
    calls = [{"name": "todo", "input": given_input}, {"name": "read_file", "input": {"path": "a"}}]
    first, second = decode(json.dumps({"calls": calls})).calls
    assert "the input cannot be used" in first.fault
    assert (second.fault, second.input) == ("", {"path": "a"})


def test_model_is_told_the_form_the_tools_and_the_schema() -> None:
    request = ChatRequest("You are a test.", (ChatMessage("user", "go"),), 100, tools=TOOLS)
    told = CODEC.encode(request, native=False)
    assert (told.tools, told.native, told.schema) == ((), False, answer_schema(TOOLS))
    described = "`read_file`: Reads a file. Input: path: string"
    for part in ("You are a test.", "# How you answer", described, "JSON Schema"):
        assert part in told.system
    enforced = CODEC.encode(request, native=True)
    assert (enforced.native, enforced.schema) == (True, answer_schema(TOOLS))
    assert "JSON Schema" not in enforced.system
    assert json.dumps(LIST, separators=(",", ":")) in describe_tools(TOOLS)


def test_outputs_of_calls_come_as_text_and_answers_stay_as_they_were() -> None:
    image = MediaBlock(media_type="image/png", data="QQ==")
    outputs = (
        ToolOutput(call_id="1", name="read_file", text="one", media=(image,)),
        ToolOutput(call_id="2", name="todo", text="no", failed=True),
    )
    talk = (ChatMessage("user", "go"), ChatMessage("assistant", TEXT), ChatMessage("user", "a note", outputs=outputs))
    first, answer, last = CODEC.encode(ChatRequest("", talk, 100, tools=TOOLS), native=True).messages
    assert (first.text, answer.text, last.outputs) == ("go", TEXT, ())
    assert last.text == f"# Output of read_file: one\n\n# Output of todo (failed): no\n\n{NOT_SHOWN}\n\na note"


def test_summary_is_asked_for_as_text() -> None:
    request = ChatRequest("", (ChatMessage("user", "sum up"),), 100, tools=TOOLS, for_summary=True)
    assert (CODEC.encode(request, native=True).schema, CODEC.encode(request, native=True).native) == (None, False)


def test_lone_surrogate_becomes_a_replacement() -> None:
    assert decode('{"text": "a\\ud83d b"}').text == "a? b"
    assert json_params('{"\\udfff": ["\\ud800"]}') == {"?": ["?"]}
    assert decode('{"text": "\\ud83d\\ude00"}').text == "\N{GRINNING FACE}"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, {}), ("", {}), ("  ", {}), ("{}", {}), ('{"a": 1}', {"a": 1}), ({"a": 1}, {"a": 1})],
)
def test_json_parameters_are_decoded(value: Any, expected: dict[str, Any]) -> None:
    assert json_params(value) == expected


@pytest.mark.parametrize("value", ["[]", "5", "nonsense", "{", ["a"], 5, "[" * 100_000, '{"a": Infinity}'])
def test_parameters_other_than_an_object_are_undecodable(value: Any) -> None:
    with pytest.raises(Undecodable):
        json_params(value)


def safely(read: Any, value: Any) -> None:
    try:
        result = read(value)
    except Undecodable as error:
        assert str(error)
    else:
        plain = result if isinstance(result, dict) else result.model_dump(mode="json")
        json.dumps(plain, allow_nan=False).encode()


JSONISH = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["text", "calls", "name", "input", "x"]), inner, max_size=4), max_leaves=12
)  # fmt: skip


@settings(deadline=None)
@given(st.text() | st.text(alphabet='{}[]":,\\ \ud800ntruefals0123'))
def test_decoder_survives_any_text(text: str) -> None:
    safely(decode, text)
    safely(object_in, text)
    safely(json_params, text)


@settings(deadline=None)
@given(JSONISH, st.sampled_from(["todo", "read_file", "x"]))
def test_decoder_survives_any_json(value: Any, name: str) -> None:
    safely(decode, json.dumps(value))
    safely(decode, json.dumps({"text": "t", "calls": [{"name": name, "input": value}]}))
    safely(decode, json.dumps({"calls": value}))


def test_repair_request_contains_fault_and_schema() -> None:
    told = repair_request("it was empty", answer_schema(TOOLS))
    assert "it was empty" in told
    assert json.dumps(answer_schema(TOOLS), separators=(",", ":")) in told


def test_answer_schema_is_closed_at_every_level() -> None:
    def check(part: dict[str, Any]) -> None:
        assert not {"$ref", "anyOf", "oneOf", "allOf"} & set(part)
        if part["type"] == "object":
            assert part["additionalProperties"] is False
            assert set(part.get("required", ())) <= set(part["properties"])
            for inner in part["properties"].values():
                check(inner)
        if part["type"] == "array":
            check(part["items"])

    check(answer_schema(TOOLS))
