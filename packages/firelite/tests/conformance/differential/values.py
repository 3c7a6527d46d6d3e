"""Random values of every type, including the edges of each type."""

from __future__ import annotations

import math
import struct
from random import Random

from firelite.documents.protos import FieldsPb, Value, ValuePb

PROJECT = "differential-000000000000"
"""Stands for the project in generated requests. The real name has the same length, see ``backend.py``."""
DATABASE = f"projects/{PROJECT}/databases/(default)"
ROOT = f"{DATABASE}/documents"

FIELDS = ("a", "b", "c", "m", "v")
"""Fields of generated documents. ``at`` is kept for the server's time, since no query may depend on it."""
PATHS = ("a", "b", "c", "m.x", "m.y", "v")
INTEGERS = (0, 1, 2, -1, 7, (1 << 53) + 1, -(1 << 53) - 1, (1 << 63) - 1, -(1 << 63), 1 << 53)
DOUBLES = (
    0.0, -0.0, 1.0, 1.5, -1.0, 2.0, 7.0, math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308,
    float(1 << 53), float(1 << 63), -float(1 << 63), 0.1,
)  # fmt: skip
STRINGS = (
    "", "a", "b", "A", "aa", "a\x00", "a\x00b", "é", "e\u0301", "\ud7ff", "\ue000", "\uffff", "\U0001f600",
    "\U0010ffff", "a/b", "__x__", "ß", "\u200b", "10", "9", "x" * 40,
)  # fmt: skip
BYTES = (b"", b"\x00", b"\x00\x00", b"\x00\xff", b"\xff", b"\x7f", b"a", b"ab", b"\x80")
MOMENTS = (
    (0, 0), (0, 1_000), (0, 999), (0, 1_999), (-1, 999_999_999), (1_000_000_000, 123_456_789),
    (1_000_000_000, 123_456_000), (-62_135_596_800, 0), (253_402_300_799, 999_999_999),
)  # fmt: skip
POINTS = ((0.0, 0.0), (-0.0, 0.0), (90.0, 180.0), (-90.0, -180.0), (1.5, -1.5), (1.5, 2.0))
INVALID_POINTS = ((91.0, 0.0), (0.0, 181.0), (math.nan, 0.0))
IDS = ("a", "b", "c", "aa", "B", "10", "9", "é", "\U0001f600", "\ue000", "a b", "a.b", "____", "__id7__", "__id-1__")
COLLECTIONS = ("c", "d")
NAMES = (
    *(f"{ROOT}/{collection}/{document}" for collection in COLLECTIONS for document in IDS),
    *(f"{ROOT}/c/a/{collection}/{document}" for collection in COLLECTIONS for document in ("a", "b", "10")),
    f"{ROOT}/c/aa/c/b",
    f"{ROOT}/e/x/c/a",
)
DEEPEST = 3


class ValueMaker:
    """Makes the values of one case. It repeats earlier values often, so that filters match."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.pool: list[ValuePb] = []

    def any(self, depth: int = 0, *, again: float = 0.5) -> ValuePb:
        """Return a value, with the probability *again* an earlier one."""
        if self.pool and self.rng.random() < again:
            return self.rng.choice(self.pool)
        value = self._new(depth)
        if depth == 0:
            self.pool.append(value)
        return value

    def _new(self, depth: int) -> ValuePb:
        rng = self.rng
        simple = (self.null, self.number, self.number, self.string, self.string, self.scalar, self.scalar)
        if depth >= DEEPEST or rng.random() < 0.7:
            return rng.choice(simple)()
        return rng.choice((self.array, self.array, self.map, self.vector))(depth)

    def null(self) -> ValuePb:
        return Value(null_value=0)

    def number(self) -> ValuePb:
        rng = self.rng
        if rng.random() < 0.5:
            return Value(integer_value=rng.choice(INTEGERS) if rng.random() < 0.6 else rng.randrange(-3, 4))
        return Value(double_value=rng.choice(DOUBLES) if rng.random() < 0.8 else _random_double(rng))

    def string(self) -> ValuePb:
        return Value(string_value=self.rng.choice(STRINGS))

    def scalar(self) -> ValuePb:
        """Return a boolean, timestamp, byte string, reference or geo point."""
        rng = self.rng
        match rng.randrange(5):
            case 0:
                return Value(boolean_value=rng.random() < 0.5)
            case 1:
                value = Value()
                value.timestamp_value.seconds, value.timestamp_value.nanos = rng.choice(MOMENTS)
                return value
            case 2:
                return Value(bytes_value=rng.choice(BYTES))
            case 3:
                return Value(reference_value=rng.choice(NAMES))
            case _:
                return self.point(rng.choice(POINTS))

    def point(self, place: tuple[float, float]) -> ValuePb:
        value = Value()
        value.geo_point_value.SetInParent()
        value.geo_point_value.latitude, value.geo_point_value.longitude = place
        return value

    def array(self, depth: int = 0) -> ValuePb:
        value = Value()
        value.array_value.SetInParent()
        for _ in range(self.rng.randrange(4)):
            element = self.any(depth + 1, again=0.4)
            if element.WhichOneof("value_type") != "array_value" and not is_vector(element):
                value.array_value.values.append(element)
        return value

    def map(self, depth: int = 0) -> ValuePb:
        value = Value()
        value.map_value.SetInParent()
        for name in self.rng.sample(("x", "y", "é", "a b"), self.rng.randrange(4)):
            value.map_value.fields[name].CopyFrom(self.any(depth + 1, again=0.3))
        return value

    def vector(self, _: int = 0) -> ValuePb:
        value = Value()
        value.map_value.fields["__type__"].string_value = "__vector__"
        coordinates = value.map_value.fields["value"].array_value
        for _ in range(self.rng.randrange(1, 4)):
            coordinates.values.append(Value(double_value=self.rng.choice((0.0, 1.0, -1.0, 0.5))))
        return value

    def invalid(self) -> ValuePb:
        """Return a value that no document can hold."""
        value = Value()
        match self.rng.randrange(5):
            case 0:
                return self.point(self.rng.choice(INVALID_POINTS))
            case 1:
                value.array_value.values.add().array_value.values.append(self.number())
            case 2:
                value.array_value.values.append(self.vector())
            case 3:
                value.map_value.fields["__reserved__"].integer_value = 1
            case _:
                value.map_value.fields["__type__"].string_value = "__vector__"
                value.map_value.fields["value"].array_value.values.append(self.any(again=0))
        return value

    def fill(self, fields: FieldsPb, *, faults: float = 0.0) -> None:
        """Set random fields of a document or of a map."""
        for name in self.rng.sample(FIELDS, self.rng.randrange(1, len(FIELDS) + 1)):
            broken = self.rng.random() < faults
            value = self.invalid() if broken else self.map() if name == "m" else self.any()
            fields[name].CopyFrom(value)


def is_vector(value: ValuePb) -> bool:
    return value.WhichOneof("value_type") == "map_value" and "__type__" in value.map_value.fields


def _random_double(rng: Random) -> float:
    number: float = struct.unpack(">d", rng.randbytes(8))[0]
    return math.nan if math.isnan(number) else number  # one bit pattern of NaN: others are not kept by every client
