"""Run the node's tests and check its code.

Failing tests are a result, not a failed step: the pipeline decides what follows.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fireswarm import Signal, SkillRequest, SkillResult, count_noun, errors, install_command, pipelines, truncate

from . import judge, mutants, report, results

MAX_LOG_CHARS = 60_000
RESULTS = "results.xml"
LINT_SECONDS = 60.0
MAX_DIFFERENCES = 100

_CHANGING = re.compile(r" in \d+\.\d+s\b|0x[0-9a-f]{6,}")
"""Parts of the tests' output that differ from run to run."""


def run(request: SkillRequest) -> SkillResult:
    """Return ``validation_logs.txt`` and ``validation.json``."""
    found = find_spec("pytest")
    if found is None or found.origin is None:
        told = f"the generated tests run under pytest: {install_command('pipeline')}"
        return SkillResult.failure(told)
    carried = pipelines.Carried.of(request)
    files = carried.tree(pipelines.PROJECT)
    expected = judge.read_expected(files)
    faults = [fault for path, text in files.items() for fault in pipelines.code_faults(path, text)]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "project"
        pipelines.lay_out(files, folder)
        try:
            code, told = _test(folder, str(Path(found.origin).parents[1]), request)
            outcomes = results.read_outcomes(folder / RESULTS)
            bounds = request.limits.default_timeout_seconds, request.limits.confinement
            replayed = judge.replay(files, expected, Path(place) / "replayed", *bounds)
            faults += [*_linted(folder), *_untested(files, expected, outcomes)]
            faults += [f"{name}: {why}" for name, why in replayed.items() if why][:MAX_DIFFERENCES]
            is_right = code == 0 and not faults
            changed = mutants.count_killed(files, expected, Path(place) / "changed", *bounds) if is_right else None
        except errors.SandboxRefused as refused:
            unless = "only the operator can allow them unconfined (`backbone.confinement: none`)"
            raise errors.SandboxRefused(f"the generated tests were not run: {refused}; {unless}") from refused
    faults += mutants.list_faults(changed)
    outcomes = {name: passed and not replayed.get(name, "") for name, passed in outcomes.items()}
    passed = code == 0 and not faults
    confined = request.limits.confinement not in ("container", "none")
    how = "with no files but its own" if confined else "not confined, as the operator said"
    log = "\n".join(["# code", *(faults or ["no faults"]), "", f"# pytest, {how}", told, ""])
    carried.write("validation_logs.txt", log[-MAX_LOG_CHARS:], "passed" if passed else "failed")
    last = next((line for line in reversed(told.splitlines()) if line.strip()), "no output").strip("= ")
    result: dict[str, Any] = {"passed": passed, "pytest_exit_code": code, "pytest": last, "faults": faults}
    result |= {"mutants": changed} if changed else {}
    carried.write_json("validation.json", result)
    if "node_schema.json" in carried:
        port = report.make_report(carried, outcomes, changed)
        carried.write_json("port_report.json", port)
        carried.write("port_report.html", report.render_html(port, last), "what is proven by replay, and what is not")
    signal = Signal(name="validation", strength=1.0 if passed else 0.0, note=last)
    told = f"{'passed' if passed else 'failed'}: {last}"
    return SkillResult(summary=truncate(told), artifacts=carried.artifacts(), signals=(signal,), confidence=1.0)


def _untested(files: Mapping[str, str], expected: list[judge.Expected], outcomes: Mapping[str, bool]) -> list[str]:
    """Return what pytest's list of results lacks, or did not pass: the exit code of its process proves nothing."""
    cases = {name.partition("[")[0] for name in outcomes}
    names = [each.test for each in expected if each.kind != "told"]
    silent = [name for name in names if name not in outcomes]
    silent += [name for name in judge.test_functions(files) if name not in cases]
    failed = [name for name, passed in outcomes.items() if not passed]
    faults = [f"{count_noun(len(silent), 'test')} left no result, such as {silent[0]}"] if silent else []
    faults += [f"{count_noun(len(failed), 'test')} failed or was left out, such as {failed[0]}"] if failed else []
    return faults if outcomes else ["pytest left no results", *faults]


def _test(folder: Path, libraries: str, request: SkillRequest) -> tuple[int, str]:
    """Return exit code and output of the tests, which can change only *folder* and have no network."""
    environment = judge.environment() | {
        "PYTHONPATH": os.pathsep.join((str(folder), libraries)),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # other installed plugins do not belong to the node
    }
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"]
    command += [f"--junitxml={folder / RESULTS}", "tests"]
    view = pipelines.View(folder, writable=True, readable=(Path(libraries),), protects=False)
    seconds, confinement = request.limits.default_timeout_seconds, request.limits.confinement
    code, told = pipelines.run_confined(command, view, environment, seconds, confinement=confinement)
    return code, _CHANGING.sub("", told.replace(str(folder), "."))


def _linted(folder: Path) -> list[str]:
    """Return ruff's errors and unused names; empty if ruff is not installed."""
    if find_spec("ruff") is None:
        return []
    command = [sys.executable, "-I", "-m", "ruff"]  # -I: the project may hold a module of that name
    command += ["check", "--isolated", "--no-cache", "--select", "E9,F", "--output-format"]
    ran = subprocess.run(
        [*command, "concise", "."], cwd=folder, capture_output=True, text=True, timeout=LINT_SECONDS, check=False
    )
    return [line for line in ran.stdout.splitlines() if re.match(r"\S+:\d+:\d+: ", line)]
