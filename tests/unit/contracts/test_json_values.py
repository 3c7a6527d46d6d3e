"""JSON values of the contracts: what can be stored, where the first other value is, and how a value is written."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fireswarm.contracts.base import MAX_JSON_DEPTH, check_json, encode_json

JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)


def nested(levels: int) -> Any:
    return 0 if levels == 0 else [nested(levels - 1)]


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (b"x", "it is of type bytes"),
        ({"a": [{"b": {1, 2}}]}, "a[0].b is of type set"),
        ({"a": {"b.c": [0, {3: 4}]}}, "a.b.c[1] has the key 3: keys must be strings"),
        ({"{}": "\ud800"}, "{} is not valid Unicode text"),
        ([2**63], "[0] does not fit into 64 bits"),
        (nested(MAX_JSON_DEPTH + 1), f"{'[0]' * MAX_JSON_DEPTH} is nested more than {MAX_JSON_DEPTH} levels deep"),
    ],
)
def test_first_value_that_cannot_be_stored_is_named_with_its_place(value: Any, fault: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(fault)}"):
        check_json(value)


def test_deepest_value_that_can_be_stored_is_accepted() -> None:
    assert check_json(nested(MAX_JSON_DEPTH)) == nested(MAX_JSON_DEPTH)


@given(JSON)
def test_written_value_is_one_line_and_read_back_as_it_was(value: Any) -> None:
    written = encode_json(value)
    assert b"\n" not in written
    assert json.loads(written) == value


def test_lone_surrogates_are_written_as_question_marks() -> None:
    assert encode_json({"a": ["é\ud800"]}) == '{"a":["é?"]}'.encode()
