"""Ways out of the confinement that were found by attacking it: each stays closed, on each rung."""

from __future__ import annotations

import os
import queue
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import Mock

import pytest

from fireswarm.capabilities.workspace.place import Workspace
from fireswarm.errors import InvalidInput, PlaceRefused, SandboxRefused
from fireswarm.processes.confinement import protected
from fireswarm.processes.confinement.mounts import Replacements
from fireswarm.processes.confinement.paths.late_names import LateNames
from fireswarm.processes.confinement.protected import hidden_places
from fireswarm.processes.confinement.skill_view import SkillView
from fireswarm.processes.confinement.view import View
from fireswarm.processes.run import LIMITS, Confined, Program, run_confined
from fireswarm.settings.run_folders import STATE_HOME
from tests.support.patience import PATIENCE_SECONDS

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="code is confined on Linux"),
    pytest.mark.usefixtures("rung"),
]

PATH = "/usr/local/bin:/usr/bin:/bin"
SECRET = "sesame-4711"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of the user, with a secret and the agent's state."""
    folder = tmp_path / "home"
    for name in (".ssh", ".local/lib/python3.12", ".local/bin", ".local/state/fireswarm"):
        (folder / name).mkdir(parents=True)
        (folder / name / "file").write_text(SECRET)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv(STATE_HOME, raising=False)
    return folder


