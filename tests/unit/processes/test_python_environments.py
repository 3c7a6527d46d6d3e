"""Confined commands find the packages of the Python environment that the caller has activated, and no more."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fireswarm.processes.confinement.mounts import python_environment
from fireswarm.processes.confinement.view import View
from tests.unit.processes.test_view import ENVIRONMENT, SECRET, SHELL, works

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap runs on Linux")]


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A virtual environment of another folder, with one package."""
    if reason := works(tmp_path):
        pytest.skip(reason)
    folder = tmp_path / "envs" / "project"
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    subprocess.run([str(base), "-m", "venv", "--without-pip", str(folder)], check=True)
    [packages] = folder.glob("lib/python3*/site-packages")
    (packages / "only_here.py").write_text("print('found it')\n")
    (folder.parent / "secret.txt").write_text(SECRET)
    return folder


@pytest.mark.parametrize("writable", [False, True])
async def test_packages_of_the_activated_environment_are_found(
    tmp_path: Path, environment: Path, writable: bool
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    shell = replace(SHELL, environment=ENVIRONMENT | {"PATH": f"{environment / 'bin'}:/usr/bin:/bin"})
    line = f"python3 -c 'import only_here, sys; print(sys.prefix)'; ls {environment.parent}; touch {environment}/x"
    ran = await shell.run(line, workspace, 20, View(workspace, writable))
    assert ran.stdout.splitlines() == ["found it", str(environment), "project"]
    assert "Read-only file system" in ran.stderr


def test_environment_and_its_python_are_readable(tmp_path: Path) -> None:
    python, folder = tmp_path / "pythons" / "3.12", tmp_path / "a" / "env"
    (python / "lib" / "python3.12").mkdir(parents=True)
    folder.mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text(f"include-system-site-packages = false\nhome = {python}/bin\nversion = 3.12\n")
    assert python_environment(folder) == [folder, python]
    (folder / "pyvenv.cfg").write_text("home = /etc/ssl/bin\n")
    assert python_environment(folder) == [folder], "a folder without a Python is not made readable"
    (folder / "pyvenv.cfg").write_bytes(b"\xff\x00" * 100_000)
    assert python_environment(folder) == [folder]


def test_folder_that_holds_more_than_an_environment_is_not_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "ada"))
    for folder in (tmp_path / "home" / "ada", tmp_path / "home", tmp_path):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
        assert folder not in python_environment(folder)
    assert python_environment(Path("/home/bob")) == python_environment(Path("/")) == []
    conda = tmp_path / "conda"
    (conda / "conda-meta").mkdir(parents=True)
    assert python_environment(conda) == [conda]
    assert python_environment(tmp_path / "nothing") == []
