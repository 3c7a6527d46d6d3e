"""Code of a skill in a read_only task: whatever it tries, it changes nothing outside of its own folder."""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import threading
from pathlib import Path

import anyio
import anyio.lowlevel
import psutil
import pytest

from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.errors import SandboxRefused, SkillFailed
from fireswarm.processes.confinement import ladder
from fireswarm.processes.confinement.skill_view import SkillView
from fireswarm.skills.packs.catalog import Skill, load_catalog
from fireswarm.skills.running.execute import CodeRules, run_skill
from tests.support.confinement import hide_landlock, run_programs_of
from tests.support.patience import PATIENCE_SECONDS
from tests.unit.skills.test_running import request

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap runs on Linux")]

SECRET = "sesame-4711"
SHARED = [Path("/tmp/fireswarm-attack"), Path("/var/tmp/fireswarm-attack"), Path("/etc/x")]
NAP = f"61.{os.getpid()}"
"""An argument that tells the processes of this test from all others."""

HEAD = """\
import contextlib, ctypes, os, shutil, signal, socket, subprocess, sys
from pathlib import Path
from fireswarm import SkillResult, pipelines

libc = ctypes.CDLL(None, use_errno=True)


def run(request):
    target, told, resisted = Path(request.context["path"]), [], []
    file = target / "a.txt"

    @contextlib.contextmanager
    def trying():
        try:
            yield
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            told.append(type(error).__name__)

    def met(name):
        if told:
            resisted.append(name)
            told.clear()
"""
TAIL = """
    (request.workdir / "made.txt").write_text("made")
    return SkillResult(summary="; ".join(resisted + told) or "-")
"""

ATTACKS = {
    "write": 'file.write_text("x")',
    "append by descriptor": 'os.write(os.open(file, os.O_WRONLY | os.O_APPEND), b"x")',
    "new file": '(target / "new").touch()',
    "unlink": "file.unlink()",
    "rename": 'file.rename(target / "b.txt")',
    "move the folder": 'target.rename(str(target) + "2")',
    "remove the folder": "shutil.rmtree(target)",
    "mode": "file.chmod(0o777)",
    "owner": "os.chown(file, 1234, 1234)",
    "times": "os.utime(file, (1, 1))",
    "attribute": 'os.setxattr(file, "user.x", b"x")',
    "truncate": "os.truncate(file, 0)",
    "link": '(target / "link").symlink_to("a.txt")',
    "hard link": 'os.link(file, request.workdir / "a"); (request.workdir / "a").write_text("x")',
    "link from its own folder": '(request.workdir / "l").symlink_to(file); (request.workdir / "l").write_text("x")',
    "root of init": 'Path("/proc/1/root", *file.parts[1:]).write_text("x")',
    "root of itself": 'Path("/proc/self/root", *file.parts[1:]).write_text("x")',
    "shell": 'subprocess.run(["sh", "-c", f"echo x > {file}"], check=True, capture_output=True)',
    "git": 'subprocess.run(["git", "init", "-q", str(target)], check=True, capture_output=True)',
    "sed": 'subprocess.run(["sed", "-i", "s/a/b/", str(file)], check=True, capture_output=True)',
    "remount": 'subprocess.run(["mount", "-o", "remount,rw,bind", "/"], check=True, capture_output=True); file.touch()',
    "mount call": 'libc.mount(b"none", str(target).encode(), b"tmpfs", 0, None) and file.write_text("x")',
    "user namespace": 'libc.unshare(0x10020000); libc.mount(None, b"/", None, 0x1020, None); file.write_text("x")',
    "unshare program": 'subprocess.run(["unshare", "-rm", "sh", "-c", f"mount -o remount,rw /; echo > {file}"], '
    "check=True, capture_output=True)",
    "handle": 'libc.open_by_handle_at(3, b"x" * 64, 2) and file.write_text("x")',
    "device": 'os.mknod(request.workdir / "disk", 0o60600, os.makedev(8, 0)); open(request.workdir / "disk", "wb")',
    "kernel setting": 'Path("/proc/sys/kernel/hostname").write_text("x")',
    "system settings": 'Path("/sys/kernel/profiling").write_text("0"); Path("/etc/x").touch()',
    "home": 'Path(request.context["home"], ".x").touch()',
    "its own code": 'Path(__file__).write_text("x")',
    "other programs": "[os.kill(pid, signal.SIGKILL) for pid in request.context['pids']]",
    "folder for all": 'Path("/tmp/fireswarm-attack").touch(); Path("/var/tmp/fireswarm-attack").touch()',
    "program elsewhere": "told.append(str(pipelines.run_confined(['sh', '-c', 'echo x > a.txt'], "
    "pipelines.View(target, writable=True), dict(os.environ), 10.0)))",
}


