"""Base classes of the API models: documented fields, pages, problems, and JSON that the store accepts."""

from __future__ import annotations

import math
from typing import Annotated, Any, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

MAX_DEPTH = 16
"""Maximum nesting of maps and lists in a request. Firestore allows 20 levels; the task document uses the rest."""

MAX_INTEGER = 2**63 - 1
MOMENT = "2026-11-22T06:00:00Z"
"""Timestamp used in every example."""


class ResponseModel(BaseModel):
    """Base of response bodies. Validated from the attributes of contract objects."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class RequestModel(BaseModel):
    """Base of request bodies. Unknown keys are rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def documented(description: str, example: Any, **more: Any) -> Any:
    """Return a field with a description and an example; *more* goes to pydantic's Field."""
    return Field(description=description, examples=[example], **more)


def storable(value: Any, depth: int = 0) -> Any:
    """Return *value*. Raises ValueError if a document cannot store it."""
    if depth > MAX_DEPTH:
        raise ValueError(f"is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            if not _text(key) or key.startswith("__"):
                raise ValueError("contains a key that is empty or starts with two underscores")
            storable(item, depth + 1)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            storable(item, depth + 1)
    elif isinstance(value, str):
        _text(value)
    elif isinstance(value, (int, float)):
        _number(value)
    return value


def _number(value: float) -> None:
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise ValueError("contains an integer of more than 64 bits")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("contains a number that is not finite")


def _text(value: str) -> str:
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise ValueError("contains a lone surrogate (half a character)")
    return value


_OBJECT = {"type": "object", "additionalProperties": True}

JsonMap = Annotated[dict[str, Any], AfterValidator(storable), WithJsonSchema(_OBJECT)]
"""Free JSON that a document can store."""

AnyJson = Annotated[Any, WithJsonSchema({})]

Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}$")]
"""An id as used in a path."""


class Fault(ResponseModel):
    """One validation error of a request."""

    where: str = documented(
        "location of the error: body, query, path or header, then the field", "body.objective"
    )  # fmt: skip
    message: str = documented("description of the error", "Field required")


class Problem(ResponseModel):
    """An error response by RFC 9457 (application/problem+json)."""

    type: str = documented("URI of the problem type", "urn:fireswarm:problem:not_found")
    title: str = documented("short name of the problem type; the same for every occurrence", "Not found")
    status: int = documented("HTTP status code", 404)
    detail: str = documented("what failed and how to fix it", "there is no task 4711")
    code: str = documented("stable error code for programs", "not_found")
    retryable: bool = documented("true if the same request may succeed later", False)
    errors: tuple[Fault, ...] = documented(
        "validation errors of the request", [{"where": "body.objective", "message": "Field required"}],
        default=(),
    )  # fmt: skip


class Page(ResponseModel):
    """One page of a list."""

    items: tuple[Any, ...] = documented("items of this page", [])
    next_cursor: str | None = documented(
        "pass as `cursor` to get the next page; null on the last page", "WyIyMDI2LTExLTIy", default=None
    )
    unreadable: tuple[str, ...] = documented(
        "ids of documents on this page that do not match their schema, such as hand-written tasks with a typo",
        [],
        default=(),
    )
