"""Run the node's tests and look over its code. What comes of it is a fact, not a failure: the pipeline decides."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from fireswarm import Signal, SkillRequest, SkillResult, pipelines, truncate

MAX_LOG_CHARS = 60_000
LINT_SECONDS = 60.0
TIMED_OUT = 124
KEPT = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT")
"""Of the environment: generated code sees no keys."""

_CHANGING = re.compile(r" in \d+\.\d+s\b|0x[0-9a-f]{6,}")
"""Parts of the tests' output that differ from run to run."""


def run(request: SkillRequest) -> SkillResult:
    """``validation_logs.txt`` and ``validation.json``."""
    found = find_spec("pytest")
    if found is None or found.origin is None:
        told = "the generated tests run under pytest: pip install 'fireswarm[pipeline]'"
        return SkillResult.failure(told)
    carried = pipelines.Carried.of(request)
    files = carried.tree(pipelines.PROJECT)
    faults = [fault for path, text in files.items() for fault in pipelines.code_faults(path, text)]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "project"
        (Path(place) / "tmp").mkdir()
        pipelines.lay_out(files, folder)
        libraries = str(Path(found.origin).parents[1])
        kept_in = pipelines.confinement_prefix(Path(place), libraries)
        command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "tests"]
        code, told = _ran([*kept_in, *command], folder, request.limits.default_timeout_seconds, libraries)
        faults += _linted(folder)
    passed = code == 0 and not faults
    how = "without a network, with no files but its own" if kept_in else "not kept in: bwrap is missing or cannot"
    log = "\n".join(["# code", *(faults or ["no faults"]), "", f"# pytest, {how}", told, ""])
    carried.write("validation_logs.txt", log[-MAX_LOG_CHARS:], "passed" if passed else "failed")
    last = next((line for line in reversed(told.splitlines()) if line.strip()), "no output").strip("= ")
    result = {"passed": passed, "pytest_exit_code": code, "pytest": last, "faults": faults}
    carried.write_json("validation.json", result)
    signal = Signal(name="validation", strength=1.0 if passed else 0.0, note=last)
    told = f"{'passed' if passed else 'failed'}: {last}"
    return SkillResult(summary=truncate(told), artifacts=carried.artifacts(), signals=(signal,), confidence=1.0)


def _ran(command: list[str], folder: Path, seconds: float, *libraries: str) -> tuple[int, str]:
    """Exit code and output of *command*, ended after *seconds* with all that it started."""
    environment = {name: value for name, value in os.environ.items() if name in KEPT}
    environment |= {
        "PYTHONPATH": os.pathsep.join((str(folder), *libraries)),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environment["TMPDIR"] = environment["HOME"] = str(folder.parent / "tmp")
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # other installed plugins do not belong to the node
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            told, _ = process.communicate(timeout=seconds)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            told, _ = process.communicate()
            code, told = TIMED_OUT, f"{told}\nended after {seconds:g} s"
    return code, _CHANGING.sub("", told.replace(str(folder), "."))


def _linted(folder: Path) -> list[str]:
    """Return ruff's errors and unused names; empty if ruff is not installed."""
    if find_spec("ruff") is None:
        return []
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", "E9,F", "--output-format"]
    _, told = _ran([*command, "concise", "."], folder, LINT_SECONDS)
    return [line for line in told.splitlines() if re.match(r"\S+:\d+:\d+: ", line)]
