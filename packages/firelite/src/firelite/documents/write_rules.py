"""Checks of a commit's writes that need no documents. No I/O.

Production makes these checks before it reads any document, so an invalid write takes precedence over an earlier write's
failed precondition. ``prepare`` finds most of these faults while it applies writes, and calls ``check_writes`` only
when a precondition fails.
"""

from __future__ import annotations

from collections.abc import Sequence

from firelite.documents.fields import mask_of, merge
from firelite.documents.limits import check_values
from firelite.documents.paths import parse_field_path
from firelite.documents.protos import Document, MessagePb, WritePb, micros_of
from firelite.documents.transforms import apply_transform
from firelite.documents.values import is_vector
from firelite.errors import InvalidArgument


def check_writes(writes: Sequence[WritePb], names: Sequence[str]) -> None:
    """Raise InvalidArgument for the first fault that does not depend on the stored documents."""
    for write, name in zip(writes, names, strict=True):
        kind = write.WhichOneof("operation")
        if kind == "delete":
            check_delete(write, name)
        elif kind == "transform":
            check_transform_write(write, name)
        check_source(write, name)
        transforms = write.update_transforms or write.transform.field_transforms
        check_transforms(transforms)
        scratch = Document()
        for transform in transforms:
            apply_transform(scratch.fields, transform, 0)
        check_values(name, scratch.fields, scratch.fields)
    check_repeated(writes, names)


def check_delete(write: WritePb, name: str) -> None:
    """Raise InvalidArgument for a delete with a mask or with transforms."""
    if write.update_transforms or write.HasField("update_mask"):
        raise InvalidArgument(f"The delete of {name} has a mask or transforms.")


def check_transform_write(write: WritePb, name: str) -> None:
    """Raise InvalidArgument for a transform write without transforms."""
    if not write.transform.field_transforms:
        raise InvalidArgument(f"The transform of {name} has no field transforms.")


def check_source(write: WritePb, name: str) -> None:
    """Raise InvalidArgument for a value that cannot be stored, even if the mask does not select it.

    A vector that the mask does not select may hold NaN.
    """
    copy = Document()
    copy.CopyFrom(write.update)  # the check truncates timestamps
    if write.HasField("update_mask"):
        selected = Document()
        merge(selected.fields, copy.fields, mask_of(write.update_mask.SerializeToString()).paths)
        check_values(name, selected.fields, selected.fields)
        for value in copy.fields.values():
            _clear_nan(value)
    check_values(name, copy.fields, copy.fields)


def _clear_nan(value: MessagePb) -> None:
    """Replace NaN in the vectors of a value."""
    fields = value.map_value.fields
    if is_vector(fields):
        for coordinate in fields["value"].array_value.values:
            if coordinate.double_value != coordinate.double_value:
                coordinate.double_value = 0.0
    for inner in (*fields.values(), *value.array_value.values):
        _clear_nan(inner)


def check_transforms(transforms: Sequence[MessagePb]) -> None:
    """Raise InvalidArgument if a write transforms a field and a field inside it."""
    paths = sorted(parse_field_path(transform.field_path) for transform in transforms)
    for outer, inner in zip(paths, paths[1:], strict=False):
        if len(outer) < len(inner) and inner[: len(outer)] == outer:
            raise InvalidArgument("A write cannot transform a field and a field inside it.")


def check_repeated(writes: Sequence[WritePb], names: Sequence[str]) -> None:
    """Raise InvalidArgument for writes to one document that can never succeed in this order."""
    last: dict[str, WritePb] = {}
    first_time: dict[str, int | None] = {}
    for write, name in zip(writes, names, strict=True):
        if name in last:
            deleted = last[name].WhichOneof("operation") == "delete"
            required = _existence(write)
            again = write.WhichOneof("operation") == "delete" and _update_time(write) is not None
            if required is not None and required is deleted and not (again and _update_time(write) == first_time[name]):
                before, after = ("missing", "existing") if deleted else ("existing", "missing")
                raise InvalidArgument(f"A write leaves {name} {before}, and a later one requires it {after}.")
            if _update_time(write) not in (None, first_time[name]):
                raise InvalidArgument(f"Two writes of one commit require different update times of {name}.")
        last[name] = write
        first_time.setdefault(name, _update_time(write))


def _existence(write: WritePb) -> bool | None:
    """Return True if the write requires an existing document, False for a missing one, None for neither."""
    condition = write.current_document.WhichOneof("condition_type")
    if condition is None:
        return None
    return condition == "update_time" or write.current_document.exists


def _update_time(write: WritePb) -> int | None:
    chosen = write.current_document.WhichOneof("condition_type") == "update_time"
    return micros_of(write.current_document.update_time) if chosen else None
