"""code-validate runs generated tests in a separate folder; failures, hangs and faults are reported, not raised."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.skills.artifact import PIPELINE_FILE, Artifact
from fireswarm.contracts.skills.limits import BackboneSettings
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.errors import SandboxRefused
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.running.in_child import load_entry
from tests.support.confinement import hide_landlock, run_programs_of

FOLDER = packaged_path("skills") / "code-validate"


def validate(tmp_path: Path, limits: BackboneSettings | None = None, **files: str) -> tuple[dict[str, Any], str]:
    """Validate a project of *files* (double underscores mean slashes); return the result and the log."""
    artifacts = [Artifact(type=PIPELINE_FILE, name="request_snapshot.json", value="{}")]
    for name, text in files.items():
        artifacts.append(Artifact(type=PIPELINE_FILE, name=f"project/{name.replace('__', '/')}.py", value=text))
    request = SkillRequest(
        task_id="t",
        session_hash="s",
        objective="o",
        role="predictor",
        artifacts=tuple(artifacts),
        limits=limits or BackboneSettings(),
        workdir=tmp_path / "work",
        now=datetime(2026, 1, 1, tzinfo=UTC),
    )
    result: SkillResult = load_entry(FOLDER, Path("scripts/skill.py")).run(request)
    assert {artifact.name for artifact in result.artifacts} >= {"validation.json", "validation_logs.txt"}, (
        result.summary
    )
    left = tmp_path / "work"
    return json.loads((left / "validation.json").read_text()), (left / "validation_logs.txt").read_text()


def test_same_project_produces_the_same_log(tmp_path: Path) -> None:
    passes = "def test_it() -> None:\n    assert True\n"
    first = validate(tmp_path / "a", tests__test_x=passes)
    assert first == validate(tmp_path / "b", tests__test_x=passes)
    assert first[0] == {"passed": True, "pytest_exit_code": 0, "pytest": "1 passed", "faults": []}


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def test_it() -> None:\n    assert 1 == 2\n", "1 failed"),
        ("import os\n\n\ndef test_it() -> None:\n    assert 'ANTHROPIC_API_KEY' in os.environ\n", "1 failed"),
        ("def test_it() -> None:\n    assert undefined_name\n", "undefined_name"),
        ("async def test_it() -> None: ...\n", "async-code"),
        ("x = (\n", "never closed"),
    ],
)
def test_faults_are_reported(tmp_path: Path, code: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-the-role")
    result, log = validate(tmp_path, tests__test_x=code)
    assert result["passed"] is False and told in log


def test_tests_over_the_time_limit_are_killed(tmp_path: Path) -> None:
    hangs = "import subprocess\n\n\ndef test_it() -> None:\n    subprocess.run(['sleep', '61.7'], check=True)\n"
    result, log = validate(tmp_path, BackboneSettings(default_timeout_seconds=1.5), tests__test_x=hangs)
    assert (result["passed"], result["pytest_exit_code"]) == (False, 124) and "killed after 1.5 s" in log


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_generated_code_can_access_neither_the_network_nor_other_files(tmp_path: Path) -> None:
    outside, secret = tmp_path / "outside.txt", tmp_path / "secret.txt"
    secret.write_text("a key")
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = (
            "import socket\nfrom pathlib import Path\n\nimport pytest\n\n\n"
            "def test_it() -> None:\n"
            "    with pytest.raises(OSError):\n"
            f"        socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), timeout=5)\n"
            "    with pytest.raises(OSError):\n"
            f"        Path({str(outside)!r}).write_text('x')\n"
            "    with pytest.raises(OSError):\n"
            f"        Path({str(secret)!r}).read_text()\n"
            "    assert len(Path('/etc/passwd').read_text().splitlines()) == 2 and Path.home().is_dir()\n"
            "    assert list(Path('/proc/sys').iterdir()) == []\n"
        )
        result, log = validate(tmp_path, tests__test_x=code)
    assert result["passed"] is True and "with no files but its own" in log
    assert not outside.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="a program is a script")
@pytest.mark.parametrize("there", [False, True], ids=["missing", "refused by the kernel"])
def test_generated_tests_without_confinement_run_only_if_the_operator_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    if there:
        (programs / "bwrap").write_text("#!/bin/sh\nexit 1\n")
        (programs / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    run_programs_of(programs, monkeypatch)
    hide_landlock(monkeypatch)
    works = "def test_it() -> None:\n    assert 1 + 1 == 2\n"
    with pytest.raises(SandboxRefused, match="the generated tests were not run: bubblewrap"):
        validate(tmp_path, tests__test_x=works)
    result, log = validate(tmp_path, BackboneSettings(confinement="none"), tests__test_x=works)
    assert result["passed"] is True and "not confined, as the operator said" in log


MODULE = "import pathlib\n\npathlib.Path({marker!r}).write_text('ran')\n"


@pytest.mark.parametrize("made_by_a_test", [True, False])
def test_no_module_of_the_project_runs_outside_of_the_confinement(made_by_a_test: bool, tmp_path: Path) -> None:
    """The linter is started in the project's folder after the tests, which may leave files there."""
    pytest.importorskip("ruff")
    marker = tmp_path / "ran"
    code = MODULE.format(marker=str(marker))
    test = "import pathlib\n\n\ndef test_it() -> None:\n    assert True\n"
    if made_by_a_test:
        lines = ["    pathlib.Path('ruff').mkdir()"]
        lines += [f"    pathlib.Path('ruff/{name}.py').write_text({code!r})" for name in ("__init__", "__main__")]
        test = "import pathlib\n\n\ndef test_it() -> None:\n" + "\n".join(lines) + "\n"
        validate(tmp_path, tests__test_x=test)
    else:
        validate(tmp_path, tests__test_x=test, ruff=code, ruff__main__=code)
    assert not marker.exists()
