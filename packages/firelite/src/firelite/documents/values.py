"""An order-preserving byte encoding of Firestore values.

``encode(a) < encode(b)`` exactly when Firestore sorts ``a`` before ``b``, and ``encode(a) == encode(b)`` exactly when
Firestore treats them as equal, so every comparison in the engine is one ``memcmp``. No encoding is a prefix of another,
so encodings can be concatenated into index keys; ``descending`` inverts one for the opposite order.

Type order (Google's "Value type ordering"): null < bool < NaN < number < timestamp < string < bytes < reference <
geopoint < array < vector < map. Integers and doubles compare by their exact numeric value, -0.0 equals 0.0.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from functools import lru_cache

from firelite.documents.protos import FieldsPb, ValuePb

# First bytes: spaced, above every terminator, and far from 0xff in both directions, so that ``key + ABOVE`` is above
# all continuations of a key.
TAG_NULL = 0x05
TAG_BOOL = 0x0A
TAG_NAN = 0x0F
TAG_NUMBER = 0x14
TAG_TIMESTAMP = 0x19
TAG_STRING = 0x1E
TAG_BYTES = 0x23
TAG_REFERENCE = 0x28
TAG_GEOPOINT = 0x2D
TAG_ARRAY = 0x32
TAG_VECTOR = 0x37
TAG_MAP = 0x3C

ABOVE = b"\xff"
PATH_END = b"\x01"  # ends arrays, maps and paths; below every tag and every path segment
_END = PATH_END
_STRING_TAG = bytes([TAG_STRING])
_STRING_END = b"\x00\x01"
_SEGMENT_ID = b"\x02"  # a numeric id, __id7__, sorts before every name
_SEGMENT_NAME = b"\x03"
_INVERT = bytes(255 - byte for byte in range(256))
_EXACT_DOUBLE = 1 << 53  # integers up to here are exact as doubles
_NUMERIC_ID = re.compile(r"__id(-?\d{1,19})__")
_pack_double = struct.Struct(">d").pack
_pack_number = struct.Struct(">BQH").pack
_pack_timestamp = struct.Struct(">BQI").pack
_unpack_bits = struct.Struct(">Q").unpack
_SIGN = 1 << 63
_ALL = (1 << 64) - 1

NULL = bytes([TAG_NULL])


def descending(encoded: bytes) -> bytes:
    """Return the encoding with its sort order inverted."""
    return encoded.translate(_INVERT)


def encode(value: ValuePb) -> bytes:
    """Return the sortable encoding of one Value message. An unset Value counts as null."""
    text = value.string_value
    if text:  # most indexed values are strings, and this test is cheaper than WhichOneof
        return _short_string_key(text) if len(text) <= _SHORT_LETTERS else _string_key(text)
    return _ENCODERS[value.WhichOneof("value_type")](value)


@lru_cache(maxsize=16_384)
def path_key(path: str) -> bytes:
    """Return the sortable encoding of a slash-separated path. A parent sorts directly before its descendants."""
    return b"".join(_segment(segment) for segment in path.split("/"))


def elements(value: ValuePb) -> list[bytes]:
    """Return the distinct encoded elements of an array value, in order of first appearance; empty for other types."""
    if value.WhichOneof("value_type") != "array_value":
        return []
    return list(dict.fromkeys(encode(element) for element in value.array_value.values))


def is_vector(fields: FieldsPb) -> bool:
    """Return True if the fields of a map value are a vector (``__type__`` is ``__vector__``)."""
    return "__type__" in fields and fields["__type__"].string_value == "__vector__"


def encode_number(number: int | float) -> bytes:
    """Return the sortable encoding of a number. NaN sorts below all other numbers."""
    if number != number:
        return bytes([TAG_NAN])
    base = float(number)
    rest = 0
    if isinstance(number, int) and not -_EXACT_DOUBLE <= number <= _EXACT_DOUBLE:
        # The largest double not above the integer, and the difference to the integer (less than 1024 for int64).
        if int(base) > number:
            base = math.nextafter(base, -math.inf)
        rest = number - int(base)
    return _pack_number(TAG_NUMBER, _double_bits(base), rest)


def _double_bits(number: float) -> int:
    return _ordered_bits(number + 0.0)  # + 0.0 turns -0.0 into 0.0


def _ordered_bits(number: float) -> int:
    bits = _unpack_bits(_pack_double(number))[0]
    return bits ^ _ALL if bits & _SIGN else bits | _SIGN


def is_numeric_id(segment: str) -> bool:
    """Return True for an id like ``__id7__``, which stands for a 64-bit integer."""
    match = _NUMERIC_ID.fullmatch(segment)
    return match is not None and -_SIGN <= int(match[1]) < _SIGN


def _segment(segment: str) -> bytes:
    match = _NUMERIC_ID.fullmatch(segment)
    if match is not None:
        return _SEGMENT_ID + ((int(match[1]) + _SIGN) & _ALL).to_bytes(8, "big")
    return _SEGMENT_NAME + _escape(segment.encode("utf-8", "surrogatepass"))


def _escape(raw: bytes) -> bytes:
    return raw.replace(b"\x00", b"\x00\xff") + _STRING_END


def _null(_: ValuePb) -> bytes:
    return NULL


def _boolean(value: ValuePb) -> bytes:
    return bytes([TAG_BOOL, 2 if value.boolean_value else 1])


def _integer(value: ValuePb) -> bytes:
    number = value.integer_value
    if -_EXACT_DOUBLE <= number <= _EXACT_DOUBLE:  # the most common value in an index
        bits = _unpack_bits(_pack_double(number))[0]
        return _pack_number(TAG_NUMBER, bits ^ _ALL if bits & _SIGN else bits | _SIGN, 0)
    return encode_number(number)


def _double(value: ValuePb) -> bytes:
    return encode_number(value.double_value)


def _timestamp(value: ValuePb) -> bytes:
    moment = value.timestamp_value
    return _pack_timestamp(TAG_TIMESTAMP, (moment.seconds + _SIGN) & _ALL, moment.nanos)


def _string(value: ValuePb) -> bytes:
    return _string_key(value.string_value)


def _string_key(text: str) -> bytes:
    return _STRING_TAG + _escape(text.encode())


_SHORT_LETTERS = 64  # statuses, owners and ids repeat, so the cache stays small
_short_string_key = lru_cache(maxsize=16_384)(_string_key)


def _bytes(value: ValuePb) -> bytes:
    return bytes([TAG_BYTES]) + _escape(value.bytes_value)


def _reference(value: ValuePb) -> bytes:
    return bytes([TAG_REFERENCE]) + path_key(value.reference_value) + _END


def _geopoint(value: ValuePb) -> bytes:
    point = value.geo_point_value
    # Unlike numbers, the coordinates -0.0 and 0.0 differ.
    return struct.pack(">BQQ", TAG_GEOPOINT, _ordered_bits(point.latitude), _ordered_bits(point.longitude))


def _coordinate(value: ValuePb) -> bytes:
    """Return the encoding of a number in a vector. Unlike other numbers, -0.0 and 0.0 differ, and NaN sorts last."""
    number = value.double_value
    return _pack_number(TAG_NUMBER, _ordered_bits(math.nan if number != number else number), 0)


def _array(value: ValuePb) -> bytes:
    return bytes([TAG_ARRAY]) + b"".join(map(encode, value.array_value.values)) + _END


def _map(value: ValuePb) -> bytes:
    """Return the encoding of a map or a vector."""
    fields = value.map_value.fields
    if is_vector(fields):
        coordinates = fields["value"].array_value.values
        return struct.pack(">BI", TAG_VECTOR, len(coordinates)) + b"".join(map(_coordinate, coordinates))
    parts = [bytes([TAG_MAP])]
    # UTF-8 keeps code point order, so sorting the names sorts their encodings.
    for name in sorted(fields):
        parts.append(_string_key(name))
        parts.append(encode(fields[name]))
    parts.append(_END)
    return b"".join(parts)


_ENCODERS: dict[str | None, Callable[[ValuePb], bytes]] = {
    None: _null,
    "null_value": _null,
    "boolean_value": _boolean,
    "integer_value": _integer,
    "double_value": _double,
    "timestamp_value": _timestamp,
    "string_value": _string,
    "bytes_value": _bytes,
    "reference_value": _reference,
    "geo_point_value": _geopoint,
    "array_value": _array,
    "map_value": _map,
}
