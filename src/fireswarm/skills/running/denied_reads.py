"""Files that may not be read: the paths of ``deny`` rules for ``Read``, as places that a view does not show."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fireswarm.contracts.grant import Grant
from fireswarm.errors import SandboxRefused
from fireswarm.skills.allowed_tools import fits_path, path_patterns

READ, READ_FILE = "Read", "read_file"
MAX_PLACES = 1_000
"""Each place is a mount of its own."""

_GLOB_CHARS = frozenset("*?[{")
_ALL_BELOW = "/**"


@dataclass(frozen=True, slots=True)
class DeniedReads:
    """The ``deny`` rules of a run. Those for paths of ``Read`` name files that nothing in the run reads."""

    rules: tuple[str, ...] = ()

    @classmethod
    def of(cls, grant: Grant) -> DeniedReads:
        """Return the rules of a run."""
        return cls((*grant.deny, *grant.stricter.deny))

    @property
    def patterns(self) -> tuple[str, ...]:
        """The paths in the rules."""
        return tuple(path_patterns(self.rules, READ, (READ_FILE,)))

    def hides(self, path: Path, workspace: Path) -> bool:
        """Return True if *path*, or a folder that it is in, may not be read. Links in *path* are not followed."""
        patterns = self.patterns
        return bool(patterns) and any(
            _is_named(each, workspace, patterns) for each in (path, *path.parents) if each != workspace
        )

    def places(self, workspace: Path) -> tuple[Path, ...]:
        """Return the files and folders that exist and may not be read, where links lead. Blocks.

        Raises SandboxRefused for more than MAX_PLACES.
        """
        found: dict[Path, None] = {}
        for pattern in self.patterns:
            for place in _matching(pattern, workspace):
                found[Path(os.path.realpath(place))] = None
                if len(found) > MAX_PLACES:
                    raise SandboxRefused(
                        f"Read({pattern}) denies more than {MAX_PLACES:,} files, which cannot be hidden one by one: "
                        "name their folder"
                    )
        return tuple(found)


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
    for where, folders, files in os.walk(start):
        here = Path(where)
        for name in (*folders, *files):
            if _is_named(here / name, workspace, (pattern,)):
                yield here / name
        folders[:] = [name for name in folders if not _is_named(here / name, workspace, (pattern,))]
