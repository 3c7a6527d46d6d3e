"""Limits of the pipelines. swarm.yaml can lower them, not raise them."""

from __future__ import annotations

from pydantic import Field

from fireswarm.contracts.base import SettingsSection
from fireswarm.contracts.limits import Confinement

MAX_STEPS = 50
MAX_FIX_ITERATIONS = 3
MAX_CHANGED_FILES = 20


class BackboneSettings(SettingsSection):
    """Limits of one pipeline run."""

    auto_merge_enabled: bool = Field(default=False, description="allow a pipeline to merge its pull request")
    require_human_review: bool = Field(default=True, description="state in the pull request that it needs human review")
    max_steps: int = Field(
        default=MAX_STEPS, ge=1, le=MAX_STEPS, description="maximum number of tasks per pipeline run"
    )
    fix_loop_max: int = Field(
        default=MAX_FIX_ITERATIONS,
        ge=0,
        le=MAX_FIX_ITERATIONS,
        description="maximum number of attempts to fix failing tests",
    )
    max_changed_files: int = Field(
        default=MAX_CHANGED_FILES, ge=1, le=MAX_CHANGED_FILES, description="maximum number of files a run may change"
    )
    confinement: Confinement = Field(
        default="auto",
        description="auto: bubblewrap if it works, otherwise Landlock (either can be named); with these, generated "
        "tests see only their project and programs; container: a container is the boundary; none: they see the "
        "whole machine",
    )
    default_timeout_seconds: float = Field(default=300.0, gt=0, description="time limit for running generated tests")
