"""Base classes of the contracts: frozen models, role and id formats, UTC timestamps."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, ValidationError

RoleName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
"""A role name: lowercase letters, digits and hyphens. Five roles ship in ``roles/``; users can add more."""

DocumentId = Annotated[str, StringConstraints(min_length=1, max_length=512, pattern=r"^[^/]+$")]
"""A Firestore document id: no slash, at most 512 characters (Firestore allows 1,500 bytes)."""

JsonObject = dict[str, Any]
"""A JSON-like map as Firestore stores it."""


def as_utc(value: datetime) -> datetime:
    """Return *value* in UTC; a naive timestamp is interpreted as UTC."""
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


Timestamp = Annotated[datetime, AfterValidator(as_utc)]
"""A point in time in UTC, with the microseconds that Firestore stores."""


class Contract(BaseModel):
    """Base of the contracts: frozen, unknown keys rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Stored(BaseModel):
    """Base of stored documents: frozen, unknown fields ignored, so that newer writers do not break older readers."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


def explain_validation(error: ValidationError) -> str:
    """Describe a validation error in one line, field by field."""
    return "; ".join(
        f"{'.'.join(str(part) for part in item['loc']) or 'document'}: {item['msg']}" for item in error.errors()
    )
