"""Files that may not be read: the paths of ``deny`` rules for ``Read``, as places that a view does not show."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fireswarm.contracts.grant import Grant
from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement.paths.hard_links import find_other_names
from fireswarm.skills.allowed_tools import fits_path, path_patterns

READ, READ_FILE = "Read", "read_file"
MAX_PLACES = 1_000
"""Each place is a mount of its own."""

_GLOB_CHARS = frozenset("*?[{")
_ALL_BELOW = "/**"
_KNOWN: dict[tuple[str, Path], dict[Path, None]] = {}
"""Where the names of a pattern in a workspace have led since this process began: a command can take a link away."""


@dataclass(frozen=True, slots=True)
class DeniedReads:
    """The ``deny`` rules of a run. Those for paths of ``Read`` name files that nothing in the run reads.

    Their paths are relative to ``base``, the folder of the objective, wherever in it the run works; outside of it, and
    without one, to the workspace that is asked about.
    """

    rules: tuple[str, ...] = ()
    base: Path | None = None

    @classmethod
    def of(cls, grant: Grant) -> DeniedReads:
        """Return the rules of a run."""
        return cls((*grant.deny, *grant.stricter.deny), grant.base)

    @property
    def patterns(self) -> tuple[str, ...]:
        """The paths in the rules."""
        return tuple(path_patterns(self.rules, READ, (READ_FILE,)))

    def hides(self, path: Path, workspace: Path) -> bool:
        """Return True if *path*, or a folder that it is in, may not be read, by its name or by a link. Blocks."""
        return self.hiding(workspace)(path)

    def hiding(self, workspace: Path) -> Callable[[Path], bool]:
        """Return `hides` for many paths of a workspace: it looks only once where links lead. Blocks when called."""
        return _Hiding(self, self.base_of(workspace)) if self.patterns else _hides_nothing

    def places(self, workspace: Path) -> tuple[Path, ...]:
        """Return the files and folders that exist and may not be read, where links lead, by each name. Blocks.

        Raises SandboxRefused for more than MAX_PLACES.
        """
        found: dict[Path, None] = {}
        base = self.base_of(workspace)
        for pattern, place in self.find(workspace):
            if place.is_relative_to(workspace) or workspace.is_relative_to(place) or not place.is_relative_to(base):
                found[place] = None
            if len(found) > MAX_PLACES:
                raise SandboxRefused(
                    f"Read({pattern}) denies more than {MAX_PLACES:,} files, which cannot be hidden one by one: "
                    "name their folder"
                )
        return (*found, *find_other_names(workspace, found))

    def find(self, workspace: Path) -> Iterator[tuple[str, Path]]:
        """Yield what exists and may not be read, where links lead or led, each with its pattern. Blocks."""
        base = self.base_of(workspace)
        for pattern in self.patterns:
            known = _KNOWN.setdefault((pattern, base), {})
            known |= {Path(os.path.realpath(place)): None for place in _matching(pattern, base)}
            yield from ((pattern, place) for place in list(known) if os.path.lexists(place))

    def base_of(self, workspace: Path) -> Path:
        """Return the folder to which paths in the rules are relative for a run in *workspace*."""
        return self.base if self.base is not None and workspace.is_relative_to(self.base) else workspace


@dataclass(slots=True)
class _Hiding:
    denied: DeniedReads
    workspace: Path
    places: frozenset[Path] | None = None
    files: frozenset[tuple[int, int]] = frozenset()
    """Device and inode of each file that a rule names: another name of the same file may not be read either."""

    def __call__(self, path: Path) -> bool:
        if self.places is None:
            self.places = frozenset(place for _, place in self.denied.find(self.workspace))
            self.files = frozenset(filter(None, map(_file_number, self.places)))
        patterns = self.denied.patterns
        if any(_is_named(each, self.workspace, patterns) for each in (path, *path.parents) if each != self.workspace):
            return True
        real = Path(os.path.realpath(path))
        return not self.places.isdisjoint((real, *real.parents)) or (
            bool(self.files) and _file_number(path) in self.files
        )


def _hides_nothing(_: Path) -> bool:
    return False


def _file_number(path: Path) -> tuple[int, int] | None:
    """Return the device and the inode of a file; None for a folder, and for what cannot be looked at."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return None if stat.S_ISDIR(found.st_mode) else (found.st_dev, found.st_ino)


def _is_named(path: Path, workspace: Path, patterns: tuple[str, ...]) -> bool:
    spellings = [path.as_posix()]
    if path.is_relative_to(workspace):
        spellings.append(path.relative_to(workspace).as_posix())
    return any(
        fits_path(pattern, spelling) or (pattern.endswith(_ALL_BELOW) and fits_path(pattern[:-3], spelling))
        for pattern in patterns
        for spelling in spellings
    )


def _matching(pattern: str, workspace: Path) -> Iterator[Path]:
    """Yield what exists of a pattern: a folder in place of all that is in it."""
    parts = pattern.removeprefix("./").split("/")
    plain = next((number for number, part in enumerate(parts) if _GLOB_CHARS & set(part)), len(parts))
    start = workspace / "/".join(parts[:plain]) if not pattern.startswith("/") else Path("/".join(parts[:plain]) or "/")
    if not os.path.lexists(start):
        return
    if start != workspace and _is_named(start, workspace, (pattern,)):
        yield start
        return
    seen: set[str] = set()
    top = os.path.realpath(workspace)
    for where, folders, files in os.walk(start, followlinks=True):
        here, real = Path(where), os.path.realpath(where)
        if real in seen or (real != where and not f"{real}/".startswith(f"{top}/")):  # a circle, or out by a link
            folders.clear()
            continue
        seen.add(real)
        for name in (*folders, *files):
            if _is_named(here / name, workspace, (pattern,)):
                yield here / name
        folders[:] = [name for name in folders if not _is_named(here / name, workspace, (pattern,))]
