"""Commands in a container that is the boundary: without rights, and without the secrets of the worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement.container import NOBODY, SETPRIV
from fireswarm.processes.confinement.view import View
from fireswarm.processes.run import run_confined
from fireswarm.processes.shell import Shell
from tests.support.confinement import hide_landlock

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not Path(SETPRIV).exists(), reason="setpriv of util-linux is missing"),
]

SECRET = "sesame-4711"
WORKER = """
import anyio, json, os, sys
from pathlib import Path
from fireswarm.processes.child_pool import run_in_child
from fireswarm.processes.confinement.container import hide_environment
from fireswarm.processes.confinement.view import View
from fireswarm.processes.shell import Shell

LOOK = 'cat /proc/*/environ 2>/dev/null | tr "\\\\0" "\\\\n" | grep -c ' + sys.argv[1] + '; env'


async def main():
    if sys.argv[2] == "hidden":
        hide_environment()
    await run_in_child(os.getpid)  # its process stays, with the environment of its start
    shell = Shell(("/bin/sh", "-c"), 16_000, dict(os.environ))
    ran = await shell.run(LOOK, Path(sys.argv[3]), 30, View(Path(sys.argv[3]), writable=True, confinement="container"))
    print(json.dumps([ran.exit_code, ran.stdout, ran.stderr]))


anyio.run(main)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for parent in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        parent.chmod(0o755)
    return tmp_path


def look(folder: Path, mode: str) -> list[str]:
    """Return what a command of a worker with a secret finds: how often it sees it, and its environment."""
    command = [sys.executable, "-c", WORKER, SECRET, mode, str(folder)]
    environment = {"PATH": os.environ["PATH"], "DEPLOY_KEY": SECRET}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    code, out, err = json.loads(ran.stdout)
    assert code == 0, err
    return out.splitlines()


def test_command_finds_no_secret_of_its_worker(folder: Path) -> None:
    found = look(folder, "hidden")
    assert found[0] == "0"
    assert {line.partition("=")[0] for line in found[1:]} >= {"HOME", "PATH"}
    assert SECRET not in "\n".join(found)


@pytest.mark.skipif(os.geteuid() == 0, reason="root's commands run as another user")
def test_worker_that_does_not_hide_is_readable(folder: Path) -> None:
    assert look(folder, "open")[0] != "0", "the test of hiding shows nothing"


async def test_command_has_no_rights(folder: Path) -> None:
    shell = Shell(("/bin/sh", "-c"), 16_000, {"PATH": "/usr/bin:/bin", "API_TOKEN": SECRET})
    line = "id -u; id -G; grep -E '^(NoNewPrivs|CapEff|CapPrm|CapInh)' /proc/self/status; env"
    ran = await shell.run(line, folder, 30, View(folder, writable=True, confinement="container"))
    told = ran.stdout.splitlines()
    assert told[0] == str(NOBODY if os.geteuid() == 0 else os.geteuid())
    assert {line.split()[1].strip("0") for line in told if line.startswith("Cap")} == {""}
    assert "NoNewPrivs:\t1" in told
    assert SECRET not in ran.stdout


async def test_read_only_command_still_needs_a_mount(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    hide_landlock(monkeypatch)
    with pytest.raises(SandboxRefused, match="bubblewrap is not installed"), View(folder).confine({}):
        pass


def test_generated_tests_run_with_the_same_limits(folder: Path) -> None:
    line = ["/bin/sh", "-c", f"echo {SECRET}x | sed s/{SECRET}//; env; id -u"]
    given = {"PATH": "/usr/bin:/bin", "API_TOKEN": SECRET}
    code, told = run_confined(line, View(folder, writable=True), given, 30, confinement="container")
    assert (code, told.splitlines()[0]) == (0, "x")
    assert SECRET not in told
    assert told.splitlines()[-1] == str(NOBODY if os.geteuid() == 0 else os.geteuid())


async def test_missing_setpriv_refuses_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fireswarm.processes.confinement.container.SETPRIV", str(folder / "none"))
    with pytest.raises(SandboxRefused, match="container` needs Linux"):
        await Shell(("/bin/sh", "-c")).run("true", folder, 30, View(folder, writable=True, confinement="container"))
