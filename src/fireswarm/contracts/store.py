"""Data types of the document store: writes, queries, snapshots and billed usage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Literal


class Sentinel(Enum):
    """Values that only the store can set."""

    SERVER_TIME = "server_time"
    """The commit's own time."""
    DELETE_FIELD = "delete_field"
    """Remove the field."""


SERVER_TIME = Sentinel.SERVER_TIME
DELETE_FIELD = Sentinel.DELETE_FIELD


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A document that was read; ``data`` is None if the document does not exist."""

    path: str
    data: Mapping[str, Any] | None
    update_time: Any = None
    create_time: datetime | None = None

    @property
    def id(self) -> str:
        """The last segment of the path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Create:
    """Write a document that must not exist yet."""

    path: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Update:
    """Replace the named top-level fields of an existing document; all other fields stay unchanged.

    A map as a value replaces the whole old value. ``if_update_time`` is the required current version.
    """

    path: str
    data: Mapping[str, Any]
    if_update_time: Any = None


@dataclass(frozen=True, slots=True)
class Merge:
    """Like Update, but creates the document when it is missing."""

    path: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a document; a missing document is not an error.

    ``if_update_time`` is the required current version; with it, a missing document is a conflict.
    """

    path: str
    if_update_time: Any = None


Write = Create | Update | Merge | Delete
Operator = Literal["==", "!=", "<", "<=", ">", ">=", "in", "not-in", "array_contains", "array_contains_any"]


NAME = "__name__"
"""The document itself, ordered by path, in ``order_by`` and ``start_after``."""


def vector_value(numbers: Sequence[float]) -> dict[str, Any]:
    """Return the value of a field that Firestore takes for a vector."""
    return {"__type__": "__vector__", "value": [float(number) for number in numbers]}


@dataclass(frozen=True, slots=True)
class Nearest:
    """The documents whose vector in *field* is nearest to *vector* by cosine, nearest first.

    *distance* is the field of the results with the cosine distance, 0 to 2.
    """

    field: str
    vector: tuple[float, ...]
    limit: int
    distance: str = "distance"


@dataclass(frozen=True, slots=True)
class Query:
    """A query over one collection; ``queries.py`` lists all queries of the code."""

    collection: str
    where: tuple[tuple[str, Operator, Any], ...] = ()
    order_by: tuple[tuple[str, Literal["asc", "desc"]], ...] = ()
    limit: int | None = None
    start_after: Mapping[str, Any] | None = None
    nearest: Nearest | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """The results of a query, the indexes that served it, the billed reads, and the seconds in the store."""

    snapshots: tuple[Snapshot, ...]
    indexes: tuple[str, ...]
    reads: int
    seconds: float


@dataclass(slots=True)
class Usage:
    """Operations as Firestore bills them, counted by the adapter."""

    reads: int = 0
    writes: int = 0
    deletes: int = 0

    def minus(self, earlier: Usage) -> Usage:
        """Return the usage since *earlier*."""
        return Usage(self.reads - earlier.reads, self.writes - earlier.writes, self.deletes - earlier.deletes)

    def copy(self) -> Usage:
        """Return a copy of the current counts."""
        return Usage(self.reads, self.writes, self.deletes)


@dataclass(frozen=True, slots=True)
class Committed:
    """An applied commit: the resulting version of each write, in order."""

    update_times: tuple[Any, ...] = field(default=())
