"""The workflow files run what this repository has, say that they have not run, and their linter finds faults."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PROGRAMS = Path(sys.executable).parent


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run zizmor as the Makefile does."""
    [line] = re.findall(r"^\t@\.venv/bin/zizmor (.*)$", (ROOT / "Makefile").read_text(), re.M)
    command = [str(PROGRAMS / "zizmor"), *line.split()]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def steps(workflow: Path) -> list[str]:
    jobs: dict[str, Any] = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]
    return [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("file", [*WORKFLOWS, GITHUB / "dependabot.yml"], ids=lambda file: file.name)
def test_each_file_says_first_that_it_has_not_run(file: Path) -> None:
    assert file.read_text(encoding="utf-8").startswith("# Not run on a forge yet.")


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.name)
def test_targets_and_scripts_of_a_workflow_exist(workflow: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    text = "\n".join(steps(workflow))
    assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= targets
    assert all((ROOT / script).exists() for script in re.findall(r"^\.ci/\S+", text, re.M))


def test_tests_run_on_each_supported_python_and_on_two_systems() -> None:
    matrix = yaml.safe_load((GITHUB / "workflows" / "tests.yml").read_text())["jobs"]["versions"]["strategy"]["matrix"]
    assert matrix["python"] == ["3.12", "3.13", "3.14"]
    assert {system.split("-")[0] for system in matrix["system"]} == {"ubuntu", "macos"}


def test_only_publishing_and_pages_may_write_anything() -> None:
    writing = {
        (workflow.stem, name): set(job["permissions"])
        for workflow in WORKFLOWS
        for name, job in yaml.safe_load(workflow.read_text())["jobs"].items()
        if "write" in job["permissions"].values()
    }
    assert writing == {("docs", "deploy"): {"pages", "id-token"}, ("publish", "publish"): {"id-token"}}


def test_linter_passes_these_files() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("permissions: {}\n", "permissions: write-all\n"),
        ("        with:\n          persist-credentials: false\n", ""),
        ('run: make chaos CHAOS="--seed $SEED"', 'run: make chaos CHAOS="${{ github.head_ref }}"'),
        ("uses: actions/checkout@v4", "uses: actions/checkout"),
        ("    steps:\n", "    stages:\n"),
    ],
)
def test_linter_finds_a_fault(tmp_path: Path, right: str, wrong: str) -> None:
    shutil.copytree(GITHUB, tmp_path / ".github")
    file = tmp_path / ".github" / "workflows" / "chaos.yml"
    text = file.read_text(encoding="utf-8")
    assert right in text
    file.write_text(text.replace(right, wrong, 1), encoding="utf-8")
    assert lint(tmp_path).returncode != 0
