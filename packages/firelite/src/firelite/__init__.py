"""firelite: an embedded, durable Firestore that speaks Google's wire protocol.

Every module is imported on first use, so ``import firelite`` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firelite.database import Database
    from firelite.errors import CorruptDataFile, DataFileInUse, FireliteError, PortInUse
    from firelite.query.index_definitions import IndexSet
    from firelite.storage.lockfile import read_endpoint
    from firelite.wire.inprocess import connect
    from firelite.wire.server import Server

_HOMES = {
    "CorruptDataFile": "errors",
    "DataFileInUse": "errors",
    "Database": "database",
    "FireliteError": "errors",
    "IndexSet": "query.index_definitions",
    "PortInUse": "errors",
    "Server": "wire.server",
    "connect": "wire.inprocess",
    "read_endpoint": "storage.lockfile",
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


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
