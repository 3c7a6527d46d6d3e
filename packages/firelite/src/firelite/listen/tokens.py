"""Resume tokens: the state that a client has seen, and if this store can continue from it.

A token names the store's lineage, which is new for each file, wipe, restored backup and database in memory; the time of
the client's state; and the last commit of that state. A token is continued only if the store's own history has exactly
this commit as the last one at that time. So a token of another store, of a later state than a file copied back, or from
before the available history gives a RESET: the client drops everything and gets the whole result.
"""

from __future__ import annotations

import struct

from firelite.storage.versions import Store

_TOKEN = struct.Struct(">Qqq")  # lineage, time of the state, last commit of the state; times in microseconds


def make_token(store: Store, read_us: int) -> bytes:
    """Return the token of the store's current state, read at *read_us*."""
    return _TOKEN.pack(store.lineage, read_us, store.last_commit_us)


def resumable_us(store: Store, token: bytes) -> int | None:
    """Return the time to continue from; None if the client must start over."""
    if len(token) != _TOKEN.size:
        return None
    lineage, read_us, commit_us = _TOKEN.unpack(token)
    known = lineage == store.lineage and read_us >= store.horizon_us and commit_us == store.last_commit_at(read_us)
    return read_us if known else None
