"""The swarm command for tests: called in this process, in a folder laid out for it."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from fireswarm.cli import swarm_command as main
from tests.support.fleet import environment


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def swarm(root: Path, *arguments: str, **env: str) -> Done:
    """Run the command in this process: the same entry point, without a second of start-up each time."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with (
        contextlib.chdir(root),
        mock.patch.dict(os.environ, environment() | {"COLUMNS": "160"} | env, clear=True),
        mock.patch.object(sys, "argv", ["swarm", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    return Done(code, out.getvalue(), err.getvalue())
