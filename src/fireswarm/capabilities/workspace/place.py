"""Open files of one folder, and none outside of it, even while its folders are being replaced by links."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from fireswarm.contracts.skills.artifact import OUTPUT_VARIABLE
from fireswarm.contracts.skills.given_files import GivenFiles
from fireswarm.errors import InvalidInput
from fireswarm.processes.confinement.paths.names import OWN_FOLDER
from fireswarm.processes.confinement.protected import is_kept
from fireswarm.redaction import shows, spell
from fireswarm.settings.run_folders import state_home, swarm_folders

_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
MAX_TEMPORARY_CHARS = 100
MAX_PATH_CHARS = 4_096
"""Linux takes no longer paths."""


Hides = Callable[[Path], bool]
"""Returns True for a path of a workspace that may not be read."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder. Paths are relative to it, or absolute within it; links lead to places within it only.

    With ``protects``, what `names` lists is not written: it belongs to the people who work in the folder.
    What it ``hides`` is neither read nor written.
    """

    root: Path
    protects: bool = False
    hides: Hides | None = None

    def locate(self, named: str, *, new: bool = False, writes: bool = False) -> Path:
        """Return the path that *named* leads to, links resolved. Raises InvalidInput outside, or if it does not exist.

        With *new*, it need not exist. With *writes*, it may not be a file of git.
        """
        text = named.removeprefix("file://")
        if len(text) > MAX_PATH_CHARS:
            raise InvalidInput(f"the path has {len(text):,} characters; {MAX_PATH_CHARS:,} are allowed")
        if "\0" in text:
            raise InvalidInput("a path has no zero bytes")
        if "://" in text:
            raise InvalidInput(f"{named} is an address: give a path")
        try:
            path = (self.root / text).resolve()
            exists = path.exists()
        except (OSError, RuntimeError, UnicodeError) as error:  # too long a name, a circle of links, half a character
            raise InvalidInput(f"the path cannot be used: {getattr(error, 'strerror', None) or error}") from error
        if not path.is_relative_to(self.root):
            raise InvalidInput(f"{named} is outside the workspace {self.root}")
        if OWN_FOLDER in path.relative_to(self.root).parts or self._is_state(path):
            raise InvalidInput(f"{named} belongs to fireswarm: its files are not a part of the workspace")
        self._check_hidden(path)
        if writes:
            self._check_write(named, path)
        if not exists and not new:
            raise InvalidInput(f"{named} does not exist")
        if not exists and writes and not shows(text):
            raise InvalidInput(f"{spell(text)}: the name of a new file has no control characters")
        return path

    def _is_state(self, path: Path) -> bool:
        """Return True for the agent's state in a workspace that holds it, such as a home folder."""
        kept = [place.resolve() for place in (state_home(), *swarm_folders())]
        inner = (place for place in kept if place != self.root and place.is_relative_to(self.root))
        return any(path.is_relative_to(place) for place in inner)

    def _check_hidden(self, path: Path) -> None:
        if self.hides is not None and self.hides(path):
            raise InvalidInput(f"{self.name_of(path)} may not be read: the permissions deny it")

    def _check_write(self, named: str, path: Path) -> None:
        """Raise InvalidInput for a file of git, and for one that only a person changes."""
        parts = path.relative_to(self.root).parts
        if ".git" in parts:
            raise InvalidInput(f"{named} belongs to git: use its commands")
        if self.protects and is_kept(path, self.root):
            raise InvalidInput(f"{named} is read by programs outside of the confinement: only a person changes it")

    def name_of(self, path: Path) -> str:
        """Return the path relative to the workspace."""
        return path.relative_to(self.root).as_posix()

    def read(self, path: Path, limit: int) -> bytes:
        """Return at most *limit* bytes of the regular file at a located path. Raises InvalidInput."""
        self._check_hidden(path)
        with self._folder(path.parent) as folder:
            try:
                number = os.open(path.name, _FILE, dir_fd=folder)
            except OSError as error:
                if error.errno == errno.ENXIO:  # a socket
                    raise InvalidInput(f"{self.name_of(path)} is not a file") from error
                raise InvalidInput(f"{self.name_of(path)} cannot be read: {error.strerror}") from error
            if not stat.S_ISREG(os.fstat(number).st_mode):
                os.close(number)
                raise InvalidInput(f"{self.name_of(path)} is not a file")
            with os.fdopen(number, "rb") as file:
                return file.read(limit)

    def write(self, path: Path, content: bytes) -> None:
        """Replace the file at a located path in one step, or make it, with its folders. Raises InvalidInput.

        A file keeps its mode. What is new belongs to the owner of the workspace, if this process may give it away.
        """
        owner = self.root.stat() if os.name == "posix" and os.geteuid() == 0 else None
        with self._folder(path.parent, make_for=owner or True) as folder:
            temporary = f".{path.name[:MAX_TEMPORARY_CHARS]}.{secrets.token_hex(4)}"
            mode = 0o666
            with contextlib.suppress(FileNotFoundError):
                known = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
                if not stat.S_ISREG(known.st_mode):
                    raise InvalidInput(f"{self.name_of(path)} is not a file")
                mode = stat.S_IMODE(known.st_mode)
            try:
                number = os.open(temporary, _NEW, mode, dir_fd=folder)
                with os.fdopen(number, "wb") as file:
                    file.write(content)
                    if mode != 0o666:
                        os.fchmod(number, mode)
                    if owner is not None:
                        os.fchown(number, owner.st_uid, owner.st_gid)
                os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError as error:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                raise InvalidInput(f"{self.name_of(path)} cannot be written: {error.strerror}") from error

    @contextlib.contextmanager
    def _folder(self, path: Path, make_for: os.stat_result | bool = False) -> Generator[int]:
        """Yield a descriptor of a folder below the workspace, reached without following links.

        With *make_for*, missing folders are made, for that owner if it is one.
        """
        if not path.is_relative_to(self.root):  # the workspace itself was taken for a file
            raise InvalidInput(f"{self.root} is a folder")
        numbers: list[int] = []
        try:
            numbers.append(os.open(self.root, _FOLDER))
            for part in path.relative_to(self.root).parts:
                if make_for:
                    self._make(part, numbers[-1], make_for)
                numbers.append(os.open(part, _FOLDER, dir_fd=numbers[-1]))
            yield numbers[-1]
        except (FileNotFoundError, NotADirectoryError) as error:
            raise InvalidInput(f"{self.name_of(path)} is not a folder") from error
        except OSError as error:
            raise InvalidInput(f"{self.name_of(path)} cannot be opened: {error.strerror}") from error
        finally:
            for number in numbers:
                os.close(number)

    @staticmethod
    def _make(name: str, folder: int, owner: os.stat_result | bool) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
            if not isinstance(owner, bool):
                os.chown(name, owner.st_uid, owner.st_gid, dir_fd=folder, follow_symlinks=False)


def place_of(
    named: str, workspace: Path, outputs: Path | None, inputs: GivenFiles | None = None, *, hides: Hides | None
) -> tuple[Workspace, str]:
    """Return the folder that a path belongs to, and the path: that for outputs if it begins with its path or variable.

    The path of an input file belongs to their folder, any other path to the workspace.
    """
    text = named.removeprefix("file://")
    if "://" in text:  # only one `file://` is removed
        raise InvalidInput(f"{named} is an address: give a path")
    if inputs is not None and (name := inputs.name_of(text)) is not None:
        return Workspace(inputs.root), name
    if outputs is None:
        return Workspace(workspace, protects=True, hides=hides), text
    for variable in (f"${OUTPUT_VARIABLE}", f"${{{OUTPUT_VARIABLE}}}"):
        if text == variable or text.startswith(f"{variable}/"):
            return Workspace(outputs), f"{outputs}{text[len(variable) :]}"
    inside = text == str(outputs) or text.startswith(f"{outputs}/")
    if inside:
        return Workspace(outputs), text
    return Workspace(workspace, protects=workspace != outputs, hides=hides), text
