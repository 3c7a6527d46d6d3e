"""Back up and restore the embedded store: one .tar.gz file with the data file and the local folder of blobs.

A commit refers only to blobs that were written before it, and nothing deletes blobs. The data file is copied first, so
the archive holds every blob that the copy refers to, although roles write both meanwhile.
"""

from __future__ import annotations

import fcntl
import gzip
import io
import json
import os
import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from firelite.errors import CorruptDataFile
from fireswarm.contracts.base import count_noun
from fireswarm.errors import InvalidInput
from fireswarm.settings import Settings
from fireswarm.settings.run_folders import make_private_folder, make_state_folder

FORMAT = 1
CHUNK_BYTES = 1024 * 1024
DATA, BLOBS, SUMMARY = "store.db", "blobs", "backup.json"
"""Members of the archive. The summary is the last one: an archive without it was cut off."""

BACKUPS, MAX_BACKUPS = "backups", 10
"""Folder beside the data file, and how many of the backups in it are kept."""

_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{6}\.tar\.gz")


@dataclass(frozen=True, slots=True)
class Backup:
    """Content of an archive. ``blobs`` is None if the blobs are in a remote store, which the archive leaves out."""

    documents: int
    blobs: int | None
    format: int = FORMAT

    def __str__(self) -> str:
        """Return the content in words."""
        blobs = "no blobs, which are in a remote store" if self.blobs is None else count_noun(self.blobs, "blob")
        return f"{count_noun(self.documents, 'document')} and {blobs}"


def blobs_folder(settings: Settings) -> Path | None:
    """Return the local folder of blobs, or None if they are in a remote store."""
    root = settings.store.blobs
    if root.startswith("file://"):
        return Path(root.removeprefix("file://"))
    return None if "://" in root else settings.path(root)


def back_up(data: Path, blobs: Path | None, target: Path) -> Backup:
    """Write the last commit of a data file and all blobs to *target*, completely or not at all.

    The store may be in use. Raises InvalidInput if there is no data file, and a FireliteError if it cannot be copied.
    """
    from firelite.storage.backup import back_up as copy_data

    if not data.exists():
        raise InvalidInput(f"{data} does not exist: there is nothing to back up; name the data file with --data")
    if blobs is not None and target.resolve().is_relative_to(blobs.resolve()):
        raise InvalidInput(f"{target} is in the folder of blobs, {blobs}: name a file elsewhere")
    with tempfile.TemporaryDirectory(dir=target.resolve().parent, prefix=f".{target.name}.") as folder:
        copy, partial = Path(folder, DATA), Path(folder, "partial")
        documents = copy_data(data, copy)
        with partial.open("xb") as stream:
            os.fchmod(stream.fileno(), 0o600)
            with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=1, dereference=True) as archive:
                archive.add(copy, DATA, filter=_without_owner)
                written = None if blobs is None else sum(_add_blob(archive, blobs, path) for path in _files(blobs))
                backup = Backup(documents, written)
                content = json.dumps(asdict(backup)).encode()
                summary = tarfile.TarInfo(SUMMARY)
                summary.size = len(content)
                archive.addfile(summary, io.BytesIO(content))
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(target)
    return backup


def restore(source: Path, data: Path, blobs: Path | None, *, overwrite: bool) -> Backup:
    """Replace the data file and write the blobs of an archive.

    With *overwrite*, an existing data file is replaced, as are blobs of the same name; other blobs stay. Nothing is
    changed unless the whole archive can be read. Raises InvalidInput for a file that is no archive, or for an existing
    store, and DataFileInUse if a process has the data file open.
    """
    from firelite.storage.backup import put_in_place
    from firelite.storage.lockfile import FileLock

    make_state_folder(data.parent)
    lock = FileLock(data.resolve())
    try:
        if not overwrite:
            _refuse_existing(data, blobs)
        with _temporary_folder(data.parent) as folder, _temporary_folder((blobs or data).parent) as blob_folder:
            backup = _extract(source, folder, blob_folder, blobs)
            if blobs is not None:
                for path in _files(blob_folder):
                    place = blobs / path.relative_to(blob_folder)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    path.replace(place)
            put_in_place(folder / DATA, lock)
    finally:
        lock.release()
    return backup


def _refuse_existing(data: Path, blobs: Path | None) -> None:
    """Raise InvalidInput if there is a store."""
    existing = data if data.exists() else blobs if blobs is not None and any(_files(blobs)) else None
    if existing is not None:
        raise InvalidInput(f"{existing} exists: repeat the command with --overwrite to replace it")


def _extract(source: Path, folder: Path, blob_folder: Path, blobs: Path | None) -> Backup:
    """Extract and verify an archive. Raises InvalidInput if it is none, or damaged."""
    from firelite.storage.backup import verify

    try:
        with gzip.open(source) as stream:
            with tarfile.open(fileobj=stream, mode="r:") as archive:
                backup = _extract_members(archive, folder, blob_folder)
            while stream.read(CHUNK_BYTES):  # at the end, gzip compares the checksum of the whole content
                pass
        if backup.documents != verify(folder / DATA) or (backup.blobs or 0) != sum(1 for _ in _files(blob_folder)):
            raise ValueError("it does not hold what its summary names")
    except (
        tarfile.TarError,
        gzip.BadGzipFile,
        zlib.error,
        ValueError,
        KeyError,
        TypeError,
        EOFError,
        CorruptDataFile,
    ) as error:
        raise InvalidInput(
            f"{source} is not a complete file of `swarm store backup` ({error}): nothing was changed; use another one"
        ) from error
    if blobs is None and backup.blobs:
        raise InvalidInput(
            f"{source} holds {count_noun(backup.blobs, 'blob')}, but store.blobs is remote: nothing was changed; set "
            f"store.blobs, or FIRESWARM_BLOBS, to a local folder"
        )
    return backup


