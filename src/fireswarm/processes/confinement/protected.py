"""Places in a workspace that its commands, skills and file tools may read, but not change."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from fireswarm.errors import PlaceRefused, SandboxRefused
from fireswarm.processes.confinement.paths.names import GIT, GIT_PROTECTED, OWN_FOLDER, find_names
from fireswarm.settings.run_folders import state_home, swarm_folders

MAX_SEARCHED = 100_000
"""Entries of a folder in which swarms, sockets and devices are searched for before each command."""

MAX_DEPTH = 4
_NOT_SEARCHED = frozenset({GIT, "node_modules", ".venv", "venv", "__pycache__", ".tox", "site-packages", "target"})


def hidden_places(folder: Path) -> list[Path]:
    """Return what code that works in *folder* does not see of it, without links.

    That is the state of the agent and of swarms, such as their stores, and sockets and devices. A folder of unknown
    origin is searched `MAX_DEPTH` levels down.
    """
    known = {place for place in (state_home(), *swarm_folders(), *_bound_sockets()) if place.is_relative_to(folder)}
    found = {place for place in known if place != folder and os.path.lexists(place) and not place.is_symlink()}
    found |= set(_search(folder))
    return sorted(place for place in found if not any(above in found for above in place.parents))


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
    left, below = MAX_SEARCHED, [(str(folder), 0)]
    while below:
        where, depth = below.pop(0)
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
    return [Path(part[7]) for part in parts if len(part) == 8 and part[7].startswith("/")]


def protected_places(workspace: Path) -> list[Path]:
    """Return what exists in *workspace* of the protected names; for a link, the place in the workspace it leads to."""
    return sorted(place for place in {*_named_places(workspace), *linked_places(workspace)} if place.exists())


def _named_places(workspace: Path) -> Iterator[Path]:
    for path in find_names(workspace):
        is_linked = path.is_symlink() or path.parent.is_symlink()
        if not is_linked and (path.name.casefold() not in (GIT, OWN_FOLDER) or path.is_file()):
            yield path


def linked_places(workspace: Path) -> list[Path]:
    """Return the places in *workspace* to which links with protected names lead.

    If ``.git`` is a link, these are the protected names in the repository, also those that do not exist yet.
    """
    found: list[Path] = []
    for path in find_names(workspace):
        if path.is_symlink() and (place := _inner_place(path, workspace)):
            found += [place / name for name in sorted(GIT_PROTECTED)] if path.name.casefold() == GIT else [place]
    return found


def _inner_place(link: Path, workspace: Path) -> Path | None:
    """Return where *link* leads within *workspace*, or None if it leads elsewhere, or nowhere."""
    place = Path(os.path.realpath(link))
    return place if place != workspace and place.is_relative_to(workspace) and place.exists() else None


def kept_mounts(workspace: Path) -> list[str]:
    """Return the arguments of bubblewrap that keep the protected places of a writable workspace as they are."""
    git = workspace / GIT
    # What is mounted cannot get another name.
    mounts = ["--bind", str(git), str(git)] if git.is_dir() and not git.is_symlink() else []
    mounts += pin_parents(workspace, linked_places(workspace))
    return [*mounts, *(word for kept in protected_places(workspace) for word in ("--ro-bind", str(kept), str(kept)))]


def changeable(workspace: Path, hidden: Sequence[Path]) -> list[Path]:
    """Return the fewest places in *workspace* that hold everything in it that code may change, except new names.

    Raises PlaceRefused if it is gone.
    """
    protected = [*hidden, *protected_places(workspace)]
    try:
        with os.scandir(workspace) as entries:
            names = sorted(entry.path for entry in entries if not entry.is_symlink())
    except OSError as error:
        raise PlaceRefused(f"{workspace} cannot be a part of a confined command: {error.strerror}") from error
    places = [place for name in names for place in everything_but(Path(name), protected)]
    if (git := workspace / GIT) in places:  # it has no protected name yet, and gets none
        places.remove(git)
        places += [path for path in sorted(git.iterdir()) if not path.is_symlink()] if git.is_dir() else []
    return places


def everything_but(folder: Path, hidden: Iterable[Path]) -> list[Path]:
    """Return the fewest places in *folder* that together hold everything in it but *hidden*, without links."""
    inside = [str(place) for place in hidden if place.is_relative_to(folder) and os.path.lexists(place)]
    found: list[Path] = []
    _collect(str(folder), inside, found)
    return found


def _collect(folder: str, hidden: list[str], found: list[Path]) -> None:
    if folder in hidden:
        return
    if not any(place.startswith(f"{folder.rstrip('/')}/") for place in hidden):
        found.append(Path(folder))
        return
    try:
        with os.scandir(folder) as entries:
            below = [entry.path for entry in entries if not entry.is_symlink()]
    except OSError:  # this process may not list it, nor may the command
        return
    for place in sorted(below):
        _collect(place, hidden, found)
