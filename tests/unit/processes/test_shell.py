"""Shell commands: limited in time and output, with no processes left behind."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import anyio
import psutil
import pytest

from fireswarm.processes.confinement.view import View, named_environment
from fireswarm.processes.output import CANNOT_START, TIMED_OUT
from fireswarm.processes.shell import Shell
from tests.support.fleet import pid_in
from tests.support.patience import PATIENCE_SECONDS

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="bash")]
SHELL = Shell(("/bin/bash", "-c"), 3_000, {"PATH": "/usr/bin:/bin"})
LONG_SECONDS = int(2 * PATIENCE_SECONDS)
"""Nothing ends by itself while a test waits for its end."""


def gone(pid: int) -> bool:
    """Return True if the process has ended or is a zombie; wait for a pending kill."""
    try:
        process = psutil.Process(pid)
        psutil.wait_procs([process], timeout=PATIENCE_SECONDS)
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def test_command_returns_its_output_and_exit_code(tmp_path: Path) -> None:
    ran = await SHELL.run("echo out; echo err >&2; pwd; exit 3", tmp_path, 10)
    assert (ran.exit_code, ran.stdout, ran.stderr) == (3, f"out\n{tmp_path}\n", "err\n")
    assert not ran.timed_out


@pytest.mark.parametrize("confined", [False, True])
async def test_programs_on_the_callers_path_come_before_those_of_a_login_shell(tmp_path: Path, confined: bool) -> None:
    """An activated environment of Python stays active, although a login shell sets another PATH."""
    tools = tmp_path / "the 'own' tools"
    tools.mkdir()
    (tools / "python3").write_text("#!/bin/sh\necho mine\n")
    (tools / "python3").chmod(0o755)
    shell = Shell(("/bin/bash", "-lc"), 3_000, {"PATH": f"{tools}:/usr/bin:/bin", "HOME": str(tmp_path)})
    view = View(tmp_path, True) if confined else None
    ran = await shell.run("python3; ls / > /dev/null && echo found", tmp_path, 10, view)
    assert (ran.stdout, ran.stderr, ran.folder) == ("mine\nfound\n", "", str(tmp_path))


async def test_command_reads_nothing_from_the_terminal(tmp_path: Path) -> None:
    assert (await SHELL.run("cat; read x || echo none", tmp_path, 10)).stdout == "none\n"


async def test_timeout_ends_the_command_and_keeps_its_output(tmp_path: Path) -> None:
    began = time.monotonic()
    ran = await SHELL.run(f"echo begun; sleep {LONG_SECONDS}", tmp_path, 0.6)
    assert (ran.exit_code, ran.timed_out, ran.stdout) == (TIMED_OUT, True, "begun\n")
    assert time.monotonic() - began < 10


async def test_timeout_ends_processes_that_ignore_sigterm_or_left_the_session(
    tmp_path: Path,
) -> None:
    line = (
        f"sleep {LONG_SECONDS} & echo $! > one; "
        f"setsid bash -c 'echo $$ > two; exec sleep {LONG_SECONDS}' & "
        f"setsid --fork bash -c 'trap \"\" TERM; echo $$ > three; sleep {LONG_SECONDS}'; "
        f"while [ ! -s two ] || [ ! -s three ]; do :; done; sleep {LONG_SECONDS}"
    )
    ran = await SHELL.run(line, tmp_path, 2.0)
    assert ran.timed_out
    for name in ("one", "two", "three"):
        assert gone(int((tmp_path / name).read_text())), name


async def test_background_processes_end_with_their_command(tmp_path: Path) -> None:
    began = time.monotonic()
    line = (
        f"sleep {LONG_SECONDS} & echo $! > one; "
        f"setsid --fork bash -c 'echo $$ > two; exec sleep {LONG_SECONDS}'; "
        f"setsid --fork bash -c 'echo $$ > three; exec sleep {LONG_SECONDS}' >/dev/null 2>&1; "
        "while [ ! -s two ] || [ ! -s three ]; do :; done; echo done"
    )
    ran = await SHELL.run(line, tmp_path, 20)
    assert (ran.exit_code, ran.timed_out, ran.stdout) == (0, False, "done\n")
    assert time.monotonic() - began < 10
    for name in ("one", "two", "three"):
        assert gone(int((tmp_path / name).read_text())), name


async def test_concurrent_command_is_not_affected(tmp_path: Path) -> None:
    async with anyio.create_task_group() as tasks:

        async def longer() -> None:
            ran = await SHELL.run("echo $$ > pid; while [ ! -e go ]; do :; done; echo alive", tmp_path, 20)
            assert ran.stdout == "alive\n"

        tasks.start_soon(longer)
        await pid_in(tmp_path / "pid")
        assert (await SHELL.run("echo short", tmp_path, 10)).exit_code == 0
        (tmp_path / "go").touch()


async def test_cancelling_kills_the_whole_tree(tmp_path: Path) -> None:
    pids: list[int] = []
    async with anyio.create_task_group() as tasks:
        line = f"bash -c 'echo $$ > child; sleep {LONG_SECONDS}' & setsid bash -c 'echo $$ > own; sleep {LONG_SECONDS}'"
        tasks.start_soon(SHELL.run, line, tmp_path, LONG_SECONDS)
        pids += [await pid_in(tmp_path / name) for name in ("child", "own")]
        tasks.cancel_scope.cancel()
    assert all(gone(pid) for pid in pids)


async def test_command_can_clean_up_on_sigterm_before_it_is_killed(tmp_path: Path) -> None:
    line = f"trap 'echo bye > told; exit 1' TERM; echo > ready; sleep {LONG_SECONDS} & wait"
    ran = await SHELL.run(line, tmp_path, 1.0)
    assert ran.timed_out
    assert (tmp_path / "told").read_text() == "bye\n"


async def test_long_output_is_truncated_in_the_middle(tmp_path: Path) -> None:
    ran = await SHELL.run("echo first; seq 1 200000; echo last; seq 1 100000 >&2", tmp_path, 30)
    for text in (ran.stdout, ran.stderr):
        assert len(text) < 3_200
        assert " bytes omitted, lines " in text
    assert ran.stdout.startswith("first\n1\n2\n")
    assert ran.stdout.endswith("200000\nlast\n")


async def test_binary_output_is_decoded_with_replacements(tmp_path: Path) -> None:
    ran = await SHELL.run(r"printf 'a\xff\xfeb\x00c'", tmp_path, 10)
    assert ran.stdout == "a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}b\0c"


async def test_signal_that_ends_a_command_is_reported(tmp_path: Path) -> None:
    assert (await SHELL.run("kill -KILL $$", tmp_path, 10)).exit_code == -signal.SIGKILL


async def test_missing_shell_or_folder_or_invalid_command_is_a_result(tmp_path: Path) -> None:
    missing = await Shell(("/no/such/shell", "-c")).run("ls", tmp_path, 10)
    assert missing.exit_code == CANNOT_START
    assert "cannot start /no/such/shell" in missing.stderr
    nowhere = await SHELL.run("ls", tmp_path / "none", 10)
    assert nowhere.exit_code == CANNOT_START
    assert "none" in nowhere.stderr
    for line in ("echo a\0b", "echo \ud800"):
        assert (await SHELL.run(line, tmp_path, 10)).exit_code == CANNOT_START
    assert (await SHELL.run("x" * 3_000_000, tmp_path, 10)).exit_code == CANNOT_START


async def test_commands_get_named_variables_only(tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "LC_TIME": "C", "VIRTUAL_ENV": "/v", "ANTHROPIC_API_KEY": "k1",
        "DATABASE_URL": "k2", "PGPASSWORD": "k3", "OWN_NAME": "k4", "DEPLOY_TOKEN": "k5", "EDITOR": "vi",
    }  # fmt: skip
    shell = Shell(("/bin/bash", "-c"), 9_000, named_environment(environment, ("DEPLOY_TOKEN",)))
    seen = (await shell.run("env", tmp_path, 10)).stdout
    given = {line.partition("=")[0] for line in seen.splitlines()} & environment.keys()
    assert given == {"PATH", "LANG", "LC_TIME", "VIRTUAL_ENV", "DEPLOY_TOKEN"}
