"""Search for skill folders. Earlier places take precedence."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from fireswarm.errors import ConfigError

SKILL_FILE = "SKILL.md"
_SPELLINGS = frozenset({"skill.md", "Skill.md", "SKILL.MD"})
"""Accepted spellings on case-sensitive file systems."""

_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})
"""Folders that never contain a user's skills, in addition to those whose names begin with a dot."""


@dataclass(frozen=True, slots=True)
class DiscoveryLimits:
    """Limits of a search: depth below a root (a skill directly in it is at level 1), and total number of folders."""

    max_depth: int = 6
    max_folders: int = 25_000


class Place(NamedTuple):
    """A folder with a skill, and its file.

    ``stamp`` changes with the skill: the file's modification time (ns), size and inode, and the folder's time.
    """

    folder: str
    file: str
    stamp: list[int]


@dataclass(slots=True)
class FoundSkill:
    """Places of skills in order of precedence, and notes on omitted ones."""

    skills: list[Place] = field(default_factory=list)
    notes: list[tuple[Path, str]] = field(default_factory=list)


def require_folders(given: Iterable[Path], here: Path) -> None:
    """Raise ConfigError unless each folder of skills that a person named exists."""
    for path in given:
        if not (here / path).is_dir():
            raise ConfigError(f"--skills-dir {path} is not a folder: name an existing folder of skills")


def places(given: Iterable[Path], here: Path, home: Path, packaged: Path | None) -> tuple[Path, ...]:
    """Return the folders to search: *given*, ``./skills``, ``.agents/skills``, the home folder's, the packaged ones."""
    usual = [here / "skills", here / ".agents" / "skills", home / ".agents" / "skills"]
    usual += [packaged] if packaged is not None else []
    return tuple(dict.fromkeys([*(here / path for path in given), *usual]))


class AgentPlaces(NamedTuple):
    """The folders that the command ``agent`` searches: those of the user, of the project, and the packaged one."""

    own: tuple[Path, ...]
    project: tuple[Path, ...]
    packaged: tuple[Path, ...]

    @property
    def folders(self) -> tuple[Path, ...]:
        """All of them, in the order of the search."""
        return tuple(dict.fromkeys((*self.own, *self.project, *self.packaged)))

    def find_own(self, limits: DiscoveryLimits) -> frozenset[str]:
        """Return the real folders of the skills that are not of the project."""
        found = discover((*self.own, *self.packaged), limits)
        return frozenset(os.path.realpath(place.folder) for place in found.skills)


def agent_places(
    given: Iterable[Path], chosen: Iterable[Path], here: Path, home: Path, packaged: Path | None
) -> AgentPlaces:
    """Return the folders in order: a skill of a project does not take the place of one that the user has.

    *given* are the user's; *chosen* are those of the settings, which are searched if none are *given*.
    """
    named = [here / path for path in given]
    folders = [] if named else [here / path for path in chosen]
    below = [path for path in folders if Path(os.path.normpath(path)).is_relative_to(here)]
    own = [*named, *(path for path in folders if path not in below), home / ".agents" / "skills"]
    project = [*below, here / "skills", here / ".agents" / "skills"]
    return AgentPlaces(tuple(own), tuple(project), () if packaged is None else (packaged,))


def discover(roots: Iterable[Path], limits: DiscoveryLimits | None = None) -> FoundSkill:
    """Find every skill below *roots*. Links within a root are followed, and each folder is visited once.

    A folder with a SKILL.md is one skill, including everything below it. ``notes`` lists folders beyond the limits, and
    links out of a root: ``skills/all -> /`` would make the whole machine a folder of skills.
    """
    search = _Search(limits or DiscoveryLimits())
    for root in roots:
        search.below(Path(os.path.realpath(root)))
    return search.found


