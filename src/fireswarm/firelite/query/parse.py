"""Parse StructuredQuery messages into ``query.Query``: rewriting, defaults and production's limits. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from fireswarm.firelite.documents.paths import (
    NAME,
    FieldPath,
    check_parent,
    check_segment,
    format_field_path,
    name_key,
    parse_field_path,
    root_of,
)
from fireswarm.firelite.documents.protos import (
    CompositeOperator,
    CursorPb,
    Direction,
    FieldOperator,
    FilterPb,
    StructuredQueryPb,
    UnaryOperator,
    ValuePb,
)
from fireswarm.firelite.documents.values import NULL, encode, encode_number
from fireswarm.firelite.errors import InvalidArgument, Unimplemented
from fireswarm.firelite.query.query import INEQUALITIES, Conjunction, Op, Order, Position, Predicate, Query, Scope

# https://firebase.google.com/docs/firestore/query-data/queries#query_limitations
DISJUNCTIONS_MAX = 30
NOT_IN_MAX = 10
INEQUALITY_FIELDS_MAX = 10

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
_LIST_OPS = {FieldOperator.IN: Op.EQUAL, FieldOperator.ARRAY_CONTAINS_ANY: Op.ARRAY_CONTAINS}
_UNARY_OPS = {
    UnaryOperator.IS_NULL: (Op.EQUAL, NULL),
    UnaryOperator.IS_NAN: (Op.EQUAL, _NAN),
    UnaryOperator.IS_NOT_NULL: (Op.NOT_EQUAL, NULL),
    UnaryOperator.IS_NOT_NAN: (Op.NOT_EQUAL, _NAN),
}


def parse_query(parent: str, message: StructuredQueryPb, *, vector_search: bool = False) -> Query:
    """Return the query in normal form. Raises InvalidArgument.

    Raises Unimplemented for a vector search, unless the caller does it (``nearest``) on the query's documents.
    """
    if message.HasField("find_nearest") and not vector_search:
        raise Unimplemented("firelite implements vector search (StructuredQuery.find_nearest) for RunQuery only.")
    scope = _scope(parent, message)
    disjuncts = _normal_form(message.where) if message.HasField("where") else [()]
    _check_disjuncts(disjuncts)
    orders = _orders(message, disjuncts)
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
        start=_position(message.start_at, orders) if message.HasField("start_at") else None,
        end=_position(message.end_at, orders) if message.HasField("end_at") else None,
        offset=message.offset,
        limit=message.limit.value if message.HasField("limit") else None,
        projection=projection,
    )


def _scope(parent: str, message: StructuredQueryPb) -> Scope:
    """Return the scope of the query's collection selector. Raises InvalidArgument."""
    check_parent(parent)
    selectors = message.from_
    if len(selectors) != 1:
        raise InvalidArgument("A query must name exactly one collection selector in 'from'.")
    selector = selectors[0]
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
    parts = [_normal_form(part) for part in node.composite_filter.filters]
    if not parts:
        raise InvalidArgument("A composite filter needs at least one filter.")
    if node.composite_filter.op == CompositeOperator.OR:
        return _collect_disjuncts(conjunction for part in parts for conjunction in part)
    if node.composite_filter.op != CompositeOperator.AND:
        raise InvalidArgument("A composite filter's operator must be AND or OR.")
    return _collect_disjuncts(sum(chosen, ()) for chosen in product(*parts))


def _collect_disjuncts(conjunctions: Iterable[Conjunction]) -> list[Conjunction]:
    result: list[Conjunction] = []
    for conjunction in conjunctions:
        result.append(conjunction)
        if len(result) > DISJUNCTIONS_MAX:
            raise InvalidArgument(f"A query supports at most {DISJUNCTIONS_MAX} disjunctions in normal form.")
    return result


