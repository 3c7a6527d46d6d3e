"""Repositories made with the git of the machine, and what their programs left behind."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

AUTHOR = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@localhost",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@localhost",
}

USER = ("-c", "user.name=a", "-c", "user.email=a@localhost")


def plain_git(folder: Path, *arguments: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}
    command = ["git", *USER, *arguments]
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)


def marks(program: Path) -> str:
    ran = program.with_name("ran")
    return ran.read_text() if ran.exists() else ""


def set_keys(config: Path, values: dict[str, str]) -> None:
    for key, value in values.items():
        subprocess.run(["git", "config", "--file", str(config), key, value], check=True, capture_output=True)
