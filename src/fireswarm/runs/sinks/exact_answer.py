"""Store a model's answer exactly: it is sent to the model again, and its calls are executed.

Firestore does not keep the order of a map's keys, and the store removes control characters from every text. An answer
whose keys are sorted needs no record of their order.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any, cast

ANSWER, CALLS = "content", "calls"
"""Fields of a step's result with the blocks and the calls of an answer."""

ORDER, EXACT = "content_order", "exact"
"""Fields with the order of the blocks' keys, as JSON; or with blocks and calls, as compressed JSON in Base64."""


def with_exact_answer(result: dict[str, Any], clean: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a result with the parts of its answer that a store loses: order of keys, or texts that *clean* changes."""
    answer = result.get(ANSWER)
    if not isinstance(answer, list):
        return result
    kept = {name: result[name] for name in (ANSWER, CALLS) if name in result}
    if clean(kept) != kept:
        packed = zlib.compress(json.dumps(kept).encode())
        return result | {EXACT: base64.b64encode(packed).decode()}
    if json.dumps(answer) == json.dumps(answer, sort_keys=True):
        return result
    return result | {ORDER: json.dumps(_keys_of(answer), separators=(",", ":"))}


def exact_answer(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a journaled result with the model's exact answer, if it was stored."""
    restored = {name: value for name, value in result.items() if name not in (ORDER, EXACT)}
    try:
        if result.get(EXACT):
            return restored | dict(json.loads(zlib.decompress(base64.b64decode(str(result[EXACT])))))
    except (ValueError, TypeError, zlib.error):
        return restored
    try:
        order = json.loads(str(result.get(ORDER) or "null"))
    except ValueError:
        return restored
    if ANSWER in restored:
        answer = restored[ANSWER]
        order = _keys_of(answer, in_order=True) if order is None else order
        restored[ANSWER] = _put_in_order(answer, order)
    return restored


def _keys_of(value: Any, *, in_order: bool = False) -> Any:
    """Return the value with None for everything except its keys, which are sorted with *in_order*."""
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {name: _keys_of(each, in_order=in_order) for name, each in (sorted(pairs) if in_order else pairs)}
    items = cast("list[Any]", value) if isinstance(value, list) else None
    return None if items is None else [_keys_of(each, in_order=in_order) for each in items]


def _put_in_order(value: Any, order: Any) -> Any:
    """Return the value with its keys in the order of *order*. Parts that do not match are not changed."""
    if isinstance(value, dict) and isinstance(order, dict):
        fields, names = cast("dict[str, Any]", value), cast("dict[str, Any]", order)
        if fields.keys() == names.keys():
            return {name: _put_in_order(fields[name], names[name]) for name in names}
    if isinstance(value, list) and isinstance(order, list):
        items, orders = cast("list[Any]", value), cast("list[Any]", order)
        if len(items) == len(orders):
            return [_put_in_order(*pair) for pair in zip(items, orders, strict=True)]
    return value
