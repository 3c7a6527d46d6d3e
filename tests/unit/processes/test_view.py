"""Commands of a hostile model: none changes the workspace of a read-only task, or sees more than it may."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import anyio
import psutil
import pytest

from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement import bubblewrap, mounts
from fireswarm.processes.confinement.control_group import new_control_group
from fireswarm.processes.confinement.process_limits import MEGABYTE, ProcessLimits
from fireswarm.processes.confinement.view import HOME, View
from fireswarm.processes.output import KILLED
from fireswarm.processes.shell import Shell
from tests.support.confinement import hide_landlock, run_programs_of
from tests.support.patience import PATIENCE_SECONDS
from tests.support.processes import own_control_groups

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap runs on Linux"),
    pytest.mark.usefixtures("rung"),
]


SECRET = "sesame-4711"
TOOLS = {Path(name).parts[0] for name in mounts.TOOLCHAINS}
"""Names in a home that lead to toolchains."""

NAP = f"62.{os.getpid()}"
"""An argument that tells the processes of this test from all others."""

NEAR_NAMES = dict.fromkeys(("LANGSMITH_LOGIN", "TERMINUS", "PATHWAY", "TZAR"), SECRET)
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PHRASE": SECRET,
    "BASH_ENV": "/tmp/x",
} | NEAR_NAMES
SHELL = Shell(("/bin/bash", "-lc"), 16_000, ENVIRONMENT)


def works(folder: Path) -> str:
    """Return the reason why nothing can be confined here, or ""."""
    try:
        with View(folder).confine({}):
            return ""
    except SandboxRefused as error:
        return str(error)


@pytest.fixture(params=["root", "other"] if os.geteuid() == 0 else ["user"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with files and a repository; as root, one of root's and one of another user's."""
    if reason := works(tmp_path):
        pytest.skip(reason)
    folder = tmp_path / "workspace"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "a.txt").write_text("b\na\n")
    (folder / "-delete").write_text("an option-shaped name\n")
    (folder / "-oa.txt").write_text("another\n")
    (folder / "deep" / "er" / "x.py").write_text("print('x')\n")
    (folder / "run.sh").write_text("#!/bin/sh\necho pwned > a.txt\n")
    (folder / "run.sh").chmod(0o755)
    for arguments in (
        ("init", "-q"),
        ("add", "-A"),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"),
    ):
        subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)
    (folder / "a.txt").write_text("a\nb\n")
    config = '[core]\n\tfsmonitor = ./run.sh\n[filter "x"]\n\tclean = ./run.sh\n[diff]\n\texternal = ./run.sh\n'
    with (folder / ".git" / "config").open("a") as file:
        file.write(config)
    (folder / ".gitattributes").write_text("* filter=x\n")
    (tmp_path / "outside.txt").write_text(SECRET)
    (folder / "link").symlink_to(tmp_path / "outside.txt")
    if request.param == "other":
        subprocess.run(["chown", "-R", "61200:61200", str(folder)], check=True)
    return folder


def state(folder: Path) -> dict[str, object]:
    """Everything about a folder that a command could change."""
    found: dict[str, object] = {}
    for path in sorted([folder, *folder.rglob("*")]):
        status = path.lstat()
        target = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path)] = (status.st_mode, status.st_uid, status.st_size, status.st_mtime_ns, target)
    return found


