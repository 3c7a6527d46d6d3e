"""Plan a query as scans of sorted indexes. Pure, no I/O.

Every disjunct becomes one scan: an index whose keys start with the equality fields and continue with the query's order,
read between two bounds. The keys after the equality prefix are the query's sort keys, so scans of one query can be
merged. Predicates that the index cannot decide are ``residual``: they are tested on each document of the scan.
"""

from __future__ import annotations

from dataclasses import dataclass

from firelite.documents.paths import NAME, FieldPath, subtree_key
from firelite.documents.values import ABOVE, descending
from firelite.query.query import RANGES, Conjunction, Op, Order, Predicate, Query, Scope

type IndexHome = tuple[str, ...]  # which collections an index covers

_RANGES = RANGES | {Op.EQUAL}
_ABOVE_PATH = b"\x02"  # the lowest byte that continues a path (see values)


@dataclass(frozen=True, slots=True)
class Shape:
    """An index: its keys are [an array element,] the equal fields and the orders, in this order."""

    contains: FieldPath | None
    equal: tuple[FieldPath, ...]
    orders: tuple[Order, ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """One index scan: the keys in [low, high). Their first ``skip`` bytes precede the sort key."""

    shape: Shape
    low: bytes
    high: bytes
    skip: int
    residual: Conjunction
    check_scope: bool


def index_home(scope: Scope) -> IndexHome:
    """Return the index family for a query on the scope. It may cover more than the scope."""
    if scope.kind == "collection":
        return ("collection", scope.path)
    if scope.kind == "group":
        return ("group", scope.root, scope.collection_id)
    return ("all", scope.root)


def indexed_scope(scope: Scope) -> Scope:
    """Return the full scope that the scope's index family covers."""
    if scope.kind == "collection":
        return scope
    return Scope("group" if scope.kind == "group" else "subtree", scope.root, scope.collection_id, scope.root)


def plan(query: Query) -> list[Scan]:
    """Return one scan per disjunct."""
    return [_scan(query, disjunct) for disjunct in query.disjuncts]


def _scan(query: Query, disjunct: Conjunction) -> Scan:
    """Plan the scan of one disjunct."""
    equal: dict[FieldPath, bytes] = {}
    contains: Predicate | None = None
    rest: list[Predicate] = []
    for predicate in disjunct:
        if predicate.op is Op.EQUAL and predicate.path != NAME and predicate.path not in equal:
            equal[predicate.path] = predicate.operand
        elif predicate.op is Op.ARRAY_CONTAINS and contains is None:
            contains = predicate
        else:
            rest.append(predicate)
    shape = Shape(contains.path if contains else None, tuple(sorted(equal)), query.orders)
    prefix = (contains.operand if contains else b"") + b"".join(equal[path] for path in shape.equal)
    low, high, residual = _bounds(query, rest)
    return Scan(
        shape=shape,
        low=prefix + low,
        high=prefix + high,
        skip=len(prefix),
        residual=tuple(residual),
        check_scope=query.scope != indexed_scope(query.scope),
    )


def _bounds(query: Query, predicates: list[Predicate]) -> tuple[bytes, bytes, list[Predicate]]:
    """Return the lower and upper bound of the scan's sort keys, and the residual predicates."""
    low, high = b"", ABOVE
    residual: list[Predicate] = []
    first = query.orders[0]
    for predicate in predicates:
        bounds = _range(predicate, first) if predicate.path == first.path else None
        if bounds is None:
            residual.append(predicate)
        else:
            low, high = max(low, bounds[0]), min(high, bounds[1])
    if first == Order(NAME):
        subtree = subtree_key(query.scope.path) if query.scope.kind != "collection" else b""
        if subtree:
            low, high = max(low, subtree + _ABOVE_PATH), min(high, subtree + ABOVE)
    if query.start is not None:
        low = max(low, query.start.prefix if query.start.before else query.start.prefix + ABOVE)
    if query.end is not None:
        high = min(high, query.end.prefix if query.end.before else query.end.prefix + ABOVE)
    return low, high, residual


def _range(predicate: Predicate, order: Order) -> tuple[bytes, bytes] | None:
    """Return the range of the order's component for the predicate, or None if it is not a single range."""
    if predicate.op not in _RANGES:
        return None
    encoded = predicate.operand
    at, above = order.component(encoded), order.component(encoded) + ABOVE
    if predicate.path == NAME:
        floor, ceiling = b"", ABOVE
    else:
        # A range is limited to the operand's type: all encodings of one type start with the same byte.
        tag = descending(encoded[:1])[0] if order.descending else encoded[0]
        floor, ceiling = bytes([tag]), bytes([tag + 1])
    ranges = {
        Op.EQUAL: (at, above),
        Op.GREATER: (floor, at) if order.descending else (above, ceiling),
        Op.GREATER_EQUAL: (floor, above) if order.descending else (at, ceiling),
        Op.LESS: (above, ceiling) if order.descending else (floor, at),
        Op.LESS_EQUAL: (at, ceiling) if order.descending else (floor, above),
    }
    return ranges[predicate.op]
