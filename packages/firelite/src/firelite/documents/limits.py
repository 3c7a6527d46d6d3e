"""Limits of a document, checked on write. The figures are from Google's "Usage and limits" page."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from firelite.documents.paths import SEGMENT_MAX_BYTES, check_document_name, is_reserved
from firelite.documents.protos import FieldsPb, TimestampPb, Value, ValuePb
from firelite.documents.values import is_vector
from firelite.errors import InvalidArgument

# https://firebase.google.com/docs/firestore/quotas
DOCUMENT_MAX_BYTES = 1_048_576
DEPTH_MAX = 20
INDEX_ENTRIES_MAX = 40_000
REQUEST_MAX_BYTES = 10 * 1024 * 1024
TRANSFORMS_MAX = 500
VECTOR_MAX_DIMENSIONS = 2048
SECONDS_MIN, SECONDS_MAX = -62_135_596_800, 253_402_300_799  # google.protobuf.Timestamp: the years 1 to 9999
NANOSECONDS = 1_000_000_000

_DOCUMENT_OVERHEAD_BYTES = 32
_NAME_OVERHEAD_BYTES = 16
_FIXED_BYTES = {
    None: 1,
    "null_value": 1,
    "boolean_value": 1,
    "integer_value": 8,
    "double_value": 8,
    "timestamp_value": 8,
    "geo_point_value": 16,
}
_NOT_STORABLE = {
    None: "no value",
    "field_reference_value": "a field reference",
    "variable_reference_value": "a variable reference",
    "function_value": "a function",
    "pipeline_value": "a pipeline",
}


PLAIN_KINDS = frozenset(
    {
        "string_value",
        "boolean_value",
        "integer_value",
        "double_value",
        "null_value",
        "bytes_value",
    }
)
"""Kinds of value for which only the size is checked."""

SMALL_BYTES = 80_000
"""A message of at most this many bytes cannot break a limit on the whole document.

