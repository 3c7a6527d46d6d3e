"""Read-only git: information that git cannot provide is missing from the inventory."""

from __future__ import annotations

from pathlib import Path

from fireswarm import errors, run_git


def git_output(root: Path, *arguments: str, stdin: bytes | None = None) -> bytes | None:
    """Run git in *root* and return its output; None if git is absent, refuses or takes too long."""
    try:
        return run_git(root, *arguments, stdin=stdin)
    except errors.GitFailed:
        return None
