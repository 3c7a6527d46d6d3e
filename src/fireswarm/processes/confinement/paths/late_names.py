"""Protected names that code makes in a workspace: they get another name at its end, or at the next start.

While code works in a workspace, a note in the user's state folder says what was there before. It is removed when the
new names were set aside. The notes of a process that was killed stay, and the next start of any process of this user
sets aside what they do not name. The process holds a lock on its notes, which ends with it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import stat
import threading
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from fireswarm.contracts.regular_file import open_place
from fireswarm.errors import SandboxRefused
from fireswarm.processes.confinement.paths.names import GIT, OWN_FOLDER, find_names
from fireswarm.processes.confinement.paths.program_files import program_files
from fireswarm.settings.run_folders import make_private_folder, state_home

NOTES_FOLDER = "working"
"""Folder of the notes in the state folder of the user, where no command and no skill sees them."""

MISSING = "\0missing"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Before:
    """A workspace before code worked there: its inode, modes of folders, and targets of protected names ("": no link).

    The places of `program_files` are among the names, also if they are `MISSING`.
    The modes are those of the folders with such names: code may take the right to rename from itself, and so from this
    user. A link is not mounted, so code can replace it.
    """

    inode: int
    modes: Mapping[str, int]
    names: Mapping[str, str]

    @classmethod
    def look(cls, workspace: Path, others: Sequence[_Before]) -> _Before:
        """Return what is there. Names that none of *others*, whose code works there now, found are not known."""
        files = program_files(workspace)
        folders = dict.fromkeys((workspace, workspace / GIT, *(file.parent for file in files)))
        modes = {str(folder): mode for folder in folders if (mode := _mode_of(folder))}
        names = {str(path): _target(path) if os.path.lexists(path) else MISSING for path in files}
        names |= {str(path): _target(path) for path in find_names(workspace)}
        for other in others:
            names = {path: other.names[path] for path in names if path in other.names}
        return cls(_inode(workspace), modes, names)

    def _find_present(self, workspace: Path) -> list[Path]:
        """Return what is there of the protected names, and of the other places that were looked at before."""
        others = (Path(name) for name in self.names if os.path.lexists(name))
        return list(dict.fromkeys((*find_names(workspace), *others)))

    def set_aside(self, workspace: Path) -> tuple[list[str], bool]:
        """Give what is new another name; returns a line for each, and False if one could not be renamed."""
        lines: list[str] = []
        if _inode(workspace) != self.inode:  # it was removed, and what is there now is another folder
            return lines, True
        for folder, mode in self.modes.items():
            _restore_mode(Path(folder), mode)
        is_done = os.access(workspace, os.R_OK | os.X_OK)
        for path in self._find_present(workspace):
            is_known = self.names.get(str(path)) in ("", _target(path))
            if is_known or (path.name == OWN_FOLDER and _is_in_use(path)):
                continue
            other = _free_name(path)
            try:
                path.rename(other)
                lines.append(f"{path.name} is now {other.name}: only a person makes {path.name} here")
            except FileNotFoundError:  # it was in a folder that has another name now
                continue
            except OSError as error:
                is_done = False
                lines.append(f"{path.name} is new, and only a person makes it here: remove it ({error.strerror})")
        return lines, is_done


@dataclass(slots=True, eq=False)
class LateNames:
    """Protected names that appear in ``workspaces`` while code works there: at its end, they get another name.

    bubblewrap cannot forbid to make them. What one command makes is not taken for known by another that begins
    meanwhile, in this process or in another one. ``mark`` is that of the code's processes. If a note cannot be written
    although there is a state folder, SandboxRefused is raised.
    """

    workspaces: Sequence[Path]
    mark: str = ""
    _before: dict[Path, _Before] = field(default_factory=dict[Path, _Before])
    note: tuple[Path, int] | None = None
    """The path of the note, and the descriptor that holds its lock."""

    def __post_init__(self) -> None:
        """Learn what is there now: what people made until now stays."""
        if not self.workspaces:
            return
        with _alone() as folder:
            at_work = [late._before for late in _working]
            if folder is not None:
                at_work += _read_notes(folder)[0]
            for workspace in self.workspaces:
                others = [before[workspace] for before in at_work if workspace in before]
                self._before[workspace] = _Before.look(workspace, others)
            if folder is not None:
                self.note = _write_note(folder, self.mark, self._before)
            _working.append(self)

    def set_aside(self) -> list[str]:
        """Give what has appeared another name; returns one line for each. Further calls do nothing."""
        if not self.workspaces:
            return []
        with _alone():
            if self not in _working:
                return []
            lines, is_done = _set_aside(self._before)
            _working.remove(self)
            if self.note is not None:
                place, number = self.note
                if is_done:  # otherwise the next start tries again
                    place.unlink(missing_ok=True)
                os.close(number)
        return lines


_working: list[LateNames] = []
_lock = threading.Lock()


def set_aside_now() -> None:
    """Set aside what the code of this process made until now, for a process that exits immediately."""
    for late in tuple(_working):
        for line in late.set_aside():
            _log.warning("%s", line)


def set_aside_left() -> list[str]:
    """Set aside what code of processes that no longer live made; returns and logs one line for each name."""
    if not (state_home() / NOTES_FOLDER).is_dir():
        return []
    with _alone() as folder:
        return [] if folder is None else _read_notes(folder)[1]


@contextlib.contextmanager
def _alone() -> Generator[Path | None]:
    """Let no other thread or process begin or end meanwhile; yields the folder of notes, None without a state."""
    with _lock, contextlib.ExitStack() as stack:
        folder = state_home() / NOTES_FOLDER
        try:
            import fcntl  # Windows has none, and no confinement

            make_private_folder(folder)
            number = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, number)
            fcntl.flock(number, fcntl.LOCK_EX)
        except (ImportError, OSError):  # a read-only machine, on which no run can be kept either
            yield None
            return
        yield folder


def _write_note(folder: Path, mark: str, before: Mapping[Path, _Before]) -> tuple[Path, int]:
    """Write a note that this process holds locked. A lock of this kind is not passed on to a copy of the process."""
    import fcntl

    new = folder / f"{os.urandom(16).hex()}.new"
    place = new.with_suffix(".json")
    content = {"mark": mark, "before": {str(workspace): asdict(each) for workspace, each in before.items()}}
    number = -1
    try:
        number = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.lockf(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with open(number, "wb", closefd=False) as file:
            file.write(json.dumps(content).encode())
        new.rename(place)
    except OSError as error:
        if number != -1:
            os.close(number)
        new.unlink(missing_ok=True)
        raise SandboxRefused(
            f"code that changes a workspace needs a note in {folder}, which cannot be written: {error.strerror}"
        ) from error
    return place, number


def _read_notes(folder: Path) -> tuple[list[dict[Path, _Before]], list[str]]:
    """Set aside what is left of processes that no longer live.

    Returns what the remaining notes of other processes say, and a line for each name and each damaged note.
    """
    own = {late.note[0] for late in _working if late.note is not None}  # to close such a file would end its lock
    remaining: list[dict[Path, _Before]] = []
    lines: list[str] = []
    for place in sorted({*folder.glob("*.json")} - own):
        is_live = False
        try:
            with place.open("r+b") as file:
                is_live, content = _is_locked(file.fileno()), file.read()
            mark, before = _parse(content)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if not is_live:
                lines.append(
                    f"the note {place} on a command that was killed cannot be read ({type(error).__name__}): look for "
                    "new names such as .envrc, .git or .vscode in the folders where commands worked, then remove it"
                )
            continue
        if not is_live:
            _end_processes(mark)
            new, is_done = _set_aside(before, place_too=True)
            lines += new
            if is_done:
                place.unlink(missing_ok=True)
                continue
        remaining.append(before)
    for line in lines:
        _log.warning("%s", line)
    return remaining, lines


def _parse(content: bytes) -> tuple[str, dict[Path, _Before]]:
    """Return the mark and the workspaces of a note; raises the errors of wrong types."""
    data = json.loads(content)
    before = {
        Path(workspace): _Before(
            int(each["inode"]),
            {str(folder): int(mode) for folder, mode in each["modes"].items()},
            {str(path): str(target) for path, target in each["names"].items()},
        )
        for workspace, each in data["before"].items()
    }
    return str(data["mark"]), before


def _set_aside(before: Mapping[Path, _Before], *, place_too: bool = False) -> tuple[list[str], bool]:
    """Set aside what is new in all workspaces; *place_too*: the lines name them, as no command's result does."""
    lines: list[str] = []
    is_done = True
    for workspace, each in before.items():
        new, ended = each.set_aside(workspace)
        name = str(workspace) if str(workspace).isprintable() else json.dumps(str(workspace))
        lines += [f"in {name}, after a command that was killed: {line}" if place_too else line for line in new]
        is_done = is_done and ended
    return lines, is_done


