"""Turn Write messages into new document versions: preconditions, masks, transforms, limits. No I/O.

``prepare`` validates and applies one commit against a view of the current state; it changes nothing itself. The
group (see ``group_commit``) makes the result durable and then visible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from firelite.documents.fields import mask_of, merge, remove
from firelite.documents.limits import SMALL_BYTES, TRANSFORMS_MAX, check_size, check_values
from firelite.documents.paths import check_document_name, parse_field_path
from firelite.documents.protos import (
    CommitResponse,
    Document,
    DocumentPb,
    FieldsPb,
    MessagePb,
    PreconditionPb,
    WritePb,
    WriteResultPb,
    micros_of,
    set_time,
)
from firelite.documents.record import Record
from firelite.documents.transforms import apply_transform
from firelite.documents.write_rules import (
    check_delete,
    check_repeated,
    check_source,
    check_transform_write,
    check_transforms,
    check_writes,
)
from firelite.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound


class Version(NamedTuple):
    """A new document version; ``fields`` is None for a tombstone."""

    record: Record
    fields: FieldsPb | None


type Pending = dict[str, Version]


class Prepared(NamedTuple):
    """A validated commit: its new document versions and its response."""

    versions: Pending
    response: MessagePb


def written_names(writes: Iterable[WritePb]) -> list[str]:
    """Return the checked document names of the writes. Raises InvalidArgument for a write without an operation."""
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
    names: Sequence[str],
    current: Callable[[str], Record | None],
    commit_us: int,
    new_row: Callable[[], int],
) -> Prepared:
    """Validate the writes in order and compute the new versions.

    ``names`` are the writes' documents (see ``written_names``), ``current`` returns the newest version of a document
    (None if it does not exist), ``commit_us`` is the commit's time, ``new_row`` returns rows for new documents.
    Raises NotFound, AlreadyExists, FailedPrecondition or InvalidArgument with the document; then nothing of the commit
    applies.
    """
    repeated = len(names) > 1 and len(set(names)) < len(names)
    if repeated:
        check_repeated(writes, names)
    try:
        prepared = _apply(writes, names, current, commit_us, new_row)
    except (AlreadyExists, FailedPrecondition, NotFound):
        check_writes(writes, names)
        raise
    if repeated:
        _repeat_last_times(names, prepared.response.write_results)
    return prepared


def _repeat_last_times(names: Sequence[str], results: Sequence[WriteResultPb]) -> None:
    """Give all writes to one document the update time of the last one, since the commit applies them together."""
    last = dict(zip(names, results, strict=True))
    for name, result in zip(names, results, strict=True):
        if result is last[name]:
            continue
        if last[name].HasField("update_time"):
            result.update_time.CopyFrom(last[name].update_time)
        else:
            result.ClearField("update_time")


def _apply(
    writes: Sequence[WritePb],
    names: Sequence[str],
    current: Callable[[str], Record | None],
    commit_us: int,
    new_row: Callable[[], int],
) -> Prepared:
    """Apply the writes in order."""
    pending: Pending = {}
    response = CommitResponse()
    set_time(response.commit_time, commit_us)
    transforms: Counter[str] = Counter()
    for name, write in zip(names, writes, strict=True):
        earlier = pending.get(name)
        old = earlier.record if earlier is not None else current(name)
        if old is not None and old.data is None:
            old = None
        if write.HasField("current_document"):
            _check_write_precondition(name, write, old, commit_us, is_first=earlier is None)
        result = response.write_results.add()
        if write.WhichOneof("operation") == "delete":
            check_delete(write, name)
            if old is not None:
                pending[name] = Version(old.successor(None, commit_us), None)
            continue
        version, update_us = _write_document(name, write, old, commit_us, new_row, result)
        if version is not None:
            pending[name] = version
        set_time(result.update_time, update_us)
        if result.transform_results:
            transforms[name] += len(result.transform_results)
    for name, count in transforms.items():
        if count > TRANSFORMS_MAX:
            raise InvalidArgument(
                f"A commit can apply at most {TRANSFORMS_MAX} field transforms to a document; {name!r} has {count}."
            )
    return Prepared(pending, response)


def _check_write_precondition(name: str, write: WritePb, old: Record | None, commit_us: int, *, is_first: bool) -> None:
    """Check a write's precondition. Later writes to a document repeat the update time that the first one required."""
    if is_first or not write.current_document.HasField("update_time"):
        check_precondition(name, write.current_document, old, commit_us)


def check_precondition(name: str, precondition: PreconditionPb, old: Record | None, now_us: int) -> None:
    """Raise production's error if the document does not satisfy the precondition."""
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
    """Return the new version and its update time; no version if the write changes nothing."""
    document, changed = _draft(name, write, old)
    fields = document.fields
    stamped = False
    transforms = write.update_transforms or write.transform.field_transforms
    if len(transforms) > 1:
        check_transforms(transforms)
    if transforms and any(parse_field_path(item.field_path)[0] in write.update.fields for item in transforms):
        check_source(write, name)
    for transform in transforms:
        result.transform_results.append(apply_transform(fields, transform, commit_us))
        changed.add(parse_field_path(transform.field_path)[0])
        stamped = stamped or bool(transform.set_to_server_value)
    check_values(name, fields, changed)
    # A write that changes nothing keeps the version; one that sets the server's time always changes something.
    if old is not None and not stamped and _serialize(document, old.create_us, old.update_us) == old.data:
        return None, old.update_us
    create_us = commit_us if old is None else old.create_us
    data = _serialize(document, create_us, commit_us)
    if len(data) > SMALL_BYTES:
        check_size(name, fields)
    if old is None:
        return Version(Record(name, data, create_us, commit_us, new_row()), fields), commit_us
    return Version(old.successor(data, commit_us), fields), commit_us


def _serialize(document: DocumentPb, create_us: int, update_us: int) -> bytes:
    set_time(document.create_time, create_us)
    set_time(document.update_time, update_us)
    return document.SerializeToString(deterministic=True)


def _draft(name: str, write: WritePb, old: Record | None) -> tuple[DocumentPb, set[str]]:
    """Return the document with the write's own fields applied, and the top-level fields that they set."""
    before = b"" if old is None or old.data is None else old.data
    masked = write.HasField("update_mask")
    if not masked and write.WhichOneof("operation") == "transform":
        check_transform_write(write, name)
        return Document.FromString(before) if before else Document(name=name), set()
    source = write.update
    fields = set(source.fields)
    if not masked:
        return Document.FromString(source.SerializeToString()), fields
    mask = mask_of(write.update_mask.SerializeToString())
    if not (mask.flat and fields <= mask.names):
        check_source(write, name)
        document = Document.FromString(before) if before else Document(name=name)
        merge(document.fields, source.fields, mask.paths)
        return document, {name for name in mask.names if name in document.fields}
    # On the wire, a later entry of a map replaces an earlier one as a whole, so parsing the two messages in sequence
    # merges them, at far lower cost than value by value.
    document = Document.FromString(before + source.SerializeToString())
    if len(fields) < len(mask.names):
        for gone in mask.names - fields:
            remove(document.fields, (gone,))
    return document, fields
