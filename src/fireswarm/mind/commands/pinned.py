"""Run scripts of a skill from a copy, so that a script which was judged cannot be exchanged before it runs."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from fireswarm.errors import SandboxRefused
from fireswarm.mind import gate
from fireswarm.skills.packs.catalog import Skill


@dataclass(slots=True)
class PinnedScripts:
    """Copies of the files of skills, for one run. They are in a new folder outside of the workspace."""

    _folders: list[Path] = field(default_factory=list[Path])

    def pin(self, call: gate.Call, skill: Skill) -> tuple[str, Skill]:
        """Copy the files of *skill*, and return the command with the copies of its scripts, and the skill in the copy.

        The links of the command's paths are followed once, here. Raises SandboxRefused if the copy is not a script.
        """
        folder = Path(tempfile.mkdtemp(prefix="fireswarm-skill-")).resolve()
        self._folders.append(folder)
        folder.chmod(0o711)  # the user of a command may be another one
        copied = replace(skill, folder=folder / skill.folder.name)
        try:
            shutil.copytree(skill.folder, copied.folder, symlinks=True)
        except OSError as error:
            raise SandboxRefused(f"the files of skill {skill.name!r} cannot be copied: {error}") from error
        line, original = call.argument, skill.folder.resolve()
        for named in reversed(gate.own_scripts(call, skill)):
            if not named.place.is_relative_to(original):
                raise SandboxRefused(f"{named.text} changed while the command was checked")
            script = copied.folder / named.place.relative_to(original)
            line = f"{line[: named.start]}{shlex.quote(str(script))}{line[named.end :]}"
        if not gate.own_scripts(replace(call, argument=line), copied):
            raise SandboxRefused(f"the scripts of skill {skill.name!r} changed while the command was checked")
        return line, copied

    def remove(self) -> None:
        """Remove the copies."""
        while self._folders:
            shutil.rmtree(self._folders.pop(), ignore_errors=True)
