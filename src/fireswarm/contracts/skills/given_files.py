"""The input files of a task, as tools and commands find them."""

from __future__ import annotations

import posixpath
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

INPUT_FOLDER = "inputs"
"""First part of the paths of input files."""

INPUT_VARIABLE = "INPUT_DIR"
"""Environment variable with the folder of the input files."""


@dataclass(frozen=True, slots=True)
class GivenFiles:
    """Input files, which are read-only. ``names`` are their paths below ``root``, such as inputs/w1/findings.md.

    ``fetch`` stores the file of a path, or all files below it, in ``root``; a stored file is not fetched again. It
    raises InvalidInput for a file that cannot be read, after it has stored the others.
    """

    root: Path
    names: frozenset[str]
    fetch: Callable[[str], Awaitable[None]]

    @property
    def folder(self) -> Path:
        """The folder of the files."""
        return self.root / INPUT_FOLDER

    def name_of(self, path: str) -> str | None:
        """Return the path below ``root`` that a tool's *path* means, or None if it means another place.

        It may begin with the variable or with the whole path of the folder. A relative path must be that of an input
        file, or of a folder with input files: the workspace may have a folder ``inputs`` too, which is ``./inputs``.
        """
        text = path.removeprefix("file://")
        for start in (f"${INPUT_VARIABLE}", f"${{{INPUT_VARIABLE}}}", str(self.folder)):
            if text == start or text.startswith(f"{start}/"):
                return posixpath.normpath(f"{INPUT_FOLDER}{text[len(start) :]}")
        if text.split("/", 1)[0] != INPUT_FOLDER:
            return None
        name = posixpath.normpath(text)
        known = name in self.names or any(each.startswith(f"{name}/") for each in self.names)
        return name if known else None
