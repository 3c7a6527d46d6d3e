"""``swarm submit`` hands constraints, attachments, the expected outcome and the policy for failures to the task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fireswarm.cli.swarm.main import app
from fireswarm.errors import FireswarmError, InvalidInput


def submit(root: Path, *options: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["submit", "look", "--role", "scout", "--root", str(root), "--json", *options])
    if isinstance(result.exception, FireswarmError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout)["task"])


def test_every_option_reaches_the_task(tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("a,b\n")
    task = submit(
        tmp_path,
        *("--constraint", "read_only", "--constraint", "timeout_seconds=5", "--expect", "one page"),
        *("--attach", str(tmp_path / "sales.csv"), "--attach", "gs://bucket/x.pdf", "--on-child-failure", "fail"),
    )
    assert task["constraints"] == {"demo_safe": False, "read_only": True, "timeout_seconds": 5.0}
    assert [(item["name"], item["mime"]) for item in task["attachments"]] == [
        ("sales.csv", "text/csv"),
        ("x.pdf", "application/pdf"),
    ]
    assert (task["expected_outcome"], task["on_child_failure"]) == ("one page", "fail")


def test_attachment_has_the_name_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "Umsätze März.csv"
    file.write_text("a,b\n")
    [attachment] = submit(tmp_path, "--attach", str(file))["attachments"]
    assert (attachment["name"], attachment["uri"]) == (file.name, file.as_uri())


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("--constraint", "read_onli"), "read_onli: known are demo_safe, read_only, timeout_seconds"),
        (("--constraint", "timeout_seconds=-1"), "timeout_seconds"),
        (("--attach", "no-such-file"), "no-such-file is not a file"),
    ],
)
def test_invalid_value_is_named(tmp_path: Path, options: tuple[str, ...], fault: str) -> None:
    with pytest.raises(InvalidInput, match=fault):
        submit(tmp_path, *options)


def test_ended_task_names_the_option_that_does_its_work_again(tmp_path: Path) -> None:
    runner = CliRunner()
    task_id = submit(tmp_path)["task_id"]
    assert runner.invoke(app, ["cancel", task_id, "--root", str(tmp_path)]).exit_code == 0
    again = runner.invoke(app, ["submit", "look", "--role", "scout", "--root", str(tmp_path)])
    assert "already exists (canceled)" in again.stdout and "--again" in again.stdout
    assert submit(tmp_path, "--again", "once more")["status"] == "queued"
