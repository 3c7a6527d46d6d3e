"""The supervisor of the role processes of one machine."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from fireswarm.swarm.worker.supervisor import Supervisor

pytestmark = pytest.mark.anyio


async def test_process_that_ends_at_once_is_reported_with_the_last_line_of_its_log(tmp_path: Path) -> None:
    reports: list[str] = []
    twice = anyio.Event()

    def report(text: str) -> None:
        reports.append(text)
        if len(reports) == 2:
            twice.set()

    fleet = Supervisor.plan(
        {"scout": 1}, arguments=["--no-such-option"], environment={}, logs=tmp_path / "logs", drain_seconds=1.0
    )
    fleet.report = report
    async with fleet.running():
        with anyio.fail_after(60):
            await twice.wait()
    assert reports[0].startswith("scout-1 ended with exit code 2 after ")
    assert "restart 1, in " in reports[0] and "--no-such-option" in reports[0]