# ruff: noqa: E501 - the list is read by the eye
WRITING = [
    # programs that write
    "touch b", "rm a.txt", "rm -rf .", "mv a.txt b", "cp a.txt b", "ln -s a.txt b", "ln a.txt b", "mkdir d", "rmdir deep",
    "tee b < a.txt", "dd if=/dev/zero of=a.txt count=1", "truncate -s 0 a.txt", "install a.txt b", "chmod 777 a.txt",
    "chown 1000 a.txt", "touch -d 2000-01-01 a.txt", "setfattr -n user.x -v 1 a.txt", "mkfifo p", "mknod n p",
    "shred a.txt", "sed -i s/a/z/ a.txt", "awk 'BEGIN{print 1 > \"b\"}'", "perl -e 'unlink \"a.txt\"'",
    "python3 -c 'open(\"a.txt\",\"w\")'", "python3 deep/er/x.py; python3 -m py_compile deep/er/x.py",
    "tar cf b.tar a.txt", "zip b.zip a.txt", "gzip a.txt", "split a.txt", "patch a.txt /dev/null", "rsync a.txt b",
    "git commit --allow-empty -m x", "git stash", "git checkout .", "git gc", "git add -A", "git config user.name x",
    "git update-index --refresh", "git init d", "git worktree add d", "git branch b", "git tag t",
    # readers with options that write
    "sort -o a.txt a.txt", "sort --output=a.txt run.sh", "sort * ", "uniq a.txt b", "uniq *", "find . -delete",
    "find * -name x", "find . -exec rm {} +", "find . -fprintf b x", "date -s 2020-01-01", "tree -o b", "tree -R -L 1 -H .",
    "file -C -m a.txt", "diff --output=b a.txt run.sh", "rg --pre ./run.sh x", "git diff --output=b", "git grep -O./run.sh x",
    "git log --output=b", "xargs rm < a.txt", "cat a.txt > b", "echo x >> a.txt", ": > a.txt", "exec 3<> a.txt; echo x >&3",
    "less a.txt <<< 's b'", "vi -es -c wq a.txt", "ed a.txt <<< w", "column a.txt > b",
    # programs that a folder brings along
    "./run.sh", "sh run.sh", "git status", "git diff", "git log -p", "git show", "git blame a.txt", "git ls-files -m",
    # spellings
    "$(echo touch) b", "`echo touch` b", "eval touch b", "bash -c 'touch b'", "sh -c \"touch b\"", "env touch b",
    "command touch b", "nohup touch b", "time touch b", "! touch b", "(touch b)", "{ touch b; }", "touch b &", "ls; touch b",
    "ls\ntouch b", "ls && touch b || touch b", "ls | tee b", "cat <(touch b)", "X=touch; $X b", "printf 'a%n' PATH",
    "printf -v 'a[$(touch b)]' 1", "test -v 'a[$(touch b)]'", r"$'\x74ouch' b", "trap 'touch b' EXIT", "PATH=. run.sh",
    "set -- touch b; \"$@\"", "f() { touch b; }; f", "source run.sh", ". ./run.sh", "alias x='touch b'; x",
    "PROMPT_COMMAND='touch b' bash -i -c true", "BASH_ENV=./run.sh bash -c true", "ENV=./run.sh sh -i -c true",
    # ways around the mount
    "mount -o remount,rw .", "mount --bind /tmp .", "umount .", "unshare -Ur touch b", "unshare -Urm mount -o remount,rw .",
    "unshare --user --map-root-user sh -c 'mount -o remount,rw . ; touch b'", "bwrap --bind / / touch $PWD/b", "chroot . touch b",
    "nsenter -t 1 -m touch $PWD/b", "sudo touch b", "su -c 'touch b'", "setpriv --reuid 0 touch b", "cd /proc/self/cwd; touch b",
    "cd /proc/1/root$PWD && touch b", "ls -d /proc/[0-9]* | while read p; do echo x > $p/cwd/b; done",
    "python3 -c 'import os; os.chdir(\"..\"); open(os.getcwd()+\"/workspace/b\",\"w\")'", "echo x > /proc/self/fd/3", "debugfs -w /dev/sda",
    "echo x > link", "echo x > ../outside.txt", "mv ../workspace ../w", "rm -rf ../workspace", "touch ../b",
    "(sleep 0.2; touch b) & disown", "setsid sh -c 'sleep 0.1; touch b' &", "nohup sh -c 'touch b' & wait",
    "at now <<< 'touch b'", "crontab - <<< '* * * * * touch b'", "systemd-run touch b", "gdb -p 1 -batch",
]  # fmt: skip


@pytest.mark.parametrize("batch", range(8))
async def test_read_only_command_changes_nothing(workspace: Path, batch: int) -> None:
    before, outside = state(workspace), state(workspace.parent)
    for command in WRITING[batch::8]:
        await SHELL.run(command, workspace, 4, View(workspace))
        assert state(workspace) == before, command
        assert state(workspace.parent) == outside, command
    assert len(WRITING) >= 112


@pytest.mark.parametrize(
    "command",
    ["touch b", "./run.sh", "git status", "sort -o a.txt run.sh", "find . -name a.txt -delete", "ls\ntouch b"],
)
async def test_same_command_changes_a_workspace_that_may_be_written(workspace: Path, command: str) -> None:
    before = state(workspace)
    await SHELL.run(command, workspace, 20, View(workspace, writable=True))
    assert state(workspace) != before


