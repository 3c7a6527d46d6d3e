"""Find the data folders of the package: roles, mailbox, skills, schemas, indexes."""

from __future__ import annotations

from importlib import resources
from pathlib import Path


def packaged_path(name: str) -> Path:
    """Return the path of a data folder or file, in the installed package or in the repository."""
    shipped = Path(str(resources.files("fireswarm"))) / "_data" / name
    return shipped if shipped.exists() else Path(__file__).resolve().parents[3] / name
