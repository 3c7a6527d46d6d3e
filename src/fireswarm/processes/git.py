"""git on folders of strangers: programs from a repository's configuration are never executed.

A repository's configuration can name programs: hooks, filters, external diffs, text converters, signature checkers,
transports. Each such key is overridden for the call, whatever the repository, an included file or a worktree contains.
Git does not look into submodules, whose configuration is their own, and finds no program by its name, itself included.
Since the configuration can change between two calls, and a folder can become a link, git is confined to the repository
where it could start a program or writes.
A repository that reads files elsewhere, by a link or in a file of git, is refused. The user's and the system's
configuration are not read, except for the folders that the user trusts (``safe.directory``).
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fireswarm.contracts.limits import MAX_DETAIL_CHARS, truncate
from fireswarm.errors import GitFailed, SandboxRefused
from fireswarm.processes.confinement.programs import find_program
from fireswarm.processes.messages import elsewhere

if TYPE_CHECKING:
    from fireswarm.processes.confinement.bubblewrap import Launch

TIMEOUT_SECONDS = 60.0

MAX_ENTRIES = 200_000
"""Maximum number of files of a repository that are looked at."""

_BORROWED = (Path("objects", "info", "alternates"), Path("objects", "info", "http-alternates"))

ALWAYS: dict[str, str] = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.attributesFile": os.devnull,
    "core.quotePath": "false",
    "core.sshCommand": "false",
    "core.gitProxy": "none",
    "core.askPass": "false",
    "core.editor": "false",
    "core.alternateRefsCommand": "false",
    "credential.helper": "",
    "sequence.editor": "false",
    "safe.bareRepository": "explicit",
    "log.showSignature": "false",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "gpg.program": "false",
    "gpg.openpgp.program": "false",
    "gpg.x509.program": "false",
    "gpg.ssh.program": "false",
    "gpg.ssh.defaultKeyCommand": "false",
    "diff.ignoreSubmodules": "all",
    "diff.submodule": "short",
    "submodule.recurse": "false",
    "status.submoduleSummary": "false",
    "protocol.allow": "never",
    "uploadpack.packObjectsHook": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
"""Values of keys for every call. ``false`` is the program that always fails."""

_EXECUTED: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.DOTALL), value)
    for pattern, value in (
        (r"filter\..*\.(?:clean|smudge|process)", ""),  # an empty filter changes nothing
        (r"filter\..*\.required", "false"),
        (r"diff\..*\.command", "false"),
        (r"diff\..*\.textconv", "cat"),
        (r"diff\..*\.cachetextconv", "false"),
        (r"merge\..*\.driver", "false"),
        (r"gpg\..*", "false"),
        (r"credential\..*", ""),
        (r"protocol\..*\.allow", "never"),
        (r"remote\..*\.(?:uploadpack|receivepack|vcs|promisor)", "false"),
        (r"trailer\..*\.(?:cmd|command)", "true"),
        (r"(?:pager|sequence|browser|man|difftool|mergetool|guitool|interactive|sendemail)\..*", "false"),
        (r"tar\..*\.command", "false"),
    )
)
"""Keys that contain a name chosen by the repository, in git's spelling: lower case except for that name."""

_READS = frozenset(
    {
        *("blame", "cat-file", "describe", "diff", "diff-files", "diff-index", "diff-tree", "format-patch", "grep"),
        *("log", "ls-files", "shortlog", "show", "show-ref", "status", "whatchanged"),
    }
)
"""Commands that change no repository: confined, they only read it."""

_ASKS = frozenset({"check-ref-format", "config", "for-each-ref", "ls-tree", "rev-list", "rev-parse", "symbolic-ref"})
"""Commands that compare and convert no file of a work tree, and are asked only: with the values of `ALWAYS`, they start
no program that a repository names, and write nothing. All others are confined to the repository, whose settings and
folders may change between two calls; ``init`` makes one."""

