"""Parts of a model's answer, in a form that can be stored and sent back. Pure.

A model may write values that documents cannot hold: half of a surrogate pair, an integer of more than 64 bits, or
deeply nested maps. Such an answer is complete and paid for, so it is stored, and the model gets the reason why its call
is invalid.
"""

from __future__ import annotations

import re
from typing import Any, cast

from fireswarm.contracts.base import MAX_JSON_DEPTH, check_json
from fireswarm.contracts.llm.chat import ToolCall

TOO_DEEP = "[nested too deeply]"

_SURROGATE = re.compile(r"[\ud800-\udfff]")


def call_of(call_id: str, name: str, given: object) -> ToolCall:
    """Return a call with its input, or with the reason why the input is unusable."""
    if not isinstance(given, dict):
        return ToolCall(id=call_id, name=name, fault="the input must be a JSON object")
    repaired: dict[str, Any] = without_surrogates(cast("dict[str, Any]", given))
    try:
        check_json(repaired)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
        return ToolCall(id=call_id, name=name, fault=f"the input cannot be used: {reason}")
    return ToolCall(id=call_id, name=name, input=repaired)


def storable(value: Any, depth: int = MAX_JSON_DEPTH) -> Any:
    """Return a JSON value in which text replaces every part that cannot be stored."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {storable(key): storable(item, depth - 1) for key, item in fields.items()} if depth else TOO_DEEP
    if isinstance(value, list):
        return [storable(item, depth - 1) for item in cast("list[Any]", value)] if depth else TOO_DEEP
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return str(value)
    return value


def without_surrogates(value: Any, depth: int = 2 * MAX_JSON_DEPTH) -> Any:
    """Return a JSON value with replacement characters for lone surrogates; deeper nested parts are unchanged."""
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict) and depth:
        fields = cast("dict[str, Any]", value)
        return {without_surrogates(key): without_surrogates(item, depth - 1) for key, item in fields.items()}
    if isinstance(value, list) and depth:
        return [without_surrogates(item, depth - 1) for item in cast("list[Any]", value)]
    return value
