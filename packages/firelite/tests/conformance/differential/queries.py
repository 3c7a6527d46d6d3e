"""Random queries, aggregations, reads and listings."""

from __future__ import annotations

from random import Random

from google.cloud.firestore_v1.types import firestore

from conformance.differential.values import DATABASE, NAMES, PATHS, ROOT, ValueMaker
from firelite.documents.protos import (
    CompositeOperator,
    CursorPb,
    Direction,
    FieldOperator,
    FilterPb,
    MessagePb,
    StructuredQuery,
    StructuredQueryPb,
    UnaryOperator,
    Value,
    ValuePb,
)

BatchGetDocumentsRequest = firestore.BatchGetDocumentsRequest.pb()
ListCollectionIdsRequest = firestore.ListCollectionIdsRequest.pb()
ListDocumentsRequest = firestore.ListDocumentsRequest.pb()
RunAggregationQueryRequest = firestore.RunAggregationQueryRequest.pb()
RunQueryRequest = firestore.RunQueryRequest.pb()

NAME = "__name__"
COMPARISONS = (
    FieldOperator.EQUAL, FieldOperator.EQUAL, FieldOperator.LESS_THAN, FieldOperator.LESS_THAN_OR_EQUAL,
    FieldOperator.GREATER_THAN, FieldOperator.GREATER_THAN_OR_EQUAL, FieldOperator.NOT_EQUAL,
    FieldOperator.ARRAY_CONTAINS,
)  # fmt: skip
LISTS = (FieldOperator.IN, FieldOperator.IN, FieldOperator.ARRAY_CONTAINS_ANY, FieldOperator.NOT_IN)
UNARY = (UnaryOperator.IS_NULL, UnaryOperator.IS_NAN, UnaryOperator.IS_NOT_NULL, UnaryOperator.IS_NOT_NAN)
DIRECTIONS = (Direction.ASCENDING, Direction.ASCENDING, Direction.DESCENDING, Direction.DIRECTION_UNSPECIFIED)