_OUTSIDE_SUBMODULES = "--ignore-submodules=dirty"
"""Compares the commits of submodules only. As a key, ``.gitmodules`` would override it."""

_NO_PROGRAMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("diff", "log", "show", "format-patch", "whatchanged"), ("--no-ext-diff", "--no-textconv", _OUTSIDE_SUBMODULES)
    ),
    **dict.fromkeys(("status", "diff-files", "diff-index", "diff-tree"), (_OUTSIDE_SUBMODULES,)),
    "blame": ("--no-textconv",),
    "grep": ("--no-textconv",),
}
"""Options of these commands that forbid external programs, placed after the command."""


def run_git(
    folder: Path,
    *arguments: str,
    stdin: bytes | None = None,
    environment: Mapping[str, str] | None = None,
    git_dir: Path | None = None,
    writes_to: Path | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> bytes:
    """Run git in *folder* and return its output; *environment* adds variables such as ``GIT_AUTHOR_NAME``.

    Where this machine can confine code, git sees the repository only, and writes there, or with *writes_to* to that
    folder only; a command that changes the repository also writes to the folder of ``GIT_INDEX_FILE``. Commands that
    only ask (`_ASKS`) are not confined. A bare repository is used only if it is named as *git_dir*. Blocks up to
    *timeout_seconds*. Raises GitFailed if git is missing, fails, takes too long, or would read files outside of the
    folder's repository.
    """
    variables = _environment() | dict(environment or {})
    if git_dir is not None:
        variables["GIT_DIR"] = str(git_dir)
    trusted = _trusted_folders(*(os.environ.get(name, "") for name in ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL")))
    own = {**ALWAYS, **{f"safe.directory\0{number}": path for number, path in enumerate(trusted)}}
    listed = _call(folder, ["config", "--list", "-z"], variables | _as_variables(own), None, timeout_seconds)
    keys = [entry.partition("\n")[0] for entry in listed.decode("utf-8", "surrogateescape").split("\0") if entry]
    replaced = {key: value for key in keys for pattern, value in _EXECUTED if pattern.fullmatch(key)}
    variables |= _as_variables({**replaced, **own})
    places = _refuse_elsewhere(folder, variables, keys, git_dir is not None, timeout_seconds)
    command, *rest = arguments
    words = [command, *_NO_PROGRAMS.get(command, ()), *rest]
    if command in _ASKS or command == "init":
        return _call(folder, words, variables, stdin, timeout_seconds)
    changes = writes_to is None and command not in _READS
    if changes and (index := variables.get("GIT_INDEX_FILE")):
        writes_to = Path(index).parent
    with _confine(folder, places, writes_to, changes=changes) as launch:
        return _call(folder, words, variables, stdin, timeout_seconds, launch)


def _refuse_elsewhere(
    folder: Path, variables: Mapping[str, str], keys: Collection[str], is_bare: bool, timeout_seconds: float
) -> list[Path]:
    """Return the repository, what it shares with others, and its work tree; [] outside of a repository.

    Git itself says where it reads. A work tree of another repository, and a submodule, are its own parts only if that
    repository says so too. Raises GitFailed if git would read files outside of the folder's repository.
    """
    words = ["rev-parse", "--absolute-git-dir", "--git-common-dir"]
    try:
        told = _call(folder, words, variables, None, timeout_seconds)
    except GitFailed as error:
        if "dubious ownership" in str(error):
            raise  # confined, git would run as the owner, and not ask whether the user trusts it
        return []  # the command itself says so
    top = b"" if is_bare else _call(folder, ["rev-parse", "--show-toplevel"], variables, None, timeout_seconds)
    lines = [Path(folder, os.fsdecode(line)).resolve() for line in (told + top).split(b"\n") if line]
    if len(lines) != (2 if is_bare else 3):
        raise GitFailed(f"the repository of {folder} has a line break in its path")
    try:
        fault = _find_elsewhere(folder.resolve(), lines, "core.worktree" in keys)
    except (OSError, ValueError, RuntimeError) as error:
        fault = f"{lines[0]}: {getattr(error, 'strerror', None) or error}"
    if fault:
        raise GitFailed(f"the repository of {folder} reads files elsewhere: {fault}")
    return lines


@contextmanager
def _confine(
    folder: Path, places: Sequence[Path], writes_to: Path | None, *, changes: bool
) -> Generator[Launch | None]:
    """Yield the start of a git that sees the repository only; None where no code can be confined, or all of it is.

    It ``changes`` the repository and writes to *writes_to*, or to that only. The modules are imported here, since each
    process of a skill imports this one. Raises GitFailed if a part of the repository has become a link.
    """
    from fireswarm.processes.confinement.ladder import choose_rung
    from fireswarm.processes.confinement.view import View

    if elsewhere:
        yield None
        return
    own, common, *trees = places or (folder.resolve(), folder.resolve())
    workspace = trees[0] if trees else own
    shared = common if changes and not common.is_relative_to(workspace) else writes_to
    view = View(workspace, changes, (own, common), outputs=shared, protects=False)
    try:
        choose_rung()
    except SandboxRefused:
        yield None  # then no command of a model and no skill of others runs here either
        return
    with ExitStack() as stack:
        try:
            launch = stack.enter_context(view.confine(os.environ))
        except SandboxRefused as error:
            raise GitFailed(f"cannot run git in {folder}: {error}") from error
        yield launch


def _find_elsewhere(folder: Path, places: Sequence[Path], has_tree: bool) -> str:
    """Return what is elsewhere, or "". *places* are the repository, what it shares with others, and its work tree."""
    own, common, *trees = places
    for tree in trees:
        if not folder.is_relative_to(tree):
            return f"its work tree is {tree}"
        if own != tree / ".git" and not ((tree / ".git").is_file() and _leads_back(own, tree, has_tree)):
            return f"{own} is not of the work tree {tree}"
    if common != own and not (trees and own.parent == common / "worktrees"):
        return f"{own} shares {common}"
    for name in _BORROWED:
        if (common / name).exists():
            return f"{common / name} borrows from another repository"
    for number, link in enumerate(_links_in(common)):
        if link or number >= MAX_ENTRIES:
            return f"{link} is a link" if link else f"{common} has more than {MAX_ENTRIES:,} files"
    return ""


def _leads_back(own: Path, tree: Path, has_tree: bool) -> bool:
    """Return True if the repository in *own* names the work tree: in ``gitdir``, or as ``core.worktree``."""
    if not (own / "gitdir").is_file():
        return has_tree  # git took the work tree from there
    named = (own / "gitdir").read_bytes().decode("utf-8", "surrogateescape").strip()
    return (own / named).resolve() == tree / ".git"


def _links_in(folder: Path) -> Iterator[str]:
    """Yield the path of each link in a repository, and "" for each other file, except for those of its submodules."""
    waiting, inner = [str(folder)], str(folder / "modules")
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    yield entry.path
                elif entry.is_dir(follow_symlinks=False):
                    waiting += [entry.path] if entry.path != inner else []
                else:
                    yield ""


def _call(
    folder: Path,
    arguments: list[str],
    variables: Mapping[str, str],
    stdin: bytes | None,
    timeout_seconds: float,
    launch: Launch | None = None,
) -> bytes:
    words = [_program(), "--no-pager", *arguments]
    if launch is not None:
        words = [*launch.prefix, words[0], "-C", str(folder.resolve()), *words[1:]]
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env=dict(variables) if launch is None else {**launch.environment, **variables},
            input=b"" if stdin is None else stdin,
            capture_output=True,
            timeout=timeout_seconds,
            check=False,
            pass_fds=() if launch is None else launch.pass_fds,
        )
    except FileNotFoundError as error:
        raise GitFailed("git is not installed" if folder.is_dir() else f"{folder} is not a folder") from error
    except OSError as error:
        raise GitFailed(f"cannot run git in {folder}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise GitFailed(f"git {arguments[0]} took longer than {timeout_seconds:g} s") from error
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).decode("utf-8", "replace")
        raise GitFailed(f"git {arguments[0]}: {truncate(said, MAX_DETAIL_CHARS)}")
    return done.stdout


def _program() -> str:
    if (program := find_program("git")) is None:
        raise GitFailed("git is not installed in a folder of the system")
    return program


def _environment() -> dict[str, str]:
    """Return the few variables that git needs: no programs, other configuration, prompts, transports or locks."""
    kept = {name: value for name, value in os.environ.items() if name in ("TMPDIR", "SYSTEMROOT")}
    return kept | {
        "PATH": os.devnull,
        "GIT_EXEC_PATH": os.devnull,
        "HOME": os.devnull,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_EDITOR": "false",
        "GIT_PAGER": "cat",
    }


def _as_variables(values: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that set configuration keys for one call. Unlike with ``-c``, a key may contain ``=``."""
    variables = {"GIT_CONFIG_COUNT": str(len(values))}
    for number, (key, value) in enumerate(values.items()):
        variables[f"GIT_CONFIG_KEY_{number}"] = key.partition("\0")[0]
        variables[f"GIT_CONFIG_VALUE_{number}"] = value
    return variables


@cache
def _trusted_folders(*places: str) -> tuple[str, ...]:
    """Return the folders of other users in which the user lets git work, by the configuration in *places*."""
    return tuple(os.fsdecode(path) for path in _of_user("safe.directory") if path)


@cache
def git_identity() -> bytes:
    """Return settings of git for confined commands: the name and address of this user, and the machine's settings."""
    lines = ["[include]", "\tpath = /etc/gitconfig", "[user]"]
    for key in ("name", "email"):
        for value in [
            text for each in _of_user(f"user.{key}") if (text := each.decode("utf-8", "replace")).isprintable()
        ]:
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            lines.append(f'\t{key} = "{escaped}"')
    return "\n".join(lines).encode() + b"\n"


def _of_user(key: str) -> list[bytes]:
    """Return the values of a key in the user's own configuration; none without git."""
    try:
        command = [_program(), "config", "--global", "-z", "--get-all", key]
        listed = subprocess.run(command, capture_output=True, timeout=TIMEOUT_SECONDS, check=False, cwd="/").stdout
    except (GitFailed, OSError, subprocess.TimeoutExpired):
        return []
    return listed.removesuffix(b"\0").split(b"\0") if listed else []


def ask_git(repository: Path, *arguments: str, timeout_seconds: float = TIMEOUT_SECONDS) -> str:
    """Return what git says of a repository, which may be a bare one, without the last line's end. Raises GitFailed."""
    is_bare = not (repository / ".git").exists() and (repository / "objects").is_dir()
    said = run_git(repository, *arguments, git_dir=repository if is_bare else None, timeout_seconds=timeout_seconds)
    return os.fsdecode(said.rstrip(b"\n"))


def read_branch(repository: Path, *, timeout_seconds: float = TIMEOUT_SECONDS) -> tuple[str, str]:
    """Return the branch that a repository, also a bare one, has checked out, and the id of its last commit.

    Blocks up to *timeout_seconds* for each of two commands. Raises GitFailed, which says what to do, if the folder is
    no repository or has no commit on a branch.
    """
    try:
        branch = ask_git(repository, "symbolic-ref", "--short", "HEAD", timeout_seconds=timeout_seconds)
        commit = ask_git(repository, "rev-parse", "--verify", "HEAD^{commit}", timeout_seconds=timeout_seconds)
    except GitFailed as error:
        told = f"{repository} has no branch with a commit to build on ({error})"
        raise GitFailed(f"{told}: name the folder of a git repository with a first commit, or none") from error
    return branch, commit
