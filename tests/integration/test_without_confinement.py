"""Where a machine cannot confine code, tasks that need it block at once, and say how to mend that."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import fireswarm as fs
from fireswarm.cli.swarm.main import app
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.settings import Settings
from fireswarm.swarm.board.operator.explain import reason_for_status
from tests.support.confinement import hide_landlock, run_programs_of
from tests.support.fleet import lay_out, until
from tests.support.patience import PATIENCE_SECONDS

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="POSIX programs")]

MEND = "`apt-get install bubblewrap`"
ASKS_FOR_CONFINEMENT = """
from fireswarm import SkillResult
from fireswarm.pipelines import View, run_confined

def run(request):
    view = View(request.workdir, strict=True)
    return SkillResult(summary=run_confined(["/bin/echo", "ran"], view, {}, 10, confinement="bubblewrap")[1])
"""
"""Code that runs a program of its own in a view: the operator lets the code itself run unconfined."""

SAYS_SO = """
from fireswarm import SkillResult

def run(request):
    return SkillResult(summary="ran")
"""


@pytest.fixture
def missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH without bubblewrap, and a kernel without Landlock. Returns the folder of the PATH."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    run_programs_of(programs, monkeypatch)
    hide_landlock(monkeypatch)
    return programs


def settings_of(root: Path, confinement: str) -> Settings:
    return Settings.model_validate({"root": root, "runtime": {"confinement": confinement}})


async def blocked(swarm: Any, skill: str) -> fs.Task:
    submitted = await swarm.submit("say it", role="scout", skill=skill)

    async def ended() -> bool:
        return (await swarm.get(submitted)).status in (TaskStatus.DONE, TaskStatus.BLOCKED)

    await until(ended, seconds=PATIENCE_SECONDS, every=0.02, what="the end of the task")
    return await swarm.get(submitted)


@pytest.mark.parametrize(
    ("code", "confinement"), [(SAYS_SO, "bubblewrap"), (ASKS_FOR_CONFINEMENT, "none")], ids=["skill", "its program"]
)
async def test_a_task_whose_code_cannot_be_confined_blocks_at_once_and_goes_on_when_it_can(
    tmp_path: Path, missing: Path, monkeypatch: pytest.MonkeyPatch, code: str, confinement: str
) -> None:
    lay_out(tmp_path, {"teller": code}, settings={})
    async with fs.Swarm.local(settings=settings_of(tmp_path, confinement), store="memory") as swarm:
        task = await blocked(swarm, "teller")
        assert (task.status, task.status_reason) == (TaskStatus.BLOCKED, StatusReason.NEEDS_CONFINEMENT)
        assert task.epoch == 1 and task.not_before is None  # the first attempt, and none follows by itself
        assert MEND in task.summary
        assert "swarm retry" in reason_for_status(task, {}, datetime.now(UTC))
        (missing / "bwrap").write_text("#!/bin/sh\necho 'the kernel says no' >&2\nexit 1\n")
        (missing / "bwrap").chmod(0o755)
        await swarm.retry(task)
        task = await blocked(swarm, "teller")
        assert task.status_reason is StatusReason.NEEDS_CONFINEMENT
        told = "the kernel says no" if confinement == "bubblewrap" else MEND  # a child process has its own list
        assert told in task.summary


async def test_run_tries_such_a_task_again(tmp_path: Path, missing: Path) -> None:
    lay_out(tmp_path, {"teller": SAYS_SO}, settings={})
    async with fs.Swarm.local(settings=settings_of(tmp_path, "bubblewrap"), store="embedded") as swarm:
        with pytest.raises(fs.errors.NotDone, match="bubblewrap is not installed"):
            await swarm.run("say it", role="scout", skill="teller")
    async with fs.Swarm.local(settings=settings_of(tmp_path, "none"), store="embedded") as swarm:
        assert (await swarm.run("say it", role="scout", skill="teller")).summary == "ran"


def test_doctor_fails_for_skills_that_would_block_and_notes_it_otherwise(tmp_path: Path, missing: Path) -> None:
    def finding(root: Path) -> tuple[Any, str]:
        printed = CliRunner().invoke(app, ["doctor", "--json", "--store", "memory", "--root", str(root)]).stdout
        return next((item["ok"], item["detail"]) for item in json.loads(printed) if item["what"] == "confined")

    (tmp_path / "plain").mkdir()
    ok, detail = finding(tmp_path / "plain")
    assert ok is None and MEND in detail
    lay_out(tmp_path / "own", {"teller": SAYS_SO}, settings={})
    ok, detail = finding(tmp_path / "own")
    assert ok is False and MEND in detail and "skill teller cannot run" in detail


def trust_scout(root: Path) -> None:
    lay_out(root, {"teller": SAYS_SO}, settings={})
    card = root / "roles" / "scout" / "ROLE.md"
    card.write_text(card.read_text().replace("---\n", "---\ntrusted: true\n", 1))


def test_doctor_names_trusted_roles(tmp_path: Path) -> None:
    trust_scout(tmp_path)
    printed = CliRunner().invoke(app, ["doctor", "--json", "--store", "memory", "--root", str(tmp_path)]).stdout
    findings = {item["what"]: item["detail"] for item in json.loads(printed)}
    assert findings["trusted"] == "code of role scout's skills runs unconfined"


async def test_a_trusted_role_runs_its_own_skills_unconfined_but_not_for_read_only_tasks(
    tmp_path: Path, missing: Path
) -> None:
    trust_scout(tmp_path)
    teller = tmp_path / "skills" / "teller" / "SKILL.md"
    teller.write_text(teller.read_text().replace("metadata:\n", "metadata:\n  writes: unless_read_only\n"))
    async with fs.Swarm.local(settings=settings_of(tmp_path, "auto"), store="memory") as swarm:
        assert (await swarm.run("say it", role="scout", skill="teller")).summary == "ran"
        with pytest.raises(fs.errors.NotDone, match=MEND):
            await swarm.run("say that", role="scout", skill="teller", constraints={"read_only": True})
        with pytest.raises(fs.errors.NotDone, match=MEND):
            await swarm.run("say it", role="executor", skill="teller")


def test_the_pipeline_demo_starts_nothing(tmp_path: Path, missing: Path) -> None:
    done = CliRunner().invoke(app, ["pipeline", "demo", "--root", str(tmp_path)])
    assert done.exit_code == 1
    assert not (tmp_path / ".fireswarm").exists()
    assert MEND in str(done.exception)
