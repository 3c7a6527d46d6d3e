"""Pages of a list: an opaque cursor points to a page's last document, so that new documents do not shift pages."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, cast

from fastapi import Query as Parameter

from fireswarm.api.models.base import storable
from fireswarm.client import Swarm
from fireswarm.contracts.base import as_utc
from fireswarm.contracts.ports import Snapshot
from fireswarm.errors import InvalidInput
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.read import parse_all

Limit = Annotated[int, Parameter(ge=1, le=200, description="longest page", examples=[50])]
Cursor = Annotated[
    str | None,
    Parameter(max_length=1_000, description="`next_cursor` of the previous page", examples=["WyIyMDI2LTExLTIy"]),
]
DEFAULT_LIMIT = 50

Place = tuple[Any, str]


@dataclass(frozen=True, slots=True)
class PageSlice[T]:
    """One page of parsed documents."""

    items: tuple[T, ...]
    next_cursor: str | None
    unreadable: tuple[str, ...]

    def fields(self) -> dict[str, Any]:
        """Return the fields for a Page model."""
        return {"items": self.items, "next_cursor": self.next_cursor, "unreadable": self.unreadable}


async def read_page[T](
    swarm: Swarm,
    collection: str,
    order: str,
    parse: Callable[[Snapshot], T],
    *,
    limit: int,
    cursor: str | None,
    **filters: Any,
) -> PageSlice[T]:
    """Read one page of the session's documents. Raises InvalidInput for a cursor of another list."""
    after = None if cursor is None else decode_cursor(cursor, collection)
    query = queries.page(collection, order, limit + 1, after, **filters, session_hash=swarm.session)
    snapshots = await swarm.parts.store.query(query)
    items, others = parse_all(snapshots[:limit], parse)
    more = len(snapshots) > limit
    cursor_after = encode_cursor(snapshots[limit - 1], order) if more else None
    return PageSlice(tuple(items), cursor_after, tuple(snapshot.id for snapshot, _ in others))


def encode_cursor(last: Snapshot, order: str) -> str:
    """Return the cursor of the page after the document *last* of a list in the order of a field."""
    value = (last.data or {}).get(order)
    at = [value.astimezone(UTC).isoformat()] if isinstance(value, datetime) else value
    return base64.urlsafe_b64encode(json.dumps([at, last.path], default=str).encode()).decode().rstrip("=")


def decode_cursor(cursor: str, collection: str) -> Place:
    """Decode a cursor. Raises InvalidInput for one of another list.

    A time is encoded as a list, since the sort field of a hand-written document may have any type.
    """
    try:
        at, path = storable(json.loads(base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4))))
        if isinstance(at, list):
            [text] = cast("list[str]", at)
            at = as_utc(datetime.fromisoformat(text))
        if not re.fullmatch(rf"{collection}/[^/]+", str(path)):
            raise ValueError("not a cursor of this list")
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise InvalidInput("invalid cursor: use next_cursor of the previous page of this list") from error
    return at, str(path)
