"""Server-side field transforms: server time, increment, maximum, minimum, array union and removal. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from firelite.documents.fields import assign, lookup
from firelite.documents.paths import NAME, FieldPath, parse_field_path
from firelite.documents.protos import FieldsPb, MessagePb, Value, ValuePb, set_time
from firelite.documents.values import TAG_NUMBER, encode, encode_number
from firelite.errors import InvalidArgument

_INT_MIN, _INT_MAX = -(1 << 63), (1 << 63) - 1
_REQUEST_TIME = 1  # DocumentTransform.FieldTransform.ServerValue.REQUEST_TIME
_NUMBERS = ("integer_value", "double_value")


def apply_transform(fields: FieldsPb, transform: MessagePb, commit_us: int) -> ValuePb:
    """Apply one FieldTransform in place and return its result, null for array transforms.

    Raises InvalidArgument for a transform without an operation or with an operand of the wrong type.
    """
    path = parse_field_path(transform.field_path)
    if path == NAME:
        raise InvalidArgument("'__name__' cannot be transformed.")
    kind = transform.WhichOneof("transform_type")
    if kind == "set_to_server_value":
        if transform.set_to_server_value != _REQUEST_TIME:
            raise InvalidArgument("The only server value is REQUEST_TIME.")
        result = _server_time(commit_us)
        assign(fields, path, result)
        return result
    if kind in _NUMERIC:
        operand = getattr(transform, kind)
        if operand.WhichOneof("value_type") not in _NUMBERS:
            raise InvalidArgument(f"The operand of {kind!r} on {transform.field_path!r} must be a number.")
        current = lookup(fields, path)
        numeric = current is not None and current.WhichOneof("value_type") in _NUMBERS
        result = _NUMERIC[kind](current, operand) if numeric else operand
    elif kind in _ARRAY:
        return _array_transform(fields, path, _ARRAY[kind], getattr(transform, kind).values)
    else:
        raise InvalidArgument(f"The transform of {transform.field_path!r} has no operation.")
    copy = Value()
    copy.CopyFrom(result)
    assign(fields, path, copy)
    return copy


@lru_cache(maxsize=1)
def _server_time(commit_us: int) -> ValuePb:
    """Return the same value for all writes of a commit. Callers must copy it."""
    value = Value()
    set_time(value.timestamp_value, commit_us)
    return value


def _number(value: ValuePb) -> int | float:
    return getattr(value, value.WhichOneof("value_type"))


def _increment(current: ValuePb, operand: ValuePb) -> ValuePb:
    total = _number(current) + _number(operand)
    if isinstance(total, int):
        return Value(integer_value=min(max(total, _INT_MIN), _INT_MAX))  # saturates instead of wrapping
    return Value(double_value=total)


def _maximum(current: ValuePb, operand: ValuePb) -> ValuePb:
    # The maximum of a number and NaN is NaN; a numerically equal operand leaves the field unchanged.
    if _is_nan(current) or (not _is_nan(operand) and encode(operand) <= encode(current)):
        return current
    return operand


def _minimum(current: ValuePb, operand: ValuePb) -> ValuePb:
    if _is_nan(current) or (not _is_nan(operand) and encode(operand) >= encode(current)):
        return current
    return operand


def _is_nan(value: ValuePb) -> bool:
    return encode_number(_number(value))[0] != TAG_NUMBER


def _union(values: list[ValuePb], operands: list[ValuePb]) -> list[ValuePb]:
    seen = {encode(value) for value in values}
    result = list(values)
    for operand in operands:
        key = encode(operand)
        if key not in seen:
            seen.add(key)
            result.append(operand)
    return result


def _difference(values: list[ValuePb], operands: list[ValuePb]) -> list[ValuePb]:
    gone = {encode(operand) for operand in operands}
    return [value for value in values if encode(value) not in gone]


def _array_transform(
    fields: FieldsPb,
    path: FieldPath,
    change: Callable[[list[ValuePb], list[ValuePb]], list[ValuePb]],
    operands: list[ValuePb],
) -> ValuePb:
    """Apply an array transform to the field and return null."""
    current = lookup(fields, path)
    is_array = current is not None and current.WhichOneof("value_type") == "array_value"
    values = list(current.array_value.values) if current is not None and is_array else []
    result = Value()
    result.array_value.SetInParent()
    result.array_value.values.extend(change(values, list(operands)))
    assign(fields, path, result)
    return Value(null_value=0)


_NUMERIC: dict[str, Callable[[ValuePb, ValuePb], ValuePb]] = {
    "increment": _increment,
    "maximum": _maximum,
    "minimum": _minimum,
}
_ARRAY: dict[str, Callable[[list[ValuePb], list[ValuePb]], list[ValuePb]]] = {
    "append_missing_elements": _union,
    "remove_all_from_array": _difference,
}