def _is_locked(number: int) -> bool:
    """Return True if a living process holds the note: its lock ends with it, however it ends."""
    import fcntl

    try:
        fcntl.lockf(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def _end_processes(mark: str) -> None:
    """Wait until the code itself is dead: the kernel ends it a moment later than the process that started it."""
    from fireswarm.processes.descendants import Descendants  # psutil, which a usual start does not need

    Descendants(mark, frozenset()).kill_all()


def _inode(folder: Path) -> int:
    """Return the number by which its file system knows a folder, which code in it cannot change; 0 for none."""
    with contextlib.suppress(OSError):
        return folder.lstat().st_ino
    return 0


def _mode_of(folder: Path) -> int:
    """Return the mode of a folder, and 0 for anything else."""
    with contextlib.suppress(OSError):
        mode = folder.lstat().st_mode
        return stat.S_IMODE(mode) if stat.S_ISDIR(mode) else 0
    return 0


def _restore_mode(folder: Path, mode: int) -> None:
    """Give a folder its *mode* again if its owner has lost a right, unless it is a link now."""
    if mode & ~_mode_of(folder) & stat.S_IRWXU:
        with contextlib.suppress(OSError):
            number = open_place(folder)
            try:
                Path(f"/proc/self/fd/{number}").chmod(mode)
            finally:
                os.close(number)


def _target(path: Path) -> str:
    """Return where a link leads, and whether anything is there; "" if it is none."""
    return f"{path.readlink()}{'' if path.exists() else MISSING}" if path.is_symlink() else ""


def _is_in_use(folder: Path) -> bool:
    """Return True if a living process holds the store of a swarm: a person started it meanwhile."""
    import fcntl  # Windows has none, and no confinement

    for lock in folder.glob("*.lock"):
        try:
            with lock.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            continue
    return False


def _free_name(path: Path) -> Path:
    """Return a name beside *path* that is free."""
    number = 1
    while os.path.lexists(other := path.with_name(f"{path.name}.set-aside-{number}")):
        number += 1
    return other
