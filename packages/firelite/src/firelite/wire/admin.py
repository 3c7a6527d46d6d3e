"""Administration of a database: statistics, export, import, reset."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from google.protobuf import json_format

from firelite.database import Database
from firelite.documents.paths import check_document_name
from firelite.documents.protos import Document, Write, WritePb
from firelite.errors import AlreadyExists, FailedPrecondition, InvalidArgument


@dataclass(frozen=True, slots=True)
class Stats:
    """Statistics of a database. Sizes in bytes; ``collections`` counts documents by collection path."""

    documents: int
    document_bytes: int
    file_bytes: int
    last_commit_us: int
    collections: dict[str, int]


def stats(db: Database) -> Stats:
    """Return the database's current statistics. ``file_bytes`` includes the write-ahead log and is 0 in memory."""
    db.check_open()
    files = () if db.path is None else (db.path, db.path.with_name(db.path.name + "-wal"))
    return Stats(
        documents=db.store.live,
        document_bytes=sum(len(record.data or b"") for record in db.store.everything()),
        file_bytes=sum(file.stat().st_size for file in files if file.exists()),
        last_commit_us=db.store.last_commit_us,
        collections=db.store.collection_paths(),
    )


def export_jsonl(db: Database, out: str | Path | TextIO) -> int:
    """Write every document as one line of JSON, in the typed form of Firestore's REST API. Returns the number.

    Values round-trip exactly. A file is written completely or not at all, and only its owner can read it.
    """
    db.check_open()
    if not isinstance(out, (str, Path)):
        return _export(db, out)
    path = Path(out)
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)  # of an export that was cut off, or a link to elsewhere
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        count = _export(db, stream)
    partial.replace(path)
    return count


def _export(db: Database, stream: TextIO) -> int:
    count = 0
    for record in sorted(db.store.everything(), key=lambda record: record.name):
        content = json_format.MessageToDict(Document.FromString(record.data))
        stream.write(json.dumps(content, ensure_ascii=False, sort_keys=True) + "\n")
        count += 1
    return count


def import_jsonl(db: Database, source: str | Path | TextIO, *, overwrite: bool = False) -> int:
    """Import the output of ``export_jsonl``. Returns the number of documents.

    The import is one atomic commit: if a line is invalid, or a document exists and *overwrite* is False, nothing is
    imported. The documents get new create and update times. Raises InvalidArgument with the line, AlreadyExists with a
    document, FailedPrecondition while transactions are open.
    """
    _check_quiet(db)
    if isinstance(source, (str, Path)):
        with Path(source).open(encoding="utf-8") as stream:
            writes = list(_parse(stream))
    else:
        writes = list(_parse(source))
    existing = [] if overwrite else [write.update.name for write in writes if db.store.get(write.update.name)]
    if existing:
        raise AlreadyExists(
            f"{len(existing):,} of the {len(writes):,} documents exist already, such as {existing[0]}. Nothing was "
            "imported."
        )
    db.group.commit_now(writes)
    return len(writes)


def _parse(stream: TextIO) -> Iterator[WritePb]:
    """Yield one write per line. Raises InvalidArgument with the number of an invalid line."""
    for number, line in enumerate(stream, start=1):
        if not line.strip():
            continue
        write = Write()
        try:
            content: Any = json.loads(line)
            json_format.ParseDict({"name": content["name"], "fields": content.get("fields", {})}, write.update)
        except (ValueError, KeyError, TypeError, AttributeError, json_format.ParseError) as error:
            raise InvalidArgument(
                f"Line {number} is not an exported document: {error}. Nothing was imported."
            ) from error
        check_document_name(write.update.name)
        yield write


def reset(db: Database, collection: str | None = None) -> int:
    """Delete every document, or those of one collection (a full path) and everything below them. Returns the number.

    Raises FailedPrecondition while transactions are open.
    """
    _check_quiet(db)
    if collection is None:
        names = [record.name for record in db.store.everything()]
    else:
        names = [record.name for record in db.store.everything() if record.name.startswith(collection + "/")]
    db.group.commit_now([Write(delete=name) for name in names])
    if collection is None:
        db.renew_lineage()
    return len(names)


def _check_quiet(db: Database) -> None:
    db.check_open()
    if not db.locks.idle:
        raise FailedPrecondition("Transactions are open on this database; wait for them to end.")
