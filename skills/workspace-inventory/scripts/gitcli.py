"""Read-only git by subprocess: argument lists, a timeout, no hooks, no pager, no network."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

TIMEOUT_SECONDS = 60
"""Well below a turn's time limit; a repository that needs longer is inventoried without its history."""

_INERT = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotepath=false")


def git_output(root: Path, *arguments: str, stdin: bytes | None = None) -> bytes | None:
    """Run git in *root* and return what it printed; None when git is absent, refuses or takes too long."""
    command = ["git", "--no-pager", *_INERT, *arguments]
    try:
        done = subprocess.run(
            command,
            cwd=root,
            env=_environment(),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _environment() -> dict[str, str]:
    """The caller's environment without git's own variables: inside a hook they would point at another repository."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return kept | {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
