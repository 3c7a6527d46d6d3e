"""Documents, writes and queries as Firestore's own messages.

The client's helpers build a wrapper object for every value of every field, which is most of what a commit
costs. This codec builds the plain messages that those wrappers hold; ``benchmarks/`` has the figures, and
the store's conformance tests compare the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from google.cloud.firestore_v1 import _helpers as client_helpers
from google.cloud.firestore_v1.types import (
    Document,
    DocumentTransform,
    StructuredAggregationQuery,
    StructuredQuery,
    Value,
)
from google.cloud.firestore_v1.types import Write as WriteMessage

from fireswarm.errors import InvalidInput
from fireswarm.ports import Create, Delete, Merge, Query, Sentinel, Snapshot, Update, Write

_Value: Any = Value.pb(Value()).__class__
_Document: Any = Document.pb(Document()).__class__
_Write: Any = WriteMessage.pb(WriteMessage()).__class__
_Query: Any = StructuredQuery.pb(StructuredQuery()).__class__
_SERVER_TIME = DocumentTransform.FieldTransform.ServerValue.REQUEST_TIME
_SIMPLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_checked_names: set[str] = set()
_OPERATORS = StructuredQuery.FieldFilter.Operator
_OPERATOR_OF: dict[str, Any] = {
    "==": _OPERATORS.EQUAL,
    "!=": _OPERATORS.NOT_EQUAL,
    "<": _OPERATORS.LESS_THAN,
    "<=": _OPERATORS.LESS_THAN_OR_EQUAL,
    ">": _OPERATORS.GREATER_THAN,
    ">=": _OPERATORS.GREATER_THAN_OR_EQUAL,
    "in": _OPERATORS.IN,
    "not-in": _OPERATORS.NOT_IN,
    "array_contains": _OPERATORS.ARRAY_CONTAINS,
    "array_contains_any": _OPERATORS.ARRAY_CONTAINS_ANY,
}


def put(target: Any, value: Any) -> None:
    """Write a Python value into a ``Value`` message; InvalidInput for what Firestore cannot hold."""
    setter = _SETTERS.get(type(value))
    if setter is None:
        setter = next((known for kind, known in _SETTERS.items() if isinstance(value, kind)), None)
        if setter is None:
            raise InvalidInput(f"{type(value).__name__} cannot be stored: use JSON values, bytes and timestamps")
    setter(target, value)


NESTED = "[]"
"""Firestore has no arrays in arrays: an inner list is stored as a map with this one key."""


def _put_list(target: Any, value: Sequence[Any]) -> None:
    target.array_value.SetInParent()
    values = target.array_value.values
    for item in value:
        put(values.add(), {NESTED: item} if isinstance(item, (list, tuple)) else item)


def _take_list(value: Any) -> list[Any]:
    items = [take(item) for item in value.array_value.values]
    return [item[NESTED] if isinstance(item, dict) and list(item) == [NESTED] else item for item in items]


def _put_map(target: Any, value: Mapping[Any, Any]) -> None:
    target.map_value.SetInParent()
    fields = target.map_value.fields
    for key, item in value.items():
        put(fields[str(key)], item)


def _setter(field: str, convert: Callable[[Any], Any] | None = None) -> Callable[[Any, Any], None]:
    def set_field(target: Any, value: Any) -> None:
        setattr(target, field, value if convert is None else convert(value))

    return set_field


def _put_time(target: Any, value: datetime) -> None:
    target.timestamp_value.FromDatetime(value if value.tzinfo else value.replace(tzinfo=UTC))


_SETTERS: dict[type, Callable[[Any, Any], None]] = {
    str: _setter("string_value", str),
    bool: _setter("boolean_value"),
    int: _setter("integer_value"),
    float: _setter("double_value"),
    type(None): _setter("null_value", lambda _: 0),
    bytes: _setter("bytes_value"),
    datetime: _put_time,
    dict: _put_map,
    list: _put_list,
    tuple: _put_list,
    Enum: lambda target, value: put(target, value.value),
}


def take(value: Any) -> Any:
    """Read a ``Value`` message; timestamps come in UTC."""
    kind = value.WhichOneof("value_type")
    getter = _GETTERS.get(kind)
    if getter is not None:
        return getter(value)
    return client_helpers.decode_value(Value.wrap(value), None)


_GETTERS: dict[str, Callable[[Any], Any]] = {
    "string_value": lambda value: value.string_value,
    "boolean_value": lambda value: value.boolean_value,
    "integer_value": lambda value: value.integer_value,
    "double_value": lambda value: value.double_value,
    "null_value": lambda value: None,
    "bytes_value": lambda value: value.bytes_value,
    "timestamp_value": lambda value: value.timestamp_value.ToDatetime(tzinfo=UTC),
    "map_value": lambda value: take_fields(value.map_value.fields),
    "array_value": _take_list,
    "reference_value": lambda value: value.reference_value,
    "geo_point_value": lambda value: {
        "latitude": value.geo_point_value.latitude,
        "longitude": value.geo_point_value.longitude,
    },
}


def take_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Read a document's fields."""
    return {name: take(value) for name, value in fields.items()}


