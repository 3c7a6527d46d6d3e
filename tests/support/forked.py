"""Commands for tests of forked processes."""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading


def describe() -> None:
    """Print the environment, the arguments and what a copy may inherit; say goodbye at exit."""
    atexit.register(print, "goodbye", flush=True)
    print(json.dumps({"environment": dict(os.environ), "argv": sys.argv, "threads": threading.active_count()}))
