"""Git reads and starts nothing outside of a folder's repository: in submodules, other repositories, and the PATH."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from fireswarm.errors import GitFailed
from fireswarm.processes import git
from fireswarm.processes.git import run_git
from fireswarm.swarm.turn.engines.changes import changes_since, head_commit
from tests.support.repositories import AUTHOR, marks, plain_git, set_keys


@pytest.mark.parametrize("ignore", ["none", "untracked", "dirty"])
@pytest.mark.parametrize("indexed", [True, False])
def test_git_does_not_start_in_a_submodule(
    ignore: str, indexed: bool, repository: Path, program: Path, tmp_path: Path
) -> None:
    """The entry of a submodule, and its file .gitmodules, need only be in the index, which commands may write."""
    part = repository / "part"
    part.mkdir()
    plain_git(part, "init", "--quiet")
    (part / "a.txt").write_text("1\n")
    plain_git(part, "add", "--all")
    plain_git(part, "commit", "--quiet", "--message", "part")
    (part / ".git" / "info" / "attributes").write_text("* filter=evil")
    set_keys(part / ".git" / "config", {"filter.evil.clean": str(program), "core.fsmonitor": str(program)})
    (part / "a.txt").write_text("2\n")
    modules = f'[submodule "p"]\n\tpath = part\n\turl = ./part\n\tignore = {ignore}\n'
    (repository / ".gitmodules").write_text(modules)
    plain_git(repository, "add", ".gitmodules", "part")
    plain_git(repository, "commit", "--quiet", "--message", "with a part")
    program.with_name("ran").unlink(missing_ok=True)
    if indexed:
        (repository / ".gitmodules").unlink()
    for arguments in (("diff",), ("diff", "HEAD~1"), ("log", "-p"), ("show",), ("add", "part"), ("commit", "-am", "x")):
        run_git_or_not(repository, *arguments)
    (repository / "a.txt").write_text("changed again\n")
    (repository / "newer.txt").write_text("newer\n")
    run_git(repository, "status", "--porcelain", "--branch")
    shown = changes_since(repository, head_commit(repository)).decode()
    assert "+newer" in shown and "+changed again" in shown
    assert marks(program) == ""
    plain_git(repository, "status", "--ignore-submodules=none")
    assert marks(program)


def run_git_or_not(folder: Path, *arguments: str) -> None:
    with contextlib.suppress(GitFailed):
        run_git(folder, *arguments)


def test_git_finds_no_program_by_its_name(repository: Path, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither another git: whatever starts one in another repository, its configuration is not ours."""
    set_keys(repository / ".git" / "config", {"alias.evil2": "!evil", "alias.evil3": "evil", "core.pager": "cat"})
    for name in ("git", "git-evil", "cat"):
        shutil.copy(program, program.parent / name)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    for arguments in (("evil",), ("evil2",), ("evil3",), ("log",), ("submodule", "status"), ("gc",), ("repack",)):
        run_git_or_not(repository, *arguments)
    assert marks(program) == ""


def elsewhere(kind: str, folder: Path, private: Path) -> None:
    """Make a folder's repository read the files of another one."""
    own, other = folder / ".git", private / ".git"
    if kind in ("file", "file of a work tree", "link"):
        shutil.rmtree(own)
    match kind:
        case "file":
            own.write_text(f"gitdir: {other}\n")
        case "file of a work tree":
            plain_git(private, "worktree", "add", "--quiet", "--detach", str(private.with_name("tree")))
            own.write_text(f"gitdir: {other / 'worktrees' / 'tree'}\n")
        case "link":
            own.symlink_to(other)
        case "common folder":
            shutil.rmtree(own / "objects")
            (own / "commondir").write_text(f"{other}\n")
        case "alternates":
            (own / "objects" / "info" / "alternates").write_text(f"{other / 'objects'}\n")
        case "objects" | "refs" | "HEAD" | "index" | "logs" | "packed-refs":
            place = own / kind
            shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
            place.symlink_to(other / kind)
        case _:
            lead_elsewhere(kind, folder, other)


def lead_elsewhere(kind: str, folder: Path, other: Path) -> None:
    """Do so within the repository's own folder."""
    own = folder / ".git"
    match kind:
        case "blank":  # git takes the blank at the end as a part of the name
            shutil.rmtree(own)
            own.write_text("gitdir: meta \n")
            (folder / "meta ").symlink_to(other)
            for name in ("objects", "refs"):
                (folder / "meta" / name).mkdir(parents=True)
            (folder / "meta" / "HEAD").write_text("ref: refs/heads/main\n")
            (folder / "meta" / "config").write_text("[core]\n\tworktree = ..\n")
        case "tree above":
            set_keys(own / "config", {"core.worktree": "../.."})
        case "bare":
            set_keys(own / "config", {"core.bare": "true"})
            (own / "objects" / "info" / "alternates").write_text(f"{other / 'objects'}\n")
        case "modules":
            place = own / "refs" / "heads" / "modules"
            place.mkdir()
            (place / "x").symlink_to(other / "HEAD")
        case _:
            [pack] = (other / "objects" / "pack").glob("*.pack")
            (own / "objects" / "pack" / pack.name).symlink_to(pack)


@pytest.mark.parametrize(
    "kind",
    [
        *("file", "file of a work tree", "link", "common folder", "alternates", "objects", "refs", "HEAD", "index"),
        *("logs", "packed-refs", "pack", "blank", "tree above", "modules", "bare"),
    ],
)
def test_repository_elsewhere_is_not_read(kind: str, repository: Path, tmp_path: Path) -> None:
    private = tmp_path / "private"
    shutil.copytree(repository, private)
    (private / "payroll.txt").write_text("secret\n")
    plain_git(private, "add", "--all")
    plain_git(private, "commit", "--quiet", "--message", "private work")
    plain_git(private, "gc", "--quiet")
    elsewhere(kind, repository, private)
    for arguments in (("status", "--porcelain", "--branch"), ("log", "--all", "--patch"), ("ls-files",)):
        with pytest.raises(GitFailed, match="reads files elsewhere|work tree|not a git repository"):
            run_git(repository, *arguments)
    (repository / "deep" / ".git").mkdir(parents=True)  # not a repository: git looks further up
    with pytest.raises(GitFailed, match="reads files elsewhere|work tree|not a git repository"):
        run_git(repository / "deep", "log")


@pytest.mark.usefixtures("rung")
@pytest.mark.parametrize(
    ("exchanged", "arguments"),
    [
        ("refs/heads", ("update-ref", "refs/heads/new", "HEAD")),
        ("objects", ("hash-object", "-w", "--stdin")),
        ("objects", ("commit-tree", "HEAD^{tree}", "-m", "more")),
    ],
)
def test_folder_that_becomes_a_link_after_the_check_leads_nowhere(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanged: str, arguments: tuple[str, ...]
) -> None:
    place, outside = repository / ".git" / exchanged, tmp_path / "outside"
    shutil.copytree(place, outside)
    before = sorted(outside.rglob("*"))
    checked = git._refuse_elsewhere  # pyright: ignore[reportPrivateUsage]

    def exchange_after_the_check(*given: Any) -> list[Path]:
        places = checked(*given)
        shutil.rmtree(place)
        place.symlink_to(outside)
        return places

    monkeypatch.setattr(git, "_refuse_elsewhere", exchange_after_the_check)
    with contextlib.suppress(GitFailed):
        run_git(repository, *arguments, stdin=b"words\n", environment=AUTHOR)
    assert sorted(outside.rglob("*")) == before
