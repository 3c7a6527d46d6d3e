"""Quick starts and quick loops."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Generator
from importlib.util import find_spec
from typing import Any


@contextlib.contextmanager
def without_collector() -> Generator[None]:
    """Import inside this block: the collector would walk over thousands of new classes again and again.

    Nothing of it is garbage yet, and looking for it takes up to a fifth of the time. A process of our own commands,
    which has frozen what it loaded, freezes this as well: what is loaded for good is walked over once more each time
    otherwise, and by the interpreter's last look. In a process of somebody else's nothing is frozen.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count():
            gc.freeze()
        if enabled:
            gc.enable()


def freeze() -> None:
    """Take everything that lives now out of the collector's sight.

    Called when a command is loaded, and when it is over: with a provider's SDK the interpreter's last look for garbage
    would take a quarter of a second, for memory that is about to be given back.
    """
    gc.freeze()


def loop_options() -> dict[str, Any]:
    """Options for ``anyio.run``: uvloop where there is one, which takes a tenth off a worker's time.

    uvloop starts processes by fork and exec. gRPC would interrupt itself for each fork, to no end: what is forked
    here never uses it.
    """
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
    return {"use_uvloop": sys.platform != "win32" and find_spec("uvloop") is not None}