def snapshot(document: Any) -> Snapshot:
    """Read a ``Document`` message."""
    path = document.name.split("/documents/", 1)[1]
    return Snapshot(
        path, take_fields(document.fields), document.update_time, document.create_time.ToDatetime(tzinfo=UTC)
    )


def write_message(write: Write, root: str) -> Any:
    """Build the ``Write`` message; *root* is ``projects/P/databases/D/documents``."""
    message = _Write()
    name = f"{root}/{write.path}"
    match write:
        case Delete():
            message.delete = name
            return message
        case Create():
            message.current_document.exists = False
        case Update(if_update_time=None):
            message.current_document.exists = True
        case Update(if_update_time=version):
            message.current_document.update_time.CopyFrom(version)
        case Merge():
            pass
    message.update.name = name
    _put_fields(message, write.data, masked=not isinstance(write, Create))
    return message


def _put_fields(message: Any, data: Mapping[str, Any], *, masked: bool) -> None:
    fields = message.update.fields
    mask = message.update_mask.field_paths
    message.update.SetInParent()
    for name, value in data.items():
        if name not in _checked_names:
            _check_name(name)
        if value is Sentinel.SERVER_TIME:
            transform = message.update_transforms.add()
            transform.field_path = name
            transform.set_to_server_value = _SERVER_TIME
            continue
        if masked:
            mask.append(name)
        if value is not Sentinel.DELETE_FIELD:
            put(fields[name], value)
    if masked:
        message.update_mask.SetInParent()


def _check_name(name: str) -> None:
    if not _SIMPLE_NAME.fullmatch(name):
        raise InvalidInput(f"{name!r} is no top-level field name of ours: letters, digits and underscores only")
    _checked_names.add(name)


def structured(query: Query) -> Any:
    """Build the ``StructuredQuery`` message."""
    message = _Query()
    message.from_.add().collection_id = query.collection
    filters = [_filter(field, operator, value) for field, operator, value in query.where]
    if len(filters) == 1:
        message.where.CopyFrom(filters[0])
    elif filters:
        composite = message.where.composite_filter
        composite.op = StructuredQuery.CompositeFilter.Operator.AND
        composite.filters.extend(filters)
    for field, direction in query.order_by:
        order = message.order_by.add()
        order.field.field_path = field
        order.direction = (
            StructuredQuery.Direction.ASCENDING if direction == "asc" else StructuredQuery.Direction.DESCENDING
        )
    if query.start_after is not None:
        message.start_at.before = False
        for field, _ in query.order_by:
            put(message.start_at.values.add(), query.start_after[field])
    if query.limit is not None:
        message.limit.value = query.limit
    return message


def _filter(field: str, operator: str, value: Any) -> Any:
    message: Any = StructuredQuery.Filter.pb(StructuredQuery.Filter())
    message.field_filter.field.field_path = field
    message.field_filter.op = _OPERATOR_OF[operator]
    put(message.field_filter.value, value)
    return message


def counted(query: Query) -> Any:
    """Build the ``StructuredAggregationQuery`` that counts a query's results as ``n``."""
    message: Any = StructuredAggregationQuery.pb(StructuredAggregationQuery())
    message.structured_query.CopyFrom(structured(query))
    aggregation = message.aggregations.add()
    aggregation.alias = "n"
    aggregation.count.SetInParent()
    return message