def owner_of(folder: Path) -> int:
    return folder.stat().st_uid


async def text_of(command: str, view: View) -> str:
    ran = await SHELL.run(command, view.workspace, 20, view)
    return ran.stdout + ran.stderr


@pytest.mark.parametrize("writable", [False, True])
async def test_command_sees_no_other_files(workspace: Path, writable: bool, rung: str) -> None:
    view = View(workspace, writable=writable)
    home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    for path in ("/etc/shadow", "/etc/hostname", "/root", "/var", "/run", "/sys", "/boot", "/srv", "/mnt", home):
        listed = await text_of(f"ls -A {path} 2>/dev/null | head -c 200", view)
        named = (
            (str(path),) if path in ("/etc/shadow", "/etc/hostname") else ()
        )  # Landlock hides what a file holds, not its name
        assert {*listed.split()} <= {*workspace.parts, *TOOLS, *named}, (path, listed)
        assert not await text_of(f"cat {path} 2>/dev/null", view)
    assert SECRET not in await text_of("cat link ../outside.txt; cat /proc/*/root$PWD/../outside.txt; ls -R /tmp", view)
    assert (await text_of("cat ~/.bash_history ~/.ssh/* ~/.aws/* 2>/dev/null; ls -A ~", view)).strip() == ""
    if rung == "bubblewrap":
        assert (await text_of("echo ~; cd; pwd", view)).split() == [HOME, HOME]


async def test_read_only_command_finds_no_secret_in_any_environment(workspace: Path) -> None:
    view = View(workspace)
    found = await text_of("env; cat /proc/*/environ /proc/*/task/*/environ 2>/dev/null | tr '\\0' '\\n'; set", view)
    assert SECRET not in found
    assert "PATH=/usr/local/bin" in found


async def test_command_cannot_change_kernel_settings(workspace: Path, rung: str) -> None:
    settings = Path("/proc/sys/kernel")
    before = {name: (settings / name).read_bytes() for name in ("hostname", "core_pattern", "pid_max", "panic")}
    for writable in (False, True):
        view = View(workspace, writable=writable)
        await text_of("for f in $(find /proc/sys /proc/irq /sys -type f 2>/dev/null); do echo 1 > $f; done", view)
        await text_of("echo pwned > /proc/sys/kernel/hostname; hostname pwned; sysctl -w kernel.panic=9", view)
        await text_of(
            "echo h > /proc/sysrq-trigger; cat /proc/kcore | head -c 1; dmesg; cat /proc/kmsg & sleep 0.1", view
        )
        if rung == "bubblewrap":
            assert (await text_of("ls -A /proc/sys", view)).strip() == ""
    assert {name: (settings / name).read_bytes() for name in before} == before


async def test_command_sees_only_its_own_processes(workspace: Path, rung: str) -> None:
    listed = await text_of("ls /proc | grep -c '^[0-9]*$'; kill -9 -1; echo alive", View(workspace))
    if rung == "bubblewrap":
        assert int(listed.split()[0]) < 10
        return
    assert not await text_of("cat /proc/$PPID/environ /proc/1/environ 2>/dev/null", View(workspace))


@pytest.mark.parametrize("writable", [True, False])
async def test_command_does_not_see_the_store_of_a_swarm_in_its_workspace(workspace: Path, writable: bool) -> None:
    (workspace / ".fireswarm").mkdir()
    (workspace / ".fireswarm" / "store.db").write_text("tasks")
    told = await text_of("ls -A .fireswarm; touch .fireswarm/x; rm -rf .fireswarm; true", View(workspace, writable))
    assert "store.db" not in told
    assert (workspace / ".fireswarm" / "store.db").read_text() == "tasks"
    assert [path.name for path in (workspace / ".fireswarm").iterdir()] == ["store.db"]