def _field_filter(message: FilterPb) -> list[Conjunction]:
    """Return a field filter as an OR of conjunctions. Raises InvalidArgument or Unimplemented."""
    path = parse_field_path(message.field.field_path)
    if message.op in _SIMPLE_OPS:
        op = _SIMPLE_OPS[message.op]
        if path == NAME and op is Op.ARRAY_CONTAINS:
            raise InvalidArgument("'array-contains' cannot be used on '__name__'.")
        return [(Predicate(path, op, (_operand(path, message.value),)),)]
    if message.op == FieldOperator.OPERATOR_UNSPECIFIED:
        raise InvalidArgument("A field filter has no operator.")
    if message.value.WhichOneof("value_type") != "array_value" or not message.value.array_value.values:
        raise InvalidArgument("'in', 'not-in' and 'array-contains-any' need a non-empty array.")
    operands = dict.fromkeys(_operand(path, item) for item in message.value.array_value.values)
    if message.op in _LIST_OPS:
        return _collect_disjuncts((Predicate(path, _LIST_OPS[message.op], (operand,)),) for operand in operands)
    if message.op != FieldOperator.NOT_IN:
        raise Unimplemented(f"firelite does not know the filter operator {message.op}.")
    if len(message.value.array_value.values) > NOT_IN_MAX:
        raise InvalidArgument(f"'not-in' supports at most {NOT_IN_MAX} values.")
    return [(Predicate(path, Op.NOT_IN, tuple(operands)),)]


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
        return encode(value)
    if value.WhichOneof("value_type") != "reference_value":
        raise InvalidArgument("'__name__' can only be compared with a document reference.")
    return name_key(value.reference_value)


def _check_disjuncts(disjuncts: list[Conjunction]) -> None:
    """Raise InvalidArgument for a combination of operators that production rejects."""
    negative = 0
    inequality_fields: set[FieldPath] = set()
    for disjunct in disjuncts:
        ops = [predicate.op for predicate in disjunct]
        if ops.count(Op.ARRAY_CONTAINS) > 1:
            raise InvalidArgument("A query can use at most one array-contains per disjunction.")
        if ops.count(Op.NOT_IN) + min(1, ops.count(Op.NOT_EQUAL)) > 1:
            raise InvalidArgument("'not-in' cannot be combined with '!=' or another 'not-in'.")
        negative += ops.count(Op.NOT_IN)
        inequality_fields.update(predicate.path for predicate in disjunct if predicate.op in INEQUALITIES)
    if negative and len(disjuncts) > 1:
        raise InvalidArgument("'not-in' cannot be combined with 'or', 'in' or 'array-contains-any'.")
    if len(inequality_fields) > INEQUALITY_FIELDS_MAX:
        raise InvalidArgument(f"A query supports inequalities on at most {INEQUALITY_FIELDS_MAX} fields.")


def _orders(message: StructuredQueryPb, disjuncts: list[Conjunction]) -> tuple[Order, ...]:
    """Return the complete order: the query's fields, its inequality fields, and ``__name__``."""
    orders: list[Order] = []
    for item in message.order_by:
        path = parse_field_path(item.field.field_path)
        if any(order.path == path for order in orders):
            raise InvalidArgument(f"Field {format_field_path(path)!r} is ordered by more than once.")
        orders.append(Order(path, item.direction == Direction.DESCENDING))
    last = bool(orders) and orders[-1].descending
    named = {order.path for order in orders}
    if NAME not in named:
        # Orders after the name have no effect, so implicit ones come before it, in the direction of the last one.
        wanted = {predicate.path for disjunct in disjuncts for predicate in disjunct if predicate.op in INEQUALITIES}
        orders += [Order(path, last) for path in sorted(wanted - named - {NAME})]
        orders.append(Order(NAME, last))
    return tuple(orders[: [order.path for order in orders].index(NAME) + 1])


def _position(message: CursorPb, orders: tuple[Order, ...]) -> Position:
    if len(message.values) > len(orders):
        raise InvalidArgument("A cursor has more values than the query has orders.")
    parts = [order.component(_operand(order.path, value)) for order, value in zip(orders, message.values, strict=False)]
    return Position(b"".join(parts), message.before)