def _extract_members(archive: tarfile.TarFile, folder: Path, blob_folder: Path) -> Backup:
    for member in archive:
        if not member.isfile():
            raise ValueError(f"{member.name} is not a file")
        if member.name == SUMMARY and (stream := archive.extractfile(member)) is not None:
            content = json.loads(stream.read())
            if content["format"] != FORMAT:
                raise ValueError(f"its format is {content['format']}, this version reads {FORMAT}")
            return Backup(**content)
        if member.name.startswith(f"{BLOBS}/"):
            archive.extract(
                member.replace(name=member.name.removeprefix(f"{BLOBS}/"), deep=False), blob_folder, filter="data"
            )
        elif member.name == DATA:
            archive.extract(member, folder, filter="data")
        else:
            raise ValueError(f"{member.name} is unknown")
    raise ValueError("it was cut off")


def _files(folder: Path) -> Iterator[Path]:
    """Yield the regular files below a folder; none if it does not exist."""
    for place, _, names in folder.walk():
        for name in sorted(names):
            if not (path := place / name).is_symlink() and path.is_file():
                yield path


def _add_blob(archive: tarfile.TarFile, blobs: Path, path: Path) -> bool:
    """Add a blob to the archive. Returns False for one that is gone: the temporary file of an unfinished write."""
    try:
        stream: IO[bytes] = path.open("rb")
    except FileNotFoundError:
        return False
    with stream:
        info = archive.gettarinfo(arcname=f"{BLOBS}/{path.relative_to(blobs).as_posix()}", fileobj=stream)
        archive.addfile(_without_owner(info), stream)
    return True


def _without_owner(info: tarfile.TarInfo) -> tarfile.TarInfo:
    return info.replace(uid=0, gid=0, uname="", gname="", deep=False)


@contextmanager
def _temporary_folder(parent: Path) -> Generator[Path]:
    """Yield a new folder, which is on the same file system as its parent."""
    make_state_folder(parent)
    with tempfile.TemporaryDirectory(dir=parent, prefix=".restore-") as folder:
        yield Path(folder)


@dataclass(frozen=True, slots=True)
class BackupFile:
    """A backup beside the data file: path, bytes, time of its last change."""

    path: Path
    size: int
    at: datetime


@dataclass(frozen=True, slots=True)
class StoreSize:
    """Sizes of a data file in bytes, and its backups, newest first; the newest *most* of them stay."""

    documents: int
    document_bytes: int
    file_bytes: int
    backups: tuple[BackupFile, ...]
    most: int = MAX_BACKUPS


def data_in_use(settings: Settings) -> Path | None:
    """Return the data file that the settings' store is served from, which may not exist yet; None for another store."""
    from firelite.storage.lockfile import read_endpoint

    path, uri = settings.path(settings.store.data), settings.store.uri
    return path if uri == "embedded" or (path.exists() and uri == f"firelite://{read_endpoint(path)}") else None


def measure(data: Path) -> StoreSize:
    """Return the size of a data file at its last commit, also while it is in use."""
    from firelite.database import Database
    from firelite.wire import admin

    with Database.open(data, read_only=True) as database:
        stats = admin.stats(database)
    return StoreSize(stats.documents, stats.document_bytes, stats.file_bytes, tuple(_backups_of(data)))


def back_up_now(settings: Settings, now: datetime) -> Path:
    """Write a backup beside the data file, named by its time; the oldest ones beyond ten are deleted.

    Raises InvalidInput if the store is not of this machine, and a FireliteError if it cannot be copied.
    """
    data = data_in_use(settings)
    if data is None:
        raise InvalidInput(f"the store {settings.store.uri} is not of this machine: Firestore has backups of its own")
    folder = data.parent / BACKUPS
    make_private_folder(folder)
    target = folder / f"{now:%Y-%m-%dT%H-%M-%S-%f}.tar.gz"
    with (folder / ".lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kernel ends it with the process
        except OSError as error:
            raise InvalidInput("another backup is being written: wait for it") from error
        for left in folder.glob(".*.tar.gz.*"):  # of a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        back_up(data, blobs_folder(settings), target)
        for old in _backups_of(data)[MAX_BACKUPS:]:
            old.path.unlink(missing_ok=True)
    return target


def _backups_of(data: Path) -> list[BackupFile]:
    """Return the backups that `back_up_now` wrote, newest first."""
    files = [(path, path.stat()) for path in (data.parent / BACKUPS).glob("*.tar.gz") if _NAME.fullmatch(path.name)]
    found = [BackupFile(path, stat.st_size, datetime.fromtimestamp(stat.st_mtime, UTC)) for path, stat in files]
    return sorted(found, key=lambda file: file.path.name, reverse=True)
