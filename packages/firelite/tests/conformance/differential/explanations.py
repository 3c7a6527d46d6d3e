"""Recognize a difference between two answers as a quirk of the emulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conformance.differential.answers import Answer
from conformance.differential.steps import Step
from conformance.quirks import QUIRKS
from firelite.documents.protos import Direction, MessagePb


def explain(steps: Sequence[Step], position: int, ours: Sequence[Answer], theirs: Sequence[Answer]) -> str | None:
    """Return the name of the quirk that explains the difference at a step, or None."""
    for name, applies in _EXPLANATIONS.items():
        if applies(steps, position, ours, theirs):
            return QUIRKS[name].name
    return None


def _sorts_names_down(steps: Sequence[Step], position: int, ours: Sequence[Answer], theirs: Sequence[Answer]) -> bool:
    orders = _query(steps[position]).order_by
    return (
        theirs[position].code == "FAILED_PRECONDITION"
        and len(orders) > 0
        and orders[0].field.field_path == "__name__"
        and orders[0].direction == Direction.DESCENDING
    )


def _masks_missing_documents(
    steps: Sequence[Step], position: int, ours: Sequence[Answer], theirs: Sequence[Answer]
) -> bool:
    step = steps[position]
    return step.rpc == "ListDocuments" and step.request.show_missing and step.request.HasField("mask")


def _transforms_a_vector(
    steps: Sequence[Step], position: int, ours: Sequence[Answer], theirs: Sequence[Answer]
) -> bool:
    mine, other = ours[position], theirs[position]
    transformed = steps[position].rpc in ("Commit", "BatchWrite") and any(
        write.update_transforms for write in steps[position].request.writes
    )
    if not transformed or other.code != "OK":
        return False
    if steps[position].rpc == "BatchWrite" and mine.code == "OK":
        pairs = zip(mine.messages[0].status, other.messages[0].status, strict=True)
        different = [(first, second) for first, second in pairs if first.code != second.code]
        return bool(different) and all(
            (first.code, second.code) == (3, 0) and "the vector" in first.message for first, second in different
        )
    return mine.code == "INVALID_ARGUMENT" and "the vector" in mine.details


def _requires_future_time(
    steps: Sequence[Step], position: int, ours: Sequence[Answer], theirs: Sequence[Answer]
) -> bool:
    mine, other = ours[position], theirs[position]
    if steps[position].rpc == "BatchWrite" and mine.code == other.code == "OK":
        pairs = zip(mine.messages[0].status, other.messages[0].status, strict=True)
        return {(first.code, second.code) for first, second in pairs if first.code != second.code} == {(3, 9)}
    return mine.code == "INVALID_ARGUMENT" and other.code == "FAILED_PRECONDITION" and "future" in mine.details


def _queries_in_transaction(
    steps: Sequence[Step], position: int, ours: Sequence[Answer], theirs: Sequence[Answer]
) -> bool:
    return any(step.actor and step.rpc == "RunQuery" for step in steps)


def _aborts_another(steps: Sequence[Step], position: int, ours: Sequence[Answer], theirs: Sequence[Answer]) -> bool:
    pairs = {
        step.actor: (mine.code, other.code)
        for step, mine, other in zip(steps, ours, theirs, strict=True)
        if step.actor and step.rpc == "Commit"
    }
    different = [sorted(codes) for codes in pairs.values() if codes[0] != codes[1]]
    return bool(different) and all(codes == ["ABORTED", "OK"] for codes in different)


def _waits_longer(steps: Sequence[Step], position: int, ours: Sequence[Answer], theirs: Sequence[Answer]) -> bool:
    mine, other = ours[position], theirs[position]
    plain = steps[position].rpc == "Commit" and not steps[position].actor
    codes = {step.actor: answer.code for step, answer in zip(steps, ours, strict=True) if step.rpc == "Commit"}
    deadlock = "ABORTED" in codes.values()
    return plain and deadlock and (mine.code, other.code) == ("OK", "ABORTED") and "lock timeout" in other.details


def _grants_in_another_order(
    steps: Sequence[Step], position: int, ours: Sequence[Answer], theirs: Sequence[Answer]
) -> bool:
    plain = [step for step in steps[1:] if step.rpc == "Commit" and not step.actor]
    codes = [answer.code for answer in ours]
    return any(step.actor for step in steps) and bool(plain) and codes == [a.code for a in theirs]


def _query(step: Step) -> MessagePb:
    if step.rpc == "RunAggregationQuery":
        return step.request.structured_aggregation_query.structured_query
    return step.request.structured_query if step.rpc == "RunQuery" else _NO_QUERY


_NO_QUERY: MessagePb = type("NoQuery", (), {"order_by": ()})()
_EXPLANATIONS: dict[str, Callable[[Sequence[Step], int, Sequence[Answer], Sequence[Answer]], bool]] = {
    "descending_key_scan": _sorts_names_down,
    "mask_of_missing_documents": _masks_missing_documents,
    "future_update_time": _requires_future_time,
    "fields_in_vectors": _transforms_a_vector,
    "victim_of_a_deadlock": _aborts_another,
    "lock_timeout": _waits_longer,
    "order_of_waiting_writes": _grants_in_another_order,
    "range_locks_of_queries": _queries_in_transaction,
}