class _Search:
    def __init__(self, limits: DiscoveryLimits) -> None:
        self._limits = limits
        self._seen: set[tuple[int, int]] = set()
        self._looked_at = 0
        self._root = ""
        self.found = FoundSkill()

    def below(self, root: Path) -> None:
        """Search breadth first, so that the limits cut off the deepest folders."""
        level = [str(root)]
        self._root = str(root)
        too_deep = 0
        for depth in range(self._limits.max_depth + 1):
            deeper: list[str] = []
            for number, folder in enumerate(level):
                if self._looked_at >= self._limits.max_folders:
                    left = len(level) - number + len(deeper)
                    self._note(root, f"{left:,} or more folders left out: max_folders is {self._limits.max_folders:,}")
                    return
                below = self._visit(folder)
                if depth < self._limits.max_depth:
                    deeper += below
                else:
                    too_deep += len(below)
            level = deeper
        if too_deep:
            self._note(root, f"{too_deep:,} folders left out: deeper than max_depth {self._limits.max_depth}")

    def _note(self, root: Path, text: str) -> None:
        self.found.notes.append((root, text))

    def _visit(self, folder: str) -> list[str]:
        """Record the skill in *folder*, or return the folders below it."""
        try:
            status = os.stat(folder)  # noqa: PTH116 - 20,000 folders: a Path each would cost a second
        except (OSError, ValueError):
            return []
        identity = (status.st_dev, status.st_ino)
        if identity in self._seen:
            return []
        self._seen.add(identity)
        self._looked_at += 1
        if self._take(folder, f"{folder}/{SKILL_FILE}", status):
            return []
        return self._scan(folder, status)

    def _take(self, folder: str, file: str, status: os.stat_result) -> bool:
        try:
            content = os.lstat(file)
            if stat.S_ISLNK(content.st_mode):
                if self._leads_out(file):
                    return False
                content = os.stat(file)  # noqa: PTH116 - as above
        except FileNotFoundError:
            return False
        except (OSError, ValueError) as error:
            self._note(Path(file), f"it cannot be read: {getattr(error, 'strerror', None) or error}")
            return False
        if not stat.S_ISREG(content.st_mode):
            self._note(Path(file), f"it is a {'folder' if stat.S_ISDIR(content.st_mode) else 'device'}, not a file")
            return False
        stamp = [content.st_mtime_ns, content.st_size, content.st_ino, status.st_mtime_ns]
        self.found.skills.append(Place(folder, file, stamp))
        return True

    def _scan(self, folder: str, status: os.stat_result) -> list[str]:
        """Record the skill in *folder* and return [], or return the folders below it."""
        below: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    if entry.name in _SPELLINGS and self._take(folder, entry.path, status):
                        self._note(Path(entry.path), f"the file should be named {SKILL_FILE}")
                        return []
                    if not entry.name.startswith(".") and entry.name not in _SKIPPED and self._is_folder(entry):
                        below.append(entry.path)
        except NotADirectoryError:
            return []
        except OSError as error:
            self._note(Path(folder), f"the folder cannot be read: {error.strerror}")
        return below

    def _leads_out(self, path: str) -> bool:
        """Return True for a link to a place outside of the root, which is noted."""
        target = os.path.realpath(path)
        if target == self._root or target.startswith(self._root.rstrip("/") + "/"):
            return False
        self._note(Path(path), "it is a link out of the folder of skills: copy it there, or name its folder as well")
        return True

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        """Return True for a folder or a link to one. A broken link does not hide the other entries."""
        try:
            return entry.is_dir() and not (entry.is_symlink() and self._leads_out(entry.path))
        except OSError as error:
            if entry.name != SKILL_FILE:  # noted when it was tried as the skill's file
                self._note(Path(entry.path), f"it cannot be read: {error.strerror}")
            return False


def files_below(folder: str, *, limit: int = 500, depth: int = 4) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield files and folders below *folder* by name, with paths relative to its parent; links are not followed."""
    pending = [(folder, os.path.basename(folder), 0)]  # noqa: PTH119 - called for each of 20,000 folders
    listed = 0
    while pending:
        path, name, level = pending.pop(0)
        try:
            with os.scandir(path) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.name.startswith(".") or entry.name in _SKIPPED:
                continue
            listed += 1
            if listed > limit:
                return
            yield f"{name}/{entry.name}", entry
            if entry.is_dir(follow_symlinks=False) and level < depth:
                pending.append((entry.path, f"{name}/{entry.name}", level + 1))
