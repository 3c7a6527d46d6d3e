"""What all shapes share: how a field is documented, pages, problems, and JSON that the store can hold."""

from __future__ import annotations

import math
from typing import Annotated, Any, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

MAX_DEPTH = 16
"""Of maps and lists in what is sent: Firestore holds 20 levels, and ours lie above."""

MAX_INTEGER = 2**63 - 1
MOMENT = "2026-11-22T06:00:00Z"
"""Of every example."""


class ResponseModel(BaseModel):
    """Base of what is answered; read from the contracts by attribute."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class RequestModel(BaseModel):
    """Base of what is sent; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def documented(description: str, example: Any, **more: Any) -> Any:
    """A field with its meaning and an example; *more* as for pydantic's Field."""
    return Field(description=description, examples=[example], **more)


def storable(value: Any, depth: int = 0) -> Any:
    """Return *value*; ValueError for what a document cannot hold."""
    if depth > MAX_DEPTH:
        raise ValueError(f"is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            if not _text(key) or key.startswith("__"):
                raise ValueError("holds a key that is empty or begins with two underscores")
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
        raise ValueError("holds an integer of more than 64 bits")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("holds a number that is not finite")


def _text(value: str) -> str:
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise ValueError("holds half a character (a lone surrogate)")
    return value


_OBJECT = {"type": "object", "additionalProperties": True}

JsonMap = Annotated[dict[str, Any], AfterValidator(storable), WithJsonSchema(_OBJECT)]
"""Free JSON that a document can hold."""

AnyJson = Annotated[Any, WithJsonSchema({})]

Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}$")]
"""An id as it stands in a path."""


class Fault(ResponseModel):
    """One thing that is wrong with a request."""

    where: str = documented("place of the fault: body, query, path or header, then the field", "body.objective")
    message: str = documented("what is wrong there", "Field required")


class Problem(ResponseModel):
    """An error, as RFC 9457 has it (application/problem+json)."""

    type: str = documented("URI of the kind of problem", "urn:fireswarm:problem:not_found")
    title: str = documented("the kind of problem in words, always the same", "Not found")
    status: int = documented("the HTTP status", 404)
    detail: str = documented("what happened and what to do", "there is no task 4711")
    code: str = documented("stable word for programs", "not_found")
    retryable: bool = documented("true when the same request may succeed later", False)
    errors: tuple[Fault, ...] = documented(
        "each fault of a request that does not fit", [{"where": "body.objective", "message": "Field required"}],
        default=(),
    )  # fmt: skip


class Page(ResponseModel):
    """Base of a page of a list."""

    items: tuple[Any, ...] = documented("what is on this page", [])
    next_cursor: str | None = documented(
        "give it as `cursor` to get the next page; null on the last one", "WyIyMDI2LTExLTIy", default=None
    )
    unreadable: tuple[str, ...] = documented(
        "ids of documents on this page that break their contract, such as tasks mistyped by hand", [], default=()
    )
