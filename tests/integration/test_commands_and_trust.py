"""An edit of the settings that is not trusted yet hinders nobody who looks at the board or decides about a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from fireswarm.settings.trust import TrustedFiles
from tests.support.fleet import lay_out
from tests.support.swarm_command import swarm

TRUSTED = {"backbone": {"confinement": "none"}, "session": "trusted"}
READING = [
    "tasks", "show {task}", "runs", "agents", "mail", "memory", "cost", "store stats", "store backup copy",
    "store export documents",
]  # fmt: skip
ACTING = ["cancel {task}", "retry {task}", "answer {task} x=1", "approve {task} --question 1-1", "deny {task}"]


@pytest.fixture
def edited(tmp_path: Path) -> tuple[Path, str]:
    """A folder with a task, whose trusted settings were edited; and the task's id."""
    lay_out(tmp_path, {}, settings=TRUSTED)
    (tmp_path / "home").mkdir()
    file = tmp_path / "swarm.yaml"
    TrustedFiles(tmp_path / "home").add(file)
    done = swarm(tmp_path, "submit", "a task", "--role", "scout", HOME=str(tmp_path / "home"))
    file.write_text(f"{file.read_text()}budget: {{usd_per_task: 2}}\nstore: {{uri: 'firelite://192.0.2.1:1'}}\n")
    return tmp_path, done.stdout.split()[-1]


@pytest.mark.parametrize("line", [*READING, *ACTING])
def test_command_on_the_board_works_with_the_trusted_settings(line: str, edited: tuple[Path, str]) -> None:
    root, task = edited
    done = swarm(root, *line.format(task=task).split(), HOME=str(root / "home"))
    assert "is not in force until you trust it, the trusted content applies" in done.stderr
    assert "agent trust" in done.stderr
    assert "config_error" not in done.stderr
    if line in READING or line.startswith("cancel"):
        assert (done.returncode, done.stderr.count("\n")) == (0, 1)


@pytest.mark.parametrize("line", ["up", "submit again", "role scout", "api", "store reset --yes"])
def test_command_that_starts_work_still_needs_trust(line: str, edited: tuple[Path, str]) -> None:
    root, _ = edited
    done = swarm(root, *line.split(), HOME=str(root / "home"))
    assert done.returncode == 1
    assert "backbone.confinement can start programs" in done.stderr


def test_doctor_reports_the_edit_and_checks_the_rest(edited: tuple[Path, str]) -> None:
    done = swarm(edited[0], "doctor", HOME=str(edited[0] / "home"))
    assert done.returncode == 1
    assert "FAIL settings" in done.stdout
    assert "ok   store" in done.stdout
