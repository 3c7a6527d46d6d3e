"""The bounds of the deterministic backbone. They can be made tighter in swarm.yaml, and never wider."""

from __future__ import annotations

from pydantic import Field

from fireswarm.contracts.section import SettingsSection

MAX_STEPS = 50
MAX_FIX_ITERATIONS = 3
MAX_CHANGED_FILES = 20


class BackboneSettings(SettingsSection):
    """Bounds of one pipeline run."""

    auto_merge_enabled: bool = Field(default=False, description="let pr-prepare merge what it prepared")
    require_human_review: bool = Field(default=True, description="say in the pull request that a person has to review")
    max_steps: int = Field(default=MAX_STEPS, ge=1, le=MAX_STEPS, description="tasks of one pipeline run")
    fix_loop_max: int = Field(
        default=MAX_FIX_ITERATIONS, ge=0, le=MAX_FIX_ITERATIONS, description="attempts to mend failing tests"
    )
    max_changed_files: int = Field(
        default=MAX_CHANGED_FILES, ge=1, le=MAX_CHANGED_FILES, description="files that a run may change"
    )
    default_timeout_seconds: float = Field(default=300.0, gt=0, description="time for generated tests to run")
