"""firelite: an embedded, durable Firestore that speaks Google's wire protocol.

Everything is imported when it is first asked for, so ``import fireswarm.firelite`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fireswarm.firelite.database import Database
    from fireswarm.firelite.errors import CorruptDataFile, DataFileInUse, FireliteError, PortInUse
    from fireswarm.firelite.indexes import IndexSet
    from fireswarm.firelite.inprocess import connect
    from fireswarm.firelite.lockfile import read_endpoint
    from fireswarm.firelite.server import Server

_HOMES = {
    "CorruptDataFile": "errors",
    "DataFileInUse": "errors",
    "Database": "database",
    "FireliteError": "errors",
    "IndexSet": "indexes",
    "PortInUse": "errors",
    "Server": "server",
    "connect": "inprocess",
    "read_endpoint": "lockfile",
}

__all__ = [
    "CorruptDataFile",
    "DataFileInUse",
    "Database",
    "FireliteError",
    "IndexSet",
    "PortInUse",
    "Server",
    "connect",
    "read_endpoint",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
