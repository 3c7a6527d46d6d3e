"""The view of the code of a skill: programs, its own folders, and the folders of its task.

Unlike a command, it may have a network and work in several folders, and it keeps the user of this process. It has no
sockets of other programs, no other processes, and no secrets in its environment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from fireswarm.processes.confinement.bubblewrap import Isolation, Launch, folders, isolate
from fireswarm.processes.confinement.ladder import BY_PATHS, choose_rung
from fireswarm.processes.confinement.mounts import (
    PRIVATE_FOLDERS,
    hidden_kernel_files,
    holds_a_home,
    shared_python,
    system_mounts,
    system_places,
)
from fireswarm.processes.confinement.paths.rules import PathRules
from fireswarm.processes.confinement.protected import (
    changeable,
    everything_but,
    hidden_places,
    hide,
    kept_mounts,
    linked_places,
    outermost,
    pin_parents,
)
from fireswarm.processes.confinement.view import (
    READ_ALL,
    TEMPORARY_BYTES,
    is_workspace,
    machine_places,
    named_environment,
    outside_of,
)


@dataclass(frozen=True, slots=True)
class SkillView:
    """``home`` and ``workdir`` are writable. The ``workspaces`` are too if it ``writes``, otherwise they are readable.

    In a workspace, protected names do not change. A workspace that is the root of the file system or a part of the
    system cannot be used. ``readable`` are further files and folders by their real paths, and refused if a part has
    become a link; ``hidden`` are those that it does not see, as it does not see the state of swarms and of the agent.
    With a network, ``passes`` are names of environment variables besides `NAMED`. A workspace that has become a link
    is refused. The current folder is that of this process, so that relative paths have the same meaning.
    """

    home: Path
    workdir: Path
    workspaces: tuple[Path, ...] = ()
    writes: bool = False
    readable: tuple[Path, ...] = ()
    network: bool = False
    passes: tuple[str, ...] = ()
    confinement: str = "auto"
    hidden: tuple[Path, ...] = ()

    def confine(self, environment: Mapping[str, str]) -> AbstractContextManager[Launch]:
        """Yield the start of a command with this view. Raises SandboxRefused if this machine cannot confine it."""
        home = str(self.home.resolve())
        named = named_environment(environment, self.passes if self.network else ())
        passed = {**named, "HOME": home, "TMPDIR": home}
        if libraries := shared_python():
            passed["LD_LIBRARY_PATH"] = os.pathsep.join(str(path.parent) for path in libraries)
        if confine_by_paths := BY_PATHS.get(choose_rung(self.confinement)):
            return confine_by_paths(self.path_rules(passed.get("PATH", "")), passed)
        isolation = Isolation(
            rights=_rights(),
            mounts=self._mounts(passed.get("PATH", "")),
            folder=Path.cwd(),
            held=[*self._folders(), self.workdir.resolve(), self.home.resolve(), *self.readable],
            network=self.network,
            local_sockets=False,
        )
        return isolate(isolation, passed)

    @property
    def visible(self) -> tuple[Path, ...]:
        """The places of the task and of the skill that the code can read."""
        own = (place.resolve() for place in (self.home, self.workdir, *self._folders()))
        return (*own, *self.readable)

    def _folders(self) -> list[Path]:
        return [folder for folder in self.workspaces if is_workspace(folder)]

    def _places(self, path: str) -> list[str]:
        """Return the paths outside of the workspaces that are readable."""
        given = [*map(str, self.readable), *(str(place.resolve()) for place in _packages())]
        outer = outside_of(path, [*self._folders(), self.workdir.resolve(), self.home.resolve()])
        places = [*machine_places(outer, network=self.network, accounts=True), *given]
        return [place for place in dict.fromkeys(places) if Path(place).exists()]

    def _hidden(self) -> list[Path]:
        """Return what is not visible: the state of swarms and of the agent, except this skill's part of it."""
        seen = {self.workdir.resolve(), self.home.resolve(), *self.readable}
        found = [place for folder in (*self._folders(), *self.readable) for place in hidden_places(folder)]
        found += [place for place in self.hidden if os.path.lexists(place) and not place.is_symlink()]
        return [place for place in outermost(found) if place not in seen]

    def path_rules(self, path: str) -> PathRules:
        """Return the paths of the view."""
        workspaces, hidden = self._folders(), self._hidden()
        unseen = (*PRIVATE_FOLDERS, *hidden)
        writable = [self.home.resolve(), self.workdir.resolve()]
        for workspace in workspaces if self.writes else ():
            writable += changeable(workspace, hidden)
        readable = [*system_places(*self._places(path)), *map(str, workspaces)]
        return PathRules(
            folder=Path.cwd(),
            readable=everything_but(map(Path, readable), unseen),
            listed=[
                above for place in hidden if _is_compiled(place) for above in place.parents if _is_in(above, readable)
            ],
            writable=writable,
            workspace=workspaces[0] if workspaces else None,
            changes=self.writes,
            watches_reading=bool(hidden),
            hidden=hidden,
            held=self.readable,
            kept=[place for workspace in workspaces for place in linked_places(workspace)] if self.writes else (),
            network=self.network,
            capabilities=READ_ALL if os.geteuid() == 0 else 0,
        )

    def _mounts(self, path: str) -> list[str]:
        """Return the arguments for all mounts. Later ones cover earlier ones."""
        mounts = ["--dev", "/dev", "--proc", "/proc"]
        mounts += ["--perms", "1777", "--size", str(TEMPORARY_BYTES), "--tmpfs", "/tmp"]
        mounts += [*folders(Path.cwd() / "any"), *system_mounts(*self._places(path)), *hidden_kernel_files()]
        for workspace in self._folders():
            mounts += [*folders(workspace), "--bind" if self.writes else "--ro-bind", str(workspace), str(workspace)]
            mounts += kept_mounts(workspace) if self.writes else []
        hidden = self._hidden()
        for workspace in self._folders() if self.writes else ():
            mounts += pin_parents(workspace, hidden)
        mounts += hide(hidden)
        for place in self.readable:
            if any(place.is_relative_to(above) for above in hidden):
                mounts += [*folders(place), "--ro-bind", str(place), str(place)]
        for place in (self.workdir.resolve(), self.home.resolve()):
            mounts += [*folders(place), "--bind", str(place), str(place)]
        return [*mounts, *(word for place in hidden if place.is_dir() for word in ("--remount-ro", str(place)))]


def _packages() -> list[Path]:
    """Return the folders from which this process imports, except its current folder and what holds a home."""
    listed = [Path(folder) for folder in sys.path if folder.startswith("/")]
    return [folder for folder in listed if folder != Path.cwd() and not holds_a_home(folder)]


def _rights() -> list[str]:
    """Return the arguments for user and privileges. Root keeps the privilege to read the files of all users."""
    if os.geteuid() == 0:
        return ["--cap-add", "CAP_DAC_READ_SEARCH"]
    return ["--unshare-user", "--disable-userns"]


def _is_compiled(place: Path) -> bool:
    """Return True for compiled code of a skill, which is hidden from it: the folders that it is in are listed still."""
    return place.name == "__pycache__" or place.suffix == ".pyc"


def _is_in(folder: Path, places: Iterable[str]) -> bool:
    return any(folder.is_relative_to(place) for place in places)
