"""Commands for tests of forked processes."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading


def describe() -> None:
    """Print the environment, the arguments and what a copy may inherit; say goodbye at exit."""
    atexit.register(print, "goodbye", flush=True)
    print(json.dumps({"environment": dict(os.environ), "argv": sys.argv, "threads": threading.active_count()}))


def list_descriptors() -> None:
    """Print the descriptors that a started program inherits if nothing closes them for it."""
    code = "import os\nfor n in range(200):\n try: os.fstat(n); print(n)\n except OSError: pass"
    subprocess.run([sys.executable, "-c", code], close_fds=False, check=True)
