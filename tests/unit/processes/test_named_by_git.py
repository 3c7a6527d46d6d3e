"""What settings of git name in a workspace, no code changes: the next git outside of the confinement runs it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement.paths import named_by_git
from fireswarm.processes.confinement.paths.named_by_git import find_named_by_git
from fireswarm.processes.confinement.protected import linked_places
from fireswarm.settings.run_folders import add_swarm_folders
from tests.support.repositories import plain_git
from tests.unit.processes.test_program_files import GOOD, attack, check_kept, run, write
from tests.unit.processes.test_program_files import workspace as workspace

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="code is confined on Linux"),
    pytest.mark.usefixtures("rung"),
]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without settings of git."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def repository(workspace: Path) -> Path:
    plain_git(workspace, "init", "--quiet", "--initial-branch=main")
    return workspace


NAMED = [
    ("core.hooksPath", "tools/hooks", "tools/hooks/pre-commit"),
    ("core.hooksPath", "{top}/tools/hooks", "tools/hooks/pre-commit"),
    ("core.hooksPath", "tools", "tools/hooks/pre-commit"),
    ("include.path", "../tools/settings", "tools/settings"),
    ("include.path", "{top}/tools/settings", "tools/settings"),
    ("includeIf.onbranch:other.path", "../tools/settings", "tools/settings"),
    ("core.fsmonitor", "tools/watch", "tools/watch"),
    ("core.attributesFile", "tools/attributes", "tools/attributes"),
    ("core.sshCommand", "sh ./tools/ssh -v", "tools/ssh"),
    ("core.editor", "'tools/edit' --wait", "tools/edit"),
    ("filter.f.clean", "python3 tools/clean.py %f", "tools/clean.py"),
    ("filter.f.process", "$(git rev-parse --show-toplevel)/tools/clean", "tools/clean"),
    ("diff.d.textconv", "sh -c 'exec ./tools/convert \"$1\"'", "tools/convert"),
    ("diff.external", "tools/diff", "tools/diff"),
    ("merge.m.driver", "tools/merge %A %B", "tools/merge"),
    ("credential.helper", "!{top}/tools/helper", "tools/helper"),
    ("gpg.program", "tools/sign", "tools/sign"),
    ("trailer.t.command", "env X=1 tools/trailer", "tools/trailer"),
    ("alias.lint", "!sh ./tools/lint", "tools/lint"),
    ("a-later-git.knows-this", "tools/later", "tools/later"),
]


@pytest.mark.parametrize(("key", "value", "file"), NAMED, ids=[f"{key}-{file}" for key, _, file in NAMED])
def test_what_a_setting_of_the_repository_names_is_not_changed(
    key: str, value: str, file: str, repository: Path, tmp_path: Path
) -> None:
    plain_git(repository, "config", key, value.format(top=repository))
    write(repository / file)
    if value == "tools":  # all of a folder of hooks is protected, so that no file can be made beside
        run(attack(file), repository)
        assert (repository / file).read_text() == GOOD
    elif key == "core.hooksPath":
        run(f"{attack(file)}; echo evil > tools/hooks/post-checkout; echo new > tools/other", repository)
        assert sorted(path.name for path in (repository / "tools" / "hooks").iterdir()) == ["pre-commit"]
        assert (repository / file).read_text() == GOOD and (repository / "tools" / "other").exists()
    else:
        check_kept(repository, file, tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("core.hooksPath", "githooks"),
        ("core.fsmonitor", "./tools/watch"),
        ("include.path", "../more"),
        ("filter.f.clean", "tools/clean %f"),
        ("remote.mirror.url", "./mirror.git"),
    ],
)
def test_what_a_setting_names_and_is_not_there_yet_is_not_made(key: str, value: str, repository: Path) -> None:
    plain_git(repository, "config", key, value)
    place = value.removeprefix("./").removeprefix("../").split()[0]
    run(f"mkdir -p tools; echo evil > {place} || mkdir {place}; echo new > other", repository)
    assert not (repository / place).exists() and (repository / "other").exists()


def test_settings_that_included_settings_name_are_not_changed(repository: Path) -> None:
    plain_git(repository, "config", "include.path", "../conf/a")
    write(repository / "conf" / "a", '[includeIf "gitdir:/none/"]\n\tpath = deep/b\n')
    write(repository / "conf" / "deep" / "b", "[core]\n\tfsmonitor = scripts/watch\n")
    write(repository / "scripts" / "watch")
    run(f"{attack('scripts/watch')}; {attack('conf/deep/b')}; echo x > conf/a", repository)
    assert (repository / "scripts" / "watch").read_text() == GOOD
    assert "fsmonitor" in (repository / "conf" / "deep" / "b").read_text()
    assert "gitdir" in (repository / "conf" / "a").read_text() and (repository / "scripts" / "beside").exists()


def test_hooks_that_the_user_names_for_all_repositories_are_not_changed(repository: Path, home: Path) -> None:
    write(home / ".gitconfig", "[core]\n\thooksPath = .githooks\n")
    write(repository / ".githooks" / "pre-commit")
    run("echo evil > .githooks/pre-commit; mv .githooks gone; echo evil > .githooks/post-commit", repository)
    assert [path.read_text() for path in (repository / ".githooks").iterdir()] == [GOOD]


@pytest.mark.parametrize("value", [".", "{top}", "sub/.."])
def test_hooks_in_the_workspace_itself_are_neither_made_nor_changed(value: str, repository: Path) -> None:
    plain_git(repository, "config", "core.hooksPath", value.format(top=repository))
    write(repository / "pre-commit")
    write(repository / "sub" / "file")
    run(f"{attack('pre-commit')}; echo evil > post-checkout; echo new > other", repository)
    assert (repository / "pre-commit").read_text() == GOOD and not (repository / "post-checkout").exists()
    assert (repository / "other").read_text() == "new\n"


def test_repository_that_a_file_names_in_the_workspace_keeps_its_settings(workspace: Path) -> None:
    (workspace / "store").mkdir()
    plain_git(workspace, "init", "--quiet", "--separate-git-dir", "store/own.git", ".")
    config = workspace / "store" / "own.git" / "config"
    before = config.read_text()
    write(workspace / "a.txt")
    run("git add a.txt; git -c user.name=a -c user.email=a@b commit -qm first", workspace)
    assert list((config.parent / "refs" / "heads").iterdir())
    for place in ("store/own.git/config", "store/own.git/hooks/pre-commit"):
        run(attack(place), workspace)
    run("mv store gone; rm -rf store; echo 'gitdir: evil' > .git", workspace)
    assert config.read_text() == before and not (config.parent / "hooks" / "pre-commit").exists()
    assert (workspace / ".git").read_text() == f"gitdir: {config.parent}\n"


def test_common_folder_of_a_repository_keeps_its_settings(repository: Path) -> None:
    """``commondir`` names the folder that has the settings."""
    plain_git(repository, "config", "core.fsmonitor", "scripts/watch")
    (repository / "shared").mkdir()
    for name in ("config", "objects", "refs"):
        (repository / ".git" / name).rename(repository / "shared" / name)
    write(repository / ".git" / "commondir", "../shared\n")
    write(repository / "scripts" / "watch")
    run(f"{attack('scripts/watch')}; echo evil > shared/config; mkdir shared/hooks; mv shared gone", repository)
    assert (repository / "scripts" / "watch").read_text() == GOOD
    assert "fsmonitor" in (repository / "shared" / "config").read_text()
    assert not (repository / "shared" / "hooks").exists()


def test_submodules_and_further_work_trees_keep_their_repositories(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for folder in (other, repository):
        plain_git(folder, "init", "--quiet", "--initial-branch=main")
        write(folder / "a.txt")
        plain_git(folder, "add", "--all")
        plain_git(folder, "commit", "--quiet", "--message", "first")
    plain_git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "parts/sub")
    plain_git(repository / "parts" / "sub", "config", "core.fsmonitor", "scripts/watch")
    write(repository / "parts" / "sub" / "scripts" / "watch")
    plain_git(repository, "worktree", "add", "--quiet", "trees/second")
    with (repository / ".gitmodules").open("a") as file:
        file.write('[submodule "later"]\n\tpath = parts/later\n\turl = ./x\n')
    (repository / "parts" / "later").mkdir()
    files = [repository / "parts" / "sub" / ".git", repository / "trees" / "second" / ".git"]
    before = [file.read_text() for file in files]
    line = "rm -f .git; echo 'gitdir: evil' > .git; mkdir .git; cd ..; mv * gone"
    attacks = [f"cd {file.parent}; {line}" for file in files]
    run(f"{attack('parts/sub/scripts/watch')}; {'; '.join(attacks)}; mkdir {repository}/parts/later/.git", repository)
    assert [file.read_text() for file in files] == before
    assert (repository / "parts" / "sub" / "scripts" / "watch").read_text() == GOOD
    assert not (repository / "parts" / "later" / ".git").exists()


def test_repository_to_which_git_pushes_keeps_its_hooks(repository: Path) -> None:
    plain_git(repository, "init", "--quiet", "--bare", "mirror.git")
    plain_git(repository, "remote", "add", "mirror", "./mirror.git")
    run("echo evil > mirror.git/hooks/pre-receive; echo evil >> mirror.git/config; mv mirror.git gone", repository)
    assert not (repository / "mirror.git" / "hooks" / "pre-receive").exists()
    assert "evil" not in (repository / "mirror.git" / "config").read_text()


def test_settings_of_the_repository_around_a_task_name_places_in_its_folder(repository: Path) -> None:
    part = repository / "part"
    plain_git(repository, "config", "core.hooksPath", "part/hooks")
    write(part / "hooks" / "pre-commit")
    write(part / "checks" / "lint")
    (repository / ".git" / "hooks" / "pre-push").symlink_to("../../part/checks/lint")
    run(f"{attack('hooks/pre-commit')}; {attack('checks/lint')}", part)
    assert (part / "hooks" / "pre-commit").read_text() == (part / "checks" / "lint").read_text() == GOOD


def test_links_of_the_swarm_around_a_task_lead_to_what_it_does_not_change(workspace: Path) -> None:
    add_swarm_folders(workspace / ".fireswarm")
    write(workspace / "part" / "cards" / "ROLE.md")
    (workspace / "roles").mkdir()
    (workspace / "roles" / "scout").symlink_to("../part/cards")
    run("echo evil > cards/ROLE.md; mv cards gone; echo evil > cards/ROLE.md", workspace / "part")
    assert (workspace / "part" / "cards" / "ROLE.md").read_text() == GOOD


def test_link_on_the_way_to_a_named_place_is_not_exchanged(repository: Path) -> None:
    plain_git(repository, "config", "core.hooksPath", "conf/hooks")
    write(repository / "real" / "hooks" / "pre-commit")
    (repository / "conf").symlink_to("real")
    run("mkdir -p evil/hooks; echo evil > evil/hooks/pre-commit; rm conf; ln -s evil conf", repository)
    assert not (repository / "conf").exists() or (repository / "conf" / "hooks" / "pre-commit").read_text() == GOOD


def test_files_that_people_and_models_work_on_are_not_protected(repository: Path) -> None:
    for key, value in (
        ("user.name", "README"),
        ("core.excludesFile", ".gitignore"),
        ("branch.main.remote", "origin"),
        ("remote.origin.url", "https://example.invalid/src"),
        ("alias.test", "!npm test && cat package.json"),
        ("http.useHttpPath", "true"),
        ("init.defaultBranch", "src"),
        ("core.autocrlf", "input"),
    ):
        plain_git(repository, "config", key, value)
    for name in ("README", ".gitignore", "package.json", "src/a.py", "true", "input.txt"):
        write(repository / name, "")
    plain_git(repository, "config", "remote.here.url", ".")
    assert [place for place in find_named_by_git(repository) if place.parent != repository / ".git"] == []


def test_folder_outside_of_a_repository_starts_no_git(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named_by_git, "_read", Mock(side_effect=AssertionError("a file was read")))
    assert find_named_by_git(workspace) == []


def test_settings_are_read_by_git_once(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain_git(repository, "config", "core.hooksPath", "hooks")
    assert find_named_by_git(repository) == [repository / "hooks"]
    monkeypatch.setattr(named_by_git, "find_program", Mock(side_effect=AssertionError("again")))
    assert repository / "hooks" in linked_places(repository)


@pytest.mark.parametrize("limit", ["MAX_FILES", "MAX_REPOSITORIES", "MAX_SETTINGS_BYTES"])
def test_settings_that_cannot_be_looked_through_are_refused(
    limit: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_by_git, limit, 0)
    with pytest.raises(SandboxRefused, match="settings of git|submodules"):
        find_named_by_git(repository)


def test_names_that_no_file_can_have_are_left_out(repository: Path) -> None:
    plain_git(repository, "config", "core.editor", f"./{'a' * 300} {'b' * 5000}/x")
    write(repository / ".git" / "config.worktree", "[broken\n")
    os.mkfifo(repository / "pipe")
    plain_git(repository, "config", "include.path", "../pipe")
    assert find_named_by_git(repository) == [repository / "pipe"]
