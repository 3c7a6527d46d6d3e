"""Developer tools: `make bench` finds its benchmarks, and tools/emulator.sh names missing programs."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

# ── make bench ────────────────────────────────────────────────────────────────────────────────────────


def test_make_bench_starts_each_benchmark_as_a_module() -> None:
    command = ["make", "--no-print-directory", "--old-file=.venv/.ready-dev", "bench", "PY=echo"]
    started = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    benchmarks = sorted(path.stem for path in (ROOT / "benchmarks").glob("*_bench.py"))
    assert started == [f"-m benchmarks.{name}" for name in benchmarks]
    for name in benchmarks:  # as a module from the repository's folder, which is also where pytest looks
        assert importlib.import_module(f"benchmarks.{name}").__name__ == f"benchmarks.{name}"


# ── tools/emulator.sh ─────────────────────────────────────────────────────────────────────────────────

NPX = """#!/bin/sh
while [ $# -gt 1 ]; do printf '%s\\n' "$1"; shift; done
FIRESTORE_EMULATOR_HOST=127.0.0.1:8080 exec /bin/sh -c "$1"
"""


def emulator(folder: Path, *arguments: str, java: str | None, tools: tuple[str, ...] = ("node", "npx")) -> Any:
    """Run the script with only the programs it needs, a fake java, and a fake npx that runs the command."""
    folder.mkdir()
    for name in ("sh", "sed", "head", "dirname"):
        (folder / name).symlink_to(str(shutil.which(name)))
    programs = {name: NPX for name in tools}
    if java is not None:
        programs["java"] = f"#!/bin/sh\necho '{java}' >&2\n"
    for name, content in programs.items():
        (folder / name).write_text(content)
        (folder / name).chmod(0o755)
    script = str(ROOT / "tools" / "emulator.sh")
    environment = {key: value for key, value in os.environ.items() if key != "FIRESTORE_EMULATOR_HOST"}
    return subprocess.run(
        [str(folder / "sh"), script, *arguments],
        env=environment | {"PATH": str(folder)},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("java", "tools", "said"),
    [
        (None, ("node", "npx"), "java is not installed"),
        ('openjdk version "17.0.15" 2025-04-15', ("node", "npx"), "this is Java 17"),
        ('java version "1.8.0_402"', ("node", "npx"), "this is Java 8"),
        ("no runtime present", ("node", "npx"), "does not say its version"),
        ('openjdk version "21.0.4" 2024-07-16', (), "node is not installed"),
        ('openjdk version "21.0.4" 2024-07-16', ("node",), "npx is not installed"),
    ],
)
def test_emulator_script_names_missing_programs(
    tmp_path: Path, java: str | None, tools: tuple[str, ...], said: str
) -> None:
    ended = emulator(tmp_path / "bin", "echo", "reached", java=java, tools=tools)
    assert ended.returncode == 1
    assert said in ended.stderr
    assert ended.stdout == ""


def test_emulator_script_passes_the_command_unchanged(tmp_path: Path) -> None:
    command = ("/bin/sh", "-c", 'printf "%s|" "$FIRESTORE_EMULATOR_HOST" "$@"', "name", "two words", "it's", "$HOME")
    ended = emulator(tmp_path / "bin", *command, java='openjdk version "25" 2025-09-16')
    assert ended.returncode == 0, ended.stderr
    *given, last = ended.stdout.splitlines()
    assert given == ["--yes", "firebase-tools", "emulators:exec", "--only", "firestore", "--project", "fireswarm-local"]
    assert last == "127.0.0.1:8080|two words|it's|$HOME|"


def test_emulator_script_without_a_command_shows_its_usage(tmp_path: Path) -> None:
    ended = emulator(tmp_path / "bin", java='openjdk version "21"')
    assert (ended.returncode, "usage:" in ended.stderr) == (2, True)
