"""The sandbox: isolation, cleanup of processes, resource limits, and refusal on machines that cannot isolate."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from fireswarm.capabilities import CapabilityContext, registry
from fireswarm.capabilities.code_run import CodeRun, SandboxLimits
from fireswarm.clocks import VirtualClock
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.errors import InvalidInput, SandboxRefused
from fireswarm.processes.confinement.seccomp import CallRules, call_filter
from tests.support.confinement import hide_landlock, run_programs_of
from tests.support.fleet import until
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.anyio

LIMITS = {"timeout_seconds": 20, "memory_bytes": 300_000_000, "max_processes": 24, "max_output_bytes": 4_000}


@dataclass(slots=True)
class Box:
    """The tool of one agent, with limits that are low enough for a test."""

    tool: Any

    async def python(self, code: str, **given: Any) -> dict[str, Any]:
        return await self.tool.run({"code": code, **given})

    async def shell(self, code: str, **given: Any) -> dict[str, Any]:
        return await self.tool.run({"code": code, "language": "shell", **given})


@pytest.fixture
async def box(tmp_path: Path) -> AsyncGenerator[Box]:
    use = CapabilityUse(id="sandbox", config=LIMITS | {"max_folder_bytes": 20_000_000, "max_files": 200})
    async with registry().open([use], CapabilityContext("s", tmp_path, VirtualClock())) as found:
        opened = Box(found.tools["execute_code"])
        try:
            await opened.shell("true")
        except SandboxRefused as error:
            pytest.skip(str(error))
        yield opened


async def until_gone(mark: str) -> None:
    """Wait until no process has *mark*: the kernel removes a killed one a moment later, on a busy machine."""

    async def gone() -> bool:
        return left(mark) == []

    await until(gone, seconds=PATIENCE_SECONDS, what=f"the end of the processes {mark}")


def left(mark: str) -> list[list[str]]:
    """List the command lines of all processes on this machine that contain *mark*."""
    return [
        process.info["cmdline"]
        for process in psutil.process_iter(["cmdline"])
        if mark in (process.info["cmdline"] or [])
    ]


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


# ── normal use ──────────────────────────────────────────────────────────────────────────────────────────


async def test_files_of_python_and_shell_code_persist_between_calls(box: Box) -> None:
    first = await box.python("import sys\nprint(6 * 7, sys.stdin.read())\nopen('a.txt', 'w').write('x')", stdin="in")
    assert (first["exit_code"], first["stdout"], first["stderr"]) == (0, "42 in\n", "")
    assert first["files"] == [{"path": "a.txt", "bytes": 1}] and first["file_count"] == 1
    second = await box.shell("cat a.txt; echo y >> a.txt; mkdir d; echo z > d/b; pwd; exit 3")
    assert (second["exit_code"], second["stdout"]) == (3, "x/sandbox\n")
    assert [file["path"] for file in second["files"]] == ["a.txt", "d/b"]
    assert (await box.python("raise ValueError('no')"))["stderr"].endswith("ValueError: no\n")


async def test_standard_library_and_own_modules_can_be_imported(box: Box) -> None:
    await box.shell("echo 'value = 5' > mine.py")
    found = await box.python("import json, sqlite3, ssl, decimal, subprocess, mine\nprint(mine.value)")
    assert found["stdout"] == "5\n", found


async def test_folder_is_removed_when_the_agent_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    async with registry().open([CapabilityUse(id="sandbox")], CapabilityContext("s", tmp_path, VirtualClock())):
        assert len(names(tmp_path)) == 1
    assert names(tmp_path) == []


async def test_overlong_input_is_rejected(box: Box) -> None:
    with pytest.raises(InvalidInput, match="at most 20"):
        await box.python("1", timeout_seconds=21)
    with pytest.raises(InvalidInput, match="200,000 are allowed"):
        await box.python("#" * 200_001)
    with pytest.raises(InvalidInput, match="language"):
        await box.tool.run({"code": "1", "language": "cobol"})


# ── isolation ───────────────────────────────────────────────────────────────────────────────────────────


async def test_code_has_no_network(box: Box) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = await box.python(f"""
import socket
for what, call in {{
    "loopback": lambda: socket.create_connection(("127.0.0.1", {port}), 1),
    "internet": lambda: socket.create_connection(("1.1.1.1", 53), 1),
    "metadata": lambda: socket.create_connection(("169.254.169.254", 80), 1),
    "name": lambda: socket.getaddrinfo("example.com", 80),
    "hypervisor": lambda: socket.socket(40, socket.SOCK_STREAM),
    "netlink": lambda: socket.socket(16, socket.SOCK_RAW),
    "packet": lambda: socket.socket(17, socket.SOCK_RAW),
}}.items():
    try:
        call()
        print(what, "REACHED")
    except OSError as error:
        print(what, "refused")
