"""Run the node's tests and check its code.

Failing tests are a result, not a failed step: the pipeline decides what follows.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from fireswarm import Signal, SkillRequest, SkillResult, count_noun, errors, install_command, pipelines, truncate

from . import report, results

MAX_LOG_CHARS = 60_000
RESULTS = "results.xml"
LINT_SECONDS = 60.0
KEPT = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT")
"""Environment variables that are passed to the tests: generated code gets no keys."""

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
    expected = _expected(carried)
    faults = [fault for path, text in files.items() for fault in pipelines.code_faults(path, text)]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "project"
        pipelines.lay_out(files, folder)
        try:
            code, told = _test(folder, str(Path(found.origin).parents[1]), request)
            outcomes = results.read_outcomes(folder / RESULTS)
        except errors.SandboxRefused as refused:
            unless = "only the operator can allow them unconfined (`backbone.confinement: none`)"
            raise errors.SandboxRefused(f"the generated tests were not run: {refused}; {unless}") from refused
        faults += _linted(folder)
    if silent := [name for name in expected if name not in outcomes]:
        faults.append(f"{count_noun(len(silent), 'input')} not tested, such as {silent[0]}")
    passed = code == 0 and not faults
    confined = request.limits.confinement not in ("container", "none")
    how = "with no files but its own" if confined else "not confined, as the operator said"
    log = "\n".join(["# code", *(faults or ["no faults"]), "", f"# pytest, {how}", told, ""])
    carried.write("validation_logs.txt", log[-MAX_LOG_CHARS:], "passed" if passed else "failed")
    last = next((line for line in reversed(told.splitlines()) if line.strip()), "no output").strip("= ")
    result = {"passed": passed, "pytest_exit_code": code, "pytest": last, "faults": faults}
    carried.write_json("validation.json", result)
    if "node_schema.json" in carried:
        port = report.make_report(carried, outcomes)
        carried.write_json("port_report.json", port)
        carried.write("port_report.html", report.render_html(port, last), "what is proven by replay, and what is not")
    signal = Signal(name="validation", strength=1.0 if passed else 0.0, note=last)
    told = f"{'passed' if passed else 'failed'}: {last}"
    return SkillResult(summary=truncate(told), artifacts=carried.artifacts(), signals=(signal,), confidence=1.0)


def _expected(carried: pipelines.Carried) -> list[str]:
    """Return the names of the tests of recorded inputs, and of those of a document."""
    names = carried.names(f"{pipelines.PROJECT}tests/")
    kinds = (("_recorded.json", results.REPLAY), ("_documented.json", results.DOCUMENTED))
    return [
        results.case_name(case["operation"], case["case"], test)
        for ending, test in kinds
        for name in names
        if name.endswith(ending)
        for case in carried.json(name)["cases"]
    ]


def _test(folder: Path, libraries: str, request: SkillRequest) -> tuple[int, str]:
    """Return exit code and output of the tests, which can change only *folder* and have no network."""
    environment = {name: value for name, value in os.environ.items() if name in KEPT}
    environment |= {
        "PYTHONPATH": os.pathsep.join((str(folder), libraries)),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
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
