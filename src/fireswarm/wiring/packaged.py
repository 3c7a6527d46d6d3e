"""Where the data folders are that the package ships: roles, mailbox, skills, schemas, indexes."""

from __future__ import annotations

from importlib import resources
from pathlib import Path


def packaged_path(name: str) -> Path:
    """A data folder or file as the package ships it, or as it lies in the repository."""
    shipped = Path(str(resources.files("fireswarm"))) / "_data" / name
    return shipped if shipped.exists() else Path(__file__).resolve().parents[3] / name
