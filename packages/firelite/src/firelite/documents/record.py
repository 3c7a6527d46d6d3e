"""One version of one document in memory."""

from __future__ import annotations

import sys
from typing import Protocol

from firelite.documents.paths import collection_of, name_key
from firelite.documents.protos import Document, FieldsPb


class Stored(Protocol):
    """A content that is not in memory."""

    @property
    def length(self) -> int:
        """Length in bytes."""
        ...

    def read(self) -> bytes:
        """Read the content."""
        ...


class Record:
    """A version of a document: the serialized Document message, or a tombstone.

    ``row`` is the document's row in the data file, ``update_us`` the commit time of this version in microseconds
    (of the delete for a tombstone), ``previous`` the replaced version while it can still be read. The content of an old
    version may be on the disk.
    """

    __slots__ = ("_data", "_key", "collection", "create_us", "name", "previous", "row", "update_us")

    def __init__(self, name: str, data: bytes | None, create_us: int, update_us: int, row: int) -> None:
        self.name = name
        self.collection = sys.intern(collection_of(name))
        self._key: bytes | None = None
        self._data: bytes | Stored | None = data
        self.create_us = create_us
        self.update_us = update_us
        self.row = row
        self.previous: Record | None = None

    def successor(self, data: bytes | None, update_us: int) -> Record:
        """Return the version that replaces this one."""
        # Avoids __init__, to reuse the name, the collection and an existing key.
        new = Record.__new__(Record)
        new.name, new.collection, new._key = self.name, self.collection, self._key
        new._data, new.create_us, new.update_us = data, self.create_us, update_us
        new.row, new.previous = self.row, None
        return new

    @property
    def key(self) -> bytes:
        """Sort key of the name, computed on first use; most documents never need it."""
        if self._key is None:
            self._key = name_key(self.name)
        return self._key

    @property
    def data(self) -> bytes | None:
        """The serialized Document; None for a tombstone."""
        data = self._data
        return data if data is None or isinstance(data, bytes) else data.read()

    def move_data(self, stored: Stored) -> None:
        """Read the content from elsewhere from now on."""
        self._data = stored

    @property
    def moved_bytes(self) -> int:
        """Length of the content if it is elsewhere, otherwise 0."""
        return 0 if self._data is None or isinstance(self._data, bytes) else self._data.length

    @property
    def exists(self) -> bool:
        """False for a tombstone."""
        return self._data is not None

    def fields(self) -> FieldsPb:
        """Parse and return the fields. The map keeps the message alive."""
        return Document.FromString(self.data or b"").fields
