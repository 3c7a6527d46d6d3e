"""A command ends without a traceback: interrupted at any moment, with a full or closed output, on an ASCII terminal."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fleet import environment, lay_out
from tests.support.patience import PATIENCE_SECONDS
from tests.support.swarm_command import swarm

INTERRUPT = """
import importlib.abc, os, signal, sys
class Interrupt(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.argv[0] = "command"
from fireswarm.cli import {entry}
{entry}()
"""
"""Runs a command that gets SIGINT at the import of a module."""

EARLY = [
    "fireswarm.cli.streams",
    "fireswarm.processes.startup",
    "gc",
    "typer",
    "fireswarm.cli.shared.errors",
    "rich.console",
    "pydantic_core",
]
SWARM = [*EARLY, "anyio._backends._asyncio", "uvloop", "firelite.database", "google.cloud.firestore_v1", "grpc"]
AGENT = [*EARLY, "fireswarm.cli.agent.run", "fireswarm.settings", "fireswarm.mind.mind", "anyio._backends._asyncio"]

ASCII = [
    {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LANG": "C", "LC_ALL": "C"},
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "latin-1:strict"},
]
OUTPUTS = [
    "tasks", "show {task}", "doctor", "submit 'Prüfe … €' --role scout", "tasks --status nö", "no-such-command ü",
    "tasks --root ü", "store backup ü.backup --overwrite",
]  # fmt: skip


def run(folder: Path, line: str, *, shell: str = "{}", **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command line in a shell; *shell* is what is around it."""
    whole = shell.format(f"{sys.executable} -m fireswarm.cli {line}")
    return subprocess.run(
        ["/bin/bash", "-c", whole],
        cwd=folder,
        env=environment() | env,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        check=False,
    )


def interrupted(module: str, entry: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command that gets SIGINT at the import of *module*."""
    code = INTERRUPT.format(module=module, entry=entry)
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        stdin=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a shell may have ignored it
        check=False,
    )


@pytest.mark.parametrize("module", SWARM)
def test_swarm_that_is_interrupted_during_an_import_ends_silently(module: str, tmp_path: Path) -> None:
    lay_out(tmp_path, {}, settings={})
    done = interrupted(module, "swarm_command", tmp_path, "submit", "a task")
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.parametrize("module", AGENT)
def test_agent_that_is_interrupted_during_an_import_ends_silently(module: str, tmp_path: Path) -> None:
    (tmp_path / "answers.json").write_text("[]")
    arguments = ("run", "a task", "--provider", "scripted", "--script", "answers.json")
    done = interrupted(module, "agent_command", tmp_path, *arguments)
    assert (done.returncode, done.stderr) == (130, "")


LOST_IN_DEL = """
import os, signal, sys
from fireswarm.processes.startup import stop_on_interrupt
class Lost:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        sum(range(1_000))
stop_on_interrupt()
lost = Lost()
del lost
print("goes on")
"""


def test_interrupt_where_python_ignores_exceptions_ends_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", LOST_IN_DEL], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_caller_that_ignores_sigint_is_respected() -> None:
    code = LOST_IN_DEL.replace("class Lost", "signal.signal(signal.SIGINT, signal.SIG_IGN)\nclass Lost")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "goes on\n")


@pytest.fixture
def busy(tmp_path: Path) -> tuple[Path, str]:
    """A folder with a task whose texts are not ASCII, and its id."""
    folder = tmp_path / "Büro Ö"
    folder.mkdir()
    lay_out(folder, {}, settings={})
    done = swarm(folder, "submit", "Büro … → “€” 漢字", "--role", "scout")
    return folder, done.stdout.split()[-1]


@pytest.mark.parametrize("env", ASCII, ids=lambda env: " ".join(f"{name}={value}" for name, value in env.items()))
def test_every_output_can_be_printed_in_an_encoding_without_its_characters(
    env: dict[str, str], busy: tuple[Path, str]
) -> None:
    folder, task = busy
    for line in OUTPUTS if env is ASCII[0] else OUTPUTS[1:5]:
        done = run(folder, line.format(task=task[:8]), **env)
        assert "Traceback" not in done.stderr, f"{line}\n{done.stderr}"
        assert done.returncode in (0, 1, 2), line


def test_characters_have_plain_forms_on_an_ascii_terminal(busy: tuple[Path, str]) -> None:
    folder, task = busy
    assert 'B?ro ... -> "?" ??' in run(folder, f"show {task}", PYTHONIOENCODING="ascii").stdout
    assert '"B\\u00fcro \\u2026' in run(folder, "tasks --json", PYTHONIOENCODING="ascii").stdout
    assert "Büro … → “€” 漢字" in run(folder, f"show {task}", PYTHONIOENCODING="utf-8").stdout


def test_texts_and_folders_are_read_as_utf8_in_an_ascii_locale(busy: tuple[Path, str]) -> None:
    folder, _ = busy
    assert run(folder, "submit Prüfung --role memory", **ASCII[0]).returncode == 0
    assert "Prüfung" in swarm(folder, "tasks", "--json").stdout


@pytest.mark.parametrize("line", ["tasks", "tasks --json", "--help", "doctor"])
def test_full_output_is_one_line_of_error(line: str, busy: tuple[Path, str]) -> None:
    done = run(busy[0], line, shell="{} > /dev/full")
    assert done.returncode == 1
    assert done.stderr == "error (error): standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize("line", ["tasks", "--help", "no-such"])
@pytest.mark.parametrize("reader", ["{} | true", "{} | head -1", "{} 2>&1 | true", "{} >&-", "{} 2>&-"])
def test_reader_that_ends_early_is_no_error(line: str, reader: str, busy: tuple[Path, str]) -> None:
    done = run(busy[0], line, shell=f"set -o pipefail; {reader}")
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert "rror (" not in done.stderr
    assert done.returncode in (0, 1, 2)


def test_exit_code_of_a_command_is_kept(tmp_path: Path) -> None:
    assert run(tmp_path, "tasks --root nowhere").returncode == 1
    assert run(tmp_path, "no-such-command").returncode == 2
