"""Recognize a difference between two answers as a quirk of the emulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fireswarm.firelite.documents.protos import Direction, MessagePb
from tests.conformance.differential.answers import Answer
from tests.conformance.differential.steps import Step
from tests.conformance.quirks import QUIRKS

FUTURE_MICROSECONDS = "253402300000000000"


def explain(steps: Sequence[Step], position: int, ours: Answer, theirs: Answer) -> str | None:
    """Return the name of the quirk that explains the difference at a step, or None."""
    for name, applies in _EXPLANATIONS.items():
        if applies(steps, position, ours, theirs):
            return QUIRKS[name].name
    return None


def _sorts_names_down(steps: Sequence[Step], position: int, ours: Answer, theirs: Answer) -> bool:
    orders = _query(steps[position]).order_by
    return (
        theirs.code == "FAILED_PRECONDITION"
        and len(orders) > 0
        and orders[0].field.field_path == "__name__"
        and orders[0].direction == Direction.DESCENDING
    )


def _lists_with_empty_mask(steps: Sequence[Step], position: int, ours: Answer, theirs: Answer) -> bool:
    step = steps[position]
    # Every listing with show_missing has an empty mask.
    empty = step.request.HasField("mask") and not step.request.mask.field_paths if step.rpc == "ListDocuments" else False
    return empty


def _requires_future_time(steps: Sequence[Step], position: int, ours: Answer, theirs: Answer) -> bool:
    if steps[position].rpc == "BatchWrite" and ours.code == theirs.code == "OK":
        pairs = zip(ours.messages[0].status, theirs.messages[0].status, strict=True)
        return {(mine.code, other.code) for mine, other in pairs if mine.code != other.code} == {(3, 9)}
    return ours.code == "INVALID_ARGUMENT" and theirs.code == "FAILED_PRECONDITION" and "future" in ours.details


def _queries_in_transaction(steps: Sequence[Step], position: int, ours: Answer, theirs: Answer) -> bool:
    return any(step.actor and step.rpc == "RunQuery" for step in steps)


def _query(step: Step) -> MessagePb:
    if step.rpc == "RunAggregationQuery":
        return step.request.structured_aggregation_query.structured_query
    return step.request.structured_query if step.rpc == "RunQuery" else _NO_QUERY


_NO_QUERY: MessagePb = type("NoQuery", (), {"order_by": ()})()
_EXPLANATIONS: dict[str, Callable[[Sequence[Step], int, Answer, Answer], bool]] = {
    "descending_key_scan": _sorts_names_down,
    "empty_mask_of_a_listing": _lists_with_empty_mask,
    "future_update_time": _requires_future_time,
    "range_locks_of_queries": _queries_in_transaction,
}
