"""The output folder of a task: what is in it at the end of a turn becomes artifacts, whatever engine ran.

Its content comes from models, skills and commands. Files are opened below the folder without following links; one that
cannot be taken is left out with the reason, and never stops the others.
"""

from __future__ import annotations

import hashlib
import mimetypes
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fireswarm.capabilities.workspace.place import Workspace
from fireswarm.contracts.limits import MAX_LABEL_CHARS, truncate
from fireswarm.errors import InvalidInput
from fireswarm.settings.run_folders import make_state_folder
from fireswarm.skills.running.denied_reads import DeniedReads

MAX_FILES = 100
MAX_TOTAL_BYTES = 200_000_000
MAX_ENTRIES = 10_000
MAX_DEPTH = 8
MAX_CLEANED_BYTES = 20_000_000
"""Larger files are not searched for secrets."""

MAX_NOTED = 20
"""Files that were left out and are named; the others are counted."""

MAX_NAME_CHARS = 200
MAX_PART_BYTES = 120

CONTAINER_USER = 65_534
"""User of commands of root in a container, see `processes.confinement.container`."""

_UNSAFE = re.compile(r"""[\\:*?"<>|]""")
_UNWANTED = frozenset({"node_modules", "__pycache__", "venv"})
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


NOTHING_DENIED = DeniedReads()


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file of the output folder. ``path`` is where its cleaned content is."""

    name: str
    path: Path
    size: int
    sha256: str
    mime: str


@dataclass(slots=True)
class Collected:
    """The files of an output folder, and those that were left out with the reason."""

    files: list[OutputFile] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    left_out_count: int = 0

    def leave_out(self, name: str, reason: str) -> None:
        """Note a file that is not taken."""
        self.left_out_count += 1
        if self.left_out_count <= MAX_NOTED:
            self.left_out.append(f"{truncate(_printable(name), MAX_LABEL_CHARS)}: {reason}")

    @property
    def note(self) -> str:
        """The files that were left out, in one text; "" if there are none."""
        if not self.left_out_count:
            return ""
        more = self.left_out_count - len(self.left_out)
        named = "; ".join([*self.left_out, *([f"{more:,} more"] if more else [])])
        return f"Left out of the artifacts: {named}."


def prepare_outputs(folder: Path, workspace: Path, *, container: bool = False) -> Path:
    """Make the output folder, for the user that commands in *workspace* run as, and return its real path."""
    make_state_folder(folder)
    if os.name == "posix" and os.geteuid() == 0:
        owner = workspace.stat()
        user, group = (CONTAINER_USER, CONTAINER_USER) if container else (owner.st_uid, owner.st_gid)
        if user:
            os.chown(folder, user, group, follow_symlinks=False)
    return folder.resolve()


def check_artifact_name(name: str) -> str:
    """Return the name of an artifact as a path below the output folder. Raises InvalidInput for another name."""
    parts = name.split("/")
    if not name or len(name) > MAX_NAME_CHARS:
        raise InvalidInput(f"name must have 1 to {MAX_NAME_CHARS} characters")
    if len(parts) > MAX_DEPTH or any(part.startswith(".") or part != _safe_part(part) for part in parts):
        raise InvalidInput(
            f"{truncate(_printable(name), MAX_LABEL_CHARS)!r} cannot be the name of an artifact: use one such as "
            r'report.md or charts/a.png, without "..", hidden parts, control characters and any of \ : * ? " < > |'
        )
    return name


def media_type_of(name: str) -> str:
    """Return the media type that a file's name tells."""
    return mimetypes.guess_type(name)[0] or ("text/markdown" if name.endswith(".md") else "application/octet-stream")


def collect_outputs(
    folder: Path, clean: Callable[[str], str], into: Path | None = None, denied: DeniedReads = NOTHING_DENIED
) -> Collected:
    """Return the files of an output folder, with secrets removed from those that are text. Blocks.

    With *into*, an existing folder that nothing else writes to, they are copied there first; without it, they are
    cleaned where they are. Hidden files, links, devices, pipes, and files with a second name are left out, and those
    that *denied* names in a workspace.
    """
    found, total, names, hides = Collected(), 0, set[str](), denied.hiding(folder)
    for number, (relative, folder_number, entry) in enumerate(_entries(folder, found)):
        if number >= MAX_ENTRIES:
            found.leave_out(relative, f"the folder has more than {MAX_ENTRIES:,} entries")
            break
        try:
            if len(found.files) >= MAX_FILES:
                raise InvalidInput(f"more than {MAX_FILES} files")
            if hides(folder / relative):
                raise InvalidInput("the permissions deny reading such a file")
            data = _read(entry, folder_number, MAX_TOTAL_BYTES - total)
            cleaned = _clean(data, clean)
            target = folder / relative
            if into is not None:
                target = into / f"{len(found.files):04d}"
                target.write_bytes(cleaned)
            elif cleaned != data:
                Workspace(folder).write(target, cleaned)
        except (OSError, InvalidInput, UnicodeError) as error:
            found.leave_out(relative, getattr(error, "strerror", None) or str(error))
            continue
        total += len(cleaned)
        name = number_if_taken(safe_name(relative), names)
        digest = hashlib.sha256(cleaned).hexdigest()
        found.files.append(OutputFile(name, target, len(cleaned), digest, media_type_of(name)))
    return found


