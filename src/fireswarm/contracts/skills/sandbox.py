"""What code in a sandbox may use, and what came of it."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from fireswarm.contracts.base import Contract


class SandboxLimits(Contract):
    """For one run. Memory and the folder are looked at ten times a second, the rest is held by the kernel."""

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
    """Why a run was ended, where it did not end by itself."""

    TIMEOUT = "timeout"
    MEMORY = "memory"
    FOLDER = "folder"


class SandboxRun(Contract):
    """What a run left. ``exit_code`` is 128 and the signal's number for a process that was killed."""

    exit_code: int
    stdout: str = ""
    stderr: str = ""
    seconds: float = 0.0
    ended: SandboxEnd | None = None
