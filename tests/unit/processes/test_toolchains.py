"""What a project needs works in the view of commands without a setting; a failure by the confinement says so."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest

from fireswarm.errors import SandboxRefused
from fireswarm.mind.commands.hints import describe_limit
from fireswarm.processes.confinement.view import GIT_FILE, View
from fireswarm.processes.git import git_identity
from fireswarm.processes.shell import Shell
from tests.support.patience import PATIENCE_SECONDS

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="commands are confined on Linux"),
    pytest.mark.usefixtures("rung"),
]

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
SHELL = Shell(("/bin/bash", "-c"), 16_000, ENVIRONMENT)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a git identity, toolchains and secrets."""
    folder = tmp_path / "home"
    for name in (".nvm/versions/node/v1/bin", ".cargo/bin", ".cargo/registry", ".rustup"):
        (folder / name).mkdir(parents=True)
    node = folder / ".nvm/versions/node/v1/bin/node"
    node.write_text("#!/bin/sh\ncat $NVM_DIR/versions/node/v1/lib.txt\n")
    node.chmod(0o755)
    (folder / ".nvm/versions/node/v1/lib.txt").write_text("lib of node\n")
    (folder / ".cargo" / "credentials.toml").write_text("sesame-4711")
    (folder / ".gitconfig").write_text(
        '[user]\n\tname = Ada \\"A\\" L\n\temail = ada@example.org\n[core]\n\tpager = ./x\n'
    )
    (folder / ".git-credentials").write_text("sesame-4711")
    monkeypatch.setenv("HOME", str(folder))
    for name in ("GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    git_identity.cache_clear()
    return folder


@pytest.fixture
def project(home: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    try:
        View(folder).check()
    except SandboxRefused as error:
        pytest.skip(str(error))
    return folder


async def run(line: str, view: View, **more: str) -> tuple[int, str]:
    shell = Shell(("/bin/bash", "-c"), 16_000, ENVIRONMENT | more)
    ran = await shell.run(line, view.workspace, PATIENCE_SECONDS, view)
    return ran.exit_code, ran.stdout + ran.stderr


async def test_tests_run_in_the_environment_of_the_project(project: Path) -> None:
    await anyio.run_process([sys.executable, "-m", "venv", "--without-pip", str(project / ".venv")])
    (project / "test_a.py").write_text("import unittest\nclass A(unittest.TestCase):\n    def test(self): pass\n")
    for writable in (True, False):
        code, told = await run(".venv/bin/python -m unittest test_a", View(project, writable))
        assert (code, "OK" in told) == (0, True), told


async def test_commit_has_the_name_and_address_of_the_user_and_nothing_else_of_the_settings(project: Path) -> None:
    await anyio.run_process(["git", "init", "-q", "."], cwd=project)
    (project / "a").write_text("a")
    view = View(project, writable=True, files={GIT_FILE: git_identity()})
    line = "git add a && git commit -qm x && git log -1 --format='%an <%ae>' && git config core.pager"
    assert (await run(line, view))[1].strip() == 'Ada "A" L <ada@example.org>'
    await anyio.run_process(["git", "config", "user.name", "Own"], cwd=project)
    told = await run("git commit -q --allow-empty -m y && git log -1 --format=%an", view)
    assert told == (0, "Own\n"), "the repository's own name wins"


async def test_toolchains_of_the_home_are_seen_without_secrets(project: Path, home: Path) -> None:
    path = f"{home}/.nvm/versions/node/v1/bin:/usr/bin:/bin"
    assert await run("node", View(project), PATH=path) == (0, "lib of node\n")
    line = f"echo $CARGO_HOME; cat {home}/.cargo/credentials.toml {home}/.git-credentials {home}/.gitconfig"
    told = (await run(line, View(project, writable=True)))[1]
    assert told.startswith(str(home / ".cargo")) and "sesame" not in told and "Ada" not in told


@pytest.mark.parametrize(
    ("line", "writable", "hint"),
    [
        ("cat /srv/data/x.csv", True, "the operator can add /srv/data/x.csv to `runtime.readable`"),
        ("echo 'Could not resolve host: example.org' >&2; exit 6", True, "`runtime.network: true` allows it"),
        ("echo 'No matching distribution found for x' >&2; exit 1", False, "a read-only command never has one"),
        ("secret-tool", True, "is not in the view of commands"),
        ("cat nothing", True, ""),
        ("cat /usr/share/nothing", True, ""),
        ("false", True, ""),
    ],
)
async def test_failure_by_the_confinement_says_what_would_allow_it(
    line: str, writable: bool, hint: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "secret-tool").write_text("#!/bin/sh\n")
    (tmp_path / "own" / "secret-tool").chmod(0o755)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{tmp_path}/own")
    view = View(project, writable)
    ran = await SHELL.run(line, project, PATIENCE_SECONDS, view)
    told = describe_limit(view, ran)
    assert hint in told and bool(told) == bool(hint), (told, ran)
