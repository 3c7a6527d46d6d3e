"""Starting quickly: the collector walks over everything again and again while thousands of classes are made."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Generator


@contextlib.contextmanager
def without_collector() -> Generator[None]:
    """Import inside this block: nothing is garbage yet, and looking for it takes up to a fifth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
