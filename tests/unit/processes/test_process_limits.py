"""Limits on what a command takes of the machine, also in places that no count of its processes tells."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from fireswarm.processes.confinement.process_limits import MEGABYTE, ProcessLimits
from fireswarm.processes.confinement.view import View
from fireswarm.processes.output import KILLED
from fireswarm.processes.shell import Shell
from tests.support.confinement import use_rung
from tests.unit.processes.test_program_files import workspace as workspace

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="code is confined on Linux"),
]

SHELL = Shell(("/bin/bash", "-c"), 16_000, {"PATH": "/usr/local/bin:/usr/bin:/bin"})
LIMIT, TAKEN = 30 * MEGABYTE, 40 * MEGABYTE
"""Bytes. The kernel kills at twice the limit; other tests, which may run at the same time, have limits of 100 MB."""

SHARED = "/dev/shm"
IN_MEMORY = {
    "unnamed files": f"a = [os.memfd_create('x') for _ in range(4)]; [os.write(f, bytes({TAKEN // 4})) for f in a]",
    "space that is reserved": f"os.posix_fallocate(os.memfd_create('x'), 0, {TAKEN})",
    "a file that waits in a socket": (
        "import socket; a, b = socket.socketpair(); f = os.memfd_create('x');"
        f"os.write(f, bytes({TAKEN})); socket.send_fds(a, [b'x'], [f]); os.close(f)"
    ),
}


@pytest.mark.usefixtures("rung")
@pytest.mark.parametrize("kind", IN_MEMORY)
async def test_memory_in_files_counts(kind: str, workspace: Path) -> None:
    shell = replace(SHELL, limits=ProcessLimits(memory_bytes=LIMIT))
    line = f'python3 -c "import os; {IN_MEMORY[kind]}; os.read(os.pipe()[0], 1)"'
    ran = await shell.run(line, workspace, 60.0, View(workspace))
    assert (ran.exit_code, ran.ended.partition(" of ")[0]) == (KILLED, "it took more than 30 MB"), ran


@pytest.mark.skipif(not os.access(SHARED, os.W_OK), reason="this machine has no second file system")
async def test_temporary_files_on_another_file_system_count(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_rung("landlock", monkeypatch)
    monkeypatch.setattr(tempfile, "tempdir", SHARED)
    shell = replace(SHELL, limits=ProcessLimits(disk_bytes=LIMIT))
    line = f"head -c {TAKEN} /dev/zero > $TMPDIR/big; sleep 60"
    ran = await shell.run(line, workspace, 60.0, View(workspace))
    assert (ran.exit_code, ran.ended) == (KILLED, "it took more than 30 MB of disk"), ran