def _entries(folder: Path, found: Collected) -> Iterator[tuple[str, int, str]]:
    """Yield the files below *folder*: relative path, descriptor of their folder, and name, in order."""

    def note(error: OSError) -> None:
        found.leave_out(os.path.relpath(str(error.filename), folder), error.strerror or "it cannot be read")

    for where, folders, files, number in os.fwalk(folder, onerror=note, follow_symlinks=False):
        below = os.path.relpath(where, folder)
        prefix = "" if below == "." else f"{below}/"
        if prefix.count("/") >= MAX_DEPTH and (folders or files):
            found.leave_out(prefix, f"more than {MAX_DEPTH} folders deep")
            folders[:] = []
            continue
        for name in sorted(folders):
            if _is_link(name, number):
                found.leave_out(f"{prefix}{name}", "a link")
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _UNWANTED)
        for name in sorted(files):
            if name.startswith("."):
                found.leave_out(f"{prefix}{name}", "a hidden file")
            else:
                yield f"{prefix}{name}", number, name


def _is_link(name: str, folder_number: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder_number, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _read(name: str, folder_number: int, limit: int) -> bytes:
    """Return the content of a regular file with one name. Raises InvalidInput for anything else."""
    if _is_link(name, folder_number):
        raise InvalidInput("a link")
    descriptor = os.open(name, os.O_RDONLY | _FLAGS, dir_fd=folder_number)
    try:
        return _content_of(descriptor, limit)
    finally:
        os.close(descriptor)


def _content_of(descriptor: int, limit: int) -> bytes:
    """Return the content of an open file of at most *limit* bytes. Raises InvalidInput."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInput("not a regular file")
    if status.st_nlink != 1:
        raise InvalidInput("a hard link: the same file has another name")
    if status.st_size > limit:
        raise InvalidInput(f"{status.st_size:,} bytes: an output folder may have {MAX_TOTAL_BYTES:,} in all")
    content, rest = bytearray(), status.st_size
    while rest > 0 and (data := os.read(descriptor, min(rest, 1 << 20))):
        content += data
        rest -= len(data)
    return bytes(content)


def _clean(content: bytes, clean: Callable[[str], str]) -> bytes:
    """Return the content without secrets if it is text of a moderate size."""
    if len(content) > MAX_CLEANED_BYTES:
        return content
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return content
    return content if (cleaned := clean(text)) == text else cleaned.encode("utf-8", "replace")


def safe_name(relative: str) -> str:
    """Return a relative path without characters that a screen, a shell or another system cannot take."""
    return "/".join(_safe_part(part) for part in relative.split("/"))


def _safe_part(part: str) -> str:
    """Return one part of a name without characters that a screen, a shell or another system cannot take."""
    safe = _UNSAFE.sub("_", _printable(part)).rstrip(" .")
    stem, dot, suffix = safe.rpartition(".")
    while len(safe.encode()) > MAX_PART_BYTES:
        stem, safe = (stem[:-1], f"{stem[:-1]}{dot}{suffix}") if stem and len(suffix) < 16 else ("", safe[:-1])
    return safe or "_"


def _printable(text: str) -> str:
    plain = text.encode("utf-8", "replace").decode()
    return "".join(char if char.isprintable() else "_" for char in plain)


def number_if_taken(name: str, names: set[str]) -> str:
    """Return *name*, numbered if another file has it already."""
    candidate, number = name, 1
    while candidate in names:
        number += 1
        folder, _, last = name.rpartition("/")
        stem, dot, suffix = last.partition(".")
        candidate = f"{folder}/{stem}-{number}{dot}{suffix}" if folder else f"{stem}-{number}{dot}{suffix}"
    names.add(candidate)
    return candidate
