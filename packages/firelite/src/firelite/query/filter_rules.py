"""Production's rules on the filters and orders of a query, beyond the form of each filter. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from firelite.documents.paths import NAME, FieldPath, format_field_path
from firelite.documents.protos import (
    CompositeOperator,
    FieldOperator,
    FilterPb,
    StructuredQueryPb,
    UnaryOperator,
)
from firelite.errors import FailedPrecondition, InvalidArgument
from firelite.query.query import INEQUALITIES, Conjunction, Op, Order, Scope

INEQUALITY_FIELDS_MAX = 10
COMPONENTS_MAX = 100

_NEGATIVE = frozenset({FieldOperator.NOT_EQUAL, FieldOperator.NOT_IN})
_NEGATIVE_UNARY = frozenset({UnaryOperator.IS_NOT_NULL, UnaryOperator.IS_NOT_NAN})
_ALTERNATIVES = frozenset({FieldOperator.IN, FieldOperator.ARRAY_CONTAINS_ANY})


def check_operators(message: StructuredQueryPb, is_nested: bool) -> None:
    """Raise InvalidArgument for operators that cannot be combined, and for too many components.

    *is_nested* is True for a query under a document, which counts as one more component.
    """
    leaves = list(_leaves(message.where))
    distinct = {leaf.SerializeToString(deterministic=True): leaf for leaf in leaves}.values()
    negative = sum(
        leaf.field_filter.op in _NEGATIVE or leaf.unary_filter.op in _NEGATIVE_UNARY
        for leaf in leaves
        if leaf.WhichOneof("filter_type") is not None
    )
    if negative > 1:
        raise InvalidArgument("A query can hold only one '!=', 'not-in', 'is not null' or 'is not NaN' filter.")
    ops = {leaf.field_filter.op for leaf in leaves}
    if FieldOperator.NOT_IN in ops and (ops & _ALTERNATIVES or _has_or(message.where)):
        raise InvalidArgument("'not-in' cannot be combined with 'or', 'in' or 'array-contains-any'.")
    count = sum(map(_weight, distinct)) + len(message.order_by) + is_nested
    if count > COMPONENTS_MAX:
        raise InvalidArgument(f"A query can hold at most {COMPONENTS_MAX} filters, orders and ancestors, not {count}.")


def check_disjuncts(disjuncts: Iterable[Conjunction]) -> None:
    """Raise InvalidArgument for a combination of filters in normal form that production rejects."""
    fields: set[FieldPath] = set()
    equal_name = False
    for disjunct in disjuncts:
        if sum(predicate.op is Op.ARRAY_CONTAINS for predicate in disjunct) > 1:
            raise InvalidArgument("A maximum of 1 'ARRAY_CONTAINS' filter is allowed per disjunction.")
        fields.update(predicate.path for predicate in disjunct if predicate.op in INEQUALITIES)
        equal_name = equal_name or any(p.path == NAME and p.op is Op.EQUAL for p in disjunct)
    if equal_name and fields and NAME not in fields:
        raise InvalidArgument("A filter for equal names cannot be combined with inequalities on other fields only.")
    if len(fields) > INEQUALITY_FIELDS_MAX:
        raise InvalidArgument(f"A query supports inequalities on at most {INEQUALITY_FIELDS_MAX} fields.")


def check_scope(
    scope: Scope, disjuncts: Iterable[Conjunction], orders: Sequence[Order], aggregated: Sequence[FieldPath]
) -> None:
    """Raise production's error if the query needs an index that production does not have for its scope.

    For queries without a collection id, and for collection groups under a document, it has indexes of names only.
    """
    if scope.kind == "collection" or (scope.kind == "group" and scope.path == scope.root):
        return
    stated = [order for order in orders if order.path not in aggregated]
    by_fields = any(predicate.path != NAME for disjunct in disjuncts for predicate in disjunct) or len(stated) > 1
    if by_fields and scope.path != scope.root:
        raise InvalidArgument("collection group queries are only allowed at the root parent")
    if stated == [Order(NAME, descending=True)] and scope.kind == "group":
        raise FailedPrecondition("The query requires an index. Production cannot have it: sort by name ascending.")
    if by_fields or stated != [Order(NAME)]:
        raise InvalidArgument("kind is required for all orders except __key__ ascending")
    if aggregated and scope.kind != "children" and scope.path != scope.root:
        fields = ", ".join(map(format_field_path, aggregated))
        raise InvalidArgument(
            f"This query requires an index with fields [{fields}] after __name__ and Firestore does not currently "
            "support such an index. Please try the query again with additional ordering on those fields."
        )


def check_listenable(scope: Scope) -> None:
    """Raise InvalidArgument for a query that production does not allow in a listener."""
    if not scope.collection_id:
        raise InvalidArgument("All-collection queries are not supported by real-time queries.")
    if scope.kind == "group" and scope.path != scope.root:
        raise InvalidArgument(
            "'all_descendants' in CollectionSelector with document parent is not supported by real-time queries."
        )


def _leaves(node: FilterPb) -> Iterator[FilterPb]:
    if node.WhichOneof("filter_type") != "composite_filter":
        yield node
        return
    for part in node.composite_filter.filters:
        yield from _leaves(part)


def _has_or(node: FilterPb) -> bool:
    composite = node.composite_filter
    return composite.op == CompositeOperator.OR or any(map(_has_or, composite.filters))


def _weight(leaf: FilterPb) -> int:
    return max(1, len(leaf.field_filter.value.array_value.values)) if leaf.field_filter.op in _ALTERNATIVES else 1
