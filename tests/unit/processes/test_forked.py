"""Processes that are copies of a fork server."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import anyio
import psutil
import pytest

from fireswarm.processes.forked import Command, ForkedProcess, start_forked
from tests.support.patience import PATIENCE_SECONDS

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux only")]

PRELOAD = "fireswarm.cli.preload"
WAITING = "signal:pause"


def command(folder: Path, entry: str, *arguments: str, **environment: str) -> Command:
    return Command("scout-1", entry, arguments, environment, folder / "log")


async def end_of(process: ForkedProcess) -> int:
    with anyio.fail_after(PATIENCE_SECONDS):
        return await process.wait()


async def test_copy_gets_its_arguments_environment_log_and_name(tmp_path: Path) -> None:
    process = await start_forked(command(tmp_path, "tests.support.forked:describe", "--x", ONLY="this"), PRELOAD)
    assert await end_of(process) == 0
    told, goodbye = (tmp_path / "log").read_text().splitlines()
    assert json.loads(told) == {"environment": {"ONLY": "this"}, "argv": ["scout-1", "--x"], "threads": 1}
    assert goodbye == "goodbye"


async def test_failure_is_in_the_log_and_the_exit_code(tmp_path: Path) -> None:
    process = await start_forked(command(tmp_path, "fireswarm.cli:swarm_command", "--no-such-option"), PRELOAD)
    assert await end_of(process) == 2
    assert "--no-such-option" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_signal_that_is_sent_at_once_ends_the_copy(tmp_path: Path, number: signal.Signals) -> None:
    for _ in range(10):
        process = await start_forked(command(tmp_path, WAITING), PRELOAD)
        assert process.returncode is None
        process.send_signal(number)
        assert await end_of(process) == -number
        process.send_signal(number)  # it has ended: nothing else gets the signal


async def test_copy_is_named_for_ps(tmp_path: Path) -> None:
    process = await start_forked(command(tmp_path, WAITING), PRELOAD)
    try:
        shown = psutil.Process(process.pid)
        with anyio.fail_after(PATIENCE_SECONDS):
            while shown.name() != "scout-1":
                await anyio.lowlevel.checkpoint()
    finally:
        process.send_signal(signal.SIGKILL)
        await end_of(process)


async def test_two_tasks_wait_for_one_copy(tmp_path: Path) -> None:
    process = await start_forked(command(tmp_path, WAITING), PRELOAD)
    codes: list[int] = []

    async def wait() -> None:
        codes.append(await end_of(process))

    async with anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(wait)
        process.send_signal(signal.SIGTERM)
    assert codes == [-signal.SIGTERM] * 2


async def test_server_that_gets_sigterm_goes_on(tmp_path: Path) -> None:
    process = await start_forked(command(tmp_path, WAITING), PRELOAD)
    server = psutil.Process(process.pid).ppid()
    psutil.Process(server).send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    assert await end_of(process) == -signal.SIGTERM
    following = await start_forked(command(tmp_path, WAITING), PRELOAD)
    assert psutil.Process(following.pid).ppid() == server
    following.send_signal(signal.SIGKILL)
    await end_of(following)


async def test_copies_of_a_killed_server_work_on_and_the_next_start_makes_another(tmp_path: Path) -> None:
    process = await start_forked(command(tmp_path, WAITING), PRELOAD)
    copy = psutil.Process(process.pid)
    server = psutil.Process(copy.ppid())
    server.kill()
    with anyio.move_on_after(0.5) as waited:
        await process.wait()
    assert waited.cancelled_caught and copy.is_running()
    process.send_signal(signal.SIGTERM)
    await end_of(process)
    assert not copy.is_running() or copy.status() == psutil.STATUS_ZOMBIE
    following = await start_forked(command(tmp_path, WAITING), PRELOAD)
    assert psutil.Process(following.pid).ppid() != server.pid
    following.send_signal(signal.SIGKILL)
    assert await end_of(following) == -signal.SIGKILL


async def test_programs_that_a_copy_starts_inherit_no_descriptor_of_the_server(tmp_path: Path) -> None:
    process = await start_forked(command(tmp_path, "tests.support.forked:list_descriptors"), PRELOAD)
    assert await end_of(process) == 0
    assert (tmp_path / "log").read_text().split() == ["0", "1", "2"]
