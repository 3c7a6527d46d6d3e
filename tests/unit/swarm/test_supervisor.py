"""The supervisor of the role processes of one machine."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from fireswarm.swarm.worker.supervisor import Supervisor
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.anyio

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="role processes are copies on Linux only")


@pytest.mark.parametrize("forks", [pytest.param(True, marks=LINUX), False])
async def test_process_that_ends_at_once_is_reported_with_the_last_line_of_its_log(tmp_path: Path, forks: bool) -> None:
    reports = await reports_of(failing_fleet(tmp_path / "logs", forks))
    assert reports[0].startswith("scout-1 ended with exit code 2 after ")
    assert "restart 1, in " in reports[0] and "--no-such-option" in reports[0]


@pytest.mark.parametrize("forks", [pytest.param(True, marks=LINUX), False])
async def test_logs_that_are_removed_meanwhile_do_not_end_the_fleet(tmp_path: Path, forks: bool) -> None:
    logs = tmp_path / "logs"
    fleet = failing_fleet(logs, forks)
    reports = await reports_of(fleet, then=lambda: shutil.rmtree(logs))
    assert all("ended with exit code 2 after " in report for report in reports)
    assert "--no-such-option" in reports[-1]


@pytest.mark.parametrize("forks", [pytest.param(True, marks=LINUX), False])
async def test_process_that_cannot_be_started_is_reported_and_tried_again(tmp_path: Path, forks: bool) -> None:
    logs = tmp_path / "logs"

    def spoil() -> None:
        shutil.rmtree(logs, ignore_errors=True)
        logs.write_text("a file in the place of the folder")

    reports = await reports_of(failing_fleet(logs, forks), then=spoil)
    assert "scout-1 cannot be started" in reports[-1] and "its log cannot be read" in reports[-1]


@pytest.mark.parametrize("forks", [pytest.param(True, marks=LINUX), False])
async def test_stop_during_a_start_leaves_no_process(tmp_path: Path, forks: bool) -> None:
    fleet = failing_fleet(tmp_path / "logs", forks)
    fleet.arguments = ["--store", "memory", "--root", str(tmp_path)]
    with anyio.fail_after(PATIENCE_SECONDS):
        async with fleet.running():
            await anyio.lowlevel.checkpoint()  # the start is under way
    [place] = fleet.places
    assert place.process is None or place.process.returncode is not None


def failing_fleet(logs: Path, forks: bool) -> Supervisor:
    fleet = Supervisor.plan({"scout": 1}, arguments=["--no-such-option"], environment={}, logs=logs, drain_seconds=1.0)
    fleet.forks = forks
    return fleet


async def reports_of(fleet: Supervisor, then: Callable[[], None] = lambda: None) -> list[str]:
    """Return the fleet's first three reports; *then* is called after the first."""
    reports: list[str] = []
    enough = anyio.Event()

    def report(text: str) -> None:
        reports.append(text)
        if len(reports) == 1:
            then()
        if len(reports) == 3:
            enough.set()

    fleet.report = report
    async with fleet.running():
        with anyio.fail_after(PATIENCE_SECONDS):
            await enough.wait()
    return reports


@pytest.mark.parametrize("forks", [pytest.param(True, marks=LINUX), False])
async def test_reason_of_a_restart_is_what_the_ended_process_logged(tmp_path: Path, forks: bool) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "scout-1.log").write_text("a line of an earlier fleet\n")
    fleet = failing_fleet(logs, forks)
    fleet.arguments = ["--help"]
    reports = await reports_of(fleet)
    assert all("earlier fleet" not in report for report in reports)
    assert fleet.places[0].ended.startswith("scout-1 ended with exit code 0 after ")


async def test_processes_that_an_interrupt_ends_are_not_reported(tmp_path: Path) -> None:
    fleet = failing_fleet(tmp_path / "logs", forks=False)
    reports: list[str] = []
    fleet.report = reports.append
    fleet.arguments = ["--help"]
    async with fleet.running():
        place = fleet.places[0]
        with anyio.fail_after(PATIENCE_SECONDS):
            while not place.ended:
                await anyio.lowlevel.checkpoint()
    assert reports == []
