"""Count what a piece of work does: calls, hops to threads, RPCs, SQL statements, calls of the file system.

Counts do not depend on the machine, so they show a change that a clock would hide.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import Counter
from collections.abc import Generator
from types import FrameType
from typing import Any

RPCS = frozenset({"_send", "query", "get_many", "count", "listening"})
"""Functions of the store's adapter that each make one remote call."""

NO_FILES = frozenset({"fspath", "getpid"})
"""Functions of the module of the file system that reach no file."""

SQL = frozenset({"execute", "executemany", "executescript"})
KINDS = ("python calls", "thread hops", "RPCs", "SQL statements", "file system calls")


@contextlib.contextmanager
def counting() -> Generator[Counter[str]]:
    """Count in all threads until the end of the block."""
    found: Counter[str] = Counter(dict.fromkeys(KINDS, 0))

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            code = frame.f_code
            found["python calls"] += 1
            if code.co_name == "run_sync_in_worker_thread" and "anyio" in code.co_filename and _starts(frame):
                found["thread hops"] += 1
            elif code.co_name in RPCS and code.co_filename.endswith("storage/firestore/store.py") and _starts(frame):
                found["RPCs"] += frame.f_locals.get("paths") != []  # reading no document makes no call
        elif event == "c_call":
            if getattr(argument, "__module__", None) == "posix" and argument.__name__ not in NO_FILES:
                found["file system calls"] += 1
            elif argument.__name__ in SQL and type(argument.__self__).__module__ == "sqlite3":
                found["SQL statements"] += 1

    threading.setprofile_all_threads(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile_all_threads(None)  # type: ignore[arg-type]


FIRST_INSTRUCTIONS = 12
"""Greatest offset at which a coroutine starts; it goes on after an await at a greater one."""


def _starts(frame: FrameType) -> bool:
    """Return True at the start of a coroutine, False when it goes on after an await."""
    return frame.f_lasti <= FIRST_INSTRUCTIONS
