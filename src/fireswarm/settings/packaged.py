"""The version of the installed package, and its data folders: roles, mailbox, skills, schemas, indexes."""

from __future__ import annotations

from importlib import resources
from importlib.metadata import version
from pathlib import Path

__version__ = version("fireswarm")


def packaged_path(name: str) -> Path:
    """Return the path of a data folder or file, in the installed package or in the repository."""
    shipped = Path(str(resources.files("fireswarm"))) / "_data" / name
    return shipped if shipped.exists() else Path(__file__).resolve().parents[3] / name