@pytest.fixture
def workspace(home: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    try:
        View(folder).check()
    except SandboxRefused as error:
        pytest.skip(str(error))
    return folder


def run(line: str, folder: Path, **more: str) -> str:
    given = {"PATH": PATH, "LANG": "C.UTF-8"} | more
    return run_confined(["/bin/bash", "-c", line], View(folder, writable=True), given, PATIENCE_SECONDS)[1]


@pytest.mark.parametrize("name", ["LD_PRELOAD", "LD_AUDIT"])
def test_loader_of_the_launcher_takes_nothing_of_the_command(name: str, workspace: Path) -> None:
    told = run("echo done; env", workspace, **{name: str(workspace / "own.so")})
    assert "done" in told and "ld.so" not in told and name not in told


@pytest.mark.parametrize(
    "names", ["LD_LIBRARY_PATH", "GLIBC_TUNABLES", "BASH_ENV", "BASH_FUNC_id%%", "ENV", "GCONV_PATH"]
)
def test_variables_that_run_code_at_a_start_are_not_passed_on(names: str, workspace: Path) -> None:
    assert names not in run("env", workspace, **{names: str(workspace)})


def test_link_in_the_place_of_a_folder_of_programs_opens_nothing(workspace: Path, home: Path) -> None:
    (workspace / ".venv" / "bin").mkdir(parents=True)
    path = f"{workspace}/.venv/bin:{PATH}"
    run(f"mv .venv/bin .venv/b; ln -s {home} .venv/bin", workspace, PATH=path)
    assert (workspace / ".venv" / "bin").is_symlink()
    told = run(
        "ls .venv/bin/; cat .venv/bin/.ssh/file .venv/bin/.local/state/fireswarm/file; echo done", workspace, PATH=path
    )
    assert "done" in told and SECRET not in told


@pytest.mark.parametrize("base", [".local/bin", ".ssh/bin"])
def test_environment_that_a_command_makes_opens_nothing(base: str, workspace: Path, home: Path) -> None:
    run(f"mkdir -p .venv/bin; echo 'home = {home}/{base}' > .venv/pyvenv.cfg", workspace)
    told = run(
        f"cat {home}/.local/state/fireswarm/file {home}/.local/lib/python3.12/file {home}/.ssh/file; echo done",
        workspace,
    )
    assert "done" in told and SECRET not in told


@pytest.mark.parametrize("place", ["proj/deep/.fireswarm", ".local/state/fireswarm"])
def test_folder_above_what_is_hidden_keeps_its_name(place: str, home: Path) -> None:
    (home / place).mkdir(parents=True, exist_ok=True)
    (home / place / "file").write_text(SECRET)
    top, *_ = Path(place).parts
    moves = (
        f'mkdir -p a/b/c/d/e; mv {top} a/b/c/d/e/; mv {top} moved; python3 -c \'import os; os.rename("{top}", "m2")\''
    )
    told = run(f"{moves}; grep -r sesame a moved m2", home)
    told += run("cat $(find . -path '*fireswarm/file') /dev/null; grep -rl sesame . --include=file; echo done", home)
    assert "done" in told and SECRET not in told
    assert (home / place / "file").read_text() == SECRET


def test_search_that_would_not_end_refuses_the_folder(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protected, "MAX_SEARCHED", 5)
    for number in range(6):
        (workspace / str(number)).touch()
    with pytest.raises(SandboxRefused, match="more than 5 entries"):
        hidden_places(workspace)


def test_name_that_one_command_makes_is_not_known_to_another_that_begins_meanwhile(workspace: Path) -> None:
    first = LateNames([workspace])
    (workspace / ".vscode").mkdir()
    second = LateNames([workspace])
    assert first.set_aside() == [".vscode is now .vscode.set-aside-1: only a person makes .vscode here"]
    (workspace / ".vscode").mkdir()
    assert second.set_aside() == [".vscode is now .vscode.set-aside-2: only a person makes .vscode here"]
    (workspace / ".vscode").mkdir()  # by a person: no command works there
    third = LateNames([workspace])
    assert third.set_aside() == [] and third.set_aside() == []
    assert (workspace / ".vscode").is_dir()


@pytest.mark.parametrize("name", [".devcontainer.json", ".bash_aliases", ".zlogin", ".zed"])
def test_further_settings_of_shells_and_editors_are_not_made(name: str, workspace: Path) -> None:
    run(f"echo x > {name}; echo y > other", workspace)
    assert not (workspace / name).exists() and (workspace / "other").exists()


@pytest.mark.parametrize("mode", [0o555, 0o000, 0o311])
def test_folder_that_code_makes_read_only_keeps_no_late_names(mode: int) -> None:
    """As root, the test has the rights of an ordinary user, as this process usually has."""
    with TemporaryDirectory() as place:
        workspace, git = Path(place).resolve(), Path(place).resolve() / ".git"
        git.mkdir()
        if is_root := os.geteuid() == 0:
            for folder in (workspace, git):
                os.chown(folder, 65_534, 65_534)
            os.seteuid(65_534)
        try:
            late = LateNames([workspace])
            for path in (workspace / ".envrc", git / "commondir"):
                path.write_text("evil")
            for folder in (git, workspace):
                folder.chmod(mode)
            lines = late.set_aside()
        finally:
            if is_root:
                os.seteuid(0)
        assert len(lines) == 2 and "is now .envrc.set-aside-1" in lines[0], lines
        assert not (workspace / ".envrc").exists() and not (git / "commondir").exists()
        assert workspace.stat().st_mode & git.stat().st_mode & 0o700 == 0o700


@pytest.mark.parametrize("name", ["remotes", "branches"])
def test_command_names_no_repository_to_which_git_sends(name: str, workspace: Path) -> None:
    (workspace / ".git").mkdir()
    run(f"mkdir .git/{name}; echo URL: ssh://evil.example/x > .git/{name}/origin; echo > .git/other", workspace)
    assert not (workspace / ".git" / name).exists() and (workspace / ".git" / "other").exists()


LINKED = {
    ".envrc": "env/dev",
    ".claude": "shared/agent",
    ".git/hooks": "../githooks",
}
"""Protected names that are links within the workspace, and the files that they lead to."""

CHANGES = (
    "echo evil >> env/dev",
    "echo evil >> .envrc",
    "echo evil > shared/agent/settings.json",
    "echo evil > githooks/pre-commit",
    "echo evil > githooks/post-merge",
    "echo evil > .git/hooks/post-merge",
    "rm env/dev; echo evil > env/dev",
    "mv env gone; mkdir env; echo evil > env/dev",
    "mv shared/agent shared/gone; mkdir shared/agent; echo evil > shared/agent/settings.json",
    "mv githooks gone; mkdir githooks; echo evil > githooks/pre-commit",
    "ln -sfn ../evil githooks",
)


@pytest.fixture
def linked(workspace: Path) -> Path:
    for folder in (".git", "env", "shared/agent", "githooks"):
        (workspace / folder).mkdir(parents=True)
    for file in ("env/dev", "shared/agent/settings.json", "githooks/pre-commit"):
        (workspace / file).write_text("good\n")
    for name, target in LINKED.items():
        (workspace / name).symlink_to(target)
    return workspace


@pytest.mark.parametrize("line", CHANGES)
def test_what_a_protected_link_leads_to_is_not_changed(line: str, linked: Path) -> None:
    run(f"{line}; echo new > other; echo new > shared/other", linked)
    found = {path: path.read_text() for path in linked.rglob("*") if path.is_file() and not path.is_symlink()}
    assert not any("evil" in text for path, text in found.items() if "gone" not in path.parts), found
    for name, file in ((".envrc", ""), (".claude", "settings.json"), (".git/hooks", "pre-commit")):
        assert (linked / name / file).read_text() == "good\n"
    assert (linked / "other").read_text() == (linked / "shared" / "other").read_text() == "new\n"


@pytest.mark.parametrize("path", [".envrc", "env/dev", ".claude/settings.json", "shared/agent/new.md", "githooks/x"])
def test_file_tools_write_to_no_place_that_a_protected_link_leads_to(path: str, linked: Path) -> None:
    with pytest.raises(InvalidInput, match="only a person changes it|belongs to git"):
        Workspace(linked, protects=True).locate(path, new=True, writes=True)


@pytest.mark.parametrize("line", ["echo x > repo.git/hooks/x", "echo x >> .git/config", "echo x > .git/hooks/x"])
def test_repository_behind_a_link_keeps_its_settings(line: str, workspace: Path) -> None:
    (workspace / "repo.git" / "hooks").mkdir(parents=True)
    (workspace / "repo.git" / "config").write_text("[core]\n")
    (workspace / ".git").symlink_to("repo.git")
    told = run(f"{line}; echo new > repo.git/index; echo done", workspace)
    assert "done" in told
    assert (workspace / ".git" / "config").read_text() == "[core]\n"
    assert not list((workspace / "repo.git" / "hooks").iterdir())
    assert (workspace / "repo.git" / "index").read_text() == "new\n"


@pytest.mark.parametrize(("link", "target"), [(".envrc", "build/env"), (".husky", "deep/er/husky"), (".vscode", "ide")])
def test_link_of_a_protected_name_that_leads_nowhere_gets_no_target(link: str, target: str, workspace: Path) -> None:
    (workspace / link).symlink_to(target)
    run(f"mkdir -p $(dirname {target}); echo evil > {target} || mkdir -p {target}", workspace)
    assert not (workspace / link).exists()


@pytest.mark.parametrize(
    ("link", "target"),
    [(".git/hooks/pre-commit", "../../scripts/check"), (".vscode/tasks.json", "../conf/t"), ("skills/x", "../shared")],
)
def test_what_links_in_protected_folders_lead_to_is_not_changed(link: str, target: str, workspace: Path) -> None:
    place = Path(os.path.normpath(workspace / link / ".." / target))
    place.parent.mkdir(parents=True, exist_ok=True)
    file = place / "SKILL.md" if link.startswith("skills") else place
    file.parent.mkdir(exist_ok=True)
    file.write_text("good")
    (workspace / link).parent.mkdir(parents=True)
    (workspace / link).symlink_to(target)
    run(f"echo evil >> {link}; echo evil >> {file}; rm -rf {place}; mv {place.parent} moved", workspace)
    assert file.read_text() == "good"


def test_workspace_does_not_become_a_repository(workspace: Path) -> None:
    run("mkdir objects refs hooks; echo 'ref: refs/heads/main' > HEAD; echo '[core]' > config; echo done", workspace)
    assert not (workspace / "HEAD").exists()


def test_bare_repository_keeps_its_settings(workspace: Path) -> None:
    for name in ("objects", "refs", "hooks"):
        (workspace / name).mkdir()
    for name in ("HEAD", "config"):
        (workspace / name).write_text("good")
    run("echo evil > config; echo evil > hooks/post-update; echo fine > refs/x", workspace)
    assert (workspace / "config").read_text() == "good" and not list((workspace / "hooks").iterdir())
    assert (workspace / "refs" / "x").exists()


@pytest.mark.parametrize("prefix", ["prefix", "base_prefix"])
def test_environment_that_runs_fireswarm_is_not_changed(
    prefix: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a command leaves in its packages or programs runs unconfined at the next start."""
    packages = workspace / "tools" / ".venv" / "lib"
    packages.mkdir(parents=True)
    (packages.parent / "python").write_text("kept")
    monkeypatch.setattr(sys, prefix, str(packages.parent))
    line = (
        "cd tools; touch .venv/lib/own.pth .venv/own; echo x > .venv/python; mv .venv v; mv ../tools ../t; touch made"
    )
    run(line, workspace)
    assert sorted(path.name for path in packages.parent.rglob("*")) == ["lib", "python"]
    assert (packages.parent / "python").read_text() == "kept" and (workspace / "tools" / "made").is_file()
    with pytest.raises(InvalidInput, match="only a person changes it"):
        Workspace(workspace, protects=True).locate("tools/.venv/lib/own.pth", new=True, writes=True)


def test_other_environments_of_a_workspace_can_be_changed(workspace: Path) -> None:
    (workspace / ".venv" / "lib").mkdir(parents=True)
    run("touch .venv/lib/own.pth", workspace)
    assert (workspace / ".venv" / "lib" / "own.pth").is_file()


class Shown:
    """Output of a command that runs still; ``began`` is set once it has printed something."""

    def __init__(self) -> None:
        self.text, self.began = "", threading.Event()

    def add(self, data: bytes) -> None:
        self.text += data.decode()
        self.began.set()


@pytest.mark.parametrize("replaced", [".git/config", "agent.yaml", "secret.txt"])
def test_place_that_another_program_replaces_is_not_left_without_protection(
    replaced: str, workspace: Path, rung: str
) -> None:
    (workspace / ".git").mkdir()
    for name in (".git/config", "agent.yaml", "secret.txt"):
        (workspace / name).write_text(SECRET)
    line = f"echo begun; until [ -e go ]; do :; done; echo EVIL >> {replaced}; cat secret.txt; echo ended"
    view = View(workspace, writable=True, hidden=(workspace / "secret.txt",), confinement=rung)
    shown = Shown()
    program = Program(["/bin/bash", "-c", line], workspace, {"PATH": PATH})
    command = Confined.start(program, view, LIMITS, shown)
    assert shown.began.wait(PATIENCE_SECONDS)
    (workspace / "new").write_text(f"{SECRET} again")
    (workspace / "new").rename(workspace / replaced)
    if rung == "bubblewrap":
        ended = command.wait(PATIENCE_SECONDS)
        assert ended.excess is not None and ended.excess.limit == "protection" and replaced in ended.reason
    (workspace / "go").touch()
    command.wait(PATIENCE_SECONDS)
    assert (workspace / replaced).read_text() == f"{SECRET} again" and SECRET not in shown.text


def test_command_goes_on_while_other_files_beside_protected_ones_are_replaced(workspace: Path) -> None:
    (workspace / "agent.yaml").write_text("")
    shown = Shown()
    line = "echo begun; until [ -e go ]; do :; done; echo ended"
    program = Program(["/bin/bash", "-c", line], workspace, {"PATH": PATH})
    command = Confined.start(program, View(workspace, writable=True), LIMITS, shown)
    assert shown.began.wait(PATIENCE_SECONDS)
    for name in ("main.py", "agent.yaml.bak", "go"):
        (workspace / "new").write_text("")
        (workspace / "new").rename(workspace / name)
    assert command.wait(PATIENCE_SECONDS).excess is None and "ended" in shown.text


def test_replacements_are_noticed_without_events_of_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fireswarm.processes.confinement.mounts._open_events", Mock(return_value=-1))
    (tmp_path / "a").touch()
    noticed: queue.Queue[Path] = queue.Queue()
    watched = Replacements([tmp_path / "a", tmp_path / "missing"])
    watched.begin(noticed.put)
    (tmp_path / "a").unlink()
    assert noticed.get(timeout=PATIENCE_SECONDS) == tmp_path / "a"
    watched.close()


def test_readable_place_that_became_a_link_is_refused(workspace: Path, home: Path, tmp_path: Path) -> None:
    (workspace / "package").symlink_to(home)
    private = tmp_path / "private"
    for name in ("home", "workdir"):
        (private / name).mkdir(parents=True)
    views = [
        View(private, readable=(workspace / "package",), follow=False),
        SkillView(private / "home", private / "workdir", readable=(workspace / "package",)),
    ]
    for view in views:
        with pytest.raises(PlaceRefused, match="package cannot be a part of a confined command"), view.confine({}):
            pass
