"""Start-up of a command: pauses the garbage collector during imports, replaces closed streams, uses uvloop."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

INTERRUPTED = 130
"""Exit code after SIGINT or SIGTERM, as in shells."""

_has_frozen = False
"""True in a process of our commands. Asking the collector would count all frozen objects."""


@contextlib.contextmanager
def without_collector() -> Generator[None]:
    """Import inside this block without garbage collection.

    New classes are never garbage, and scanning them costs up to 20 % of import time. In a process of our commands,
    which has frozen its loaded objects, the new objects are frozen as well: otherwise later collections, and the last
    one at exit, would scan them again. In other processes nothing is frozen.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if _has_frozen:
            gc.freeze()
        if enabled:
            gc.enable()


def replace_closed_streams() -> None:
    """Open the null device for each standard stream that the caller closed; otherwise a file would get its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open to the end


def freeze() -> None:
    """Exclude all current objects from garbage collection.

    Called when a command is loaded and when it ends: with a provider's SDK, the interpreter's last collection at exit
    would take a quarter of a second, for memory that is freed anyway.
    """
    global _has_frozen
    _has_frozen = True
    gc.freeze()


def loop_options() -> dict[str, Any]:
    """Return options for ``anyio.run``: uvloop if installed, which saves a tenth of a worker's time.

    uvloop starts processes by fork and exec. gRPC's fork support would interrupt it for each fork, without
    need: the child processes never use gRPC.
    """
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
    return {"use_uvloop": sys.platform != "win32" and find_spec("uvloop") is not None}
