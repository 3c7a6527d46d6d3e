"""Where the hits of each key are kept: in a table of this process."""

import threading
from collections import deque

_table: dict[str, deque[float]] = {}
_lock = threading.RLock()


def lock() -> threading.RLock:
    """The lock of the table: one for all windows of the process."""
    return _lock


def hits_of(key: str) -> deque[float]:
    """Return the times of a key's hits, oldest first."""
    return _table.setdefault(key, deque())


def drop(key: str) -> None:
    """Forget a key."""
    _table.pop(key, None)


def sweep(before: float) -> int:
    """Drop the keys whose last hit was before a time, and return their number."""
    old = [key for key, hits in _table.items() if not hits or hits[-1] < before]
    for key in old:
        drop(key)
    return len(old)


def size() -> int:
    """Number of the hits that are kept, of all keys."""
    return sum(map(len, _table.values()))
