"""The files, the folders of skills and the tools of servers that a user trusts, by their content."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from fireswarm.contracts.base import is_yes
from fireswarm.errors import ConfigError

STORE_TOKEN = "FIRESWARM_STORE_TOKEN"
"""Environment variable with the token of a store. It is for the store that the user names, not for that of a folder."""

MAX_TRUSTED_FILES = 2_000
MAX_TRUSTED_BYTES = 50_000_000
"""Limits of a folder of a skill that a user trusts."""

VARIABLE = "FIRESWARM_TRUST_SETTINGS"
"""Environment variable that trusts every settings file, for images with only the operator's files."""


def trusts_all() -> bool:
    """Return True if the environment trusts every settings file."""
    return is_yes(os.environ.get(VARIABLE))


@dataclass(frozen=True, slots=True)
class TrustedFiles:
    """The files that a user trusts, by path and content."""

    home: Path

    @property
    def path(self) -> Path:
        """The list: a JSON object of paths and hashes."""
        return self.home / ".config" / "fireswarm" / "trusted.json"

    def has(self, file: Path, digest: str) -> bool:
        """Return True if the user trusts *file* with the content of this hash."""
        return self._read().get(str(file.resolve())) == digest

    def has_folder(self, folder: Path) -> bool:
        """Return True if the user trusts all files of a folder as they are now."""
        known = self._read().get(str(folder.resolve()))
        return known is not None and known == digest_of_folder(folder)

    def add_folder(self, folder: Path, expected: str = "") -> str:
        """Trust all files of a folder as they are, and return their hash. Raises ConfigError."""
        digest = digest_of_folder(folder)
        if not digest:
            raise ConfigError(
                f"{folder} cannot be trusted as a whole: it has links, other special files, more than "
                f"{MAX_TRUSTED_FILES:,} files, or more than {MAX_TRUSTED_BYTES:,} bytes"
            )
        if expected not in ("", digest):
            raise ConfigError(f"{folder} changed while it was shown: trust it again")
        self._store({str(folder.resolve()): digest})
        return digest

    def add(self, file: Path, expected: str = "") -> str:
        """Trust *file* with its current content, keep a copy of it, and return its hash.

        Raises ConfigError if it cannot be read, or if its hash is not the *expected* one.
        """
        try:
            content = file.read_bytes()
        except OSError as error:
            raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
        digest = digest_of(content)
        if expected not in ("", digest):
            raise ConfigError(f"{file} changed while it was shown: trust it again")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._copy(digest).parent.mkdir(mode=0o700, exist_ok=True)
        _replace(self._copy(digest), content)
        self._store({str(file.resolve()): digest})
        return digest

    def content(self, file: Path) -> bytes | None:
        """Return the content with which the user trusted *file*; None if there is no copy of it."""
        digest = self._read().get(str(file.resolve()))
        with contextlib.suppress(OSError):
            content = self._copy(str(digest)).read_bytes()
            return content if digest_of(content) == digest else None
        return None

    def _store(self, entries: Mapping[str, str]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _replace(self.path, (json.dumps({**self._read(), **entries}, indent=2) + "\n").encode())

    def _copy(self, digest: str) -> Path:
        return self.path.parent / "trusted" / digest

    def _read(self) -> Mapping[str, object]:
        return _read_object(self.path)


@dataclass(frozen=True, slots=True)
class PinnedTools:
    """What the tools of a server were when they were first listed, or a person last approved a call, as digests."""

    home: Path
    server: str

    @property
    def path(self) -> Path:
        """The list: a JSON object of servers, each with the digests of its tools by name."""
        return self.home / ".config" / "fireswarm" / "mcp_tools.json"

    def find_changed(self, digests: Mapping[str, str]) -> frozenset[str]:
        """Return the tools that are new or have changed; those of a new server are pinned, and none is returned."""
        known = self._read().get(self.server)
        if not isinstance(known, dict):
            self._write(digests)
            return frozenset()
        return frozenset(name for name, digest in digests.items() if known.get(name) != digest)

    def pin(self, tool: str, digest: str) -> None:
        """Pin a tool as it is now."""
        known = self._read().get(self.server)
        self._write({**(cast("dict[str, str]", known) if isinstance(known, dict) else {}), tool: digest})

    def _write(self, digests: Mapping[str, str]) -> None:
        with contextlib.suppress(OSError):  # a read-only home: every run begins anew
            self.path.parent.mkdir(parents=True, exist_ok=True)
            entries = {**self._read(), self.server: dict(digests)}
            _replace(self.path, (json.dumps(entries, indent=2) + "\n").encode())

    def _read(self) -> Mapping[str, object]:
        return _read_object(self.path)


def _read_object(path: Path) -> Mapping[str, object]:
    with contextlib.suppress(OSError, ValueError):
        content: object = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, dict):
            return cast("dict[str, object]", content)
    return {}


def _replace(path: Path, content: bytes) -> None:
    """Write a file atomically, readable by its owner only."""
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
        stream.write(content)
    partial.replace(path)


def digest_of_folder(folder: Path) -> str:
    """Return the hash of all files of a folder, hidden ones too; "" if it has links, or is too large to be hashed."""
    digest, count, size = hashlib.sha256(), 0, 0
    for where, folders, files in os.walk(folder.resolve()):
        folders.sort()
        for name in sorted((*folders, *files)):
            path = Path(where, name)
            count += 1
            if path.is_symlink() or count > MAX_TRUSTED_FILES:
                return ""
            if name in folders:
                continue
            try:
                size += path.stat().st_size
                if not path.is_file() or size > MAX_TRUSTED_BYTES:
                    return ""
                content = path.read_bytes()
            except OSError:
                return ""
            digest.update(f"{path.relative_to(folder.resolve()).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def digest_of(content: bytes) -> str:
    """Return the hash of a file's content."""
    return hashlib.sha256(content).hexdigest()
