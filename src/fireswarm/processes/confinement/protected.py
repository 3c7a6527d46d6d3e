"""Places in a workspace that its commands, skills and file tools may read, but not change."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path

from fireswarm.errors import PlaceRefused, SandboxRefused
from fireswarm.processes.confinement.paths.hard_links import find_other_names
from fireswarm.processes.confinement.paths.names import (
    BARE_PROTECTED,
    GIT,
    GIT_PROTECTED,
    OWN_FOLDER,
    find_names,
    is_bare_repository,
    is_protected,
)
from fireswarm.processes.confinement.paths.program_files import folders_around, program_files
from fireswarm.settings.run_folders import state_home, swarm_folders

MAX_SEARCHED = 100_000
"""Entries of a folder in which swarms, sockets and devices are searched for before each command."""

MAX_LINKS_SEARCHED = 5_000
"""Entries of a protected folder in which links are searched for before each command."""

MAX_DEPTH = 4
_NO_LINKS = frozenset({OWN_FOLDER, "modules", "worktrees", "remotes", "branches"})
"""Protected folders in which no links are searched for: they hold the objects of repositories, and names."""
_NOT_SEARCHED = frozenset({GIT, "node_modules", ".venv", "venv", "__pycache__", ".tox", "site-packages", "target"})


def hidden_places(folder: Path) -> list[Path]:
    """Return what code that works in *folder* does not see of it, without links.

    That is the state of the agent and of swarms, such as their stores, and sockets and devices. A folder of unknown
    origin is searched `MAX_DEPTH` levels down.
    """
    known = {place.resolve() for place in (state_home(), *swarm_folders())} | set(_bound_sockets())
    found = {place for place in known if place.is_relative_to(folder) and place != folder and os.path.lexists(place)}
    found |= set(_search(folder))
    return sorted(outermost(found))


def outermost(places: Iterable[Path]) -> list[Path]:
    """Return each of *places* once, without those that are in another of them."""
    found = dict.fromkeys(places)
    return [place for place in found if not any(above in found for above in place.parents)]


def pin_parents(workspace: Path, hidden: Iterable[Path]) -> list[str]:
    """Return the arguments of bubblewrap that keep the names of the folders above *hidden*.

    If one was moved, the next command would see what is hidden in it.
    """
    above = {parent for place in hidden for parent in place.parents if parent.is_relative_to(workspace)} - {workspace}
    return [word for parent in sorted(above) for word in ("--bind", str(parent), str(parent))]


def hide(places: Iterable[Path]) -> list[str]:
    """Return the arguments of bubblewrap that put an empty folder, or nothing, in the place of each."""
    words: list[str] = []
    for place in places:
        if place.is_dir():
            words += ["--perms", "0755", "--size", "4096", "--tmpfs", str(place)]
        else:
            words += ["--ro-bind", "/dev/null", str(place)]
    return words


def _search(folder: Path) -> Iterator[Path]:
    """Yield folders of swarms, and what is neither a file, a folder nor a link."""
    left, below = MAX_SEARCHED, deque([(str(folder), 0)])
    while below:
        where, depth = below.popleft()
        with contextlib.suppress(OSError), os.scandir(where) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    raise SandboxRefused(
                        f"{folder} has more than {MAX_SEARCHED:,} entries in its upper {MAX_DEPTH} levels, so that "
                        "stores of swarms in it cannot be searched for: work in a folder within it"
                    )
                if entry.is_symlink():
                    continue
                is_folder = entry.is_dir()
                if entry.name == OWN_FOLDER if is_folder else not (entry.is_file() or _is_pipe(entry)):
                    yield Path(entry.path)
                elif is_folder and depth < MAX_DEPTH and entry.name not in _NOT_SEARCHED:
                    below.append((entry.path, depth + 1))


def _is_pipe(entry: os.DirEntry[str]) -> bool:
    return stat.S_ISFIFO(entry.stat(follow_symlinks=False).st_mode)


def _bound_sockets() -> list[Path]:
    """Return the paths of the sockets that programs of this machine have opened as files."""
    try:
        lines = Path("/proc/net/unix").read_text(encoding="utf-8", errors="surrogateescape").splitlines()[1:]
    except OSError:
        return []
    parts = (line.split(maxsplit=7) for line in lines)
    return [Path(os.path.realpath(part[7])) for part in parts if len(part) == 8 and part[7].startswith("/")]


def protected_places(workspace: Path) -> list[Path]:
    """Return what exists in *workspace* of the protected names; for a link, the place in the workspace it leads to."""
    places = {*_named_places(workspace), *linked_places(workspace)}
    return sorted(place for place in places if place.exists() and not place.is_symlink())


def _named_places(workspace: Path) -> Iterator[Path]:
    for path in find_names(workspace):
        is_linked = path.is_symlink() or path.parent.is_symlink()
        if not is_linked and (path.name.casefold() not in (GIT, OWN_FOLDER) or path.is_file()):
            yield path


def linked_places(workspace: Path) -> list[Path]:
    """Return the places in *workspace* to which links with protected names, or in protected folders, lead.

    They include the further names of protected files, which are hard links. The links may also be in a repository, or
    in the folder of a swarm, of which the workspace is a part. Places of `program_files` belong to them, of which some
    are links. They need not exist. If ``.git`` is a link, these are the protected names in the repository; they are too
    if the workspace is a repository itself. An environment of Python that runs fireswarm itself is one of the places:
    what is written there runs at its next start.
    """
    found = [workspace / name for name in sorted(BARE_PROTECTED)] if is_bare_repository(workspace) else []
    environments = {Path(prefix).resolve() for prefix in (sys.prefix, sys.exec_prefix, sys.base_prefix)}
    found += sorted(place for place in environments if place != workspace and place.is_relative_to(workspace))
    named = program_files(workspace)
    found += named
    names = [path for folder in (workspace, *folders_around(workspace)) for path in find_names(folder)]
    own = [path for path in (*names, *named) if path.name.casefold() not in {GIT, *_NO_LINKS} or path.is_file()]
    found += find_other_names(workspace, own)
    for path in names:
        is_git = path.name.casefold() == GIT
        for link in [path] if path.is_symlink() else [] if is_git else _links_in(path):
            place = Path(os.path.realpath(link))
            if place != workspace and place.is_relative_to(workspace):
                found += [place / name for name in sorted(GIT_PROTECTED)] if is_git else [place]
    return found


def is_kept(place: Path, workspace: Path) -> bool:
    """Return True for a place without links in *workspace* that code which works there may not change."""
    parts = place.relative_to(workspace).parts
    return is_protected(parts) or any(place.is_relative_to(kept) for kept in linked_places(workspace))


def _links_in(folder: Path) -> Iterator[Path]:
    """Yield the links in a protected folder, as far as `MAX_LINKS_SEARCHED` entries go."""
    left, below = MAX_LINKS_SEARCHED, [str(folder)] if folder.name not in _NO_LINKS else []
    while below and left > 0:
        with contextlib.suppress(OSError), os.scandir(below.pop(0)) as entries:
            for entry in entries:
                left -= 1
                if entry.is_symlink():
                    yield Path(entry.path)
                elif entry.is_dir():
                    below.append(entry.path)


def kept_mounts(workspace: Path) -> list[str]:
    """Return the arguments of bubblewrap that keep the protected places of a writable workspace as they are."""
    git = workspace / GIT
    # What is mounted cannot get another name.
    mounts = ["--bind", str(git), str(git)] if git.is_dir() and not git.is_symlink() else []
    mounts += pin_parents(workspace, [place for place in linked_places(workspace) if place.parent.is_dir()])
    return [*mounts, *(word for kept in protected_places(workspace) for word in ("--ro-bind", str(kept), str(kept)))]


def changeable(workspace: Path, hidden: Sequence[Path]) -> list[Path]:
    """Return the fewest places in *workspace* that hold everything in it that code may change, except new names.

    Raises PlaceRefused if it is gone.
    """
    links = (place for place in program_files(workspace) if place.is_symlink())
    protected = [*hidden, *protected_places(workspace), *links]
    try:
        with os.scandir(workspace) as entries:
            names = sorted(entry.path for entry in entries if not entry.is_symlink())
    except OSError as error:
        raise PlaceRefused(f"{workspace} cannot be a part of a confined command: {error.strerror}") from error
    places = everything_but(map(Path, names), protected)
    if (git := workspace / GIT) in places:  # it has no protected name yet, and gets none
        places.remove(git)
        places += [path for path in sorted(git.iterdir()) if not path.is_symlink()] if git.is_dir() else []
    return places


def everything_but(folders: Iterable[Path], hidden: Iterable[Path]) -> list[Path]:
    """Return the fewest places in *folders* that together hold everything in them but *hidden*, without links."""
    unseen = [place for place in hidden if os.path.lexists(place)]
    names, above = {str(place) for place in unseen}, {str(parent) for place in unseen for parent in place.parents}
    found: list[Path] = []
    for folder in folders:
        _collect(str(folder), names, above, found)
    return found


def _collect(folder: str, hidden: Set[str], above: Set[str], found: list[Path]) -> None:
    if folder in hidden:
        return
    if folder not in above:
        found.append(Path(folder))
        return
    try:
        with os.scandir(folder) as entries:
            below = [entry.path for entry in entries if not entry.is_symlink()]
    except OSError:  # this process may not list it, nor may the command
        return
    for place in sorted(below):
        _collect(place, hidden, above, found)
