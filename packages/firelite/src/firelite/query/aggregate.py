"""count, sum and avg over a query's documents."""

from __future__ import annotations

from collections.abc import Iterable

from firelite.documents.fields import lookup
from firelite.documents.paths import NAME, FieldPath, parse_field_path
from firelite.documents.protos import FieldsPb, MessagePb, Value, ValuePb
from firelite.documents.record import Record
from firelite.errors import InvalidArgument
from firelite.query.slices import STEP_DOCUMENTS, Steps

AGGREGATIONS_MAX = 5  # StructuredAggregationQuery: "a minimum of one and maximum of five aggregations"
_INT_MIN, _INT_MAX = -(1 << 63), (1 << 63) - 1


def aliases(aggregations: Iterable[MessagePb]) -> list[str]:
    """Return the result's keys, one per aggregation. Raises InvalidArgument for too many or repeated ones."""
    aggregations = list(aggregations)
    if not aggregations:
        raise InvalidArgument("Aggregations can not be empty.")
    if len(aggregations) > AGGREGATIONS_MAX:
        raise InvalidArgument(
            f"The maximum number of aggregations allowed in an aggregation query is {AGGREGATIONS_MAX}. Received: "
            f"{len(aggregations)}"
        )
    result: list[str] = []
    automatic = 0
    for aggregation in aggregations:
        if aggregation.WhichOneof("operator") is None:
            raise InvalidArgument("An aggregation has no operator.")
        if aggregation.count.HasField("up_to") and aggregation.count.up_to.value < 0:
            raise InvalidArgument("The up_to of a count must not be negative.")
        if not aggregation.alias:
            automatic += 1
        alias = aggregation.alias or f"field_{automatic}"
        if alias in result:
            raise InvalidArgument(f"Aggregation aliases contain duplicate alias: {alias}.")
        result.append(alias)
    return result


def aggregated_fields(aggregations: Iterable[MessagePb]) -> list[FieldPath]:
    """Return the distinct fields that sum and avg read. Raises InvalidArgument for ``__name__``."""
    paths: dict[FieldPath, None] = {}
    for aggregation in aggregations:
        kind = aggregation.WhichOneof("operator")
        if kind in ("sum", "avg"):
            paths[parse_field_path(getattr(aggregation, kind).field.field_path)] = None
    if NAME in paths:
        raise InvalidArgument("'sum' and 'avg' cannot be used on '__name__'.")
    return list(paths)


def only_counts(aggregations: Iterable[MessagePb]) -> bool:
    """Return True if all aggregations are counts."""
    return all(aggregation.WhichOneof("operator") == "count" for aggregation in aggregations)


def aggregate_steps(aggregations: list[MessagePb], records: Iterable[Record]) -> Steps[list[ValuePb]]:
    """Return one result per aggregation.

    As in production, a document that lacks one of the summed fields is excluded from all aggregations of the request.
    """
    paths = aggregated_fields(aggregations)
    columns: dict[FieldPath, list[int | float]] = {path: [] for path in paths}
    total = 0
    for number, record in enumerate(records, start=1):
        if number % STEP_DOCUMENTS == 0:
            yield
        fields: FieldsPb = record.fields() if paths else None
        values = [lookup(fields, path) for path in paths]
        if any(value is None for value in values):
            continue
        total += 1
        for path, value in zip(paths, values, strict=True):
            kind = value.WhichOneof("value_type") if value is not None else None
            if kind in ("integer_value", "double_value"):
                columns[path].append(getattr(value, kind))
    return [_result(aggregation, total, columns) for aggregation in aggregations]


def count_result(aggregation: MessagePb, total: int) -> ValuePb:
    """Return a count, capped at its ``up_to``."""
    up_to = aggregation.count.up_to.value if aggregation.count.HasField("up_to") else total
    return Value(integer_value=min(total, up_to))


def _result(aggregation: MessagePb, total: int, columns: dict[FieldPath, list[int | float]]) -> ValuePb:
    kind = aggregation.WhichOneof("operator")
    if kind == "count":
        return count_result(aggregation, total)
    numbers = columns[parse_field_path(getattr(aggregation, kind).field.field_path)]
    if kind == "sum":
        return _sum(numbers)
    if not numbers:
        return Value(null_value=0)
    return Value(double_value=float(sum(numbers)) / len(numbers))


def _sum(numbers: list[int | float]) -> ValuePb:
    total = sum(numbers)
    if isinstance(total, int) and _INT_MIN <= total <= _INT_MAX:
        return Value(integer_value=total)
    return Value(double_value=float(total))  # an integer overflow becomes a double, as documented