class QueryMaker:
    """Makes requests that read the documents of one case."""

    def __init__(self, values: ValueMaker) -> None:
        self.values = values
        self.rng: Random = values.rng

    def read(self) -> tuple[str, MessagePb]:
        """Return the name of an RPC and its request."""
        kind = self.rng.random()
        if kind < 0.72:
            return "RunQuery", self.run_query()
        if kind < 0.88:
            return "RunAggregationQuery", self.aggregation()
        if kind < 0.94:
            return "BatchGetDocuments", self.batch_get()
        if kind < 0.98:
            return "ListDocuments", self.listing()
        return "ListCollectionIds", ListCollectionIdsRequest(parent=self.parent())

    def run_query(self) -> MessagePb:
        return RunQueryRequest(parent=self.parent(), structured_query=self.query())

    def parent(self) -> str:
        return self.rng.choices((ROOT, f"{ROOT}/c/a"), (9, 1))[0]

    def path(self) -> str:
        return NAME if self.rng.random() < 0.12 else self.rng.choice(PATHS)

    def query(self) -> StructuredQueryPb:
        """Return a structured query. Most are valid."""
        rng = self.rng
        query = StructuredQuery()
        query.from_.add(collection_id=rng.choice("ccd"), all_descendants=rng.random() < 0.2)
        if rng.random() < 0.04:
            query.from_[0].collection_id = ""
        elif rng.random() < 0.01:
            del query.from_[:]
        if rng.random() < 0.75:
            query.where.CopyFrom(self.filter())
        for path in self._order_paths(query):
            query.order_by.add(direction=rng.choice(DIRECTIONS)).field.field_path = path
        if rng.random() < 0.15:
            query.select.SetInParent()
            for _ in range(rng.randrange(3)):
                query.select.fields.add(field_path=self.path())
        self._bound(query)
        return query

    def _order_paths(self, query: StructuredQueryPb) -> list[str]:
        rng = self.rng
        paths: list[str] = []
        if rng.random() < 0.45:
            named = sorted(_paths_of(query.where)) if query.HasField("where") else []
            for _ in range(rng.choice((1, 1, 2, 3))):
                paths.append(rng.choice(named) if named and rng.random() < 0.5 else self.path())
        return list(dict.fromkeys(paths)) if rng.random() < 0.97 else paths

    def _bound(self, query: StructuredQueryPb) -> None:
        """Add cursors, limit and offset."""
        rng = self.rng
        for cursor in (query.start_at, query.end_at):
            if rng.random() < 0.15:
                self._fill_cursor(cursor, query)
        if rng.random() < 0.3:
            query.limit.value = rng.choice((0, 1, 2, 3, 100, 1, 2, -1))
        if rng.random() < 0.12:
            query.offset = rng.choice((1, 2, 3, 50, -1))

    def _fill_cursor(self, cursor: CursorPb, query: StructuredQueryPb) -> None:
        rng = self.rng
        cursor.before = rng.random() < 0.5
        paths = [order.field.field_path for order in query.order_by]
        if NAME not in paths and rng.random() < 0.6:
            paths.append(NAME)
        for path in paths[: rng.randrange(1, len(paths) + 1) if paths else 0]:
            cursor.values.append(self.operand(path))

    def operand(self, path: str) -> ValuePb:
        if path == NAME and self.rng.random() < 0.95:
            return Value(reference_value=self.rng.choice(NAMES))
        return self.values.any(again=0.8) if self.rng.random() < 0.99 else self.values.invalid()

    def filter(self, depth: int = 0) -> FilterPb:
        rng = self.rng
        result = StructuredQuery.Filter()
        if depth < 2 and rng.random() < 0.45:
            composite = result.composite_filter
            composite.op = rng.choice((CompositeOperator.AND, CompositeOperator.AND, CompositeOperator.OR))
            for _ in range(rng.choice((1, 2, 2, 2, 3))):
                composite.filters.append(self.filter(depth + 1))
        elif rng.random() < 0.12:
            result.unary_filter.op = rng.choice(UNARY)
            result.unary_filter.field.field_path = self.path()
        else:
            self._fill_field_filter(result.field_filter)
        return result

    def _fill_field_filter(self, message: FilterPb) -> None:
        rng = self.rng
        path = self.path()
        message.field.field_path = path
        if rng.random() < 0.72:
            message.op = rng.choice(COMPARISONS)
            message.value.CopyFrom(self.operand(path))
            return
        message.op = rng.choice(LISTS)
        if rng.random() < 0.02:
            message.value.CopyFrom(self.values.any())
            return
        message.value.array_value.SetInParent()
        for _ in range(rng.choice((1, 1, 2, 2, 3, 4, 11)) if rng.random() < 0.98 else 0):
            message.value.array_value.values.append(self.operand(path))

    def aggregation(self) -> MessagePb:
        """Return an aggregation request."""
        rng = self.rng
        message = RunAggregationQueryRequest(parent=self.parent())
        aggregated = message.structured_aggregation_query
        aggregated.structured_query.CopyFrom(self.query())
        for number in range(rng.choice((1, 1, 2, 3))):
            item = aggregated.aggregations.add(alias=f"alias{number}" if rng.random() < 0.7 else "")
            kind = rng.choice(("count", "sum", "avg"))
            getattr(item, kind).SetInParent()
            if kind == "count":
                if rng.random() < 0.3:
                    item.count.up_to.value = rng.choice((1, 2, 3, 0, -1))
            else:
                getattr(item, kind).field.field_path = self.path()
        return message

    def batch_get(self) -> MessagePb:
        rng = self.rng
        message = BatchGetDocumentsRequest(database=DATABASE, documents=rng.sample(NAMES, rng.randrange(1, 6)))
        if rng.random() < 0.5:
            message.mask.field_paths.extend(rng.sample(PATHS, rng.randrange(3)))
        return message

    def listing(self) -> MessagePb:
        rng = self.rng
        message = ListDocumentsRequest(parent=self.parent(), collection_id=rng.choice("cde"))
        message.show_missing = rng.random() < 0.4
        if rng.random() < 0.5:
            message.mask.field_paths.extend(rng.sample(PATHS, rng.randrange(3)))
        if rng.random() < 0.4:
            message.page_size = rng.choice((1, 2, 3))
        return message


def _paths_of(node: FilterPb) -> set[str]:
    kind = node.WhichOneof("filter_type")
    if kind == "composite_filter":
        return {path for part in node.composite_filter.filters for path in _paths_of(part)}
    return {getattr(node, kind).field.field_path}