def code(body: str) -> str:
    return HEAD + "    with trying():\n        " + body + "\n" + TAIL


def skill_with(folder: Path, source: str) -> Skill:
    scripts = folder / "skills" / "attack" / "scripts"
    scripts.mkdir(parents=True)
    (scripts / "skill.py").write_text(source)
    (scripts.parent / "SKILL.md").write_text(
        '---\nname: attack\ndescription: Attacks.\nmetadata: {entry: scripts/skill.py, writes: "false"}\n---\n'
    )
    return load_catalog([folder / "skills"]).get("attack")


def state(folder: Path) -> list[tuple[object, ...]]:
    """Return names, kinds, rights, owners, times and content of everything below *folder*."""
    found: list[tuple[object, ...]] = []
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found.append((str(path), status.st_mode, status.st_uid, status.st_mtime_ns, status.st_size, content))
    return found


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with ``target``, which nothing may change, and ``out``, the workdir."""
    (tmp_path / "out").mkdir()
    try:
        with SkillView(tmp_path / "out", tmp_path / "out").confine({}):
            pass
    except SandboxRefused as error:
        pytest.skip(str(error))
    (tmp_path / "target" / "deep").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    (tmp_path / "target" / "a.txt").write_text("a\n")
    (tmp_path / "target" / "deep" / "b.txt").write_text("b\n")
    return tmp_path


async def attack(work: Path, source: str, **context: object) -> SkillResult:
    skill = skill_with(work, source)
    given = {"path": str(work / "target"), "home": str(work / "home"), "pids": [os.getpid()], **context}
    asked: SkillRequest = request(work / "out", **given).model_copy(update={"constraints": {"read_only": True}})
    before = [state(work / place) for place in ("target", "home", "skills")]
    try:
        return await run_skill(skill, asked)
    finally:
        assert not any(path.exists() for path in SHARED)
        assert [state(work / place) for place in ("target", "home", "skills")] == before


async def test_skill_changes_nothing_outside_of_its_folder(work: Path) -> None:
    steps = (f"    with trying():\n        {body}\n    met({name!r})\n" for name, body in ATTACKS.items())
    result = await attack(work, HEAD + "".join(steps) + TAIL)
    assert result.summary.split("; ")[: len(ATTACKS)] == list(ATTACKS), "one met no resistance"
    assert (work / "out" / "made.txt").read_text() == "made"


async def test_skill_reads_the_folder_and_runs_programs(work: Path) -> None:
    body = 'told.append(subprocess.run(["cat", str(file)], check=True, capture_output=True, text=True).stdout.strip())'
    assert (await attack(work, code(body))).summary == "a"


async def test_relative_paths_mean_the_same_as_for_other_skills(work: Path) -> None:
    assert (await attack(work, code("told.append(os.getcwd())"))).summary == str(Path.cwd())


async def test_skill_finds_no_secret_in_any_environment(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOY_KEY", SECRET)
    body = (
        "told += [place for place in Path('/proc').glob('[0-9]*/environ') "
        f"if b'{SECRET}' in place.read_bytes()] + [str(len(os.environ.get('DEPLOY_KEY', '')))]"
    )
    assert (await attack(work, code(body))).summary == "0"


@pytest.mark.parametrize("kind", ["STREAM", "DGRAM"])
async def test_skill_reaches_no_local_socket(kind: str, work: Path) -> None:
    path = str(work / "s")
    with socket.socket(socket.AF_UNIX, getattr(socket, f"SOCK_{kind}")) as server:
        server.bind(path)
        server.settimeout(0)
        if kind == "STREAM":
            server.listen()
        body = (
            f"s = socket.socket(socket.AF_UNIX, socket.SOCK_{kind}); s.connect({path!r}); s.send(b'x')\n"
            "    with trying():\n"
            f"        s, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_{kind}); s.connect({path!r}); s.send(b'x')"
        )
        assert "-" not in (await attack(work, code(body))).summary
        with pytest.raises(BlockingIOError):
            server.accept() if kind == "STREAM" else server.recv(1)


async def test_skill_reaches_no_server(work: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        body = f"socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 2)"
        assert (await attack(work, code(body))).summary == "ConnectionRefusedError"
        with pytest.raises(BlockingIOError):
            server.accept()


async def test_process_in_another_session_ends_with_the_skill(work: Path) -> None:
    body = f"subprocess.Popen(['sleep', '{NAP}'], start_new_session=True); told.append('started')"
    assert (await attack(work, code(body))).summary == "started"
    assert [each for each in psutil.process_iter(["cmdline"]) if NAP in (each.info["cmdline"] or ())] == []


async def test_cancelled_call_ends_the_skill(work: Path) -> None:
    os.mkfifo(work / "target" / "ready")
    body = f"Path({str(work / 'target' / 'ready')!r}).write_text('x'); subprocess.run(['sleep', '{NAP}'])"
    skill = skill_with(work, code(body))
    asked = request(work / "out", path=str(work / "target")).model_copy(update={"constraints": {"read_only": True}})
    async with anyio.create_task_group() as group:
        group.start_soon(run_skill, skill, asked)
        await anyio.to_thread.run_sync((work / "target" / "ready").read_text, abandon_on_cancel=True)
        group.cancel_scope.cancel()
    assert [each for each in psutil.process_iter(["cmdline"]) if NAP in (each.info["cmdline"] or ())] == []


async def test_cancelled_call_ends_the_program_of_the_skill(work: Path) -> None:
    ready = work / "skills" / "attack" / "ready"
    body = (
        "place = request.workdir / 'p'; place.mkdir()\n"
        f"        command = ['sh', '-c', 'sleep {NAP} & echo > {ready}; wait']\n"
        f"        view = pipelines.View(place, writable=True, readable=(Path({str(ready)!r}),))\n"
        "        pipelines.run_confined(command, view, {'PATH': '/usr/bin:/bin'}, 600.0)"
    )
    asked = request(work / "out", path=str(work / "target")).model_copy(update={"constraints": {"read_only": True}})
    skill = skill_with(work, code(body))
    os.mkfifo(ready)  # a program reads the folder of its skill
    async with anyio.create_task_group() as group:
        group.start_soon(run_skill, skill, asked)
        await anyio.to_thread.run_sync(ready.read_text, abandon_on_cancel=True)
        with anyio.fail_after(PATIENCE_SECONDS):  # it has begun, but may not be called sleep yet
            while not [each for each in psutil.process_iter(["cmdline"]) if NAP in (each.info["cmdline"] or ())]:
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    with anyio.fail_after(PATIENCE_SECONDS):
        while [each for each in psutil.process_iter(["cmdline"]) if NAP in (each.info["cmdline"] or ())]:
            await anyio.lowlevel.checkpoint()


async def test_skill_that_ends_its_process_has_failed(work: Path) -> None:
    with pytest.raises(SkillFailed, match="process of skill 'attack' ended unexpectedly"):
        await attack(work, code("os._exit(3)"))


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"\\x80\\x04N.", "invalid message"),
        (b'{\\"answer\\": [1, 2]}', "invalid message"),
        (b"[" * 100_000, "invalid message"),
        (b'{\\"answer\\": [true, \\"{}\\"]}', "invalid result"),
    ],
)
async def test_forged_message_fails_the_skill_only(sent: bytes, told: str, work: Path) -> None:
    text = sent.decode("latin-1")
    body = (
        f'data = "{text}".encode("latin-1")\n'
        "        for number in range(3, 64):\n"
        "            with contextlib.suppress(OSError):\n"
        "                os.write(number, len(data).to_bytes(8, 'big') + data)\n"
        "        os._exit(0)"
    )
    with pytest.raises(SkillFailed, match=told):
        await attack(work, code(body))


async def test_endless_message_is_refused(work: Path) -> None:
    body = (
        "for number in range(3, 64):\n"
        "            with contextlib.suppress(OSError):\n"
        "                os.write(number, b'\\x7f' * 8)\n"
        "        signal.pause()"
    )
    with pytest.raises(SkillFailed, match="longer than"):
        await attack(work, code(body))


@pytest.mark.parametrize("path", ["../../../a.txt", "/etc/x", "a/../../b", ""])
async def test_program_gets_no_files_outside_of_its_folder(path: str, work: Path) -> None:
    body = (
        "from fireswarm.processes import messages\n"
        "        ask = messages.elsewhere[0]\n"
        "        from fireswarm.skills.running import confined_child\n"
        "        import base64, json\n"
        "        real = json.dumps\n"
        f"        files = {{{path!r}: 'eA=='}}\n"
        "        confined_child.json.dumps = lambda value: real({'run': {**value['run'], 'files': files}})\n"
        "        try:\n"
        "            ask(['true'], pipelines.View(request.workdir), {}, 10.0)\n"
        "        except Exception as error:\n"
        "            told.append(str(error))\n"
        "        confined_child.json.dumps = real"
    )
    assert "within the workspace" in (await attack(work, code(body))).summary


async def test_skill_runs_a_program_confined_on_its_files(work: Path) -> None:
    body = (
        "place = request.workdir / 'p'; (place / 'in').mkdir(parents=True)\n"
        "        (place / 'in' / 'x').write_text('brought')\n"
        "        command = ['sh', '-c', f'cat in/x; ls {target} 2>&1; echo x > y; pwd; echo $WHERE']\n"
        "        code, out = pipelines.run_confined(command, pipelines.View(place, writable=True),\n"
        "                                           {'PATH': '/usr/bin:/bin', 'WHERE': str(place)}, 20.0)\n"
        "        told.append(f'{code} {out}')"
    )
    told = (await attack(work, code(body))).summary
    assert told.startswith("0 brought") and "No such file" in told
    assert told.split()[-2:] == [str(work / "out" / "p")] * 2


async def test_machine_without_bubblewrap_refuses_the_skill(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(work))
    hide_landlock(monkeypatch)
    with pytest.raises(SandboxRefused, match="skill 'attack' cannot be confined: bubblewrap is not installed"):
        await attack(work, code('told.append("ran")'))


async def test_kernel_without_namespaces_refuses_the_skill(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = work / "bin"
    broken.mkdir()
    (broken / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    (broken / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{broken}:{os.environ['PATH']}")
    run_programs_of(broken, monkeypatch)
    hide_landlock(monkeypatch)
    with pytest.raises(SandboxRefused, match="No permissions to create new namespace"):
        await attack(work, code('told.append("ran")'))


async def test_process_that_is_killed_at_its_start_is_no_missing_confinement(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "bin").mkdir()
    (work / "bin" / "bwrap").write_text("#!/bin/sh\nkill -9 $$\n")
    (work / "bin" / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{work / 'bin'}:{os.environ['PATH']}")

    def works(program: str, owner: tuple[int, int] | None) -> str:
        return ""

    monkeypatch.setattr(ladder, "reason_against", works)
    run_programs_of(work / "bin", monkeypatch)
    with pytest.raises(SkillFailed, match="ended unexpectedly: out of memory, killed, or crashed"):
        await attack(work, code('told.append("ran")'))


async def test_operator_can_allow_the_skill_without_confinement(work: Path) -> None:
    skill = skill_with(work, code('told.append("ran")'))
    asked = request(work / "out", path=str(work / "target")).model_copy(update={"constraints": {"read_only": True}})
    assert (await run_skill(skill, asked, rules=CodeRules("none"))).summary == "ran"


async def test_calls_at_once_do_not_meet(work: Path) -> None:
    skill = skill_with(work, code("told.append(str(sorted(p.name for p in request.workdir.iterdir())))"))
    threads = threading.active_count()
    told: list[str] = []

    async def call(name: str) -> None:
        (work / name).mkdir()
        asked = request(work / name, path=str(work / "target"))
        result = await run_skill(skill, asked.model_copy(update={"constraints": {"read_only": True}}))
        told.append(result.summary)

    async with anyio.create_task_group() as group:
        for name in ("one", "two", "three"):
            group.start_soon(call, name)
    assert told == ["['outputs']"] * 3
    assert threading.active_count() <= threads + 4