async def test_command_has_no_network_unless_it_is_allowed(workspace: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        knock = f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected"
        for writable in (False, True):
            assert "connected" not in await text_of(knock, View(workspace, writable=writable))
        assert "connected" in await text_of(knock, View(workspace, writable=True, network=True))
        abstract = socket.socket(socket.AF_UNIX)
        abstract.bind("\0fireswarm-test")
        abstract.listen()
        code = "import socket; s=socket.socket(socket.AF_UNIX); s.connect('\\\\0fireswarm-test'); print('connected')"
        assert "connected" not in await text_of(f'python3 -c "{code}"', View(workspace))
        abstract.close()


async def test_command_works_as_a_user_without_privileges(workspace: Path, rung: str) -> None:
    told = await text_of("id -u; whoami; grep -E 'CapEff|NoNewPrivs' /proc/self/status; sudo -n true", View(workspace))
    lines = told.split()
    owner = owner_of(workspace)
    if rung == "bubblewrap":
        assert lines[:2] == [str(owner if owner != os.geteuid() else 1000), "agent"]
    assert lines[0] == str(owner if owner != os.geteuid() or rung == "landlock" else 1000)
    # The privilege to pass private folders above the workspace, within what Landlock allows.
    passing = "0000000000000004" if rung == "landlock" and owner != os.geteuid() else "0000000000000000"
    assert passing in lines and "1" in lines


async def test_files_that_a_command_writes_belong_to_the_owner_of_the_workspace(workspace: Path) -> None:
    await text_of("echo x > new.txt; mkdir folder", View(workspace, writable=True))
    assert {owner_of(workspace / name) for name in ("new.txt", "folder")} == {owner_of(workspace)}


@pytest.mark.parametrize("rung", ["bubblewrap"], indirect=True)
async def test_temporary_files_are_limited_in_size(workspace: Path) -> None:
    told = await text_of(
        "head -c 1100000000 /dev/zero > /tmp/big; echo $?; head -c 1100000000 /dev/zero > ~/big", View(workspace)
    )
    assert told.count("No space left on device") == 2


async def test_folders_named_by_the_operator_can_be_read_but_not_written(workspace: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "note.txt").write_text("of use")
    shared.chmod(0o755)
    view = View(workspace, writable=True, readable=(shared, workspace / "deep", tmp_path / "nowhere"))
    assert await text_of(f"cat {shared}/note.txt", view) == "of use"
    await text_of(f"touch {shared}/b; touch deep/b", view)
    assert not (shared / "b").exists()
    assert (workspace / "deep" / "b").exists()


async def test_usual_work_is_possible(workspace: Path) -> None:
    view = View(workspace)
    line = "sort a.txt | uniq -c | wc -l; grep -rn print . --include=*.py | cut -d: -f1"
    assert (await text_of(line, view)).split() == ["2", "./deep/er/x.py"]
    assert "x" in await text_of("python3 deep/er/x.py; mktemp; touch ~/b /tmp/b; git log --oneline", view)
    view = View(workspace, writable=True)
    told = await text_of(
        "python3 -c 'import ssl, sqlite3, json; print(1)' && python3 -m venv --without-pip $TMPDIR/v && $TMPDIR/v/bin/python -V",
        view,
    )
    assert told.startswith("1\nPython 3")


async def test_program_of_a_version_manager_that_is_not_there_does_not_hide_the_systems(
    workspace: Path, tmp_path: Path
) -> None:
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "python3").write_text("#!/bin/sh\nexec /nowhere/manager python3\n")
    (shims / "python3").chmod(0o755)
    shell = Shell(("/bin/bash", "-c"), 16_000, ENVIRONMENT | {"PATH": f"{shims}:/usr/bin:/bin"})
    assert (await shell.run("python3 -c 'print(1)'", workspace, 20, View(workspace))).stdout == "1\n"


async def test_workspace_of_another_user_below_a_private_folder_can_be_worked_in(tmp_path: Path) -> None:
    if os.geteuid() != 0 or works(tmp_path):
        pytest.skip("needs root and bubblewrap")
    folder = tmp_path / "private" / "workspace"
    folder.mkdir(parents=True)
    (tmp_path / "private").chmod(0o700)
    shutil.chown(folder, 61200, 61200)
    folder.chmod(0o700)
    ran = await SHELL.run("touch b", folder, 20, View(folder, writable=True))
    assert ran.exit_code == 0 and (folder / "b").exists()


@pytest.mark.parametrize("folder", ["/", "/proc", "/usr/lib", "/etc"])
async def test_command_cannot_work_in_a_system_folder(folder: str) -> None:
    with pytest.raises(SandboxRefused, match="work in another folder"):
        await SHELL.run("ls", Path(folder), 20, View(Path(folder)))


