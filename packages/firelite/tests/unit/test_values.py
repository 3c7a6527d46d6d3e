"""The value encoding against a comparator written from the documentation, type by type."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from google.type.latlng_pb2 import LatLng
from hypothesis import given, settings
from hypothesis import strategies as st

from firelite.documents.protos import Value
from firelite.documents.values import ABOVE, descending, encode, path_key

SEGMENTS = st.one_of(st.text(min_size=1, max_size=4), st.integers(-(2**63), 2**63 - 1).map(lambda n: f"__id{n}__"))
# Few distinct values and close neighbours, so that equality and ties come up.
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**62 + 1]),
    st.floats(),
    st.sampled_from([0.0, -0.0, 2.0**53, 2.0**63, -(2.0**63), math.inf, -math.inf, math.nan, 0.5, 5e-324]),
)


def number(value: float) -> Any:
    return Value(integer_value=value) if isinstance(value, int) else Value(double_value=value)


def array(values: list[Any]) -> Any:
    result = Value()
    result.array_value.SetInParent()
    result.array_value.values.extend(values)
    return result


def mapping(values: dict[str, Any]) -> Any:
    result = Value()
    result.map_value.SetInParent()
    for key, value in values.items():
        result.map_value.fields[key].CopyFrom(value)
    return result


def vector(values: list[float]) -> Any:
    return mapping({"__type__": Value(string_value="__vector__"), "value": array([number(float(v)) for v in values])})


def moment(seconds: int, micros: int) -> Any:
    return Value(timestamp_value=Timestamp(seconds=seconds, nanos=micros * 1000))


def point(latitude: float, longitude: float) -> Any:
    return Value(geo_point_value=LatLng(latitude=latitude, longitude=longitude))


SCALARS = st.one_of(
    st.just(Value(null_value=0)),
    st.booleans().map(lambda b: Value(boolean_value=b)),
    NUMBERS.map(number),
    st.builds(
        moment,
        st.integers(-62135596800, 253402300799),
        st.integers(0, 999_999),
    ),
    st.text(max_size=4).map(lambda s: Value(string_value=s)),
    st.binary(max_size=4).map(lambda b: Value(bytes_value=b)),
    st.lists(SEGMENTS.filter(lambda s: "/" not in s), min_size=1, max_size=3).map(
        lambda parts: Value(reference_value="/".join(parts))
    ),
    st.builds(
        point,
        st.floats(-90, 90),
        st.floats(-180, 180),
    ),
    st.lists(st.floats(allow_nan=False), min_size=1, max_size=3).map(vector),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(array),
        st.dictionaries(st.text(max_size=2), inner, max_size=3).map(mapping),
    ),
    max_leaves=6,
)


def compare(a: Any, b: Any) -> int:
    """Compare two values by the documented order, without any encoding."""
    ra, rb = rank(a), rank(b)
    if ra != rb:
        return -1 if ra < rb else 1
    if ra in (9, 11):
        return compare_containers(a, b, ra)
    x, y = plain(a, ra), plain(b, rb)
    return (x > y) - (x < y)


def rank(value: Any) -> int:
    kind = value.WhichOneof("value_type")
    if kind == "double_value" and math.isnan(value.double_value):
        return 2
    if kind == "map_value":
        return 10 if value.map_value.fields.get("__type__") == Value(string_value="__vector__") else 11
    order = {
        "null_value": 0, "boolean_value": 1, "integer_value": 3, "double_value": 3, "timestamp_value": 4,
        "string_value": 5, "bytes_value": 6, "reference_value": 7, "geo_point_value": 8, "array_value": 9,
    }  # fmt: skip
    return order[kind]


def plain(value: Any, kind: int) -> Any:
    """Return an object that Python compares as Firestore compares the value."""
    content = getattr(value, value.WhichOneof("value_type"))
    if kind in (0, 2):
        return 0
    if kind == 3:
        return content if isinstance(content, float) and math.isinf(content) else Fraction(content)
    if kind == 4:
        return (content.seconds, content.nanos)
    if kind == 5:
        return [ord(letter) for letter in content]
    if kind == 7:
        return [segment_rank(segment) for segment in content.split("/")]
    if kind == 8:
        return (content.latitude, content.longitude)
    if kind == 10:
        numbers = [item.double_value for item in content.fields["value"].array_value.values]
        return (len(numbers), numbers)
    return content


def segment_rank(segment: str) -> tuple[int, int, bytes]:
    if segment.startswith("__id") and segment.endswith("__") and segment[4:-2].lstrip("-").isascii():
        digits = segment[4:-2]
        if digits.lstrip("-").isdigit() and digits.count("-") <= 1:
            return (0, int(digits), b"")
    return (1, 0, segment.encode())


def compare_containers(a: Any, b: Any, kind: int) -> int:
    if kind == 9:
        left = [(None, item) for item in a.array_value.values]
        right = [(None, item) for item in b.array_value.values]
    else:
        left = sorted(a.map_value.fields.items(), key=lambda item: item[0])
        right = sorted(b.map_value.fields.items(), key=lambda item: item[0])
    for (key_a, item_a), (key_b, item_b) in zip(left, right, strict=False):
        if key_a is not None and key_b is not None and key_a != key_b:
            return -1 if key_a < key_b else 1
        found = compare(item_a, item_b)
        if found:
            return found
    return (len(left) > len(right)) - (len(left) < len(right))


@settings(deadline=None)
@given(VALUES, VALUES)
def test_encodings_compare_like_their_values(a: Any, b: Any) -> None:
    x, y = encode(a), encode(b)
    assert (x > y) - (x < y) == compare(a, b)


@settings(deadline=None)
@given(NUMBERS, NUMBERS)
def test_numbers_compare_exactly(a: float, b: float) -> None:
    x, y = encode(number(a)), encode(number(b))
    assert (x > y) - (x < y) == compare(number(a), number(b))


@settings(deadline=None)
@given(VALUES, VALUES)
def test_descending_reverses_the_order(a: Any, b: Any) -> None:
    x, y = descending(encode(a)), descending(encode(b))
    assert (x > y) - (x < y) == -compare(a, b)


@settings(deadline=None)
@given(VALUES, VALUES, VALUES)
def test_encodings_can_be_concatenated(a: Any, b: Any, rest: Any) -> None:
    x, y, z = encode(a), encode(b), encode(rest)
    if x != y:
        assert (x + z < y) == (x < y)
        assert (x < y + ABOVE) == (x < y) or x.startswith(y)
    assert x + z < x + ABOVE
    assert descending(x) + descending(z) < descending(x) + ABOVE


@settings(deadline=None)
@given(st.lists(VALUES, max_size=6))
def test_sorting_by_encoding_equals_the_documented_order(values: list[Any]) -> None:
    by_encoding = [encode(value) for value in sorted(values, key=encode)]
    by_order = [encode(value) for value in sorted(values, key=functools.cmp_to_key(compare))]
    assert by_encoding == by_order


def test_unset_value_is_encoded_as_null() -> None:
    assert encode(Value()) == encode(Value(null_value=0))


def test_parent_sorts_directly_before_its_descendants() -> None:
    paths = ["a/b", "a/b/c/d", "a/b/c/e", "a/b!", "a/b0"]
    assert sorted(paths[::-1], key=path_key) == paths
