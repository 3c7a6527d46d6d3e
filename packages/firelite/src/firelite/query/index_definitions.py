"""Index enforcement: reject queries that production would reject for a missing index.

Reads ``firestore.indexes.json`` (https://firebase.google.com/docs/reference/firestore/indexes): ``indexes`` are
composite, ``fieldOverrides`` replace the automatic single-field indexes of a field and, as in production, of the fields
below it. Without overrides a field is indexed ascending, descending and by array element, for its collection only; a
collection group query on a field needs an override with ``COLLECTION_GROUP`` scope. An override with ``"ttl": true``
makes the field the time-to-live field of its collection group (see ``storage.expiry``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from firelite.documents.paths import NAME, FieldPath, format_field_path, parse_field_path
from firelite.errors import FailedPrecondition, InvalidArgument
from firelite.query.query import Conjunction, Op, Query

type Mode = Literal["ASCENDING", "DESCENDING", "CONTAINS"]
type QueryScope = Literal["COLLECTION", "COLLECTION_GROUP"]

_AUTOMATIC = frozenset[tuple[str, str]](
    {("COLLECTION", "ASCENDING"), ("COLLECTION", "DESCENDING"), ("COLLECTION", "CONTAINS")}
)


@dataclass(frozen=True, slots=True)
class Composite:
    """One composite index. A final ``__name__`` in the last field's direction is implied and omitted."""

    group: str
    scope: str
    fields: tuple[tuple[FieldPath, str], ...]


@dataclass(frozen=True, slots=True)
class Need:
    """The index requirement of one disjunct of a query.

    ``tail`` is the order that must follow the equality fields. ``summed`` are the aggregated fields, which must be in
    the index too, in any order and direction.
    """

    group: str
    scope: str
    equal: frozenset[FieldPath]
    contains: frozenset[FieldPath]
    tail: tuple[tuple[FieldPath, str], ...]
    summed: frozenset[FieldPath]

    @property
    def fixed(self) -> frozenset[FieldPath]:
        """All fields compared for equality, including array elements."""
        return self.equal | self.contains


class IndexSet:
    """The indexes a project has deployed."""

    def __init__(
        self,
        composites: Sequence[Composite],
        overrides: Mapping[tuple[str, str], frozenset[tuple[str, str]]],
        ttl_fields: Mapping[str, FieldPath],
    ) -> None:
        self.composites = tuple(composites)
        self.ttl_fields = dict(ttl_fields)  # by collection id
        self._overrides = dict(overrides)
        self._proven: set[Need] = set()

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a ``firestore.indexes.json``. Raises InvalidArgument if it cannot be read or parsed."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InvalidArgument(f"The index file {path} cannot be read: {error}.") from error
        return cls.parse(content)

    @classmethod
    def parse(cls, content: Any) -> Self:
        """Parse the content of a ``firestore.indexes.json``. Raises InvalidArgument."""
        try:
            composites = [_composite(entry) for entry in content.get("indexes", ())]
            overrides = {
                (entry["collectionGroup"], entry["fieldPath"]): frozenset(map(_single, entry["indexes"]))
                for entry in content.get("fieldOverrides", ())
            }
            ttl_fields = {
                entry["collectionGroup"]: parse_field_path(entry["fieldPath"])
                for entry in content.get("fieldOverrides", ())
                if entry.get("ttl")
            }
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidArgument(
                f"The index definition is not in the form of firestore.indexes.json: {error!r}."
            ) from error
        return cls(composites, overrides, ttl_fields)

    def check(self, query: Query) -> None:
        """Raise FailedPrecondition, with the JSON to add, if production would miss an index."""
        if not query.scope.collection_id:
            return  # without a collection, only names are compared, which needs no index
        for disjunct in query.disjuncts:
            need = _need_of(query, disjunct)
            if need not in self._proven:
                self._prove(need)
                self._proven.add(need)

    def check_search(self, query: Query, field: FieldPath) -> None:
        """Raise FailedPrecondition, with the JSON to add, if production would miss the index of a vector search.

        The index ends in the vector field, and its other fields are those of the filters.
        """
        for disjunct in query.disjuncts:
            need = _need_of(query, disjunct)
            wanted = {predicate.path for predicate in disjunct if predicate.path != NAME}
            if not any(
                composite.fields[-1] == (field, "VECTOR") and {path for path, _ in composite.fields[:-1]} == wanted
                for composite in self._candidates(need)
            ):
                raise _missing_vector(need, sorted(wanted), field)

    def _prove(self, need: Need) -> None:
        """Raise FailedPrecondition unless the indexes satisfy the requirement."""
        size = len(need.tail) + len(need.summed)
        if not size:
            missing = need.fixed - self._merge(need)
            if missing:
                raise _missing_single(need, sorted(missing)[0], "CONTAINS" if missing & need.contains else "ASCENDING")
        elif size == 1 and not need.fixed and not (need.tail and need.tail[0][0] == NAME):
            path, mode = need.tail[0] if need.tail else (next(iter(need.summed)), "ASCENDING")
            if (need.scope, mode) not in self._single(need.group, path):
                raise _missing_single(need, path, mode)
        elif not self._has_composite(need):
            raise _missing_composite(need)

    def _merge(self, need: Need) -> set[FieldPath]:
        """Return the equality fields that single-field or composite indexes cover."""
        covered: set[FieldPath] = set()
        for path in need.equal:
            modes = self._single(need.group, path)
            if (need.scope, "ASCENDING") in modes or (need.scope, "DESCENDING") in modes:
                covered.add(path)
        covered.update(p for p in need.contains if (need.scope, "CONTAINS") in self._single(need.group, p))
        for composite in self._candidates(need):
            if _serves_prefix(composite.fields, need):
                covered.update(path for path, _ in composite.fields)
        return covered

    def _has_composite(self, need: Need) -> bool:
        """Return True if composite indexes that end in the tail together cover the equality fields."""
        covered: set[FieldPath] = set()
        joined = False
        for composite in self._candidates(need):
            cut = len(composite.fields) - len(need.tail) - len(need.summed)
            if cut < 0 or not _serves_prefix(composite.fields[:cut], need):
                continue
            tail, summed = composite.fields[cut:][: len(need.tail)], composite.fields[cut + len(need.tail) :]
            if tail == need.tail and frozenset(path for path, _ in summed) == need.summed:
                joined = True
                covered.update(path for path, _ in composite.fields[:cut])
        return joined and need.fixed == frozenset(covered)

    def _candidates(self, need: Need) -> list[Composite]:
        return [c for c in self.composites if c.group == need.group and c.scope == need.scope]

    def _single(self, group: str, path: FieldPath) -> frozenset[tuple[str, str]]:
        for length in range(len(path), 0, -1):
            override = self._overrides.get((group, format_field_path(path[:length])))
            if override is not None:
                return override
        return self._overrides.get((group, "*"), _AUTOMATIC)


