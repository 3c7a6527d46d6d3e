"""Base class of the sections of a settings file."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class SettingsSection(BaseModel):
    """A frozen section; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
