"""Vector search: finds the nearest vectors by comparing all documents that match the filters.

Documents without a vector in the field, or with one of another dimension, are skipped. A distance that is NaN (COSINE
of a zero vector) sorts last and fails every threshold, as on Google's emulator.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice
from typing import NamedTuple

from firelite.documents.fields import lookup
from firelite.documents.paths import FieldPath, parse_field_path
from firelite.documents.protos import DistanceMeasure, StructuredQueryPb, ValuePb
from firelite.documents.record import Record
from firelite.documents.values import is_vector
from firelite.errors import InvalidArgument
from firelite.query.slices import STEP_DOCUMENTS, Steps

# https://firebase.google.com/docs/firestore/vector-search#limitations
LIMIT_MAX = 1000
DIMENSIONS_MAX = 2048
_MEASURES = (DistanceMeasure.EUCLIDEAN, DistanceMeasure.COSINE, DistanceMeasure.DOT_PRODUCT)


class Neighbor(NamedTuple):
    """A document with its distance. ``place`` is its sort key: nearest first, equal distances by name."""

    place: tuple[bool, float, bytes]
    record: Record
    distance: float


@dataclass(frozen=True, slots=True)
class Nearest:
    """A vector search. ``result_field`` is the field for the distance in the result, or ""."""

    field: FieldPath
    vector: tuple[float, ...]
    measure: int
    limit: int
    threshold: float | None
    result_field: str

    def distance(self, vector: tuple[float, ...]) -> float:
        """Return the distance of a vector; for DOT_PRODUCT, return the product, which is larger for nearer vectors."""
        if self.measure == DistanceMeasure.EUCLIDEAN:
            return math.dist(self.vector, vector)
        product = math.sumprod(self.vector, vector)
        if self.measure == DistanceMeasure.DOT_PRODUCT:
            return product
        norms = math.hypot(*self.vector) * math.hypot(*vector)
        return 1 - product / norms if norms else math.nan

    def neighbor(self, record: Record) -> Neighbor | None:
        """Return the document with its distance, or None if it has no such vector or is beyond the threshold."""
        value = lookup(record.fields(), self.field)
        vector = None if value is None else _coordinates(value)
        if vector is None or len(vector) != len(self.vector):
            return None
        distance = self.distance(vector)
        rank = -distance if self.measure == DistanceMeasure.DOT_PRODUCT else distance
        limit = self.threshold
        if limit is not None and self.measure == DistanceMeasure.DOT_PRODUCT:
            limit = -limit
        if limit is not None and not rank <= limit:
            return None
        return Neighbor((math.isnan(rank), 0.0 if math.isnan(rank) else rank, record.key), record, distance)


def parse_nearest(message: StructuredQueryPb) -> Nearest:
    """Return the vector search of a query. Raises InvalidArgument."""
    search = message.find_nearest
    if message.HasField("limit"):
        raise InvalidArgument("A query limit cannot be used with FindNearest")
    if message.offset:
        raise InvalidArgument("A query offset cannot be used with FindNearest")
    vector = _coordinates(search.query_vector)
    if not vector:
        raise InvalidArgument("FindNearest needs a query_vector that is a vector of at least one dimension.")
    if len(vector) > DIMENSIONS_MAX:
        raise InvalidArgument(f"Vectors must be at most {DIMENSIONS_MAX} dimensions.")
    if not 0 < search.limit.value <= LIMIT_MAX:
        raise InvalidArgument(f"FindNearest.limit must be a positive integer of no more than {LIMIT_MAX}")
    if search.distance_measure not in _MEASURES:
        raise InvalidArgument("FindNearest needs a distance_measure.")
    return Nearest(
        field=parse_field_path(search.vector_field.field_path),
        vector=vector,
        measure=search.distance_measure,
        limit=search.limit.value,
        threshold=search.distance_threshold.value if search.HasField("distance_threshold") else None,
        result_field=search.distance_result_field,
    )


def nearest_steps(search: Nearest, records: Iterable[Record]) -> Steps[list[Neighbor]]:
    """Return the nearest documents, the nearest first."""
    best: list[Neighbor] = []
    unread = iter(records)
    while chunk := list(islice(unread, STEP_DOCUMENTS)):
        neighbors = [neighbor for record in chunk if (neighbor := search.neighbor(record)) is not None]
        best = nsmallest(search.limit, best + neighbors, key=lambda neighbor: neighbor.place)
        yield
    return best


def _coordinates(value: ValuePb) -> tuple[float, ...] | None:
    """Return a vector value as numbers; None for other values."""
    fields = value.map_value.fields if value.WhichOneof("value_type") == "map_value" else None
    if fields is None or not is_vector(fields):
        return None
    numbers = fields["value"].array_value.values
    return tuple(float(getattr(number, number.WhichOneof("value_type") or "double_value")) for number in numbers)
