"""Keep the order of keys in a model's answer: Firestore sorts the keys of maps, and a provider's cache needs them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

ANSWER, ORDER = "content", "content_order"
"""The blocks of an answer in the result of a step, and the names of their keys in order, as JSON."""


def with_key_order(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result that also has the order of the keys in its answer, unless that is the sorted one."""
    answer = result.get(ANSWER)
    if not isinstance(answer, list) or json.dumps(answer) == json.dumps(answer, sort_keys=True):
        return result
    return result | {ORDER: json.dumps(_keys_of(answer), separators=(",", ":"))}


def in_key_order(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result of the journal with the keys of its answer in their order, as far as that is known."""
    restored = {name: value for name, value in result.items() if name != ORDER}
    try:
        order = json.loads(str(result.get(ORDER) or "null"))
    except ValueError:
        return restored
    if ANSWER in restored:
        restored[ANSWER] = _put_in_order(restored[ANSWER], order)
    return restored


def _keys_of(value: Any) -> Any:
    """Return the value with its keys only: everything else is None."""
    if isinstance(value, dict):
        return {name: _keys_of(each) for name, each in cast("dict[str, Any]", value).items()}
    return [_keys_of(each) for each in cast("list[Any]", value)] if isinstance(value, list) else None


def _put_in_order(value: Any, order: Any) -> Any:
    """Return the value with its keys in the order of *order*. Parts that differ from it stay as they are."""
    if isinstance(value, dict) and isinstance(order, dict):
        fields, names = cast("dict[str, Any]", value), cast("dict[str, Any]", order)
        if fields.keys() == names.keys():
            return {name: _put_in_order(fields[name], names[name]) for name in names}
    if isinstance(value, list) and isinstance(order, list):
        items, orders = cast("list[Any]", value), cast("list[Any]", order)
        if len(items) == len(orders):
            return [_put_in_order(*pair) for pair in zip(items, orders, strict=True)]
    return value
