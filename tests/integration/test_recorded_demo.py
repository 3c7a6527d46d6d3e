"""`swarm demo --recorded`: five role processes repair a sample project; a recording that does not fit is told."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fireswarm.cli.demo import recorded
from fireswarm.cli.demo.demonstrate import HOUSE
from fireswarm.contracts.swarm.task import TaskStatus
from tests.support.fleet import environment

SAMPLE = Path(__file__).parents[2] / "samples" / "rounding"


def demo(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fireswarm.cli", "demo", "--recorded", *options]
    given = {**environment(), "TMPDIR": str(folder), "COLUMNS": "100"}
    return subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=120)


def is_repaired(project: Path) -> bool:
    command = [sys.executable, "-B", "-m", "unittest", "-q"]
    return subprocess.run(command, cwd=project, capture_output=True).returncode == 0


def test_five_roles_repair_the_sample_project(tmp_path: Path) -> None:
    assert not is_repaired(SAMPLE / "project"), "the sample has a fault to repair"
    done = demo(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No model is called" in done.stdout
    for role in HOUSE:
        assert len(re.findall(rf"(?m)^{role}$", done.stdout)) >= 1, role
    told = re.findall(r"(?m)^• (\w+)", done.stdout)
    assert told.count("delegate") == 4, "what a run repeats when it goes on is not told again"
    assert {"run_command", "read_file", "edit_file", "ask_user"} <= set(told)
    assert "architect asks: How is half a cent rounded" in done.stdout
    assert "+    return float(exact.quantize" in done.stdout
    [project] = tmp_path.glob("fireswarm-recorded-*/project")
    assert str(project) in done.stdout
    assert is_repaired(project)
    assert sorted(path.name for path in tmp_path.iterdir()) == [project.parent.name], "nothing else was written"


def test_recording_that_no_longer_fits_makes_no_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = tmp_path / "samples" / "rounding"
    shutil.copytree(SAMPLE, sample)
    tests = sample / "project" / "test_prices.py"
    tests.write_text(tests.read_text().replace("5.36", "5.35").replace("22.62", "22.60"))
    monkeypatch.setattr(recorded, "packaged_path", tmp_path.joinpath)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert recorded.run_recorded() == 1
    told = capsys.readouterr().out
    assert "does not fit" in told
    assert "pass again" not in told
    assert TaskStatus.DONE.value not in told.splitlines()[-1]


def test_recorded_demo_refuses_options_that_it_would_not_use(tmp_path: Path) -> None:
    for options in (["--think"], ["notes"], ["--objective", "something else"]):
        refused = demo(tmp_path, *options)
        assert refused.returncode == 1
        assert "omit the other options" in refused.stderr