Each value takes at least 4 bytes of a message, and counts for at most 16 bytes and two index entries: 320,000 bytes and
40,000 entries.
"""


def check_values(name: str, fields: FieldsPb, changed: Iterable[str], depth: int = 1) -> None:
    """Check the fields that a write *changed*, and truncate their timestamps to microseconds as Firestore does.

    All *changed* fields exist in *fields*, which belong to a document or to a map *depth* levels down. Raises
    InvalidArgument with the document, the field and the reason.
    """
    for field in changed:
        if not _is_name(field):
            raise InvalidArgument(
                f"Document {name!r}: the field name {field[:80]!r} is empty, reserved or longer than "
                f"{SEGMENT_MAX_BYTES} bytes."
            )
        value = fields[field]
        kind = value.WhichOneof("value_type")
        if kind not in PLAIN_KINDS:
            _check_value(name, field, value, kind, depth)


def checked_copy(value: ValuePb, field: str) -> ValuePb:
    """Return a copy of an operand for *field* in which timestamps inside arrays and maps are truncated.

    Raises InvalidArgument for a timestamp, geo point or reference that no document can hold.
    """
    copy = Value()
    copy.CopyFrom(value)
    _check_operand(copy, field)
    return value if value.WhichOneof("value_type") == "timestamp_value" else copy


def _check_operand(value: ValuePb, field: str) -> None:
    kind = value.WhichOneof("value_type")
    if kind == "array_value":
        for element in value.array_value.values:
            _check_operand(element, field)
    elif kind == "map_value":
        fields = value.map_value.fields
        if is_vector(fields):
            _check_vector("of the filter", field, fields)
        elif not all(map(_is_name, fields)):
            _check_map("of the filter", field, fields, 1)
        for inner in fields.values():
            _check_operand(inner, field)
    elif kind not in PLAIN_KINDS:
        _check_value("of the filter", field, value, kind, 1)


def check_size(name: str, fields: FieldsPb) -> None:
    """Check the limits on a whole document. Needed only for a message larger than ``SMALL_BYTES``.

    Raises InvalidArgument with the document and the limit.
    """
    audit = _Audit()
    size = name_bytes(name) + _DOCUMENT_OVERHEAD_BYTES + audit.fields(fields)
    if size > DOCUMENT_MAX_BYTES:
        raise InvalidArgument(
            f"Document {name!r} cannot be written because its size ({size:,} bytes) exceeds the maximum allowed size "
            f"of {DOCUMENT_MAX_BYTES:,} bytes."
        )
    if audit.entries > INDEX_ENTRIES_MAX:
        raise InvalidArgument(
            f"Document {name!r} has {audit.entries:,} index entries; at most {INDEX_ENTRIES_MAX:,} are allowed."
        )


def name_bytes(name: str) -> int:
    """Return the size Firestore charges for a document name: each segment plus one byte, and 16 bytes."""
    relative = name.split("/", 5)[-1]
    return len(relative.encode()) + 1 + _NAME_OVERHEAD_BYTES


@lru_cache(maxsize=16_384)
def _is_name(field: str) -> bool:
    return 0 < len(field.encode()) <= SEGMENT_MAX_BYTES and not is_reserved(field)


def _check_value(name: str, field: str, value: ValuePb, kind: str | None, depth: int) -> None:
    """Check one value and the values inside it, and truncate timestamps."""
    if kind == "timestamp_value":
        _check_timestamp(name, field, value.timestamp_value)
    elif kind == "geo_point_value":
        point = value.geo_point_value
        if not (abs(point.latitude) <= 90 and abs(point.longitude) <= 180):  # false for NaN as well
            raise InvalidArgument(f"Document {name!r}: {field!r} lies off the globe.")
    elif kind == "reference_value":
        check_document_name(value.reference_value)
    elif kind in _NOT_STORABLE:
        raise InvalidArgument(f"Document {name!r}: the field {field!r} holds {_NOT_STORABLE[kind]}.")
    elif depth >= DEPTH_MAX:
        raise InvalidArgument(f"Document {name!r}: {field!r} nests deeper than {DEPTH_MAX} levels.")
    elif kind == "array_value":
        _check_array(name, field, value, depth)
    else:
        _check_map(name, field, value.map_value.fields, depth)


def _check_timestamp(name: str, field: str, moment: TimestampPb) -> None:
    if not (SECONDS_MIN <= moment.seconds <= SECONDS_MAX and 0 <= moment.nanos < NANOSECONDS):
        raise InvalidArgument(f"Document {name!r}: the timestamp {field!r} is outside the years 1 to 9999.")
    if moment.nanos % 1000:
        moment.nanos -= moment.nanos % 1000


def _check_array(name: str, field: str, value: ValuePb, depth: int) -> None:
    for element in value.array_value.values:
        kind = element.WhichOneof("value_type")
        if kind == "array_value":
            raise InvalidArgument(f"Document {name!r}: {field!r} holds an array directly inside an array.")
        if kind == "map_value" and is_vector(element.map_value.fields):
            raise InvalidArgument(f"Document {name!r}: {field!r} holds a vector inside an array.")
        if kind not in PLAIN_KINDS:
            _check_value(name, field, element, kind, depth + 1)


def _check_map(name: str, field: str, fields: FieldsPb, depth: int) -> None:
    if not is_vector(fields):
        check_values(name, fields, fields, depth + 1)
    elif any(number != number for number in _check_vector(name, field, fields)):
        raise InvalidArgument(f"Document {name!r}: the vector {field!r} must not hold NaN.")


def _check_vector(name: str, field: str, fields: FieldsPb) -> list[float]:
    """Return the coordinates. A filter's vector may hold NaN; a document's may not."""
    coordinates = fields["value"].array_value.values if "value" in fields else ()
    if set(fields) != {"__type__", "value"} or not 0 < len(coordinates) <= VECTOR_MAX_DIMENSIONS:
        raise InvalidArgument(f"Document {name!r}: the vector {field!r} needs 1 to {VECTOR_MAX_DIMENSIONS} dimensions.")
    if any(coordinate.WhichOneof("value_type") != "double_value" for coordinate in coordinates):
        raise InvalidArgument(f"Document {name!r}: the vector {field!r} must hold doubles.")
    return [coordinate.double_value for coordinate in coordinates]


class _Audit:
    """Adds up the size and the index entries of a document in one pass."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries = 0  # ascending and descending entries of single-field indexes, and array-contains ones

    def fields(self, fields: FieldsPb) -> int:
        return sum(len(field.encode()) + 1 + self.value(fields[field]) for field in fields)

    def value(self, value: ValuePb) -> int:
        """Return the size of a value in bytes, and count its index entries."""
        kind = value.WhichOneof("value_type")
        self.entries += 2
        fixed = _FIXED_BYTES.get(kind)
        if fixed is not None:
            return fixed
        if kind == "string_value":
            return len(value.string_value.encode()) + 1
        if kind == "bytes_value":
            return len(value.bytes_value)
        if kind == "reference_value":
            return name_bytes(value.reference_value)
        if kind == "array_value":
            values = value.array_value.values
            # An element counts as one array-contains entry, not as two separate entries.
            self.entries -= len(values)
            return sum(map(self.value, values))
        fields = value.map_value.fields
        return 8 * len(fields["value"].array_value.values) if is_vector(fields) else self.fields(fields)