""")
    assert found["stdout"].split() == [
        word for what in ("loopback", "internet", "metadata", "name", "hypervisor", "netlink", "packet")
        for word in (what, "refused")
    ], found  # fmt: skip


async def test_code_sees_no_files_or_variables_of_the_host(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("planted")
    monkeypatch.setenv("PLANTED_TOKEN", "planted")
    places = [str(secret), "/etc/passwd", "/etc/shadow", "/etc/hostname", str(Path.cwd() / "pyproject.toml"), "/sys"]
    found = await box.python(f"""
import os
print([path for path in {places!r} if os.path.exists(path)])
print([name for name in os.environ if "PLANTED" in name])
print([number for number in os.listdir("/proc/self/fd") if int(number) > 3])
for name in ("environ", "cmdline"):
    try:
        assert b"planted" not in open("/proc/1/" + name, "rb").read()
    except OSError:
        pass
""")
    assert found["stdout"].splitlines() == ["[]", "[]", "[]"], found


async def test_links_in_the_sandbox_do_not_reach_host_files(box: Box, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("planted")
    found = await box.shell(
        f"ln -s {secret} link; ln -s /etc/passwd passwd; ln -s / root; mkfifo pipe; cat link passwd; ls root/etc"
    )
    assert "planted" not in found["stdout"] and "root:" not in found["stdout"]
    assert found["files"] == []
    again = await box.shell("echo changed > link; cat link")
    assert secret.read_text() == "planted", again


async def test_code_cannot_see_or_signal_other_processes(box: Box) -> None:
    found = await box.python(f"""
import os
print(sorted(int(name) for name in os.listdir("/proc") if name.isdigit())[-1] < 10)
inner = [os.path.join("/proc/1", link, "etc/passwd") for link in ("root", "cwd")]
for path in (*inner, "/proc/{os.getpid()}/environ", "/proc/kcore"):
    try:
        open(path).read(1)
        print(path, "READ")
    except OSError:
        pass
try:
    os.kill({os.getpid()}, 0)
    print("REACHED")
except OSError:
    pass
""")
    assert found["stdout"] == "True\n", found


async def test_code_cannot_write_outside_its_folder(box: Box) -> None:
    found = await box.python("""
for path in ("/x", "/usr/x", "/usr/bin/x", "/usr/bin/ls", "/etc/x", "/dev/x", "/dev/shm/x", "/run/main", "/run/x",
             "/proc/sys/kernel/hostname", "/proc/sysrq-trigger"):
    try:
        open(path, "w").write("x")
        print(path, "WRITTEN")
    except OSError:
        pass
""")
    assert (found["exit_code"], found["stdout"]) == (0, ""), found


async def test_code_cannot_gain_privileges(box: Box) -> None:
    found = await box.python("""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print([line.split()[1] for line in open("/proc/self/status") if line.startswith(("CapPrm", "CapEff", "CapAmb"))])
print([line.split()[1] for line in open("/proc/self/status") if line.startswith(("NoNewPrivs", "Seccomp:"))])
for name, call in {
    "setuid": lambda: os.setuid(0),
    "setns": lambda: os.setns(os.open("/proc/self/ns/net", os.O_RDONLY)) if hasattr(os, "setns") else 1 / 0,
    "memfd": lambda: os.memfd_create("x"),
    "chroot": lambda: os.chroot("/tmp"),
    "mknod": lambda: os.mknod("disk", 0o60600, os.makedev(254, 0)),
}.items():
    try:
        call()
        print(name, "DONE")
    except (OSError, ZeroDivisionError):
        pass
for name, arguments in {"unshare": (0x10000000,), "mount": (b"x", b"/tmp", b"tmpfs", 0, 0), "ptrace": (16, 1, 0, 0),
                        "shmget": (0, 4096, 0o1600)}.items():
    if getattr(libc, name)(*arguments) != -1:
        print(name, "DONE")
if libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0) == 0:
    os._exit(9)
""")
    lines = found["stdout"].splitlines()
    assert found["exit_code"] == 0 and lines == [str(["0" * 16] * 3), "['1', '2']"], found


# ── resource limits ─────────────────────────────────────────────────────────────────────────────────────


async def test_fork_bomb_is_limited_and_killed(box: Box) -> None:
    mark = f"bomb-{uuid.uuid4()}"
    found = await box.python(
        f"""
