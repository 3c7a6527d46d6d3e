"""Read and change the fields of a document message by path, and project documents by a mask. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from firelite.documents.paths import NAME, FieldPath, parse_field_path
from firelite.documents.protos import Document, DocumentMask, DocumentPb, FieldsPb, ValuePb
from firelite.errors import InvalidArgument


def lookup(fields: FieldsPb, path: FieldPath) -> ValuePb | None:
    """Return the value at the path, or None if it (or a map on the path) is missing."""
    # Indexing a message map creates the entry, so test first.
    for name in path[:-1]:
        if name not in fields:
            return None
        value = fields[name]
        if value.WhichOneof("value_type") != "map_value":
            return None
        fields = value.map_value.fields
    return fields.get(path[-1])


def assign(fields: FieldsPb, path: FieldPath, value: ValuePb) -> None:
    """Set the value at the path. A value on the path that is not a map is replaced by one."""
    for name in path[:-1]:
        child = fields[name]
        if child.WhichOneof("value_type") != "map_value":
            child.Clear()
            child.map_value.SetInParent()
        fields = child.map_value.fields
    fields[path[-1]].CopyFrom(value)


def remove(fields: FieldsPb, path: FieldPath) -> None:
    """Remove the value at the path, if it exists. The maps on the path remain."""
    for name in path[:-1]:
        if name not in fields or fields[name].WhichOneof("value_type") != "map_value":
            return
        fields = fields[name].map_value.fields
    if path[-1] in fields:
        del fields[path[-1]]


@dataclass(frozen=True, slots=True)
class Mask:
    """An update mask: its paths, their top-level fields, and whether all paths are top-level fields."""

    paths: tuple[FieldPath, ...]
    names: frozenset[str]
    flat: bool


@lru_cache(maxsize=1024)
def mask_of(message: bytes) -> Mask:
    """Return ``parse_mask`` of a serialized DocumentMask, cached: a program uses few different masks."""
    return parse_mask(DocumentMask.FromString(message).field_paths)


def parse_mask(field_paths: Iterable[str]) -> Mask:
    """Parse an update mask. Raises InvalidArgument for ``__name__``."""
    paths = sorted(parse_field_path(text) for text in field_paths)
    if NAME in paths:
        raise InvalidArgument("'__name__' cannot be written.")
    return Mask(tuple(paths), frozenset(path[0] for path in paths), all(len(path) == 1 for path in paths))


def merge(target: FieldsPb, source: FieldsPb, paths: Sequence[FieldPath]) -> None:
    """Apply an update mask: set every path to the source's value, or remove it if the source has none."""
    for path in paths:
        value = lookup(source, path)
        if value is None:
            remove(target, path)
        else:
            assign(target, path, value)


def project(data: bytes, paths: Sequence[FieldPath] | None) -> DocumentPb:
    """Return the document with only the given fields, or all for None. ``__name__`` selects no field."""
    document = Document.FromString(data)
    if paths is None:
        return document
    result = Document(name=document.name)
    result.create_time.CopyFrom(document.create_time)
    result.update_time.CopyFrom(document.update_time)
    for path in paths:
        if path == NAME:
            continue
        value = lookup(document.fields, path)
        if value is not None:
            assign(result.fields, path, value)
    return result
