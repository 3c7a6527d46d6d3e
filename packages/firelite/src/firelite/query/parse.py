"""Parse StructuredQuery messages into ``query.Query``: rewriting, defaults and production's limits. No I/O."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import count

from firelite.documents.limits import PLAIN_KINDS, checked_copy
from firelite.documents.paths import (
    NAME,
    FieldPath,
    check_document_name,
    check_parent,
    check_segment,
    format_field_path,
    name_key,
    parse_field_path,
    root_of,
)
from firelite.documents.protos import (
    CompositeOperator,
    CursorPb,
    Direction,
    FieldOperator,
    FilterPb,
    StructuredQuery,
    StructuredQueryPb,
    UnaryOperator,
    ValuePb,
)
from firelite.documents.values import NULL, encode, encode_number
from firelite.errors import InvalidArgument, Unimplemented
from firelite.query.filter_rules import check_disjuncts, check_operators, check_scope
from firelite.query.query import INEQUALITIES, Conjunction, Op, Order, Position, Predicate, Query, Scope

# https://firebase.google.com/docs/firestore/query-data/queries#query_limitations
DISJUNCTIONS_MAX = 30
NOT_IN_MAX = 10

_NAN = encode_number(float("nan"))
_SIMPLE_OPS = {
    FieldOperator.LESS_THAN: Op.LESS,
    FieldOperator.LESS_THAN_OR_EQUAL: Op.LESS_EQUAL,
    FieldOperator.GREATER_THAN: Op.GREATER,
    FieldOperator.GREATER_THAN_OR_EQUAL: Op.GREATER_EQUAL,
    FieldOperator.EQUAL: Op.EQUAL,
    FieldOperator.NOT_EQUAL: Op.NOT_EQUAL,
    FieldOperator.ARRAY_CONTAINS: Op.ARRAY_CONTAINS,
}
_ARRAY_OPS = frozenset({FieldOperator.ARRAY_CONTAINS, FieldOperator.ARRAY_CONTAINS_ANY})
_LIST_OPS = {FieldOperator.IN: Op.EQUAL, FieldOperator.ARRAY_CONTAINS_ANY: Op.ARRAY_CONTAINS}
_NO_VALUE = b"\x02"
"""An operand that equals no value: it sorts below the tags of all types."""
_UNARY_OPS = {
    UnaryOperator.IS_NULL: (Op.EQUAL, NULL),
    UnaryOperator.IS_NAN: (Op.EQUAL, _NAN),
    UnaryOperator.IS_NOT_NULL: (Op.NOT_EQUAL, NULL),
    UnaryOperator.IS_NOT_NAN: (Op.NOT_EQUAL, _NAN),
}


def parse_query(
    parent: str, message: StructuredQueryPb, aggregated: Sequence[FieldPath] = (), *, vector_search: bool = False
) -> Query:
    """Return the query in normal form. Raises InvalidArgument.

    The query is also sorted by the *aggregated* fields, so it returns only documents that have all of them. Raises
    Unimplemented for a vector search, unless the caller runs it (``nearest``) on the query's documents.
    """
    if message.HasField("find_nearest") and not vector_search:
        raise Unimplemented("firelite implements vector search (StructuredQuery.find_nearest) for RunQuery only.")
    scope = _scope(parent, message)
    disjuncts = [()]
    if message.HasField("where"):
        check_operators(message, parent != scope.root)
        disjuncts = _normal_form(message.where)
        check_disjuncts(disjuncts)
    orders = _orders(message, disjuncts, aggregated)
    implicit = tuple(path for path in aggregated if path not in _stated_paths(message, disjuncts))
    check_scope(scope, disjuncts, orders, implicit)
    if message.offset < 0 or (message.HasField("limit") and message.limit.value < 0):
        raise InvalidArgument("A query's limit and offset must not be negative.")
    projection = None
    if message.HasField("select"):
        # An empty selection means the name alone, as does selecting __name__.
        projection = tuple(parse_field_path(field.field_path) for field in message.select.fields)
    return Query(
        scope=scope,
        disjuncts=tuple(dict.fromkeys(disjuncts)),
        orders=orders,
        start=_position(message.start_at, orders, len(message.order_by)) if message.HasField("start_at") else None,
        end=_position(message.end_at, orders, len(message.order_by)) if message.HasField("end_at") else None,
        offset=message.offset,
        limit=message.limit.value if message.HasField("limit") else None,
        projection=projection,
        aggregated=implicit,
    )


def _scope(parent: str, message: StructuredQueryPb) -> Scope:
    """Return the scope of the query's collection selector. Raises InvalidArgument."""
    check_parent(parent)
    selectors = message.from_
    if len(selectors) > 1:
        raise InvalidArgument("A query can have only one collection selector in 'from'.")
    selector = selectors[0] if selectors else StructuredQuery.CollectionSelector()
    root = root_of(parent)
    if not selector.collection_id:
        return Scope("subtree" if selector.all_descendants else "children", parent, "", root)
    check_segment(selector.collection_id, parent)
    if "/" in selector.collection_id:
        raise InvalidArgument(f"Collection id {selector.collection_id!r} must not contain a slash.")
    if selector.all_descendants:
        return Scope("group", parent, selector.collection_id, root)
    return Scope("collection", f"{parent}/{selector.collection_id}", selector.collection_id, root)