import os, time
made = 0
try:
    while True:
        if os.fork() == 0:
            os.execv("/bin/sleep", ["{mark}", "60"])
        made += 1
except OSError:
    print(made, flush=True)
time.sleep(60)
""",
        timeout_seconds=2,
    )
    assert found["ended"] == "timeout" and 1 < int(found["stdout"]) < LIMITS["max_processes"], found
    assert left(mark) == []
    bomb = await box.shell(
        f"ln -s /bin/sleep {mark}; PATH=.:$PATH; bomb() {{ bomb | bomb & }}; bomb; exec {mark} 60", timeout_seconds=2
    )
    assert bomb["ended"] == "timeout", bomb
    assert left(mark) == []


async def test_memory_is_limited_per_process_and_in_total(box: Box) -> None:
    one = await box.python("try:\n    bytes(400_000_000)\nexcept MemoryError:\n    print('no')")
    assert one["stdout"] == "no\n", one
    many = await box.python("""
import os, time
for _ in range(10):
    if os.fork() == 0:
        kept = b"x" * 100_000_000
        time.sleep(60)
time.sleep(60)
""")
    assert many["ended"] == "memory", many


@pytest.mark.parametrize(
    ("code", "ended"),
    [
        ("for number in range(20):\n    open(str(number), 'wb').write(bytes(5_000_000))", "folder"),
        ("for number in range(2_000):\n    open(str(number), 'w')\nimport time; time.sleep(60)", "folder"),
        ("open('big', 'wb').truncate(50_000_000)", None),
        ("open('/tmp/big', 'wb').write(bytes(80_000_000))", None),
    ],
)
async def test_disk_usage_is_limited(box: Box, code: str, ended: str | None) -> None:
    found = await box.python(f"{code}\nimport time; time.sleep(20 * {ended == 'folder'})")
    assert found["exit_code"] != 0 and found.get("ended") == ended, found


async def test_endless_output_is_truncated_in_the_middle(box: Box) -> None:
    found = await box.shell("yes 0123456789 | head -c 30000000; echo the end")
    assert len(found["stdout"]) < LIMITS["max_output_bytes"] + 100
    assert "bytes omitted" in found["stdout"] and found["stdout"].endswith("the end\n")


async def test_code_that_computes_too_long_is_killed(box: Box) -> None:
    found = await box.python("print('begun', flush=True)\nwhile True: pass", timeout_seconds=2)
    assert found["ended"] == "timeout" and found["stdout"] == "begun\n"
    assert found["seconds"] < 12


@pytest.mark.parametrize("last", ["time.sleep(60)", ""])
async def test_background_processes_are_killed_after_the_call(box: Box, last: str) -> None:
    mark = f"daemon-{uuid.uuid4()}"
    found = await box.python(
        f"""
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        open("alive", "w").write("x")
        os.close(1), os.close(2)
        os.execv("/bin/sleep", ["{mark}", "60"])
    os._exit(0)
while not os.path.exists("alive"):
    time.sleep(0.01)
{last}
""",
        timeout_seconds=2,
    )
    assert found.get("ended") == ("timeout" if last else None), found
    await until_gone(mark)


# ── machines without isolation ──────────────────────────────────────────────────────────────────────────


async def test_code_is_refused_if_bubblewrap_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    hide_landlock(monkeypatch)
    with pytest.raises(SandboxRefused, match="bubblewrap is not installed.*apt-get install bubblewrap"):
        await CodeRun("shell", "touch ran", tmp_path, SandboxLimits()).run()
    assert names(tmp_path) == []


async def test_code_is_refused_if_the_kernel_forbids_namespaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbidden = tmp_path / "bwrap"
    forbidden.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n")
    forbidden.chmod(0o755)
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    run_programs_of(tmp_path, monkeypatch)
    hide_landlock(monkeypatch)
    with pytest.raises(SandboxRefused, match="cannot confine commands on this machine: bwrap: No permissions"):
        await CodeRun("shell", "touch ran", folder, SandboxLimits()).run()
    assert names(folder) == []


def test_unsupported_machine_has_no_seccomp_filter() -> None:
    assert call_filter("mips", CallRules(strict=True)) is None
    for machine in ("x86_64", "aarch64"):
        found = call_filter(machine, CallRules(strict=True))
        assert found is not None and len(found) % 8 == 0
