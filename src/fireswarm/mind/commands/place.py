"""Working folder, view and time limit of a run's commands."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fireswarm.mind.assignment import Assignment
from fireswarm.processes.confinement.view import GIT_FILE, View
from fireswarm.processes.git import git_identity
from fireswarm.settings.agent import RuntimeSettings
from fireswarm.skills.packs.catalog import Skill
from fireswarm.skills.running.denied_reads import DeniedReads

MAX_TIMES = 10
"""Maximum time limit that a model may request, as a multiple of the usual one."""


@dataclass(slots=True)
class CommandPlace:
    """Settings for the next command of a run. ``folder`` is the shell's folder after the last command."""

    assignment: Assignment
    runtime: RuntimeSettings
    folder: Path | None = None

    @property
    def cwd(self) -> Path:
        """Folder of the next command."""
        return self.folder or self.assignment.cwd

    @property
    def timeout_seconds(self) -> float:
        """Time limit of one step."""
        return self.assignment.constraints.timeout_seconds or self.runtime.timeout_seconds

    @property
    def longest_seconds(self) -> float:
        """Longest time limit that one step may have."""
        return self.timeout_seconds * (1 if self.assignment.constraints.timeout_seconds else MAX_TIMES)

    def seconds(self, wanted: Any, *, usual: float = 1.0) -> float:
        """Return the time limit of a command: *wanted*, up to MAX_TIMES the usual limit or the limit of the task.

        *usual* multiplies the limit of a command without *wanted*.
        """
        longest = self.longest_seconds
        if isinstance(wanted, bool) or not isinstance(wanted, (int, float)) or not wanted > 0:  # also NaN
            return min(self.timeout_seconds * usual, longest)
        return min(float(wanted), longest) if longest > self.timeout_seconds else longest

    def line_of(self, command: str, skill: Skill | None) -> str:
        """Return *command* after lines that change to its folder and set the folder of the skill."""
        named = f"export SKILL_DIR={shlex.quote(str(skill.folder))}\n" if skill is not None else ""
        there = f"cd {shlex.quote(str(self.folder))} || exit\n" if self.folder is not None else ""
        return f"{named}{there}{command}"

    def go_to(self, folder: str) -> None:
        """Run the next command in *folder* if *folder* is in the workspace."""
        self.folder = Path(folder).resolve() if self._keeps(folder) else None

    def describe_return(self, folder: str) -> str:
        """Return what to tell of a command that ended in *folder*, if the next one cannot start there, or ""."""
        if not folder or self._keeps(folder):
            return ""
        return f"[the next command starts in the workspace again: {folder} is outside of it, or does not last]"

    def _keeps(self, folder: str) -> bool:
        path = Path(folder).resolve()
        return path.is_relative_to(self.assignment.cwd.resolve()) and path.is_dir()

    def view(self, skill: Skill | None, *, writes: bool) -> View | None:
        """Return what a command can see, or None if the operator does not confine commands. Blocks.

        Raises SandboxRefused.
        """
        if self.runtime.confinement == "none":
            return None
        grant = self.assignment.grant
        readable = grant.readable if skill is None else (*grant.readable, skill.folder)
        # Only a read-only mount can keep a task from writing.
        contained = self.runtime.confinement == "container"
        network = writes and grant.network
        given = self.assignment.inputs
        return View(
            self.assignment.cwd,
            writes,
            readable,
            network=network,
            confinement="auto" if contained and not writes else self.runtime.confinement,
            outputs=self.assignment.outputs,
            inputs=given.folder if given is not None and given.folder.is_dir() else None,
            passes=grant.environment,
            files={GIT_FILE: git_identity()} if writes else {},
            protects=self.assignment.cwd != self.assignment.outputs,
            hidden=DeniedReads.of(self.assignment.grant).places(self.assignment.cwd.resolve()),
        )
