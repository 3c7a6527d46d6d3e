"""Semantics of a query: scope, predicates, order, cursors, matching of documents. Pure, no I/O.

``parse.py`` builds these from StructuredQuery messages, ``planner.py`` turns them into index scans.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from firelite.documents.fields import lookup
from firelite.documents.paths import NAME, FieldPath, collection_of, last_segment, parent_of
from firelite.documents.protos import FieldsPb, ValuePb
from firelite.documents.values import NULL, descending, elements, encode


class Op(Enum):
    """The comparisons left after rewriting: IS_NULL and IS_NAN become EQUAL, ``in`` becomes an OR of EQUAL."""

    EQUAL = "=="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    ARRAY_CONTAINS = "array-contains"
    NOT_IN = "not-in"


RANGES = frozenset({Op.LESS, Op.LESS_EQUAL, Op.GREATER, Op.GREATER_EQUAL})
INEQUALITIES = RANGES | {Op.NOT_EQUAL, Op.NOT_IN}


@dataclass(frozen=True, slots=True)
class Predicate:
    """One comparison of a field with encoded operands (one, except for NOT_IN).

    A double equals the same integer, but production counts them as different operands in disjunctions.
    """

    path: FieldPath
    op: Op
    operands: tuple[bytes, ...]
    is_double: bool = False

    @property
    def operand(self) -> bytes:
        """The only operand."""
        return self.operands[0]

    def matches(self, encoded: bytes | None, value: ValuePb | None) -> bool:
        """Return True if a field with this encoding (None: missing) satisfies the comparison."""
        if encoded is None:
            return False
        if self.op is Op.EQUAL:
            return encoded == self.operand
        if self.op is Op.ARRAY_CONTAINS:
            return value is not None and self.operand in elements(value)
        if self.op in RANGES:
            # Ranges are limited to the operand's type; a name's encoding has no type byte, so that test does not apply.
            return (self.path == NAME or encoded[0] == self.operand[0]) and _compare(self.op, encoded, self.operand)
        # x != null and x not in [.., null] are undefined for a null x, and false for a null in the operand list.
        return (
            encoded != NULL and encoded not in self.operands and (self.op is Op.NOT_EQUAL or NULL not in self.operands)
        )


def _compare(op: Op, encoded: bytes, operand: bytes) -> bool:
    if op is Op.LESS:
        return encoded < operand
    if op is Op.LESS_EQUAL:
        return encoded <= operand
    if op is Op.GREATER:
        return encoded > operand
    return encoded >= operand


@dataclass(frozen=True, slots=True)
class Order:
    """One component of the sort order."""

    path: FieldPath
    descending: bool = False

    def component(self, encoded: bytes) -> bytes:
        """Return the encoding as it appears in a sort key."""
        return descending(encoded) if self.descending else encoded


@dataclass(frozen=True, slots=True)
class Position:
    """A cursor: a prefix of the sort key, and whether its position is before or after equal keys."""

    prefix: bytes
    before: bool


@dataclass(frozen=True, slots=True)
class Scope:
    """The collections that a query reads.

    ``collection``: the one at ``path``. ``group``: every collection called ``collection_id`` below ``path``.
    ``subtree``: everything below ``path``. ``children``: the documents of all collections directly under ``path``.
    """

    kind: Literal["collection", "group", "subtree", "children"]
    path: str
    collection_id: str
    root: str

    def contains(self, name: str) -> bool:
        """Return True if the document is in the scope."""
        collection = collection_of(name)
        if self.kind == "collection":
            return collection == self.path
        if not name.startswith(self.path + "/"):
            return False
        if self.kind == "children":
            return parent_of(collection) == self.path
        return self.kind == "subtree" or last_segment(collection) == self.collection_id


type Conjunction = tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A query in normal form: an OR of ANDs, and the complete order, ``__name__`` last."""

    scope: Scope
    disjuncts: tuple[Conjunction, ...]
    orders: tuple[Order, ...]
    start: Position | None = None
    end: Position | None = None
    offset: int = 0
    limit: int | None = None
    projection: tuple[FieldPath, ...] | None = None
    aggregated: tuple[FieldPath, ...] = ()  # fields that are sorted only because they are aggregated

    def sort_key(self, fields: FieldsPb, key: bytes) -> bytes | None:
        """Return the document's sort key, or None if the query does not return it.

        ``key`` is the encoding of its name. Offset and limit are not considered.
        """
        cache = EncodedFields(fields, key)
        parts: list[bytes] = []
        for order in self.orders:
            encoded = cache[order.path]
            if encoded is None:
                return None
            parts.append(order.component(encoded))
        if not any(all(cache.satisfies(predicate) for predicate in disjunct) for disjunct in self.disjuncts):
            return None
        place = b"".join(parts)
        return place if self.within_cursors(place) else None

    def matches(self, fields: FieldsPb, key: bytes) -> bool:
        """Return True if the query returns the document, ignoring offset and limit."""
        return self.sort_key(fields, key) is not None

    def within_cursors(self, place: bytes) -> bool:
        """Return True if a sort key is between the cursors."""
        return (self.start is None or not _is_before(place, self.start)) and (
            self.end is None or _is_before(place, self.end)
        )

    @property
    def bounded(self) -> bool:
        """Return True if a document's membership depends on other documents."""
        return self.limit is not None or self.offset > 0


def _is_before(place: bytes, position: Position) -> bool:
    head = place[: len(position.prefix)]
    return head < position.prefix or (not position.before and head == position.prefix)


class EncodedFields(dict[FieldPath, bytes | None]):
    """The encodings of one document's fields (None: missing), computed on first use."""

    __slots__ = ("_fields",)

    def __init__(self, fields: FieldsPb, key: bytes) -> None:
        super().__init__()
        self._fields = fields
        self[NAME] = key

    def __missing__(self, path: FieldPath) -> bytes | None:
        value = self._fields.get(path[0]) if len(path) == 1 else lookup(self._fields, path)
        encoded = self[path] = None if value is None else encode(value)
        return encoded

    def elements(self, path: FieldPath) -> list[bytes]:
        """Return the distinct encoded elements of an array field."""
        value = lookup(self._fields, path)
        return [] if value is None else elements(value)

    def satisfies(self, predicate: Predicate) -> bool:
        """Return True if the document satisfies the comparison."""
        value = lookup(self._fields, predicate.path) if predicate.op is Op.ARRAY_CONTAINS else None
        return predicate.matches(self[predicate.path], value)
