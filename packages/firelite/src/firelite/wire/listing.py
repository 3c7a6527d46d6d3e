"""Listings, partitions and non-atomic batches: the requests other than reads, queries and commits."""

from __future__ import annotations

import asyncio
import base64
from bisect import bisect_right
from collections.abc import Sequence

from firelite.database import Consistency, Database
from firelite.documents.fields import project
from firelite.documents.paths import NAME, FieldPath, name_key
from firelite.documents.protos import (
    Cursor,
    CursorPb,
    Document,
    DocumentPb,
    MessagePb,
    StructuredQuery,
    Value,
    WritePb,
)
from firelite.documents.record import Record
from firelite.errors import FireliteError, InvalidArgument
from firelite.query.parse import parse_query
from firelite.query.query import Order, Query
from firelite.storage.commit import written_names
from firelite.storage.group_commit import Outcome
from firelite.wire import past_listing

PAGE_DEFAULT = 300
PAGE_MAX = 1000


async def write_each(database: Database, writes: Sequence[WritePb]) -> list[Outcome | FireliteError]:
    """Apply each write separately. They share a commit group, and so one sync.

    Raises InvalidArgument if two writes change the same document, since their order would be undefined.
    """
    check_distinct(writes)

    async def one(write: WritePb) -> Outcome | FireliteError:
        try:
            return await database.commit([write])
        except FireliteError as error:
            return error

    return list(await asyncio.gather(*(one(write) for write in writes)))


def check_distinct(writes: Sequence[WritePb]) -> None:
    """Raise InvalidArgument if two writes change the same document."""
    names = written_names(writes)
    if len(set(names)) != len(names):
        raise InvalidArgument("A BatchWrite cannot write to the same document more than once.")


def page[T](entries: Sequence[tuple[bytes, T]], size: int, token: str) -> tuple[list[T], str]:
    """Return one page of sorted entries, and the token of the next page ("" at the end).

    A token is the sort key of the last returned entry, so that deleting the entries of a page does not shift the next
    page. Raises InvalidArgument for a foreign token.
    """
    try:
        last = base64.b64decode(token, altchars=b"-_", validate=True)
    except ValueError:
        raise InvalidArgument("The page token was not made by this server.") from None
    if size < 0:
        raise InvalidArgument("The page size must not be negative.")
    start = bisect_right(entries, last, key=lambda entry: entry[0]) if token else 0
    end = start + min(size or PAGE_DEFAULT, PAGE_MAX)
    following = base64.urlsafe_b64encode(entries[end - 1][0]).decode() if end < len(entries) else ""
    return [entry for _, entry in entries[start:end]], following


async def list_documents(
    database: Database, request: MessagePb, consistency: Consistency, mask: Sequence[FieldPath] | None
) -> tuple[list[DocumentPb], str]:
    """Return a page of a collection's documents, sorted by name or by ``order_by``, and the next token."""
    if request.show_missing and request.order_by:
        raise InvalidArgument("ListDocuments cannot combine show_missing with order_by.")
    query = _listing_query(request)
    database.check_query(query)
    records, _, read_us = await database.run_query(query, consistency)
    entries: list[tuple[bytes, Record | str]] = [(_place(query, record), record) for record in records]
    if request.show_missing:
        collection = f"{request.parent}/{request.collection_id}"
        names = {record.name for record in records}
        ids = past_listing.on_the_way_at(database.store, collection, read_us)
        paths = [f"{collection}/{document_id}" for document_id in ids]
        entries += [(name_key(name), name) for name in paths if name not in names]
        entries.sort(key=lambda entry: entry[0])
    chosen, token = page(entries, request.page_size, request.page_token)
    return [Document(name=item) if isinstance(item, str) else project(item.data or b"", mask) for item in chosen], token


def _place(query: Query, record: Record) -> bytes:
    return record.key if query.orders == (Order(NAME),) else query.sort_key(record.fields(), record.key) or b""


def _listing_query(request: MessagePb) -> Query:
    """Return the query of a listing. Raises InvalidArgument."""
    message = StructuredQuery()
    if not request.collection_id:
        raise InvalidArgument("ListDocuments needs a collection_id.")
    message.from_.add(collection_id=request.collection_id)
    for item in filter(None, (part.strip() for part in request.order_by.split(","))):
        path, _, direction = item.partition(" ")
        if direction.strip().lower() not in ("", "asc", "desc"):
            raise InvalidArgument(f"order_by {item!r} is not of the form 'field [asc|desc]'.")
        order = message.order_by.add(direction=2 if direction.strip().lower() == "desc" else 1)
        order.field.field_path = path
    return parse_query(request.parent, message)


def partition(query: Query, records: Sequence[Record], request: MessagePb) -> tuple[list[CursorPb], str]:
    """Return cursors between ``partition_count + 1`` parts of the query's documents, or fewer for few documents."""
    if query.orders != (Order(NAME),) or query.disjuncts != ((),) or query.bounded:
        raise InvalidArgument("PartitionQuery needs a query ordered by __name__ only, without filters or limits.")
    if request.partition_count < 1:
        raise InvalidArgument("PartitionQuery needs a positive partition_count.")
    parts = request.partition_count + 1
    steps = dict.fromkeys(len(records) * part // parts for part in range(1, parts))
    cursors = [Cursor(values=[Value(reference_value=records[step].name)], before=True) for step in steps if step > 0]
    return page(
        [(name_key(cursor.values[0].reference_value), cursor) for cursor in cursors],
        request.page_size,
        request.page_token,
    )
