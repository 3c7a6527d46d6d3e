"""What every contract shares: frozen models, role and id shapes, UTC timestamps."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, ValidationError

RoleName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
"""A role: lowercase letters, digits and hyphens. The five of the house are in ``roles/``; users add their own."""

DocumentId = Annotated[str, StringConstraints(min_length=1, max_length=512, pattern=r"^[^/]+$")]
"""A Firestore document id: no slash, at most 512 characters here (Firestore allows 1,500 bytes)."""

JsonObject = dict[str, Any]
"""A JSON-like map as Firestore stores it."""


def as_utc(value: datetime) -> datetime:
    """Return *value* in UTC; a naive timestamp is read as UTC."""
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


Timestamp = Annotated[datetime, AfterValidator(as_utc)]
"""A point in time, always in UTC; microseconds, as Firestore stores it."""


class Contract(BaseModel):
    """Base of the contracts: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Stored(BaseModel):
    """Base of what is read back from documents: frozen, unknown fields ignored, so newer writers do no harm."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


def explain_validation(error: ValidationError) -> str:
    """Say in one line what a validation error found, field by field."""
    return "; ".join(
        f"{'.'.join(str(part) for part in item['loc']) or 'document'}: {item['msg']}" for item in error.errors()
    )
