"""A real fleet for tests: `swarm up` as a process over a folder of role cards and skills made for the test."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import psutil
import yaml

from tests.support.patience import PATIENCE_SECONDS

ROLE_PROCESS = re.compile(r"[a-z]+-\d+")
TRUSTS = "FIRESWARM_TRUST_SETTINGS"
ROLES = ("architect", "executor", "memory", "predictor", "scout")
GRAPH = """
from fireswarm.contracts.skills.skill import PlannedTask, SkillResult, SkillState

ROLES = ("scout", "executor", "predictor", "memory", "architect")

def run(request):
    if request.children:
        return SkillResult(summary=f"{len(request.children)} children ended")
    fails = request.context.get("fails")
    def task(key, role, needs=()):
        context = {"path": request.context["path"], "key": key}
        skill = "fail-once" if fails and key.endswith(fails) else "leave-evidence"
        return PlannedTask(key=key, assigned_to=role, objective=key, skill=skill, context=context,
                           depends_on=needs, max_attempts=50)
    middle = [task(f"m{n}", ROLES[n % 5], ("top",)) for n in range(request.context["count"] - 2)]
    tail = task("tail", "executor", tuple(item.key for item in middle))
    return SkillResult(state=SkillState.DELEGATING, summary="planned", tasks=(task("top", "scout"), *middle, tail))
"""
"""A skill that plans ``count`` tasks in the shape of a diamond; those whose key ends in ``fails`` fail once."""


def lay_out(root: Path, skills: Mapping[str, str], *, settings: Mapping[str, Any]) -> None:
    """Write role cards (every role may use every skill), skills with the given code, and swarm.yaml."""
    for role in ROLES:
        card = root / "roles" / role / "ROLE.md"
        card.parent.mkdir(parents=True)
        header = {"name": role, "description": f"{role} of a test", "skills": list(skills)}
        card.write_text(f"---\n{yaml.safe_dump(header)}---\nA role of a test.\n")
    for name, code in skills.items():
        folder = root / "skills" / name / "scripts"
        folder.mkdir(parents=True)
        (folder / "skill.py").write_text(textwrap.dedent(code))
        header = {
            "name": name,
            "description": f"{name} of a test",
            "metadata": {"entry": "scripts/skill.py", "idempotent": "true"},
        }
        (folder.parent / "SKILL.md").write_text(f"---\n{yaml.safe_dump(header)}---\n# {name}\n")
    (root / "mailbox").mkdir()
    (root / "mailbox" / "policy.yaml").write_text("routes: {'*': ['*']}\n")
    (root / "swarm.yaml").write_text(yaml.safe_dump(dict(settings)))


def environment() -> dict[str, str]:
    """The environment of a fleet: nothing of the caller's that would point it at another store."""
    ignored = ("FIRESTORE_EMULATOR_HOST", "GOOGLE_CLOUD_PROJECT")
    own = {key: value for key, value in os.environ.items() if key.startswith("FIRESWARM_") and key != TRUSTS}
    return {key: value for key, value in os.environ.items() if key not in ignored and key not in own}


@contextmanager
def swarm_up(root: Path, *arguments: str) -> Generator[psutil.Process]:
    """Run `swarm up` in *root*; afterwards nothing that it started is left."""
    with (root / "up.log").open("wb") as log:
        started = subprocess.Popen(
            [sys.executable, "-m", "fireswarm.cli", "up", *arguments],
            cwd=root,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    process = psutil.Process(started.pid)
    try:
        yield process
    finally:
        family = [process, *process.children(recursive=True)] if process.is_running() else []
        for member in family:
            with_signal(member, signal.SIGCONT)
        started.send_signal(signal.SIGTERM)
        try:
            started.wait(timeout=15)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait(timeout=5)
        for member in family:
            with_signal(member, signal.SIGKILL)


def with_signal(process: psutil.Process, number: signal.Signals) -> bool:
    """Send a signal to a process of ours; False when it is gone already."""
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return False
    return True


def role_processes(up: psutil.Process) -> list[psutil.Process]:
    """The role processes that `swarm up` runs now. Each is named by its role and number, such as `scout-1`."""
    found: list[psutil.Process] = []
    for child in up.children(recursive=True):
        try:
            if ROLE_PROCESS.fullmatch(child.name()):
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


async def until(condition: Any, *, seconds: float, every: float = 0.05, what: str = "it") -> None:
    """Wait for an async condition about other processes, where there is no event to wait for."""
    with anyio.move_on_after(seconds):
        while not await condition():
            await _tick(every)
        return
    raise AssertionError(f"{what} did not happen within {seconds} s")


async def _tick(seconds: float) -> None:
    with anyio.move_on_after(seconds):
        await anyio.Event().wait()


async def pid_in(path: Path) -> int:
    """Return the process id that a process writes into a file, as soon as it is there."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while not (text := _text_of(path)):
            await anyio.lowlevel.checkpoint()
    return int(text)


def _text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""
