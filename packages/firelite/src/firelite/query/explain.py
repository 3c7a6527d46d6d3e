"""Query explain: the indexes of a plan, and the cost of a run. Pure, no I/O."""

from __future__ import annotations

from google.protobuf import json_format

from firelite.documents.paths import NAME, format_field_path
from firelite.documents.protos import ExplainMetrics, MessagePb
from firelite.query.nearest import Nearest
from firelite.query.planner import Scan, plan
from firelite.query.query import Query


def explain(query: Query, search: Nearest | None = None) -> MessagePb:
    """Return the plan: one index for each scan. Several disjuncts may use the same index."""
    metrics = ExplainMetrics()
    metrics.plan_summary.SetInParent()
    scope = "Collection" if query.scope.kind == "collection" else "Collection group"
    for properties in dict.fromkeys(_properties(scan, search) for scan in plan(query)):
        json_format.ParseDict({"query_scope": scope, "properties": properties}, metrics.plan_summary.indexes_used.add())
    return metrics


def add_stats(metrics: MessagePb, *, results: int, reads: int, seconds: float) -> None:
    """Add the statistics of a run. Production bills at least one read for each query."""
    stats = metrics.execution_stats
    stats.results_returned = results
    stats.read_operations = max(1, reads)
    stats.execution_duration.FromNanoseconds(int(seconds * 1e9))
    billing = {"documents_billable": str(results), "min_query_cost": "0" if reads else "1"}
    json_format.ParseDict({"documents_scanned": str(reads), "billing_details": billing}, stats.debug_stats)


def _properties(scan: Scan, search: Nearest | None) -> str:
    """Return the index's fields in production's form, such as ``(a ASC, __name__ ASC)``."""
    shape = scan.shape
    parts = [f"{format_field_path(shape.contains)} CONTAINS"] if shape.contains is not None else []
    parts += [f"{format_field_path(path)} ASC" for path in shape.equal]
    parts += [
        f"{'__name__' if order.path == NAME else format_field_path(order.path)} {'DESC' if order.descending else 'ASC'}"
        for order in shape.orders
    ]
    if search is not None:
        parts.append(f"{format_field_path(search.field)} VECTOR")
    return f"({', '.join(parts)})"