def _composite(entry: Mapping[str, Any]) -> Composite:
    fields = tuple((parse_field_path(field["fieldPath"]), _mode(field)) for field in entry["fields"])
    if len(fields) > 1 and fields[-1] == (NAME, "DESCENDING" if fields[-2][1] == "DESCENDING" else "ASCENDING"):
        fields = fields[:-1]
    return Composite(entry["collectionGroup"], entry.get("queryScope", "COLLECTION"), fields)


def _single(entry: Mapping[str, Any]) -> tuple[str, str]:
    return entry.get("queryScope", "COLLECTION"), _mode(entry)


def _mode(entry: Mapping[str, Any]) -> str:
    if "vectorConfig" in entry:
        return "VECTOR"
    return entry["order"] if "order" in entry else entry["arrayConfig"]


def _serves_prefix(fields: Sequence[tuple[FieldPath, str]], need: Need) -> bool:
    """Return True if every field is compared for equality, in a mode that allows it."""
    return all(path in (need.contains if mode == "CONTAINS" else need.equal) for path, mode in fields)


def _need_of(query: Query, disjunct: Conjunction) -> Need:
    """Return the index requirement of one disjunct."""
    equal = frozenset(p.path for p in disjunct if p.op is Op.EQUAL and p.path != NAME)
    contains = frozenset(p.path for p in disjunct if p.op is Op.ARRAY_CONTAINS)
    ordered = [order for order in query.orders if order.path not in query.aggregated]
    orders = [order for order in ordered if order.path not in equal]
    last = orders[-2].descending if len(orders) > 1 else False
    if orders[-1].path == NAME and orders[-1].descending == last:
        orders.pop()
    elif orders[-1].path == NAME and len(orders) == 1 and ordered[-1].descending and len(ordered) > 1:
        orders.pop()  # this direction comes from an order on an equality field, where it has no effect
    tail = tuple((order.path, "DESCENDING" if order.descending else "ASCENDING") for order in orders)
    return Need(
        group=query.scope.collection_id,
        scope="COLLECTION" if query.scope.kind == "collection" else "COLLECTION_GROUP",
        equal=equal,
        contains=contains,
        tail=tail,
        summed=frozenset(query.aggregated) - equal,
    )


def _missing_composite(need: Need) -> FailedPrecondition:
    """Return the error with the JSON of the missing composite index."""
    fields: list[dict[str, str]] = []
    for path in sorted(need.contains):
        fields.append({"fieldPath": format_field_path(path), "arrayConfig": "CONTAINS"})
    for path in sorted(need.equal):
        fields.append({"fieldPath": format_field_path(path), "order": "ASCENDING"})
    for path, mode in need.tail:
        fields.append({"fieldPath": format_field_path(path), "order": mode})
    for path in sorted(need.summed):
        fields.append({"fieldPath": format_field_path(path), "order": "ASCENDING"})
    entry = {"collectionGroup": need.group, "queryScope": need.scope, "fields": fields}
    return FailedPrecondition(
        f"The query requires an index. Add this to 'indexes' in firestore.indexes.json: {json.dumps(entry)}"
    )


def _missing_vector(need: Need, filtered: Sequence[FieldPath], vector: FieldPath) -> FailedPrecondition:
    """Return the error with the JSON of the missing vector index; the reader must fill in the dimension."""
    fields: list[dict[str, object]] = [{"fieldPath": format_field_path(p), "order": "ASCENDING"} for p in filtered]
    fields.append({"fieldPath": format_field_path(vector), "vectorConfig": {"dimension": "DIMENSION", "flat": {}}})
    entry = {"collectionGroup": need.group, "queryScope": need.scope, "fields": fields}
    return FailedPrecondition(
        f"The vector search requires an index. Add this to 'indexes' in firestore.indexes.json: {json.dumps(entry)}"
    )


def _missing_single(need: Need, path: FieldPath, mode: str) -> FailedPrecondition:
    """Return the error with the JSON of the missing single-field index."""
    kind = "arrayConfig" if mode == "CONTAINS" else "order"
    entry = {
        "collectionGroup": need.group,
        "fieldPath": format_field_path(path),
        "indexes": [{"queryScope": need.scope, kind: mode}],
    }
    return FailedPrecondition(
        f"The query requires a {need.scope} index on the field {format_field_path(path)!r}. Add this to "
        f"'fieldOverrides' in firestore.indexes.json (or to the field's entry there): {json.dumps(entry)}"
    )