def _normal_form(node: FilterPb) -> list[Conjunction]:
    """Return a filter as an OR of conjunctions. Raises InvalidArgument."""
    kind = node.WhichOneof("filter_type")
    if kind == "field_filter":
        return _field_filter(node.field_filter)
    if kind == "unary_filter":
        return [(_unary_filter(node.unary_filter),)]
    if kind != "composite_filter":
        raise InvalidArgument("A filter is empty.")
    # Google's emulator merges repeated filters, including nested composite filters with the same operator.
    parts = [_normal_form(part) for part in _distinct_filters(node.composite_filter)]
    if node.composite_filter.op == CompositeOperator.OR:
        if not parts:
            raise InvalidArgument("A composite filter with OR needs at least one filter.")
        return _collect_disjuncts(conjunction for part in parts for conjunction in part)
    if node.composite_filter.op != CompositeOperator.AND:
        raise InvalidArgument("A composite filter's operator must be AND or OR.")
    result: list[Conjunction] = [()]
    for part in parts:
        result = _collect_disjuncts(left + right for left in result for right in part)
    return result


def _distinct_filters(composite: FilterPb) -> list[FilterPb]:
    """Return the filters that an AND or OR combines, without repetitions.

    Two equal array-contains filters on different levels both remain, since a query with two of them is refused.
    """
    found: dict[tuple[object, int], FilterPb] = {}
    levels = count()

    def collect(combined: FilterPb) -> None:
        level = next(levels)
        for part in combined.filters:
            kind = part.WhichOneof("filter_type")
            if (
                kind == "composite_filter"
                and part.composite_filter.op == composite.op
                and part.composite_filter.filters
            ):
                collect(part.composite_filter)
            else:
                of_array = kind == "field_filter" and part.field_filter.op in _ARRAY_OPS
                found.setdefault((_identity(part), level if of_array else 0), part)

    collect(composite)
    return list(found.values())


def _identity(part: FilterPb) -> object:
    """Return a key that is the same for equal filters.

    Lists of alternatives are equal as sets. So are null, NaN and the empty list in array-contains, which match nothing.
    """
    leaf = part.field_filter
    if part.WhichOneof("filter_type") != "field_filter" or leaf.op not in (*_LIST_OPS, FieldOperator.ARRAY_CONTAINS):
        return part.SerializeToString(deterministic=True)
    items = leaf.value.array_value.values if leaf.op in _LIST_OPS else [leaf.value]
    return leaf.op, leaf.field.field_path, frozenset(_element(item, leaf.op) for item in items)


def _element(value: ValuePb, op: int) -> bytes:
    kind = value.WhichOneof("value_type")
    never_found = (
        kind == "null_value"
        or (kind == "double_value" and math.isnan(value.double_value))
        or (kind == "array_value" and not value.array_value.values)
    )
    return b"" if never_found and op in _ARRAY_OPS else value.SerializeToString(deterministic=True)


def _collect_disjuncts(conjunctions: Iterable[Conjunction]) -> list[Conjunction]:
    """Return the distinct conjunctions. Raises InvalidArgument for too many."""
    result: dict[tuple[frozenset[Predicate], int], Conjunction] = {}
    for conjunction in conjunctions:
        distinct = _without_repetitions(conjunction)
        result.setdefault((frozenset(distinct), len(distinct)), distinct)
        if len(result) > DISJUNCTIONS_MAX:
            raise InvalidArgument(f"A query supports at most {DISJUNCTIONS_MAX} disjunctions in normal form.")
    return list(result.values())


def _without_repetitions(conjunction: Conjunction) -> Conjunction:
    """Return the distinct predicates. An equal array-contains of another level remains, since production refuses it."""
    if len(set(conjunction)) == len(conjunction):
        return conjunction
    contains = [predicate for predicate in conjunction if predicate.op is Op.ARRAY_CONTAINS]
    return (*dict.fromkeys(p for p in conjunction if p.op is not Op.ARRAY_CONTAINS), *contains)


def _field_filter(message: FilterPb) -> list[Conjunction]:
    """Return a field filter as an OR of conjunctions. Raises InvalidArgument or Unimplemented."""
    path = parse_field_path(message.field.field_path)
    if message.op == FieldOperator.OPERATOR_UNSPECIFIED:
        raise InvalidArgument("A field filter has no operator.")
    if path == NAME and message.op in _ARRAY_OPS:
        raise InvalidArgument("'array-contains' and 'array-contains-any' cannot be used on '__name__'.")
    if message.op in _SIMPLE_OPS:
        return [(_comparison(path, _SIMPLE_OPS[message.op], message.value),)]
    return _list_filter(path, message)


