"""Storage of a session's files: in the store, or in a folder for an agent without a store."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Protocol

import anyio.to_thread

from fireswarm.contracts.ports import SERVER_TIME, Create, Delete, Snapshot, Store, Update
from fireswarm.errors import ConfigError, Conflict
from fireswarm.settings.run_folders import make_state_folder
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import FILES

DELETES_PER_COMMIT = 500


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file. ``content`` is text, or bytes if written as base64; ``seen`` is its version in the store."""

    path: str
    content: str | bytes
    version: int
    created_at: datetime | None = None
    updated_at: datetime | None = None
    seen: Any = None

    @property
    def encoding(self) -> str:
        """``text`` or ``base64``, as written."""
        return "text" if isinstance(self.content, str) else "base64"

    @property
    def size_bytes(self) -> int:
        """Size of the content in bytes."""
        return size_of(self.content)


class Shelf(Protocol):
    """The files of one session. ``put`` raises Conflict if the file has changed since *before*."""

    async def get_many(self, paths: Sequence[str]) -> list[StoredFile | None]:
        """Read files; None for those that do not exist."""
        ...

    async def between(self, lower: str, upper: str, limit: int) -> list[StoredFile]:
        """Return files with *lower* <= path < *upper*, in order."""
        ...

    async def count(self) -> int:
        """Return the number of files."""
        ...

    async def put(self, path: str, content: str | bytes, before: StoredFile | None) -> int:
        """Write a file and return its version."""
        ...

    async def remove(self, paths: Sequence[str]) -> None:
        """Delete files; missing ones are ignored."""
        ...


def size_of(content: str | bytes) -> int:
    """Return the size of a content in bytes; text counts as UTF-8."""
    return len(content.encode() if isinstance(content, str) else content)


def file_id(session_hash: str, path: str) -> str:
    """Return the document id of a file: one document per session and path."""
    return hashlib.sha256(f"{session_hash}\n{path}".encode()).hexdigest()[:40]


@dataclass(frozen=True, slots=True)
class StoreShelf:
    """Files as documents, visible to all processes of the session."""

    store: Store
    session_hash: str

    async def get_many(self, paths: Sequence[str]) -> list[StoredFile | None]:
        """Read files in one call; billed one read each."""
        snapshots = await self.store.get_many([self._document(path) for path in paths])
        return [_parse_file(item) if item.data is not None else None for item in snapshots]

    async def between(self, lower: str, upper: str, limit: int) -> list[StoredFile]:
        """Return files with *lower* <= path < *upper*, in order."""
        snapshots = await self.store.query(queries.session_files(self.session_hash, lower, upper, limit))
        return [_parse_file(item) for item in snapshots]

    async def count(self) -> int:
        """Return the number of files; billed one read per thousand."""
        return await self.store.count(queries.session_files(self.session_hash, "/", "0"))

    async def put(self, path: str, content: str | bytes, before: StoredFile | None) -> int:
        """Write a file and return its version."""
        version = 1 if before is None else before.version + 1
        kind = "text" if isinstance(content, str) else "base64"
        fields: dict[str, Any] = {"content": content, "encoding": kind, "size_bytes": size_of(content)}
        fields |= {"version": version, "updated_at": SERVER_TIME}
        document = self._document(path)
        if before is not None:
            await self.store.commit([Update(document, fields, before.seen)])
            return version
        folder, _, name = path.rpartition("/")
        place = {"session_hash": self.session_hash, "path": path, "folder": folder or "/", "name": name}
        await self.store.commit([Create(document, place | fields | {"created_at": SERVER_TIME})])
        return version

    async def remove(self, paths: Sequence[str]) -> None:
        """Delete files; missing ones are ignored."""
        for start in range(0, len(paths), DELETES_PER_COMMIT):
            some = paths[start : start + DELETES_PER_COMMIT]
            await self.store.commit([Delete(self._document(path)) for path in some])

    def _document(self, path: str) -> str:
        return f"{FILES}/{file_id(self.session_hash, path)}"


def _parse_file(found: Snapshot) -> StoredFile:
    data = found.data or {}
    return StoredFile(
        data["path"], data["content"], data["version"], data["created_at"], data["updated_at"], found.update_time
    )


_writing = threading.Lock()


class FolderShelf:
    """Files as JSON documents in a folder, for an agent without a store, which is one process."""

    def __init__(self, workdir: Path, session_hash: str) -> None:
        """Raises ConfigError if the folder is outside *workdir*."""
        place = Path(".fireswarm") / "files" / hashlib.sha256(session_hash.encode()).hexdigest()[:16]
        self.folder = (workdir / place).resolve()
        if not self.folder.is_relative_to(workdir.resolve()):
            raise ConfigError(f"{workdir / place} is outside {workdir}: remove the symbolic link")

    async def get_many(self, paths: Sequence[str]) -> list[StoredFile | None]:
        """Read files."""
        return [await anyio.to_thread.run_sync(self._read, self._place(path)) for path in paths]

    async def between(self, lower: str, upper: str, limit: int) -> list[StoredFile]:
        """Return files with *lower* <= path < *upper*, in order."""
        every = await anyio.to_thread.run_sync(self._all)
        return sorted((item for item in every if lower <= item.path < upper), key=lambda item: item.path)[:limit]

    async def count(self) -> int:
        """Return the number of files."""
        return sum(1 for _ in self.folder.glob("*.json"))

    async def put(self, path: str, content: str | bytes, before: StoredFile | None) -> int:
        """Write a file and return its version."""
        return await anyio.to_thread.run_sync(partial(self._put, path, content, before))

    async def remove(self, paths: Sequence[str]) -> None:
        """Delete files."""
        for path in paths:
            self._place(path).unlink(missing_ok=True)

    def _place(self, path: str) -> Path:
        return self.folder / f"{file_id('', path)}.json"

    def _all(self) -> list[StoredFile]:
        files = (self._read(place) for place in self.folder.glob("*.json"))
        return [item for item in files if item is not None]

    @staticmethod
    def _read(place: Path) -> StoredFile | None:
        try:
            data = json.loads(place.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        content = data["content"] if data["encoding"] == "text" else base64.b64decode(data["content"])
        times = [datetime.fromisoformat(data[name]) for name in ("created_at", "updated_at")]
        return StoredFile(data["path"], content, data["version"], *times)

    def _put(self, path: str, content: str | bytes, before: StoredFile | None) -> int:
        """Write a file. Raises Conflict if it has changed since *before*."""
        now = datetime.now(UTC)
        version = 1 if before is None else before.version + 1
        data = {
            "path": path,
            "encoding": "text" if isinstance(content, str) else "base64",
            "version": version,
            "created_at": ((before and before.created_at) or now).isoformat(),
            "updated_at": now.isoformat(),
            "content": content if isinstance(content, str) else base64.b64encode(content).decode(),
        }
        with _writing:
            there = self._read(self._place(path))
            if (there and there.version) != (before and before.version):
                raise Conflict(f"{path} changed since it was read", exists=before is None)
            make_state_folder(self.folder)
            with NamedTemporaryFile("w", dir=self.folder, delete=False, encoding="utf-8") as file:
                json.dump(data, file, indent=1)
            Path(file.name).replace(self._place(path))
        return version
