"""Commands on a machine without bubblewrap: Landlock and the filter of system calls confine them."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from pathlib import Path

import anyio
import psutil
import pytest

from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement.bubblewrap import reason_against
from fireswarm.processes.confinement.landlock.launch import landlock_version
from fireswarm.processes.confinement.paths.late_names import LateNames
from fireswarm.processes.confinement.paths.names import GIT_PROTECTED, PROTECTED, is_protected
from fireswarm.processes.confinement.programs import find_program
from fireswarm.processes.confinement.protected import changeable, everything_but
from fireswarm.processes.confinement.view import View
from fireswarm.processes.run import run_confined
from fireswarm.processes.shell import Shell
from tests.support.confinement import hide_landlock, use_rung
from tests.support.patience import PATIENCE_SECONDS

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="Landlock is a part of Linux"),
    pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock"),
]

NAP = f"63.{os.getpid()}"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("a = 1\n")
    (folder / "top.txt").write_text("top\n")
    for name in ("hooks", "info", "objects", "refs"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git" / "config").write_text("[core]\n")
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


def run(line: str, folder: Path, *, writable: bool = True) -> str:
    command = ["/bin/bash", "-c", line]
    given = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
    return run_confined(command, View(folder, writable), given, PATIENCE_SECONDS, confinement="landlock")[1]


def test_new_names_at_the_top_of_a_workspace_can_be_made_changed_and_removed(workspace: Path) -> None:
    lines = (
        "echo x > new && cat new && mkdir -p d/e && echo f > d/e/f && chmod 755 d/e/f && mv d/e/f d/g && cat d/g",
        "ln -s src link && ln top.txt second && cat link/a.py second && sed -i s/top/pot/ top.txt && cat top.txt",
        "truncate -s 1 new && wc -c < new; rm -r d link second new && ls",
    )
    assert [run(line, workspace).split() for line in lines] == [
        ["x", "f"],
        ["a", "=", "1", "top", "pot"],
        ["1", "src", "top.txt"],
    ]
    assert (workspace / "top.txt").read_text() == "pot\n"


@pytest.mark.parametrize("name", sorted(PROTECTED | {".fireswarm", ".git"}))
def test_protected_names_cannot_be_made(name: str, workspace: Path) -> None:
    if name == ".git":
        (workspace / ".git").rename(workspace / "elsewhere")
    run(f"echo x > {name}; mkdir {name}; mv src {name}; ln top.txt {name}; ln -s src {name}; mkfifo {name}", workspace)
    assert not os.path.lexists(workspace / name)
    assert (workspace / "src" / "a.py").exists()


@pytest.mark.parametrize("name", sorted(GIT_PROTECTED))
def test_what_makes_git_start_programs_cannot_be_made_or_changed(name: str, workspace: Path) -> None:
    place = workspace / ".git" / name
    before = place.exists()
    run(
        f"echo x > .git/{name}; echo x > .git/{name}/x; mkdir .git/{name}; rm -rf .git/{name}; mv src .git/{name};"
        f" mv .git g; echo y > .git/other; mv .git/other .git/{name}; ln .git/{name} copied; echo z >> copied",
        workspace,
    )
    assert place.exists() == before and (workspace / ".git" / "config").read_text() == "[core]\n"
    assert not place.is_dir() or list(place.iterdir()) == []


def test_git_commits_on_landlock(workspace: Path) -> None:
    told = run(
        "rm -rf x; git -c user.name=a -c user.email=a@b -c init.defaultBranch=main add -A"
        " && git -c user.name=a -c user.email=a@b commit -qm first && git log --format=%s && git status --short",
        workspace,
    )
    assert told.split() == ["first"]


@pytest.mark.parametrize("writable", [True, False])
def test_modes_times_and_owners_of_other_files_stay(writable: bool, workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine")
    other.chmod(0o644)
    os.utime(other, (1_000_000_000, 1_000_000_000))
    (workspace / "link").symlink_to(other)
    places = " ".join((str(other), "../other", "link", f"/proc/self/cwd/../{other.name}", f"/proc/self/root{other}"))
    told = run(
        f"for p in {places}; do chmod 777 $p; touch $p; touch -h $p; chown 0:12345 $p; truncate -s 0 $p; mv $p x;"
        f" ln $p y; rm $p; done; exec 5< {other}; exec 6< .; chmod 700 /proc/self/fd/6/../other; echo tried",
        workspace,
        writable=writable,
    )
    assert told.endswith("tried\n") and "Traceback" not in told
    known = other.stat()
    assert (known.st_mode & 0o7777, known.st_mtime, known.st_size, known.st_nlink) == (0o644, 1_000_000_000, 4, 1)
    if not writable:
        assert (workspace / "src" / "a.py").stat().st_mode & 0o111 == 0


def test_read_only_command_changes_no_mode_through_an_open_file(workspace: Path) -> None:
    code = "import os; number = os.open('top.txt', os.O_RDONLY); os.fchmod(number, 0o777)"
    told = run(f'/usr/bin/python3 -c "{code}"; chmod 777 src top.txt', workspace, writable=False)
    assert "PermissionError" in told
    assert (workspace / "top.txt").stat().st_mode & 0o777 != 0o777


def test_other_processes_keep_their_limits_and_are_not_ended(workspace: Path) -> None:
    victim = os.getpid()
    before = psutil.Process().nice()
    code = f"import resource; resource.prlimit({victim}, resource.RLIMIT_NOFILE, (9, 9))"
    told = run(
        f'kill -9 {victim}; kill -STOP {victim}; renice 19 {victim}; /usr/bin/python3 -c "{code}"; cat /proc/{victim}/'
        "environ; echo alive",
        workspace,
    )
    assert told.endswith("alive\n") and "PermissionError" in told
    assert psutil.Process().nice() == before


@pytest.mark.parametrize("line", ["setsid sleep NAP &", "(setsid env -i sleep NAP &) ; env -i sleep NAP &"])
def test_what_a_command_leaves_behind_ends_with_it(line: str, workspace: Path) -> None:
    run(f"{line} echo started".replace("NAP", NAP), workspace)
    assert [each for each in psutil.process_iter(["cmdline"]) if NAP in (each.info["cmdline"] or ())] == []


def test_a_command_that_runs_too_long_is_ended_with_all_it_started(workspace: Path) -> None:
    view, given = View(workspace, writable=True), {"PATH": "/usr/bin:/bin"}
    line = f"for i in 1 2 3; do (setsid env -i sleep {NAP} &); done; sleep {NAP}"
    began = time.monotonic()
    _, told = run_confined(["/bin/sh", "-c", line], view, given, 1.0, confinement="landlock")
    assert "killed after 1 s" in told and time.monotonic() - began < PATIENCE_SECONDS
    assert [each for each in psutil.process_iter(["cmdline"]) if NAP in (each.info["cmdline"] or ())] == []


def test_store_in_the_workspace_is_not_read_and_new_names_beside_it_are(workspace: Path) -> None:
    (workspace / ".fireswarm").mkdir()
    (workspace / ".fireswarm" / "store.db").write_text("tasks")
    told = run("ls; ls .fireswarm; cat .fireswarm/store.db; echo n > new; cat new; mkdir d; ls d; echo done", workspace)
    assert "store.db" not in told.replace(".fireswarm/store.db", "") and "tasks" not in told
    assert told.splitlines()[-2:] == ["n", "done"] and told.splitlines()[:2] == ["src", "top.txt"]


def test_missing_program_is_named(workspace: Path) -> None:
    with pytest.raises(SandboxRefused, match="cannot start /no/such/program: it does not exist in this view"):
        run_confined(["/no/such/program"], View(workspace), {}, PATIENCE_SECONDS, confinement="landlock")


def test_kernel_without_landlock_is_named(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hide_landlock(monkeypatch)
    with pytest.raises(SandboxRefused, match=r"Linux 5\.13 or newer"):
        run("true", workspace)


def test_a_program_of_a_workspace_is_not_run_for_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (".venv/bin", "node_modules/.bin"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "git").write_text("#!/bin/sh\n")
        (tmp_path / folder / "git").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    path = f"{tmp_path}/.venv/bin:node_modules/.bin::.:{tmp_path}/node_modules/.bin"
    monkeypatch.setenv("PATH", path)
    assert find_program("git") is None
    monkeypatch.setenv("PATH", f"{path}:/usr/bin")
    assert find_program("git") in ("/usr/bin/git", None)


def test_places_without_what_is_hidden(workspace: Path) -> None:
    hidden = [workspace / "src" / "a.py", workspace / "none"]
    assert everything_but([workspace], hidden) == [workspace / ".git", workspace / "top.txt"]
    assert everything_but([workspace], []) == [workspace]
    inside = {path.relative_to(workspace).as_posix() for path in changeable(workspace, [])}
    assert inside == {".git/HEAD", ".git/objects", ".git/refs", "src", "top.txt"}
    assert is_protected(("Skills", "x")) and not is_protected(("src", "skills")) and not is_protected(())


@pytest.mark.parametrize("rung", ["bubblewrap", "landlock"])
def test_protected_names_stay_as_they_are(rung: str, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if rung == "bubblewrap" and (find_program("bwrap") is None or reason_against(str(find_program("bwrap")), None)):
        pytest.skip("bubblewrap does not work here")
    use_rung(rung, monkeypatch)
    (workspace / "skills" / "own").mkdir(parents=True)
    (workspace / "skills" / "own" / "SKILL.md").write_text("mine")
    (workspace / "agent.yaml").write_text("mine")
    line = (
        "echo x >> agent.yaml; echo x > skills/own/SKILL.md; mv skills s; rm -rf skills agent.yaml; mv .git g;"
        " echo x > .git/config; echo x > .git/hooks/pre-commit; mkdir roles .vscode; echo x > .envrc;"
        " echo x > .git/commondir; echo y > usual.txt"
    )
    shell, view = Shell(("/bin/bash", "-c")), View(workspace, writable=True)
    ran = anyio.run(shell.run, line, workspace, PATIENCE_SECONDS, view)
    assert (workspace / "skills" / "own" / "SKILL.md").read_text() == (workspace / "agent.yaml").read_text() == "mine"
    assert (workspace / ".git" / "config").read_text() == "[core]\n"
    assert list((workspace / ".git" / "hooks").iterdir()) == []
    for name in ("roles", ".vscode", ".envrc", ".git/commondir"):
        assert not os.path.lexists(workspace / name)
    assert (workspace / "usual.txt").read_text() == "y\n"
    assert ("roles is now roles.set-aside-1: only a person makes roles here" in ran.set_aside) == (rung == "bubblewrap")


def test_store_that_a_person_started_meanwhile_keeps_its_name(workspace: Path) -> None:
    late = LateNames([workspace])
    (workspace / ".fireswarm").mkdir()
    lock = workspace / ".fireswarm" / "store.db.lock"
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert late.set_aside() == []
    (workspace / ".fireswarm").rename(workspace / "before")
    late = LateNames([workspace])
    (workspace / "before").rename(workspace / ".fireswarm")
    assert late.set_aside() == [".fireswarm is now .fireswarm.set-aside-1: only a person makes .fireswarm here"]
    assert not (workspace / ".fireswarm").exists()


def test_read_only_command_changes_nothing_beside_a_store(workspace: Path) -> None:
    (workspace / ".fireswarm").mkdir()
    line = "echo x > new; echo x > top.txt; mkdir d; mv src s; rm top.txt; ln -s src l; chmod 777 src"
    assert "denied" in run(f"{line}; truncate -s 0 top.txt", workspace, writable=False)
    assert sorted(path.name for path in workspace.iterdir()) == [".fireswarm", ".git", "src", "top.txt"]
    assert (workspace / "top.txt").read_text() == "top\n" and (workspace / "src").stat().st_mode & 0o022 == 0


def test_calls_with_broken_addresses_do_not_end_the_launcher(workspace: Path) -> None:
    code = (
        "import ctypes, mmap; c = ctypes.CDLL(None, use_errno=True); page = mmap.mmap(-1, 8192);"
        " start = ctypes.addressof(ctypes.c_char.from_buffer(page)); c.munmap(ctypes.c_void_p(start + 4096), 4096);"
        " edge = ctypes.c_void_p(start + 4092);"
        " [c.syscall(number, b'top.txt', edge) for number in (132, 235)];"
        " c.syscall(280, -100, b'top.txt', edge, 0); c.syscall(280, 2**31 - 1, b'x', edge, -1);"
        " c.syscall(82, edge, edge); c.syscall(2, ctypes.c_void_p(8), 577, 0o644); c.syscall(76, b'top.txt', -5)"
    )
    told = run(f'/usr/bin/python3 -c "{code}"; (setsid env -i sleep {NAP} &); echo later > new; cat new', workspace)
    assert told.endswith("later\n") and "Traceback" not in told
    assert [each for each in psutil.process_iter(["cmdline"]) if NAP in (each.info["cmdline"] or ())] == []


def test_no_program_gets_the_rights_of_its_owner(workspace: Path) -> None:
    run("cp src/a.py new; chmod 6755 new src/a.py; chmod u+s src/a.py", workspace)
    assert {(workspace / name).stat().st_mode & 0o6000 for name in ("new", "src/a.py")} == {0}


def test_git_folder_without_hooks_gets_none(workspace: Path) -> None:
    for name in ("config", "hooks", "info"):
        place = workspace / ".git" / name
        place.unlink() if place.is_file() else place.rmdir()
    run("mkdir .git/hooks; echo x > .git/config; echo y > .git/usual", workspace)
    assert sorted(path.name for path in (workspace / ".git").iterdir()) == ["HEAD", "objects", "refs", "usual"]


def test_link_that_is_replaced_is_a_late_name(workspace: Path) -> None:
    (workspace / "roles").symlink_to(workspace / "src")
    late = LateNames([workspace])
    (workspace / "roles").unlink()
    (workspace / "roles").mkdir()
    assert late.set_aside() == ["roles is now roles.set-aside-1: only a person makes roles here"]