def _comparison(path: FieldPath, op: Op, value: ValuePb) -> Predicate:
    """Return the predicate of a comparison.

    No comparison with null is true, and NaN is only unequal to other values.
    """
    operand = _operand(path, value)
    if operand == _NAN and op is Op.NOT_EQUAL:
        return Predicate(path, Op.NOT_IN, ())
    if operand in (NULL, _NAN):
        # Only the unary filters match null and NaN.
        return Predicate(path, op if op is Op.ARRAY_CONTAINS else Op.EQUAL, (_NO_VALUE,))
    return Predicate(path, op, (operand,), is_double=value.WhichOneof("value_type") == "double_value")


def _list_filter(path: FieldPath, message: FilterPb) -> list[Conjunction]:
    """Return a filter with a list of operands as an OR of conjunctions. Raises InvalidArgument or Unimplemented."""
    if message.value.WhichOneof("value_type") != "array_value" or not message.value.array_value.values:
        raise InvalidArgument("'in', 'not-in' and 'array-contains-any' need a non-empty array.")
    items = checked_copy(message.value, message.field.field_path).array_value.values
    if message.op in _LIST_OPS:
        return _collect_disjuncts((_comparison(path, _LIST_OPS[message.op], item),) for item in items)
    if message.op != FieldOperator.NOT_IN:
        raise Unimplemented(f"firelite does not know the filter operator {message.op}.")
    if len(items) > NOT_IN_MAX:
        raise InvalidArgument(f"'not-in' supports at most {NOT_IN_MAX} values.")
    operands = dict.fromkeys(_operand(path, item) for item in items)
    if set(operands) == {NULL}:
        return [(_comparison(path, Op.NOT_EQUAL, items[0]),)]
    # NaN differs from every value, even from NaN.
    return [(Predicate(path, Op.NOT_IN, tuple(operand for operand in operands if operand != _NAN)),)]


def _unary_filter(message: FilterPb) -> Predicate:
    if message.op not in _UNARY_OPS:
        raise InvalidArgument("A unary filter has no operator.")
    path = parse_field_path(message.field.field_path)
    if path == NAME:
        raise InvalidArgument("A unary filter cannot be used on '__name__'.")
    op, operand = _UNARY_OPS[message.op]
    return Predicate(path, op, (operand,))


def _operand(path: FieldPath, value: ValuePb) -> bytes:
    if path != NAME:
        kind = value.WhichOneof("value_type")
        return encode(value if kind in PLAIN_KINDS else checked_copy(value, format_field_path(path)))
    if value.WhichOneof("value_type") != "reference_value":
        raise InvalidArgument("'__name__' can only be compared with a document reference.")
    return name_key(check_document_name(value.reference_value))


def _stated_paths(message: StructuredQueryPb, disjuncts: list[Conjunction]) -> set[FieldPath]:
    """Return the sort fields of the query without aggregations."""
    paths = {predicate.path for disjunct in disjuncts for predicate in disjunct if predicate.op in INEQUALITIES}
    return paths | {parse_field_path(item.field.field_path) for item in message.order_by}


def _orders(
    message: StructuredQueryPb, disjuncts: list[Conjunction], aggregated: Sequence[FieldPath]
) -> tuple[Order, ...]:
    """Return the complete order: the query's fields, its inequality and aggregated fields, and ``__name__``."""
    orders: list[Order] = []
    for item in message.order_by:
        path = parse_field_path(item.field.field_path)
        if any(order.path == path for order in orders):
            raise InvalidArgument(f"Field {format_field_path(path)!r} is ordered by more than once.")
        orders.append(Order(path, item.direction == Direction.DESCENDING))
    last = bool(orders) and orders[-1].descending
    named = {order.path for order in orders}
    wanted = {predicate.path for disjunct in disjuncts for predicate in disjunct if predicate.op in INEQUALITIES}
    implicit = list(dict.fromkeys([*sorted(wanted - named - {NAME}), *sorted(set(aggregated) - named)]))
    filtered = {predicate.path for disjunct in disjuncts for predicate in disjunct}
    if NAME in filtered and set(aggregated) - named - wanted:
        raise InvalidArgument("A field cannot be aggregated after a filter on '__name__': order by the field.")
    if NAME not in named:
        return (*orders, *(Order(path, last) for path in implicit), Order(NAME, last))
    if implicit or orders[-1].path != NAME:
        raise InvalidArgument("'__name__' must be the last order, after all fields of inequalities and aggregations.")
    return tuple(orders)


def _position(message: CursorPb, orders: tuple[Order, ...], count: int) -> Position:
    """Return the position of a cursor. *count* is the number of orders in the message."""
    if len(message.values) > count:
        raise InvalidArgument("A cursor has more values than the query has orders.")
    parts = [order.component(_operand(order.path, value)) for order, value in zip(orders, message.values, strict=False)]
    return Position(b"".join(parts), message.before)
