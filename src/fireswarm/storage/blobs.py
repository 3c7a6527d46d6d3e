"""Blobs over fsspec: a local folder, ``gs://`` with the extra ``gcs``, or any other fsspec location."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Generator
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import anyio.to_thread
import fsspec

from fireswarm.contracts.regular_file import read_without_links
from fireswarm.errors import ConfigError, NotFound, StoreError, StoreFull
from fireswarm.settings.run_folders import make_state_folder

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class FsspecBlobs:
    """Content by URI below one root, such as ``.fireswarm/blobs`` or ``gs://bucket/prefix``.

    Writing a name again replaces its content. Writes are atomic. Only URIs of files below the root are read: documents
    hold URIs that code and models from elsewhere may have written.
    """

    def __init__(self, root: str) -> None:
        try:
            self._fs, base = fsspec.url_to_fs(root)
        except (ImportError, ValueError) as error:
            raise ConfigError(f"blobs root {root!r}: {error}. For gs:// install fireswarm[gcs].") from error
        self._local = "file" in ((self._fs.protocol,) if isinstance(self._fs.protocol, str) else self._fs.protocol)
        self._base: str = str(Path(base).resolve()) if self._local else base.rstrip("/")
        self._copies: Path | None = None

    async def put(self, name: str, content: bytes) -> str:
        """Store *content* under *name* and return its URI."""
        return await anyio.to_thread.run_sync(self._put, name, content)

    async def put_file(self, name: str, path: Path) -> str:
        """Store a file under *name* and return its URI."""
        return await self.put(name, await anyio.Path(path).read_bytes())

    async def get(self, uri: str, *, anywhere: bool = False) -> bytes:
        """Read the content of a URI. Raises NotFound if it does not exist, or is not below the root.

        With *anywhere*, also read a file of this machine or a bucket that a person named. Of a file of this machine, no
        part of the path may be a link: code may have put it there after the person named the file.
        """
        return await anyio.to_thread.run_sync(self._get, uri, anywhere)

    async def size(self, uri: str, *, anywhere: bool = False) -> int:
        """Return the number of bytes of what `get` reads. Raises NotFound as there."""
        return await anyio.to_thread.run_sync(self._size, uri, anywhere)

    def locate(self, uri: str) -> str:
        """Return the current URI of the content of *uri*.

        A swarm's folder may be copied or moved. A file that is not below this root is searched there by the end of its
        path, from the longest existing one to the last two parts. If the file still exists at its old place, the end
        must include the id of its task, so that another file of the same name does not replace it.
        """
        path = Path(uri.removeprefix("file://"))
        if not self._local or not uri.startswith("file://") or ".." in path.parts or path.is_relative_to(self._base):
            return uri
        is_there = _is_file(path)
        for start in range(1, len(path.parts) - 1):
            end = path.parts[start:]
            if is_there and not any(map(_ID.fullmatch, end[:-1])):
                return uri
            if _is_file(moved := Path(self._base, *end)):
                return f"file://{moved}"
        return uri

    def holds(self, uri: str, folder: str) -> bool:
        """Return True if the content of *uri* is below *folder* of this root, even after links are followed."""
        if not self._local:
            root: Any = self._fs.unstrip_protocol(f"{self._base}/{folder}".rstrip("/"))
            return uri.startswith(f"{root}/") and not {"..", "."} & set(uri.split("/"))
        if not uri.startswith("file://"):
            return False
        path = Path(self.locate(uri).removeprefix("file://"))
        try:
            return path.resolve().is_relative_to(Path(self._base, folder))
        except (OSError, ValueError, RuntimeError):  # too long, with a null character, or a circle of links
            return False

    async def local_path(self, uri: str) -> Path:
        """Return a local file with the content of *uri*, downloading it if necessary. Raises NotFound as `get` does."""
        path = self._path_of(uri)
        if self._local:
            return Path(path)
        if self._copies is None:
            self._copies = Path(tempfile.mkdtemp(prefix="fireswarm-blobs-"))
            weakref.finalize(self, shutil.rmtree, self._copies, ignore_errors=True)
        target = Path(self._copies, hashlib.sha256(uri.encode()).hexdigest(), Path(uri).name)
        return await anyio.to_thread.run_sync(self._copy, uri, target)

    def _copy(self, uri: str, target: Path) -> Path:
        if not target.exists():
            _write_whole(target, self._get(uri, False))
        return target

    def _path_of(self, uri: str) -> str:
        """Return *uri* as the file system of this root takes it. Raises NotFound for a URI that is not below it."""
        if not self.holds(uri, ""):
            raise NotFound(f"{uri} is not a file of the blob store {self._base}: no other file is read")
        if self._local:
            return self.locate(uri).removeprefix("file://")
        return uri

    def _open(self, uri: str, anywhere: bool) -> tuple[Any, str]:
        """Return the file system and the path of *uri*."""
        if anywhere and not self.holds(uri, "") and "::" not in uri:
            return fsspec.url_to_fs(self.locate(uri))
        return self._fs, self._path_of(uri)

    def _put(self, name: str, content: bytes) -> str:
        """Write a blob atomically and return its URI.

        Raises StoreFull, and StoreError, also for a name outside of the root.
        """
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\0" in name:
            raise StoreError(f"cannot store {name!r}: the path is outside of {self._base}")
        full = f"{self._base}/{name}"
        fs: Any = self._fs
        try:
            if self._local:
                _write_whole(Path(full), content)
            else:
                fs.pipe_file(full, content)
        except OSError as error:
            if error.errno in (28, 122):
                raise StoreFull(f"cannot store {name}, the disk is full: free space below {self._base}") from error
            raise StoreError(f"cannot store {name} below {self._base}: {error}") from error
        return f"file://{full}" if self._local else str(fs.unstrip_protocol(full))

    def _get(self, uri: str, anywhere: bool) -> bytes:
        with _reading(uri):
            if anywhere and uri.startswith("file://") and not self.holds(uri, ""):
                return read_without_links(_path_in(self.locate(uri)))
            fs, path = self._open(uri, anywhere)
            return bytes(fs.cat_file(path))

    def _size(self, uri: str, anywhere: bool) -> int:
        with _reading(uri):
            if anywhere and uri.startswith("file://") and not self.holds(uri, ""):
                return os.lstat(_path_in(self.locate(uri))).st_size
            fs, path = self._open(uri, anywhere)
            return int(fs.size(path) or 0)


def _path_in(uri: str) -> Path:
    """Return the path of a file's URI, which may be written with or without escapes such as ``%20``."""
    written = uri.removeprefix("file://")
    return Path(written if os.path.lexists(written) else unquote(written))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # such as a name that is too long
        return False


@contextlib.contextmanager
def _reading(uri: str) -> Generator[None]:
    """Convert the errors of reading *uri* to NotFound and StoreError."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(f"{uri} does not exist: check that the blob folder was not moved or cleaned") from error
    except OSError as error:
        told = "; name the file by its path without links" if error.errno == errno.ELOOP else ""
        raise StoreError(f"cannot read {uri}: {error}{told}") from error


def _write_whole(path: Path, content: bytes) -> None:
    make_state_folder(path.parent)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as part:
        try:
            part.write(content)
            part.flush()
        except OSError:
            Path(part.name).unlink(missing_ok=True)
            raise
    Path(part.name).replace(path)