@pytest.mark.parametrize("rung", ["bubblewrap"], indirect=True)
async def test_machine_without_bubblewrap_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    hide_landlock(monkeypatch)
    with pytest.raises(SandboxRefused, match="apt-get install bubblewrap"):
        await SHELL.run("touch b", tmp_path, 20, View(tmp_path, writable=True))
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("rung", ["bubblewrap"], indirect=True)
async def test_bubblewrap_that_the_kernel_forbids_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    run_programs_of(tmp_path, monkeypatch)
    hide_landlock(monkeypatch)
    with pytest.raises(SandboxRefused, match="cannot confine commands on this machine: bwrap: No permissions"):
        await SHELL.run("touch b", tmp_path, 20, View(tmp_path, writable=True))
    assert not (tmp_path / "b").exists()


async def test_timeout_ends_everything_that_was_started(workspace: Path) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        ran = await SHELL.run("setsid sleep 60 & sleep 60 & sleep 60", workspace, 1, View(workspace))
    assert ran.timed_out


async def test_folder_that_vanished_is_named(tmp_path: Path) -> None:
    with pytest.raises(SandboxRefused, match="gone: No such file or directory"):
        await SHELL.run("ls", tmp_path / "gone", 20, View(tmp_path / "gone"))


@pytest.mark.parametrize("writable", [False, True], ids=["read-only", "writable"])
async def test_fork_bomb_is_killed(workspace: Path, writable: bool) -> None:
    limits = ProcessLimits(processes=60)
    with closing(new_control_group("trial", limits)) as group:
        if not group.folders and not limits.prefix:
            pytest.skip("root cannot make control groups here: a bomb would take the whole machine for seconds")
    shell = replace(SHELL, limits=limits)
    line = f"bomb() {{ bomb | bomb & sleep {NAP}; }}; bomb; sleep {NAP}"
    before = own_control_groups()
    ran = await shell.run(line, workspace, 60, View(workspace, writable))
    assert (ran.exit_code, ran.timed_out, ran.ended) == (KILLED, False, "it had more than 60 processes")
    assert own_control_groups() <= before
    assert [each for each in psutil.process_iter(["cmdline"]) if NAP in (each.info["cmdline"] or ())] == []


async def test_command_that_takes_too_much_memory_is_killed(workspace: Path) -> None:
    shell = replace(SHELL, limits=ProcessLimits(memory_bytes=100 * MEGABYTE))
    line = "python3 -c 'import os; x = bytearray(os.urandom(1)) * 130_000_000; input(); os.read(os.pipe()[0], 1)'"
    ran = await shell.run(f"sleep {NAP} | {line}", workspace, 60, View(workspace))
    assert (ran.exit_code, ran.ended) == (KILLED, "it took more than 100 MB of memory")


@pytest.mark.parametrize("start", ["exec 3> big", "exec 3> big; rm big", "mkdir -m 300 deep/d; exec 3> deep/d/big"])
async def test_command_that_fills_the_disk_is_killed(start: str, workspace: Path) -> None:
    shell = replace(SHELL, limits=ProcessLimits(disk_bytes=100 * MEGABYTE))
    command = f"{start}; head -c 400000000 /dev/zero >&3; sleep 60"
    ran = await shell.run(command, workspace, 60.0, View(workspace, writable=True))
    assert (ran.exit_code, ran.ended) == (KILLED, "it took more than 100 MB of disk")


async def test_reserved_memory_is_not_counted(workspace: Path) -> None:
    shell = replace(SHELL, limits=ProcessLimits(memory_bytes=100 * MEGABYTE))
    line = "python3 -c 'import mmap, time; mmap.mmap(-1, 10**10); time.sleep(0.5)'; echo fine"
    assert (await shell.run(line, workspace, 60, View(workspace))).stdout == "fine\n"


@pytest.mark.parametrize("rung", ["bubblewrap"], indirect=True)
def test_trial_of_bubblewrap_is_out_of_reach_of_a_terminals_signals(tmp_path: Path) -> None:
    """Ctrl+C goes to the processes of the terminal's session: it ended the trial, and all commands were refused."""
    program = tmp_path / "bwrap"
    program.write_text(f"#!/bin/sh\nread -r stat < /proc/self/stat\nset -- $stat\necho $6 > {tmp_path}/session\n")
    program.chmod(0o755)
    assert bubblewrap.reason_against(str(program), None) == ""
    assert int((tmp_path / "session").read_text()) != os.getsid(0)
