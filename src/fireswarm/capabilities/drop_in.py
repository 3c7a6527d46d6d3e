"""Capabilities of a swarm's folder: each ``capabilities/*.py`` may define some.

Their code runs with the operator's rights in the process that uses them. Only `swarm` reads them, since `agent` may be
started in folders of strangers.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

from fireswarm.capabilities.capability import Capability
from fireswarm.errors import ConfigError

FOLDER = "capabilities"

_folders: dict[Path, None] = {}


def add_folder(root: Path) -> None:
    """Add the capabilities of the swarm's folder *root* to those of this process."""
    folder = (root / FOLDER).resolve()
    if folder.is_dir():
        _folders[folder] = None


def files() -> tuple[Path, ...]:
    """Return the files of all added folders, in order.

    Files whose names begin with an underscore are skipped; other files can import them.
    """
    return tuple(
        path for folder in _folders for path in sorted(folder.glob("*.py")) if not path.name.startswith(("_", "."))
    )


def stamp() -> tuple[int, ...]:
    """Return the times of the last changes of all files in the added folders, also of those that others import."""
    return tuple(path.stat().st_mtime_ns for folder in _folders for path in sorted(folder.glob("*.py")))


def load(file: Path) -> Iterator[Capability]:
    """Import *file* and yield its capabilities.

    Raises ConfigError if it defines none, and any exception of the import.
    """
    name = f"fireswarm_capability_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ConfigError("it cannot be imported")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    found = [value for value in vars(module).values() if isinstance(value, Capability)]
    if not found:
        raise ConfigError("it defines no Capability")
    yield from found
