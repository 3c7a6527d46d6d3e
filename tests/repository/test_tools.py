"""Developer tools: `make bench` finds its benchmarks, and tools/emulator.py starts the emulator."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tools import emulator

ROOT = Path(__file__).resolve().parents[2]

# ── make bench ────────────────────────────────────────────────────────────────────────────────────────


def test_make_bench_starts_each_benchmark_as_a_module() -> None:
    command = ["make", "--no-print-directory", "--old-file=.venv/.ready-dev", "bench", "PY=echo"]
    started = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    benchmarks = sorted(path.stem for path in (ROOT / "benchmarks").glob("*_bench.py"))
    assert started == [f"-m benchmarks.{name}" for name in benchmarks]
    for name in benchmarks:  # as a module from the repository's folder, which is also where pytest looks
        assert importlib.import_module(f"benchmarks.{name}").__name__ == f"benchmarks.{name}"


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ([], ""),
        (["MODEL=claude-sonnet-4-5"], " --model claude-sonnet-4-5"),
        (
            ["MODEL=a b", "PROVIDER=openai", "AGENT_TASKS=--runs 3 --task add-flag"],
            " --model a b --provider openai --runs 3 --task add-flag",
        ),
    ],
)
def test_make_bench_agent_passes_the_model_on(given: list[str], options: str) -> None:
    command = ["make", "--no-print-directory", "--old-file=.venv/.ready-dev", "bench-agent", "PY=echo", *given]
    started = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert started.split() == f"-m benchmarks.agent_tasks{options}".split()


def test_make_bench_team_passes_the_model_on() -> None:
    given = ["MODEL=a b", "PROVIDER=openai", "TEAM_TASKS=--runs 3"]
    command = ["make", "--no-print-directory", "--old-file=.venv/.ready-dev", "bench-team", "PY=echo", *given]
    started = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert started.strip() == "-m benchmarks.team_tasks --model a b --provider openai --runs 3"


# ── tools/emulator.py ─────────────────────────────────────────────────────────────────────────────────

JAVA = """#!/bin/sh
if [ "$1" = -version ]; then echo '{version}' >&2; exit 0; fi
echo "$@" > "$ARGUMENTS"
echo '{output}'
exec cat
"""
RUNNING = "[main] INFO: Dev App Server is now running."


def run_emulator(
    folder: Path, *arguments: str, version: str | None = 'openjdk version "17.0.15"', output: str = RUNNING
) -> subprocess.CompletedProcess[str]:
    """Run the script with a java of *version* (None: no java) that prints *output* and serves nothing."""
    folder.mkdir()
    for name in ("sh", "cat", "echo"):
        (folder / name).symlink_to(str(shutil.which(name)))
    if version is not None:
        (folder / "java").write_text(JAVA.format(version=version, output=output))
        (folder / "java").chmod(0o755)
    (folder / "emulator.jar").touch()
    environment = {
        "PATH": str(folder),
        "HOME": str(folder),
        "FIRESTORE_EMULATOR_JAR": str(folder / "emulator.jar"),
        "ARGUMENTS": str(folder / "arguments.txt"),
    }
    command = [sys.executable, str(ROOT / "tools" / "emulator.py"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("version", "output", "message"),
    [
        (None, RUNNING, "java is not installed"),
        ('openjdk version "11.0.20" 2023-07-18', RUNNING, "this is Java 11"),
        ('java version "1.8.0_402"', RUNNING, "this is Java 8"),
        ("no runtime present", RUNNING, "does not name its version: no runtime present"),
    ],
)
def test_emulator_script_names_what_is_missing(tmp_path: Path, version: str | None, output: str, message: str) -> None:
    ended = run_emulator(tmp_path / "bin", "echo", "reached", version=version, output=output)
    assert (ended.returncode, ended.stdout) == (emulator.NOT_AVAILABLE, "")
    assert message in ended.stderr


def test_emulator_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulator, "candidates", lambda: iter([Path("/nonexistent/emulator.jar")]))
    with pytest.raises(emulator.NotAvailable, match="gcloud components install cloud-firestore-emulator"):
        emulator.find_jar()


def test_emulator_script_passes_the_command_and_its_exit_code_on(tmp_path: Path) -> None:
    script = 'echo "$FIRESTORE_EMULATOR_HOST|$*"; exit 7'
    ended = run_emulator(
        tmp_path / "bin", "--rules", "a b.rules", "sh", "-c", script, "name", "two words", "it's", "$HOME"
    )
    assert ended.returncode == 7, ended.stderr
    address, given = ended.stdout.strip().split("|")
    assert address.startswith("127.0.0.1:") and given == "two words it's $HOME"
    arguments = (tmp_path / "bin" / "arguments.txt").read_text()
    assert "--host=127.0.0.1" in arguments and "--rules=a b.rules" in arguments


def test_emulator_script_without_a_command_shows_its_usage(tmp_path: Path) -> None:
    ended = run_emulator(tmp_path / "bin")
    assert (ended.returncode, "usage:" in ended.stderr) == (2, True)
