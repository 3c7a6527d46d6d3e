"""Find and read text files of a folder and objects of artifacts. Skills share this module: all omit the same files."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from fireswarm.contracts.regular_file import read_regular_file
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.redaction.redactor import Redactor
from fireswarm.skills.file_kinds import binary_kind
from fireswarm.skills.file_walk import top_of_repository, walk_folders

MAX_FILE_BYTES = 2_000_000
MAX_FILES = 20_000
MAX_OBJECT_BYTES = 100_000_000
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv", "dist", "build", "site-packages"})

_SECRET_NAME = re.compile(
    r"\.env(\..+)?|.*\.(pem|key|p12|pfx|jks|keystore|kdbx)|id_(rsa|dsa|ecdsa|ed25519)(\..+)?"
    r"|\.(netrc|pgpass|npmrc|pypirc|htpasswd)|(.*[._-])?(credential|secret|password|passphrase|passwd)s?(\..+)?"
    r"|(.*[._-])?service[._-]?account(\..+)?",
    re.IGNORECASE | re.DOTALL,
)


def is_secret_file(name: str) -> bool:
    """Return True if a file with this name usually holds secrets: keys, passwords, credentials, environments."""
    return _SECRET_NAME.fullmatch(name) is not None


@dataclass
class LeftOut:
    """Names of the files that were not read, by reason."""

    names: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def note(self, reason: str, name: str) -> None:
        """Add a file."""
        self.names.setdefault(reason, []).append(name)

    def counts(self) -> dict[str, int]:
        """Number of files by reason."""
        return {reason: len(names) for reason, names in sorted(self.names.items())}

    def sentence(self, most: int = 3) -> str:
        """Return a sentence for a summary, or ""."""
        return f" Left out: {'; '.join(self._phrases(most))}." if self.names else ""

    def section(self, most: int = 20) -> list[str]:
        """Return lines of Markdown, or none."""
        return ["## Left out", "", *(f"- {phrase}" for phrase in self._phrases(most)), ""] if self.names else []

    def _phrases(self, most: int) -> list[str]:
        """Return number, reason and the first names for each reason."""
        return [
            f"{len(names)} {reason} ({', '.join(names[:most])}{', ...' if len(names) > most else ''})"
            for reason, names in sorted(self.names.items())
        ]


def walk_files(
    place: Path, left_out: LeftOut, *, suffixes: Collection[str] | None = None
) -> Iterator[tuple[Path, str]]:
    """Yield path and name of the files below a folder in order, or of the single file *place*.

    Hidden files, generated folders, and files without one of the *suffixes* are skipped. Links, files that usually hold
    secrets, and what ``.gitignore`` names are noted in *left_out*. A file that the caller names is always included.
    """
    if not place.is_dir():
        yield place.resolve(), _printable(place.name)
        return
    given, place = 0, place.resolve()

    def unreadable(error: OSError) -> None:
        left_out.note("unreadable", _name_below(Path(error.filename), place) + "/")

    def note_ignored(name: str) -> None:
        left_out.note("ignored by git", _printable(name))

    top = top_of_repository(place)
    walked = walk_folders(place, top=top, skips=_is_skipped, left_out=note_ignored, unreadable=unreadable)
    for here, below, names in walked:
        for name in sorted([*names, *(each for each in below if (here / each).is_symlink())]):
            file = here / name
            shown = _name_below(file, place)
            if is_secret_file(name):
                left_out.note("likely to hold secrets", shown)
            elif name.startswith(".") or (suffixes is not None and file.suffix.lower() not in suffixes):
                continue
            elif file.is_symlink():
                left_out.note("symlinked", shown)
            elif given >= MAX_FILES:
                left_out.note(f"beyond the first {MAX_FILES:,} files", shown)
                return
            else:
                given += 1
                yield file, shown


def _is_skipped(folder: str) -> bool:
    return folder.startswith(".") or folder in SKIPPED_FOLDERS


def read_artifact_object(artifact: Artifact) -> dict[str, Any]:
    """Return the JSON object of an artifact: that of its file if it can be read, else its value; {} without one."""
    uri = artifact.uri or ""
    path = Path(unquote(urlsplit(uri).path)) if uri.startswith("file://") else Path(uri)
    try:
        content = json.loads(read_regular_file(path, MAX_OBJECT_BYTES)) if uri else artifact.value
    except (OSError, ValueError):
        content = artifact.value
    return content if isinstance(content, dict) else {}


def read_text(file: Path, name: str, left_out: LeftOut) -> str | None:
    """Return the text of a regular file without secrets, or None after noting why it is omitted."""
    try:
        content = read_regular_file(file, MAX_FILE_BYTES, follow=False)
    except OSError as error:
        left_out.note(_reason(error), name)
        return None
    if binary_kind(name, content) is not None:
        left_out.note("binary", name)
        return None
    return without_secrets(content.decode("utf-8-sig", "replace"))


def without_secrets(text: str) -> str:
    """Return a text with ``[redacted]`` for each secret, and as many lines: lists of words are made of such texts."""
    return _redactor().text(text, by_line=True)


@cache
def _redactor() -> Redactor:
    return Redactor()


def _reason(error: OSError) -> str:
    if error.errno == errno.EFBIG:
        return f"larger than {MAX_FILE_BYTES // 1_000_000} MB"
    return "not a regular file" if error.errno in {errno.EINVAL, errno.ELOOP} else "unreadable"


def _name_below(file: Path, place: Path) -> str:
    return _printable(file.relative_to(place).as_posix())


def _printable(name: str) -> str:
    """Return a name without characters that UTF-8 cannot encode."""
    return name.encode("utf-8", "replace").decode()
