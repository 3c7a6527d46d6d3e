"""What a document may hold. Checked once, when it is written; figures from Google's "Usage and limits" page."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from fireswarm.firelite.errors import InvalidArgument
from fireswarm.firelite.paths import SEGMENT_MAX_BYTES, is_reserved
from fireswarm.firelite.protos import FieldsPb, ValuePb
from fireswarm.firelite.values import is_vector

# https://firebase.google.com/docs/firestore/quotas
DOCUMENT_MAX_BYTES = 1_048_576
DEPTH_MAX = 20
INDEX_ENTRIES_MAX = 40_000
REQUEST_MAX_BYTES = 10 * 1024 * 1024
TRANSFORMS_MAX = 500
VECTOR_MAX_DIMENSIONS = 2048

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
    "field_reference_value": "a field reference",
    "variable_reference_value": "a variable reference",
    "function_value": "a function",
    "pipeline_value": "a pipeline",
}


_UNLIMITED = frozenset({"string_value", "boolean_value", "integer_value", "double_value", "null_value", "bytes_value"})
"""Kinds of value about which nothing is to be checked but their size."""

SMALL_BYTES = 80_000
"""A message of at most this many bytes cannot break a limit on the whole document. Any value takes at least 4
bytes of a message, and counts for at most 16 bytes and two index entries: 320,000 bytes and 40,000 entries."""


def check_document(name: str, fields: FieldsPb, changed: Collection[str], message_bytes: int) -> None:
    """Check a document about to be stored, and round its timestamps down to microseconds as Firestore does.

    Looks only at the top-level fields that *changed* while the whole message is small: the rest was checked when
    it was written. Raises InvalidArgument that names the document and the limit it breaks.
    """
    audit = _Audit(name)
    if message_bytes <= SMALL_BYTES:
        for field in changed:
            value = fields.get(field)
            if value is not None and (not _field_bytes(field) or value.WhichOneof("value_type") not in _UNLIMITED):
                audit.field(field, value, 1)
        return
    size = name_bytes(name) + _DOCUMENT_OVERHEAD_BYTES + audit.fields(fields, 1)
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
    """The size Firestore charges for a document name: its segments, one more byte each, and 16."""
    relative = name.split("/", 5)[-1]
    return len(relative.encode()) + 1 + _NAME_OVERHEAD_BYTES


@lru_cache(maxsize=16_384)
def _field_bytes(field: str) -> int:
    """The size Firestore charges for a field name, 0 for one it refuses."""
    length = len(field.encode())
    return 0 if not length or length > SEGMENT_MAX_BYTES or is_reserved(field) else length + 1


class _Audit:
    """One walk over a document."""

    __slots__ = ("entries", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.entries = 0  # ascending and descending entries of single-field indexes, and array-contains ones

    def fields(self, fields: FieldsPb, depth: int) -> int:
        size = 0
        for field, value in fields.items():
            size += self.field(field, value, depth)
        return size

    def field(self, field: str, value: ValuePb, depth: int) -> int:
        length = _field_bytes(field)
        if not length:
            raise InvalidArgument(
                f"Document {self.name!r}: the field name {field[:80]!r} is empty, reserved or longer than "
                f"{SEGMENT_MAX_BYTES} bytes."
            )
        return length + self.value(field, value, depth)

    def value(self, field: str, value: ValuePb, depth: int) -> int:
        kind = value.WhichOneof("value_type")
        self.entries += 2
        fixed = _FIXED_BYTES.get(kind)
        if fixed is not None:
            if kind == "timestamp_value":
                value.timestamp_value.nanos -= value.timestamp_value.nanos % 1000
            elif kind == "geo_point_value":
                self.point(field, value)
            return fixed
        if kind == "string_value":
            return len(value.string_value.encode()) + 1
        if kind == "bytes_value":
            return len(value.bytes_value)
        if kind == "reference_value":
            return name_bytes(value.reference_value)
        if kind in _NOT_STORABLE:
            raise InvalidArgument(f"Document {self.name!r}: the field {field!r} holds {_NOT_STORABLE[kind]}.")
        if depth >= DEPTH_MAX:
            raise InvalidArgument(f"Document {self.name!r}: {field!r} nests deeper than {DEPTH_MAX} levels.")
        if kind == "array_value":
            return self.array(field, value, depth)
        return self.map(field, value, depth)

    def point(self, field: str, value: ValuePb) -> None:
        point = value.geo_point_value
        if not (abs(point.latitude) <= 90 and abs(point.longitude) <= 180):  # NaN is not within either
            raise InvalidArgument(f"Document {self.name!r}: {field!r} lies off the globe.")

    def array(self, field: str, value: ValuePb, depth: int) -> int:
        size = 0
        for element in value.array_value.values:
            if element.WhichOneof("value_type") == "array_value":
                raise InvalidArgument(f"Document {self.name!r}: {field!r} holds an array directly inside an array.")
            # An element counts as one array-contains entry, not as two entries of its own.
            self.entries -= 1
            size += self.value(field, element, depth + 1)
        return size

    def map(self, field: str, value: ValuePb, depth: int) -> int:
        fields = value.map_value.fields
        if not is_vector(fields):
            return self.fields(fields, depth + 1)
        coordinates = fields["value"].array_value.values if "value" in fields else ()
        if set(fields) != {"__type__", "value"} or not 0 < len(coordinates) <= VECTOR_MAX_DIMENSIONS:
            raise InvalidArgument(
                f"Document {self.name!r}: the vector {field!r} needs 1 to {VECTOR_MAX_DIMENSIONS} dimensions."
            )
        if any(coordinate.WhichOneof("value_type") != "double_value" for coordinate in coordinates):
            raise InvalidArgument(f"Document {self.name!r}: the vector {field!r} must hold doubles.")
        return 8 * len(coordinates)
