"""Places in a workspace that the settings of git name: programs, further settings, and other repositories.

The next git outside of the confinement runs or reads what is there. Git itself reads its files of settings, the user's
too: which commands a setting runs is not judged here, so each place that a value names counts.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from fireswarm.contracts.regular_file import read_regular_file
from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement.paths.names import GIT, GIT_PROTECTED, is_bare_repository
from fireswarm.processes.confinement.programs import find_program
from fireswarm.settings.run_folders import places_on

MAX_SETTINGS_BYTES = 1_000_000
MAX_FILES = 200
"""Files of settings that are read for a workspace; git itself follows ten of them one after the other."""

MAX_REPOSITORIES = 200
"""Submodules and further work trees that are looked at."""

READ_SECONDS = 10.0

HOOKS = (
    *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg"),
    *("commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-receive", "update"),
    *("proc-receive", "post-receive", "post-update", "reference-transaction", "push-to-checkout", "pre-auto-gc"),
    *("post-rewrite", "sendemail-validate", "fsmonitor-watchman", "post-index-change", "p4-changelist"),
    *("p4-prepare-changelist", "p4-post-changelist", "p4-pre-submit"),
)
"""Names of programs that git runs by itself (its manual, githooks)."""

_DATA = re.compile(
    r"branch\..*|remote\..*\.(?:fetch|push)|color\..*|user\..*"
    r"|core\.(?:excludesfile|worktree)|blame\.ignorerevsfile|commit\.template|mailmap\.(?:file|blob)",
    re.DOTALL,
)
"""Settings from which git starts nothing and reads no settings: names of branches, texts, lists of commits."""

_ALIAS = re.compile(r"alias\..*", re.DOTALL)
_INCLUDED = re.compile(r"include\.path|includeif\..*\.path", re.DOTALL)
_SUBMODULE = re.compile(r"submodule\..*\.path", re.DOTALL)
_REMOTE = re.compile(r"remote\..*\.(?:url|pushurl)", re.DOTALL)
_NAMES_A_PATH = re.compile(r".*(?:path|dir|file)", re.DOTALL)
_NO_PATH = re.compile(r"true|false|yes|no|on|off|[0-9]+", re.IGNORECASE)
_COMPUTED = re.compile(r"\$\([^()]*\)|\$\{[^{}]*\}|\$\w+|`[^`]*`")
"""Parts of a command that a shell computes, such as the top of the work tree."""

_BETWEEN_WORDS = re.compile(r"[\s;|&()<>=\"'!]+")


@dataclass(frozen=True, slots=True)
class _Repository:
    """A work tree with its repository ``own``, and what that shares with others. For a bare one, all are the same."""

    tree: Path
    own: Path
    common: Path

    @classmethod
    def of(cls, tree: Path) -> _Repository | None:
        """Return the repository of a work tree, or the bare one; None if there is none."""
        place = tree / GIT
        if place.is_file():
            text = _read(place).decode("utf-8", "surrogateescape")
            place = tree / text.removeprefix("gitdir:").strip()
        elif not place.is_dir():
            if not is_bare_repository(tree):
                return None
            place = tree
        own = Path(os.path.realpath(place))
        shared = _read(own / "commondir").decode("utf-8", "surrogateescape").strip()
        return cls(tree, own, Path(os.path.realpath(own / shared)) if shared else own)

    def find_own_places(self, workspace: Path) -> Iterator[Path]:
        """Yield the protected names of this repository, except those of a folder at the top of *workspace*."""
        known = {workspace, workspace / GIT}
        if self.tree != workspace and (self.tree / GIT).is_file():
            yield self.tree / GIT
        for folder in dict.fromkeys((self.own, self.common)):
            if folder not in known:
                yield from (folder / name for name in sorted(GIT_PROTECTED))

    def find_others(self) -> Iterator[Path]:
        """Yield the further work trees of this repository."""
        with contextlib.suppress(OSError), os.scandir(self.common / "worktrees") as entries:
            for entry in entries:
                if named := _read(Path(entry.path, "gitdir")).decode("utf-8", "surrogateescape").strip():
                    yield Path(os.path.realpath(Path(entry.path, named))).parent


def find_named_by_git(workspace: Path) -> list[Path]:
    """Return the places in *workspace* that settings of git name, also those that do not exist; links count too.

    The settings are those of the repository of which the workspace is a part, of its submodules and work trees, of the
    user and of the machine, and all that they include under any condition. Without a repository, nothing is read.
    Raises SandboxRefused for settings that cannot be looked through.
    """
    top = find_tree(workspace)
    if top is None:
        return []
    shared = _read_all(_files_of_user())
    found: dict[Path, None] = {}
    left, seen = [top], set[Path]()
    while left:
        tree = left.pop()
        if tree in seen:
            continue
        seen.add(tree)
        if (repository := _Repository.of(tree)) is None:  # a submodule that nobody has fetched
            found[tree / GIT] = None
            continue
        if len(seen) > MAX_REPOSITORIES:
            raise SandboxRefused(f"{top} has more than {MAX_REPOSITORIES} submodules and work trees: work in one")
        own = _read_all([repository.common / "config", repository.own / "config.worktree"])
        found |= dict.fromkeys(repository.find_own_places(workspace))
        for file, key, value in (*shared, *own):
            found |= dict.fromkeys(_find_places(tree, file, key, value))
            if key == "core.hookspath" and Path(os.path.realpath(_place(tree, value))) == workspace:
                found |= dict.fromkeys(workspace / name for name in HOOKS)
        modules = _read_settings(_read(tree / ".gitmodules"))
        others = [*repository.find_others(), *(tree / value for key, value in modules if _SUBMODULE.fullmatch(key))]
        left += [each for each in others if each.is_relative_to(workspace)]
    start = f"{workspace}/"
    inner = (each for place in found for each in _find_on_way(place))
    return [place for place in dict.fromkeys(inner) if str(place).startswith(start)]


def find_tree(workspace: Path) -> Path | None:
    """Return the nearest folder, *workspace* or one above it, that is a work tree or a bare repository."""
    trees = (folder for folder in (workspace, *workspace.parents) if os.path.lexists(folder / GIT))
    return next(trees, workspace if is_bare_repository(workspace) else None)


def _files_of_user() -> list[Path]:
    """Return the files in which git looks for the settings of the machine and of this user."""
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.home() may raise
    more = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    named = [os.environ[name] for name in ("GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL") if os.environ.get(name)]
    return [Path(place) for place in ("/etc/gitconfig", f"{more}/git/config", f"{home}/.gitconfig", *named)]


def _read_all(files: Sequence[Path]) -> list[tuple[Path, str, str]]:
    """Return the settings of *files* and of those that they include, each with its file."""
    found: list[tuple[Path, str, str]] = []
    left, seen = list(files), set[Path]()
    while left:
        file = left.pop(0)
        if file in seen:
            continue
        seen.add(file)
        if len(seen) > MAX_FILES:
            raise SandboxRefused(f"the settings of git in {files[0]} include more than {MAX_FILES} files: remove some")
        settings = _read_settings(_read(file))
        found += [(file, key, value) for key, value in settings]
        left += [_place(file.parent, value) for key, value in settings if _INCLUDED.fullmatch(key)]
    return found


def _read(file: Path) -> bytes:
    """Return the content of a file, nothing for what git does not read either. Raises SandboxRefused."""
    try:
        return read_regular_file(file, MAX_SETTINGS_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise SandboxRefused(f"{file} has more than {MAX_SETTINGS_BYTES:,} bytes of settings of git") from error
        return b""
    except ValueError:  # a zero byte in its name
        return b""


@lru_cache(maxsize=512)
def _read_settings(content: bytes) -> tuple[tuple[str, str], ...]:
    """Return keys and values in the order of *content*. Nothing is included, and what git refuses is left out."""
    program = find_program("git")
    if not content or program is None:
        return ()
    try:
        done = subprocess.run(
            [program, "config", "--file", "-", "--list", "-z"],
            input=content,
            capture_output=True,
            timeout=READ_SECONDS,
            check=False,
            cwd="/",
            env={"PATH": os.devnull, "HOME": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_DIR": os.devnull},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxRefused(f"git cannot read its settings: {error}") from error
    entries = done.stdout.decode("utf-8", "surrogateescape").split("\0")
    pairs = (entry.partition("\n") for entry in entries if entry)
    return tuple((key, value) for key, _, value in pairs if value and "\0" not in value)


def _find_places(tree: Path, file: Path, key: str, value: str) -> Iterator[Path]:
    """Yield the places that the value of a setting names, for git at the top of *tree*."""
    if _DATA.fullmatch(key) or _NO_PATH.fullmatch(value):
        return
    if _REMOTE.fullmatch(key):
        yield from _find_remote(_place(tree, value)) if "://" not in value else ()
        return
    if _INCLUDED.fullmatch(key):
        yield _place(file.parent, value)
        return
    if _NAMES_A_PATH.fullmatch(key):
        yield _place(tree, value)
    for word in _BETWEEN_WORDS.split(_COMPUTED.sub(".", value)):
        if word and "://" not in word and ("/" in word or not _ALIAS.fullmatch(key)):
            place = _place(tree, word)
            is_made_later = "/" in word and not os.path.lexists(place)
            if is_made_later or os.path.isfile(place) or os.path.islink(place):  # noqa: PTH113, PTH114 - no errors
                yield place


def _find_remote(place: Path) -> Iterator[Path]:
    """Yield what runs in a repository from which git fetches, or to which it pushes."""
    if not os.path.lexists(place):
        yield place
    for folder in (place, place / GIT):
        if is_bare_repository(folder):
            yield from (folder / name for name in sorted(GIT_PROTECTED))


def _place(base: Path, value: str) -> Path:
    """Return the place that a value names from *base*."""
    return base / os.path.expanduser(value.removeprefix(":(optional)"))  # noqa: PTH111 - Path.expanduser may raise


def _find_on_way(place: Path) -> list[Path]:
    """Return the links on the way to a place, and where it leads; nothing for a name that no file can have."""
    try:
        return places_on(Path(os.path.abspath(place)))  # noqa: PTH100 - it follows no links
    except OSError:
        return []
