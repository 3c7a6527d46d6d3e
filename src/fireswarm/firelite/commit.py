"""From Write messages to new document versions: preconditions, masks, transforms, limits. No I/O.

``Batch.add`` validates and applies one commit against a view of the current state; it changes nothing itself. The
group (see ``group``) makes the result durable and then visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fireswarm.firelite.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound
from fireswarm.firelite.fields import merge, parse_mask
from fireswarm.firelite.limits import TRANSFORMS_MAX, check_document
from fireswarm.firelite.paths import check_document_name, parse_field_path
from fireswarm.firelite.protos import (
    Document,
    DocumentPb,
    FieldsPb,
    PreconditionPb,
    WritePb,
    WriteResult,
    WriteResultPb,
    micros_of,
    set_time,
)
from fireswarm.firelite.record import Record
from fireswarm.firelite.transforms import apply_transform


@dataclass(frozen=True, slots=True)
class Version:
    """A document version in the making; ``fields`` is None for a tombstone."""

    record: Record
    fields: FieldsPb | None


type Pending = dict[str, Version]


@dataclass(frozen=True, slots=True)
class Prepared:
    """What one commit will do: the documents it changes and the result of each write."""

    versions: Pending
    results: list[WriteResultPb]


def written_names(writes: Iterable[WritePb]) -> list[str]:
    """The documents the writes touch, checked; raises InvalidArgument for a write without an operation."""
    return [_target(write) for write in writes]


def _target(write: WritePb) -> str:
    kind = write.WhichOneof("operation")
    if kind == "update":
        return check_document_name(write.update.name)
    if kind == "delete":
        return check_document_name(write.delete)
    if kind == "transform":
        return check_document_name(write.transform.document)
    raise InvalidArgument("A write has no operation.")


def prepare(
    writes: Sequence[WritePb],
    current: Callable[[str], Record | None],
    commit_us: int,
    new_row: Callable[[], int],
) -> Prepared:
    """Validate the writes in order and work out the new versions.

    ``current`` answers the newest version of a document (None when it does not exist), ``commit_us`` is the commit's
    time, ``new_row`` hands out rows for new documents. Raises NotFound, AlreadyExists, FailedPrecondition or
    InvalidArgument, each naming the document; then nothing of the commit applies.
    """
    pending: Pending = {}
    results: list[WriteResultPb] = []
    transforms = sum(len(write.update_transforms) + len(write.transform.field_transforms) for write in writes)
    if transforms > TRANSFORMS_MAX:
        raise InvalidArgument(
            f"A commit can hold at most {TRANSFORMS_MAX} field transforms; this one has {transforms}."
        )
    for write in writes:
        name = _target(write)
        earlier = pending.get(name)
        old = earlier.record if earlier is not None else current(name)
        if old is not None and not old.exists:
            old = None
        if write.HasField("current_document"):
            check_precondition(name, write.current_document, old, commit_us)
        result = WriteResult()
        if write.WhichOneof("operation") == "delete":
            if old is not None:
                pending[name] = Version(Record(name, None, old.create_us, commit_us, old.row), None)
        else:
            version, update_us = _write_document(name, write, old, commit_us, new_row, result)
            if version is not None:
                pending[name] = version
            set_time(result.update_time, update_us)
        results.append(result)
    return Prepared(pending, results)


def check_precondition(name: str, precondition: PreconditionPb, old: Record | None, now_us: int) -> None:
    """Raise the error production answers when the document is not as the precondition says."""
    kind = precondition.WhichOneof("condition_type")
    if kind == "exists":
        if precondition.exists and old is None:
            raise NotFound(f"No document to update: {name}")
        if not precondition.exists and old is not None:
            raise AlreadyExists(f"Document already exists: {name}")
    elif kind == "update_time":
        wanted_us = micros_of(precondition.update_time)
        if precondition.update_time.nanos % 1000:
            raise InvalidArgument(f"The update_time precondition on {name} is finer than microseconds.")
        if wanted_us > now_us:
            raise InvalidArgument(f"The update_time precondition on {name} lies in the future.")
        if old is None:
            raise FailedPrecondition(f"The document {name} does not exist, but an update_time was required of it.")
        if old.update_us != wanted_us:
            raise FailedPrecondition(
                f"The stored version of {name} ({old.update_us} µs) does not match the required base version "
                f"({wanted_us} µs)."
            )


def _write_document(
    name: str,
    write: WritePb,
    old: Record | None,
    commit_us: int,
    new_row: Callable[[], int],
    result: WriteResultPb,
) -> tuple[Version | None, int]:
    """The new version and its update time; no version when the write changes nothing."""
    document, changed = _draft(name, write, old)
    transforms = write.transform.field_transforms or write.update_transforms
    for transform in transforms:
        result.transform_results.append(apply_transform(document.fields, transform, commit_us))
        changed.add(parse_field_path(transform.field_path)[0])
    check_document(name, document.fields, changed, document.ByteSize())
    # A write that changes nothing keeps the version; one that takes the server's time always changes something.
    if old is not None and not any(transform.set_to_server_value for transform in transforms):
        set_time(document.create_time, old.create_us)
        set_time(document.update_time, old.update_us)
        if document.SerializeToString(deterministic=True) == old.data:
            return None, old.update_us
    create_us = commit_us if old is None else old.create_us
    set_time(document.create_time, create_us)
    set_time(document.update_time, commit_us)
    data = document.SerializeToString(deterministic=True)
    row = new_row() if old is None else old.row
    return Version(Record(name, data, create_us, commit_us, row), document.fields), commit_us


def _draft(name: str, write: WritePb, old: Record | None) -> tuple[DocumentPb, set[str]]:
    """The document as the write's own fields make it, and the top-level fields they touch."""
    document = Document(name=name)
    masked = write.HasField("update_mask")
    if old is not None and (masked or write.WhichOneof("operation") == "transform"):
        document.MergeFromString(old.data)
    if masked:
        mask = parse_mask(write.update_mask.field_paths)
        merge(document.fields, write.update.fields, mask)
        return document, {path[0] for path in mask}
    document.fields.MergeFrom(write.update.fields)
    return document, set(write.update.fields)
