"""Limits of a sandbox run, and its result."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from fireswarm.contracts.base import Contract


class SandboxLimits(Contract):
    """Limits of one run. Total memory and the folder are checked ten times a second; the kernel enforces the rest."""

    timeout_seconds: float = Field(default=30.0, gt=0, le=3_600, description="wall-clock time limit")
    cpu_seconds: int = Field(default=30, ge=1, le=3_600, description="CPU time limit per process")
    memory_bytes: int = Field(
        default=512_000_000, ge=64_000_000, description="memory limit for all processes together, and for each"
    )
    max_processes: int = Field(default=64, ge=2, le=4_096, description="threads count")
    max_output_bytes: int = Field(
        default=64_000,
        ge=1_000,
        le=10_000_000,
        description="output limit per stream; the beginning and the end are kept",
    )
    max_folder_bytes: int = Field(default=100_000_000, ge=1_000_000, description="limit for the size of all files")
    max_files: int = Field(default=2_000, ge=1, le=100_000)


class SandboxEnd(StrEnum):
    """Limit that ended a run; None if it ended by itself."""

    TIMEOUT = "timeout"
    MEMORY = "memory"
    FOLDER = "folder"


class SandboxRun(Contract):
    """Result of a run. ``exit_code`` is 128 plus the signal number if the process was killed."""

    exit_code: int
    stdout: str = ""
    stderr: str = ""
    seconds: float = 0.0
    ended: SandboxEnd | None = None
