"""What every section of a settings file shares."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class SettingsSection(BaseModel):
    """Frozen; a key that does not exist is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
