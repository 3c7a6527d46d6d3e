"""Orders to real role processes of `swarm up`: they outlive kill -9, and a drained process is not started again."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from fireswarm.client import Swarm
from fireswarm.contracts.swarm.task import TaskStatus
from fireswarm.settings import load_settings
from tests.support.fleet import environment, lay_out, role_processes, swarm_up, until, with_signal
from tests.support.patience import PATIENCE_SECONDS

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(900)]

NOTE = """
from fireswarm.contracts.skills.skill import SkillResult

def run(request):
    return SkillResult(summary="noted")
"""


def swarm(root: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "fireswarm.cli", *arguments]
    done = subprocess.run(
        command, cwd=root, env=environment(), capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
    )
    return done.stdout


async def test_paused_role_stays_so_after_a_kill_and_a_drained_one_ends_for_good(tmp_path: Path) -> None:
    lay_out(tmp_path, {"note": NOTE}, settings={"session": "s1", "worker": {"drain_seconds": 2}})

    async def served() -> bool:
        return "FIRESTORE_EMULATOR_HOST" in (tmp_path / "up.log").read_text()

    with swarm_up(tmp_path, "--roles=scout,memory") as up:
        await until(served, seconds=PATIENCE_SECONDS, what="serving the store")
        async with Swarm.open(settings=load_settings(tmp_path, environment={})) as client:

            async def works(role: str, objective: str) -> None:
                task = await client.submit(objective, role=role)
                assert (await client.wait(task, timeout_seconds=PATIENCE_SECONDS)).status is TaskStatus.DONE

            await works("scout", "first")
            assert "the role scout is paused by an operator: the disk" in swarm(
                tmp_path, "pause", "scout", "--reason", "the disk"
            )
            waits = await client.submit("second", role="scout")
            before = {process.pid for process in role_processes(up)}
            [scout] = [process for process in role_processes(up) if process.name().startswith("scout")]
            assert with_signal(scout, signal.SIGKILL)

            async def restarted() -> bool:
                beats = await client.parts.heartbeats.latest()
                return any(beat.pid not in before and beat.message.startswith("paused") for beat in beats)

            await until(restarted, seconds=PATIENCE_SECONDS, what="the restart of a paused process")
            await works("memory", "another role")
            assert (await client.get(waits)).status is TaskStatus.QUEUED
            assert "paused by an operator: the disk" in swarm(tmp_path, "show", waits.task_id[:8])
            assert "paused" in swarm(tmp_path, "agents")
            assert "resumed" in swarm(tmp_path, "resume", "scout")
            assert (await client.wait(waits, timeout_seconds=PATIENCE_SECONDS)).status is TaskStatus.DONE

            swarm(tmp_path, "drain", "scout")

            async def only_memory() -> bool:
                return [name_of(process) for process in role_processes(up)] == ["memory-1"]

            await until(only_memory, seconds=PATIENCE_SECONDS, what="the end of a drained process")

            async def reported() -> bool:
                return "scout-1 was drained by an operator" in (tmp_path / "up.log").read_text()

            await until(reported, seconds=PATIENCE_SECONDS, what="the report of the supervisor")
            assert up.is_running()
    with swarm_up(tmp_path, "--roles=scout"):
        await until(served, seconds=PATIENCE_SECONDS, what="serving the store")
        async with Swarm.open(settings=load_settings(tmp_path, environment={})) as client:
            task = await client.submit("third", role="scout")
            assert (await client.wait(task, timeout_seconds=PATIENCE_SECONDS)).status is TaskStatus.DONE


def name_of(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return "gone"
