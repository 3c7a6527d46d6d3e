"""The agent command for tests: called in this process, in a folder laid out for it, with providers on this machine."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from anyio.from_thread import start_blocking_portal

from fireswarm.cli import agent_command
from fireswarm.contracts.swarm.event import EventRecord
from fireswarm.settings.run_folders import kept_runs
from fireswarm.settings.trust import TrustedFiles
from tests.support.minds import GREETER, KEY, KEYED, command, decided, use
from tests.support.providers import FakeProviders

TASK = "greet Ada by name"
SCRIPT_LINE = "bash skills/greeter/scripts/greet.sh Ada"


@dataclass(frozen=True)
class Done:
    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


def environment(root: Path, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL")}
    return kept | {"HOME": str(root / "home"), "COLUMNS": "160", "PYTHONPATH": os.pathsep.join(sys.path)} | more


def agent(root: Path, *arguments: str, typed: str = "", **env: str) -> Done:
    """Run the command in this process: the same entry point, without a second of start-up each time."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.chdir(root),
        mock.patch.dict(os.environ, environment(root, **env), clear=True),
        mock.patch.object(sys, "argv", ["agent", *arguments]),
        mock.patch.object(sys, "stdin", io.StringIO(typed)),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            agent_command()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Done(code, out.getvalue(), err.getvalue())


def lay_out(folder: Path) -> Path:
    """A folder to work in: one skill with a script, and an empty home."""
    skill = folder / "skills" / "greeter"
    (skill / "scripts").mkdir(parents=True)
    (skill / "SKILL.md").write_text(GREETER)
    (skill / "references").mkdir()
    (skill / "references" / "manners.md").write_text("Be kind.\n")
    (skill / "scripts" / "greet.sh").write_text('echo "Hello, $1."\n')
    (folder / "home").mkdir()
    return folder


def script(root: Path, *answers: Any) -> tuple[str, str]:
    """Options for a scripted model that answers so."""
    (root / "answers.json").write_text(
        json.dumps([json.loads(a) if isinstance(a, str) and a.startswith("{") else a for a in answers])
    )
    return "--script", "answers.json"


GOOD = decided(text="Hello, Ada.")
TURNS = (decided(use("greeter"), command(SCRIPT_LINE)), decided(command("ls skills")), GOOD)


def kept(root: Path) -> Path:
    """The folder in which the command keeps the runs of *root*."""
    with mock.patch.dict(os.environ, environment(root), clear=True):
        return kept_runs(root)


def events(root: Path) -> list[EventRecord]:
    [path] = (root / "runs").glob("*/events.jsonl")
    return [EventRecord.model_validate_json(line) for line in path.read_bytes().splitlines()]


@contextlib.contextmanager
def serving(script: Any) -> Generator[FakeProviders]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(FakeProviders(script).serving()) as served,
    ):
        yield served


def at(served: FakeProviders, root: Path, **model: Any) -> dict[str, str]:
    """A configuration with both providers at the local server, trusted; returns the keys."""
    providers = {name: {"base_url": served.url} for name in KEYED}
    (root / "agent.yaml").write_text(json.dumps({"model": {"providers": providers, "decision_mode": "json", **model}}))
    TrustedFiles(root / "home").add(root / "agent.yaml")
    return {"ANTHROPIC_API_KEY": KEY, "GEMINI_API_KEY": KEY}
