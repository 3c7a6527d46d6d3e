"""Read the one JSON object in a model's text. Pure.

Native structured output is already JSON that matches the schema. Otherwise strict JSON is expected: the whole
text, or the one object in it. Surrounding text such as a code fence is ignored; a second object is an error.
"""

from __future__ import annotations

import json
from typing import Any, cast


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


_JSON = json.JSONDecoder(parse_constant=_no_number)


class Undecodable(ValueError):
    """The text has no valid JSON object; the model gets the message, which explains the correction."""


def json_params(text: Any) -> dict[str, Any]:
    """Return the object in a parameter that contains JSON text; empty text is ``{}``. Raises Undecodable."""
    if isinstance(text, dict):
        return cast("dict[str, Any]", text)
    if text is None or not str(text).strip():
        return {}
    try:
        value = _JSON.decode(str(text))
    except (ValueError, RecursionError) as error:
        raise Undecodable(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Undecodable("must be a JSON object")
    return _storable(value)


def object_in(text: str) -> dict[str, Any]:
    """Return the one JSON object in *text*. Raises Undecodable if there is none, or more than one."""
    stripped = text.strip().removeprefix("\ufeff")
    if not stripped:
        raise Undecodable("the answer is empty; answer with one JSON object")
    start = stripped.find("{")
    if start < 0:
        raise Undecodable("the answer contains no JSON object")
    try:
        value, end = _JSON.raw_decode(stripped, start)
    except (ValueError, RecursionError) as error:
        raise Undecodable(f"the answer is not valid JSON: {error}") from error
    if "{" in stripped[end:]:
        raise Undecodable("the answer contains more than one JSON object; answer with exactly one")
    return _storable(value)


def _storable(value: Any) -> Any:
    """Return the value without lone surrogates (such as U+D800), which files and stores reject."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_storable(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in cast("dict[Any, Any]", value).items()}
    return value


def repair_request(fault: str, schema: dict[str, Any]) -> str:
    """Build the message to a model after an answer that could not be decoded."""
    return (
        f"Your last answer could not be used: {fault}\n"
        "Answer again with exactly one JSON object that matches this schema, without a code fence or other text:\n"
        f"{json.dumps(schema, separators=(',', ':'))}"
    )
