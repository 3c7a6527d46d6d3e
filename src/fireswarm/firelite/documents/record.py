"""One version of one document, as the engine keeps it in memory."""

from __future__ import annotations

import sys

from fireswarm.firelite.documents.paths import collection_of, name_key
from fireswarm.firelite.documents.protos import Document, FieldsPb


class Record:
    """A version of a document: the serialized Document message, or a tombstone.

    ``row`` is the document's row in the data file, ``update_us`` the commit time of this version in microseconds
    (for a tombstone: of the delete), ``previous`` the version it replaced while that one can still be read.
    """

    __slots__ = ("_key", "collection", "create_us", "data", "name", "previous", "row", "update_us")

    def __init__(self, name: str, data: bytes | None, create_us: int, update_us: int, row: int) -> None:
        self.name = name
        self.collection = sys.intern(collection_of(name))
        self._key: bytes | None = None
        self.data = data
        self.create_us = create_us
        self.update_us = update_us
        self.row = row
        self.previous: Record | None = None

    def successor(self, data: bytes | None, update_us: int) -> Record:
        """The version that replaces this one."""
        # Not through __init__: name and collection are the same objects, and so is a key that was made already.
        new = Record.__new__(Record)
        new.name, new.collection, new._key = self.name, self.collection, self._key
        new.data, new.create_us, new.update_us = data, self.create_us, update_us
        new.row, new.previous = self.row, None
        return new

    @property
    def key(self) -> bytes:
        """The sort key of the name; made when first asked for, which for most documents is never."""
        if self._key is None:
            self._key = name_key(self.name)
        return self._key

    @property
    def exists(self) -> bool:
        """False for a tombstone."""
        return self.data is not None

    def fields(self) -> FieldsPb:
        """Parse and return the fields (the message keeps them alive through the map)."""
        return Document.FromString(self.data or b"").fields
