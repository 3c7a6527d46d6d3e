"""A read-only view of the whole machine except for some folders, for the code of skills.

Unlike in `view`, the code may read everything that this process may read, since skills belong to the operator. It has
no sockets of other programs, no other processes, no secrets in its environment, and a network only if allowed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from fireswarm.processes.confinement.bubblewrap import Isolation, Launch, isolate
from fireswarm.processes.confinement.ladder import choose_rung
from fireswarm.processes.confinement.landlock.launch import LandlockRules, confine_with_landlock
from fireswarm.processes.confinement.landlock.names import OWN_FOLDER
from fireswarm.processes.confinement.mounts import PRIVATE_FOLDERS, hidden_kernel_files, shared_python
from fireswarm.processes.confinement.protected import changeable, everything_but, kept_mounts
from fireswarm.processes.confinement.view import READ_ALL, is_workspace, read_only_environment

_SOCKET_FOLDERS = ("/run", "/var/run")
"""Folders with sockets of other programs; empty for the code."""

_NOT_READ = (Path("/dev"), Path("/proc"), *map(Path, _SOCKET_FOLDERS))


@dataclass(frozen=True, slots=True)
class MachineView:
    """The machine with writable ``folders`` and ``workspaces``; the first folder is the home.

    A swarm's own folder in a workspace is read-only. A workspace that is the root of the file system or a part of the
    system is not writable. With a ``network``, a command gets the full environment, otherwise the part without secrets.
    Its current folder is that of this process, so that relative paths have the same meaning.
    """

    folders: tuple[Path, ...]
    workspaces: tuple[Path, ...] = ()
    network: bool = False
    confinement: str = "auto"

    def confine(self, environment: Mapping[str, str]) -> AbstractContextManager[Launch]:
        """Yield the start of a command with this view. Raises SandboxRefused if this machine cannot confine it."""
        home = str(self.folders[0].resolve())
        passed = dict(environment) if self.network else read_only_environment(environment)
        passed |= {"HOME": home, "TMPDIR": home}
        if libraries := shared_python():
            passed["LD_LIBRARY_PATH"] = os.pathsep.join(str(path.parent) for path in libraries)
        if choose_rung(self.confinement) == "landlock":
            return confine_with_landlock(self._rules(), passed)
        isolation = Isolation(
            rights=_rights(), mounts=self._mounts(), folder=Path.cwd(), network=self.network, local_sockets=False
        )
        return isolate(isolation, passed)

    def _rules(self) -> LandlockRules:
        """Return the rules of Landlock for the view."""
        workspaces = [folder.resolve() for folder in self.workspaces if is_workspace(folder.resolve())]
        writable = [folder.resolve() for folder in self.folders]
        for workspace in workspaces:
            writable += changeable(workspace)
        return LandlockRules(
            folder=Path.cwd(),
            readable=everything_but(Path("/"), [*PRIVATE_FOLDERS, *_NOT_READ]),
            writable=writable,
            workspace=workspaces[0] if workspaces else None,
            changes=True,
            listed=[Path("/")],
            network=self.network,
            capabilities=READ_ALL if os.geteuid() == 0 else 0,
        )

    def _mounts(self) -> list[str]:
        """Return the arguments for all mounts. Later ones cover earlier ones."""
        mounts = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        for folder in _SOCKET_FOLDERS:
            if Path(folder).is_dir() and not Path(folder).is_symlink():
                mounts += ["--size", "4096", "--tmpfs", folder]
        if self.network and (names := Path("/etc/resolv.conf").resolve()).is_file() and names.is_relative_to("/run"):
            mounts += ["--ro-bind", str(names), str(names)]
        mounts += hidden_kernel_files()
        for place in dict.fromkeys(
            str(folder.resolve()) for folder in self.workspaces if is_workspace(folder.resolve())
        ):
            mounts += ["--bind", place, place]
            mounts += kept_mounts(Path(place))
            if Path(place, OWN_FOLDER).is_dir() and not Path(place, OWN_FOLDER).is_symlink():
                mounts += ["--ro-bind", f"{place}/{OWN_FOLDER}", f"{place}/{OWN_FOLDER}"]
        for place in dict.fromkeys(str(folder.resolve()) for folder in self.folders):
            mounts += ["--bind", place, place]
        return mounts


def _rights() -> list[str]:
    """Return the arguments for user and privileges. Root keeps the privilege to read the files of all users."""
    if os.geteuid() == 0:
        return ["--cap-add", "CAP_DAC_READ_SEARCH"]
    return ["--unshare-user", "--disable-userns"]
