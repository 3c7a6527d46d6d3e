"""Conversion of documents, writes and queries to Firestore's protobuf messages.

The client's helpers build a wrapper object for every value of every field, which is most of the cost of a
commit. This codec builds the underlying messages directly; ``benchmarks/`` has the figures, and
the store's conformance tests compare the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
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

from fireswarm.contracts.ports import (
    DELETE_FIELD,
    NAME,
    SERVER_TIME,
    Create,
    Delete,
    Merge,
    Query,
    Snapshot,
    Update,
    Write,
    vector_value,
)
from fireswarm.errors import InvalidInput

_Value: Any = Value.pb(Value()).__class__
_Document: Any = Document.pb(Document()).__class__
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


MAX_LIMIT = 2**31 - 1
"""Largest limit of a query in Firestore's protocol."""


def put(target: Any, value: Any) -> None:
    """Write a Python value into a ``Value`` message. Raises InvalidInput for a type that Firestore does not support."""
    kind: Any = type(value)
    if kind is str:
        target.string_value = value
    elif kind is int:
        target.integer_value = value
    elif value is None:
        target.null_value = 0
    elif kind is datetime:
        _put_time(target, value)
    elif kind is dict:
        _put_map(target, value)
    elif kind is list or kind is tuple:
        _put_list(target, value)
    else:
        _put_rare(target, value)


def _put_rare(target: Any, value: Any) -> None:
    """Write rare types, and subclasses of the common ones."""
    for kind, field in _RARE.items():
        if isinstance(value, kind):
            setattr(target, field, value)
            return
    if isinstance(value, Enum):
        put(target, value.value)
    elif isinstance(value, str):
        target.string_value = str(value)
    elif isinstance(value, datetime):
        _put_time(target, value)
    elif isinstance(value, dict):
        _put_map(target, value)
    else:
        raise InvalidInput(f"{type(value).__name__} cannot be stored: use JSON values, bytes and timestamps")


_RARE: dict[type, str] = {bool: "boolean_value", float: "double_value", bytes: "bytes_value", int: "integer_value"}


NESTED = "[]"
"""Firestore has no arrays in arrays: an inner list is stored as a map with this one key."""


def _put_list(target: Any, value: Sequence[Any]) -> None:
    array = target.array_value
    array.SetInParent()
    values = array.values
    for item in value:
        put(values.add(), {NESTED: item} if isinstance(item, (list, tuple)) else item)


def _take_list(value: Any) -> list[Any]:
    items = [take(item) for item in value.array_value.values]
    return [item[NESTED] if isinstance(item, dict) and list(item) == [NESTED] else item for item in items]


def _put_map(target: Any, value: Mapping[Any, Any]) -> None:
    inner = target.map_value
    inner.SetInParent()
    fields = inner.fields
    for key, item in value.items():
        put(fields[str(key)], item)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _put_time(target: Any, value: datetime) -> None:
    since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - EPOCH
    message = target.timestamp_value
    message.seconds = since.days * 86_400 + since.seconds
    message.nanos = since.microseconds * 1_000
    message.SetInParent()


def moment(message: Any) -> datetime:
    """Read a ``Timestamp`` message in UTC, with Firestore's precision of microseconds."""
    return EPOCH + timedelta(0, message.seconds, message.nanos // 1_000)


_SCALARS = frozenset({"string_value", "integer_value", "boolean_value", "double_value", "bytes_value"})


def take(value: Any) -> Any:
    """Read a ``Value`` message; timestamps are returned in UTC."""
    text = value.string_value
    if text:  # most values are strings, and this test is cheaper than WhichOneof
        return text
    kind = value.WhichOneof("value_type")
    if kind in _SCALARS:
        return getattr(value, kind)
    getter = _GETTERS.get(kind)
    if getter is not None:
        return getter(value)
    return client_helpers.decode_value(Value.wrap(value), None)


_GETTERS: dict[str, Callable[[Any], Any]] = {
    "null_value": lambda value: None,
    "timestamp_value": lambda value: moment(value.timestamp_value),
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
    # For these maps, ``items()`` is a Python generator and twice as slow.
    return {name: take(fields[name]) for name in fields}


def snapshot(document: Any) -> Snapshot:
    """Read a ``Document`` message."""
    path = document.name.split("/documents/", 1)[1]
    return Snapshot(path, take_fields(document.fields), document.update_time, moment(document.create_time))


def write_message(write: Write, root: str, message: Any) -> None:
    """Fill an empty ``Write`` message; *root* is ``projects/P/databases/D/documents``."""
    name = f"{root}/{write.path}"
    match write:
        case Delete(if_update_time=version):
            message.delete = name
            if version is not None:
                message.current_document.update_time.CopyFrom(version)
            return
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


def _put_field(target: Any, name: str, value: Any) -> None:
    try:
        put(target, value)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:  # protobuf's: a type or a range
        raise InvalidInput(f"the field {name} cannot be stored: {error}") from error


def _put_fields(message: Any, data: Mapping[str, Any], *, masked: bool) -> None:
    """Fill in the fields, the server-time transforms and, if *masked*, the update mask."""
    fields = message.update.fields
    mask: list[str] = []
    for name, value in data.items():
        if name not in _checked_names:
            _check_name(name)
        if value is SERVER_TIME:
            message.update_transforms.add(field_path=name, set_to_server_value=_SERVER_TIME)
            continue
        mask.append(name)
        if type(value) is str and value.isascii():  # most values are ASCII strings; this saves two calls
            fields[name].string_value = value
        elif value is not DELETE_FIELD:
            _put_field(fields[name], name, value)
    if masked:
        message.update_mask.field_paths.extend(mask)
        message.update_mask.SetInParent()


def _check_name(name: str) -> None:
    if not _SIMPLE_NAME.fullmatch(name):
        raise InvalidInput(f"invalid field name {name!r}: use letters, digits and underscores only")
    _checked_names.add(name)


def structured_query(query: Query, root: str = "") -> Any:
    """Build the ``StructuredQuery`` message; *root* as for writes, if a cursor names a document."""
    message = _Query()
    message.from_.add().collection_id = query.collection.rpartition("/")[2]
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
            value = message.start_at.values.add()
            if field == NAME:
                value.reference_value = f"{root}/{query.start_after[field]}"
            else:
                put(value, query.start_after[field])
    if query.limit is not None:
        message.limit.value = min(query.limit, MAX_LIMIT)
    if query.nearest is not None:
        search = message.find_nearest
        search.vector_field.field_path = query.nearest.field
        put(search.query_vector, vector_value(query.nearest.vector))
        search.distance_measure = StructuredQuery.FindNearest.DistanceMeasure.COSINE
        search.limit.value = query.nearest.limit
        search.distance_result_field = query.nearest.distance
    return message


def _filter(field: str, operator: str, value: Any) -> Any:
    message: Any = StructuredQuery.Filter.pb(StructuredQuery.Filter())
    message.field_filter.field.field_path = field
    message.field_filter.op = _OPERATOR_OF[operator]
    put(message.field_filter.value, value)
    return message


def count_query(query: Query) -> Any:
    """Build the ``StructuredAggregationQuery`` that counts a query's results as ``n``."""
    message: Any = StructuredAggregationQuery.pb(StructuredAggregationQuery())
    message.structured_query.CopyFrom(structured_query(query))
    aggregation = message.aggregations.add()
    aggregation.alias = "n"
    aggregation.count.SetInParent()
    return message
