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

    Nothing of it is garbage yet, and looking for it takes up to a fifth of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def leave_lightly() -> None:
    """Call at the end of a process: the interpreter's last look for garbage then finds nothing to walk over.

    With a provider's SDK loaded it would take a quarter of a second, for memory that is about to be given back.
    """
    gc.freeze()


def loop_options() -> dict[str, Any]:
    """Options for ``anyio.run``: uvloop where there is one, which takes a tenth off a worker's time.

    uvloop starts processes by fork and exec. gRPC would interrupt itself for each fork, to no end: what is forked
    here never uses it.
    """
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
    return {"use_uvloop": sys.platform != "win32" and find_spec("uvloop") is not None}
