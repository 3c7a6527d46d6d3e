"""Repositories that try to make git run a program, as they can be found in a stranger's folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fireswarm
from fireswarm.errors import GitFailed
from fireswarm.processes import git
from fireswarm.processes.git import run_git
from fireswarm.swarm.turn.engines.changes import changes_since, head_commit
from tests.support.repositories import AUTHOR, marks, plain_git, set_keys

HOOKS = (
    *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg"),
    *("commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push", "reference-transaction"),
    *("pre-auto-gc", "post-rewrite", "post-index-change", "fsmonitor-watchman", "update", "post-update"),
)
SECRET = "sesame-4711"


def work(git: Callable[..., object], folder: Path) -> None:
    """Use git like the inventory, the pipeline and a curious developer do; failures are ignored."""
    for arguments in (
        ("ls-files", "-z", "--cached", "--others", "--exclude-standard"),
        ("rev-parse", "--verify", "--quiet", "HEAD"),
        ("log", "-p", "--numstat"),
        ("log", "--format=%H %GS %(trailers)", "-n", "5"),
        ("status",),
        ("diff",),
        ("diff", "HEAD~1"),
        ("show", "HEAD"),
        ("blame", "a.txt"),
        ("grep", "changed"),
        ("ls-tree", "-r", "-z", "-l", "HEAD"),
        ("cat-file", "--textconv", "HEAD:a.txt"),
        ("archive", "--format=tgz", "HEAD"),
        ("fetch", "origin"),
        ("add", "--all"),
        ("commit", "--quiet", "--message", "work"),
        ("worktree", "add", "--quiet", "--detach", str(folder.parent / f"tree-{folder.name}"), "HEAD"),
        ("update-ref", "refs/heads/side", "HEAD"),
        ("merge", "--no-edit", "side"),
        ("format-patch", "-1", "--stdout"),
        ("tag", "-m", "x", "v1"),
        ("checkout", "--quiet", "-f", "HEAD~1"),
        ("gc", "--auto"),
    ):
        try:
            git(folder, *arguments)
        except GitFailed:
            continue


def hardened(folder: Path, *arguments: str) -> None:
    run_git(folder, *arguments, environment=AUTHOR)


def executable_keys() -> list[str]:
    """Every configuration key of git that may name a program, with a name where one is chosen freely."""
    listed = subprocess.run(["git", "help", "--config"], capture_output=True, text=True, check=True).stdout
    keys = [re.sub(r"<[^>]*>|\*", "evil", line) for line in listed.splitlines() if EXECUTABLE.search(line)]
    keys += ["filter.evil.process", "core.fsmonitor", "remote.origin.uploadpack"]
    keys += ["gpg.ssh.program", "gpg.x509.program", "gpg.openpgp.program", "diff.evil.command", "trailer.evil.cmd"]
    return sorted({key for key in keys if key != "commit.cleanup" and re.fullmatch(r"[A-Za-z]+\.[\w.]*[A-Za-z]+", key)})


EXECUTABLE = re.compile(
    "command|program|cmd|helper|hook|driver|external|pager|editor|tool|proxy|clean|smudge|textconv|vcs|pack|ssh|askpass",
    re.IGNORECASE,
)
ATTRIBUTES = "* filter=evil diff=evil merge=evil\n"


def with_hooks(folder: Path, evil: str) -> None:
    (folder / ".git" / "hooks").mkdir(exist_ok=True)
    for name in HOOKS:
        (folder / ".git" / "hooks" / name).symlink_to(evil)


def with_key(key: str, value: str = "{evil}") -> Callable[[Path, str], None]:
    def arm(folder: Path, evil: str) -> None:
        (folder / ".gitattributes").write_text(ATTRIBUTES)
        set_keys(folder / ".git" / "config", {key: value.format(evil=evil)})

    return arm


def with_included_file(folder: Path, evil: str) -> None:
    (folder / ".gitattributes").write_text(ATTRIBUTES)
    set_keys(folder / "more.conf", {"filter.evil.clean": evil})
    set_keys(folder / ".git" / "config", {"include.path": "../more.conf"})


def with_worktree_config(folder: Path, evil: str) -> None:
    (folder / ".gitattributes").write_text(ATTRIBUTES)
    set_keys(folder / ".git" / "config", {"extensions.worktreeConfig": "true"})
    set_keys(folder / ".git" / "config.worktree", {"filter.evil.clean": evil})


def with_odd_name(folder: Path, evil: str) -> None:
    (folder / ".gitattributes").write_text("* filter=a=b.c\n")
    set_keys(folder / ".git" / "config", {"filter.a=b.c.clean": evil})


ARMED: dict[str, Callable[[Path, str], None]] = {
    "hooks": with_hooks,
    "hooks elsewhere": with_key("core.hooksPath", "shared"),
    "fsmonitor": with_key("core.fsmonitor"),
    "clean filter": with_key("filter.evil.clean"),
    "smudge filter": with_key("filter.evil.smudge"),
    "filter process": with_key("filter.evil.process"),
    "external diff": with_key("diff.external"),
    "diff command": with_key("diff.evil.command"),
    "textconv": with_key("diff.evil.textconv"),
    "included file": with_included_file,
    "worktree config": with_worktree_config,
    "name with an equals sign": with_odd_name,
    "tar command": with_key("tar.tgz.command"),
    "transport": with_key("remote.origin.url", "ext::{evil} %S"),
}


@pytest.mark.parametrize("attack", ARMED)
def test_program_that_a_repository_names_is_not_run(repository: Path, program: Path, attack: str) -> None:
    if attack == "hooks elsewhere":
        (repository / "shared").mkdir()
        (repository / "shared" / "pre-commit").symlink_to(program)
    if attack == "transport":
        set_keys(repository / ".git" / "config", {"protocol.ext.allow": "always"})
    ARMED[attack](repository, str(program))
    copy = repository.with_name("copy")
    shutil.copytree(repository, copy, symlinks=True)
    work(hardened, copy)
    assert marks(program) == ""
    work(plain_git, repository)
    assert marks(program), "plain git does not run it either: the attack is none"


def test_no_key_of_git_runs_a_program(repository: Path, program: Path) -> None:
    (repository / ".gitattributes").write_text(ATTRIBUTES)
    config = repository / ".git" / "config"
    keys = executable_keys()
    set_keys(config, dict.fromkeys(keys, str(program)))
    while True:
        try:
            for arguments in (("status",), ("log", "-p"), ("add", "--all"), ("commit", "--quiet", "-m", "x")):
                hardened(repository, *arguments)
        except GitFailed as refused:  # git accepts no path as the value of this key
            odd = [key for key in keys if f"'{key.lower()}'" in str(refused).lower()]
            assert odd, refused
            for key in odd:
                keys.remove(key)
                subprocess.run(["git", "config", "--file", str(config), "--unset", key], check=True)
        else:
            break
        assert marks(program) == ""
    assert marks(program) == ""
    assert len(keys) > 60


def test_signature_program_is_not_run(repository: Path, program: Path) -> None:
    commit = subprocess.run(
        ["git", "cat-file", "commit", "HEAD"], cwd=repository, capture_output=True, text=True, check=True
    ).stdout
    head, _, message = commit.partition("\n\n")
    signed = f"{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n{message}"
    made = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--stdin"],
        cwd=repository, input=signed, capture_output=True, text=True, check=True,
    )  # fmt: skip
    plain_git(repository, "update-ref", "HEAD", made.stdout.strip())
    set_keys(repository / ".git" / "config", {"gpg.program": str(program), "log.showSignature": "true"})
    assert b"commit 1" in run_git(repository, "log")
    assert marks(program) == ""
    plain_git(repository, "log")
    assert marks(program)


def test_embedded_bare_repository_is_not_used(repository: Path, program: Path) -> None:
    bare = repository / "docs"
    plain_git(repository, "init", "--quiet", "--bare", "docs")
    set_keys(bare / "config", {"core.fsmonitor": str(program), "core.bare": "false", "core.worktree": "."})
    with pytest.raises(GitFailed, match="bare repository"):
        run_git(bare, "status")
    assert marks(program) == ""
    plain_git(bare, "status")
    assert marks(program)


def test_bare_repository_that_the_caller_names_is_used(repository: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    plain_git(repository, "clone", "--quiet", "--bare", str(repository), str(bare))
    assert b"commit 1" in run_git(bare, "log", git_dir=bare)


def test_work_tree_elsewhere_is_refused(repository: Path, tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (private / "secret.txt").write_text("x")
    set_keys(repository / ".git" / "config", {"core.worktree": str(private)})
    with pytest.raises(GitFailed, match="its work tree is"):
        run_git(repository, "ls-files", "--others")


def test_work_tree_of_a_submodule_is_read(repository: Path, tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    parent.mkdir()
    plain_git(parent, "init", "--quiet")
    plain_git(parent, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(repository), "part")
    assert b"a.txt" in run_git(parent / "part", "ls-files")
    assert b"part" in run_git(parent, "status", "--porcelain")


def test_submodule_configuration_is_not_followed(repository: Path, program: Path, tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    parent.mkdir()
    plain_git(parent, "init", "--quiet")
    plain_git(parent, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(repository), "part")
    plain_git(parent, "commit", "--quiet", "--message", "part")
    (parent / "part" / "a.txt").write_text("2\n")  # of the same size: git has to read it
    (parent / "part" / ".gitattributes").write_text(ATTRIBUTES)
    set_keys(parent / ".git" / "modules" / "part" / "config", {"filter.evil.clean": str(program)})
    for arguments in (("status",), ("diff",), ("diff", "--submodule=diff"), ("ls-files", "--others")):
        run_git(parent, *arguments)
    assert marks(program) == ""
    plain_git(parent, "status")
    assert marks(program)


def test_hidden_program_in_the_environment_is_not_passed_on(
    repository: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SSH_COMMAND", "GIT_EDITOR", "GIT_EXEC_PATH"):
        monkeypatch.setenv(name, str(program))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert b"changed" in run_git(repository, "diff")
    assert marks(program) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_repository_of_another_user_needs_the_users_trust(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["chown", "-R", "61184:61184", str(repository)], check=True)
    with pytest.raises(GitFailed, match="dubious ownership"):
        run_git(repository, "log")
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    set_keys(tmp_path / ".gitconfig", {"safe.directory": str(repository), "core.fsmonitor": "/nowhere"})
    assert b"commit 1" in run_git(repository, "log")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("ghost",), "'ghost' is not a git command"), (("log", "nowhere"), "unknown revision")],
)
def test_failure_carries_the_words_of_git(repository: Path, arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(GitFailed, match=words):
        run_git(repository, *arguments)


def test_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(GitFailed, match="is not a folder"):
        run_git(tmp_path / "ghost", "status")


def test_missing_git_is_named(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(GitFailed, match="git is not installed"):
        run_git(repository, "status")


def test_git_is_started_in_one_module() -> None:
    root = Path(fireswarm.__file__).parents[2]
    files = [path for folder in ("src", "skills", "roles") for path in (root / folder).rglob("*.py")]
    pattern = re.compile(r'find_program\("git"\)|(?<!found\.commands\.append\()\[\s*"git"')
    starting = [path.relative_to(root).as_posix() for path in files if pattern.search(path.read_text())]
    outside_of_repositories = [
        "src/fireswarm/cli/swarm/doctor.py",
        "src/fireswarm/processes/confinement/paths/named_by_git.py",
    ]
    assert sorted(starting) == [*outside_of_repositories, "src/fireswarm/processes/git.py"]


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(folder.rglob("*"))}


def test_changes_of_a_repository_are_shown_and_nothing_is_written_to_it(repository: Path) -> None:
    (repository / ".fireswarm").mkdir()
    (repository / ".fireswarm" / "own").write_text("own\n")
    before = content_of(repository)
    commit = head_commit(repository)
    shown = changes_since(repository, commit).decode()
    assert "-1\n+changed" in shown and "+new" in shown and "own" not in shown
    assert changes_since(repository, commit).decode() == shown and content_of(repository) == before


def test_changes_before_the_first_commit_and_in_a_folder_of_the_repository(tmp_path: Path) -> None:
    plain_git(tmp_path, "init", "--quiet", "--initial-branch=main")
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "x.txt").write_text("x\n")
    (tmp_path / "other.txt").write_text("other\n")
    shown = changes_since(tmp_path / "part", head_commit(tmp_path / "part")).decode()
    assert "b/x.txt" in shown and "other" not in shown
    with pytest.raises(GitFailed):
        head_commit(tmp_path.parent)


def test_changes_run_no_program_of_the_repository(repository: Path, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    plain_git(repository, "config", "filter.x.clean", f"touch {marker}; cat")
    plain_git(repository, "config", "diff.x.textconv", f"touch {marker}; cat")
    plain_git(repository, "config", "diff.external", f"touch {marker}")
    (repository / ".gitattributes").write_text("* filter=x diff=x\n")
    assert b"changed" in changes_since(repository, head_commit(repository))
    assert not marker.exists()


def test_change_in_the_second_in_which_the_index_was_written_is_shown(repository: Path) -> None:
    second = 1_700_000_000
    plain_git(repository, "config", "core.trustctime", "false")
    own, changed = repository / ".git" / "index", repository / "a.txt"
    changed.write_text("1\n")
    os.utime(changed, (second, second))
    plain_git(repository, "add", "a.txt")
    os.utime(own, (second, second))
    changed.write_text("2\n")
    os.utime(changed, (second, second))
    assert "-1\n+2\n" in changes_since(repository, head_commit(repository)).decode()


@pytest.mark.usefixtures("rung")
def test_program_of_a_key_that_appears_after_the_check_sees_the_repository_only(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "private").write_text(SECRET)
    words = f"touch {tmp_path}/ran-outside; cat {tmp_path}/private; cat"
    checked = git._refuse_elsewhere  # pyright: ignore[reportPrivateUsage]

    def change_after_the_check(*arguments: Any) -> list[Path]:
        places = checked(*arguments)
        set_keys(repository / ".git" / "config", {"filter.late.clean": words})
        return places

    monkeypatch.setattr(git, "_refuse_elsewhere", change_after_the_check)
    (repository / ".gitattributes").write_text("* filter=late\n")
    (repository / "a.txt").write_text("other words\n")
    try:
        told = run_git(repository, "diff")
    except GitFailed as error:
        told = str(error).encode()
    assert SECRET.encode() not in told and not (tmp_path / "ran-outside").exists()


@pytest.mark.usefixtures("rung")
def test_confined_git_says_the_same(repository: Path) -> None:
    (repository / "a.txt").write_text("other words\n")
    (repository / "sub").mkdir()
    (repository / "sub" / "new.txt").write_text("new\n")
    diff = changes_since(repository, head_commit(repository))
    assert b"+other words" in diff and b"sub/new.txt" in diff
    assert b"new.txt" in changes_since(repository / "sub", head_commit(repository))
    assert b" M a.txt" in run_git(repository, "status", "--porcelain")
    assert run_git(repository / "sub", "log", "--format=%H").split()[0] == head_commit(repository).encode()
    run_git(repository, "add", "a.txt", environment=AUTHOR)
    run_git(repository, "commit", "-m", "changed", environment=AUTHOR)
    assert b"changed" in run_git(repository, "log", "--format=%s", "-1")
