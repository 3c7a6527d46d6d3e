"""Contracts: idempotency keys are canonical, documents round-trip, times are UTC."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fireswarm.contracts.limits import MAX_SHOWN_ID_CHARS, SHORT_ID_CHARS, shown_id
from fireswarm.contracts.swarm.task import (
    MAX_CONTEXT_BYTES,
    NO_DEADLINE,
    StatusReason,
    TaskSpec,
    TaskStatus,
    idempotency_key,
    task_id_for,
)
from fireswarm.errors import InvalidInput
from fireswarm.storage.documents.build import new_task, next_sweep, parse_task, plain

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)


def spec(**fields: object) -> TaskSpec:
    return TaskSpec.model_validate({"objective": "x", "assigned_to": "scout", "session_hash": "s", **fields})


@given(st.dictionaries(st.text(), JSON, max_size=5), st.randoms())
def test_key_does_not_depend_on_the_order_of_fields(context: dict[str, object], rng: random.Random) -> None:
    items = list(context.items())
    rng.shuffle(items)
    assert idempotency_key("do it", dict(items)) == idempotency_key(" do   it ", context)


@given(st.text(min_size=1), st.text(min_size=1))
def test_different_objective_has_another_key(one: str, other: str) -> None:
    same = " ".join(one.split()) == " ".join(other.split())
    assert (idempotency_key(one, {}) == idempotency_key(other, {})) is same


def test_ids_are_scoped_by_session_and_role() -> None:
    ids = {task_id_for(session, "k", role) for session in ("a", "b") for role in ("x", "y")}
    assert len(ids) == 4


@given(st.dictionaries(st.text(), JSON, max_size=4), st.integers(1, 10))
def test_task_survives_a_round_trip_through_its_document(context: dict[str, object], priority: int) -> None:
    task = new_task(spec(context=context, priority=priority), NOW)
    assert parse_task(plain(task), "agent_tasks/x") == task


def test_context_that_is_too_large_or_not_json_is_refused() -> None:
    with pytest.raises(InvalidInput, match="pass its path or URI"):
        new_task(spec(context={"text": "x" * (MAX_CONTEXT_BYTES + 1)}), NOW)
    with pytest.raises(ValidationError, match="thing is of type object, which JSON does not have"):
        spec(context={"thing": object()})


def test_times_are_converted_to_utc() -> None:
    east = timezone(timedelta(hours=2))
    assert spec(deadline=datetime(2026, 5, 1, 12, tzinfo=east)).deadline == datetime(2026, 5, 1, 10, tzinfo=UTC)
    assert spec(deadline=datetime(2026, 5, 1, 12)).deadline == datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_error_of_a_malformed_document_names_every_wrong_field() -> None:
    with pytest.raises(InvalidInput, match="agent_tasks/x is not a task: .*objective.*status"):
        parse_task({"task_id": "x"}, "agent_tasks/x")


@pytest.mark.parametrize("reason", list(StatusReason))
def test_only_tasks_with_a_due_time_or_deadline_are_swept(reason: StatusReason) -> None:
    later, deadline = NOW + timedelta(minutes=1), NOW + timedelta(hours=1)
    final = reason in (StatusReason.DEAD_LETTER, StatusReason.DEADLINE_EXCEEDED)
    assert next_sweep(TaskStatus.BLOCKED, reason, None, later, NO_DEADLINE) == (None if final else later)
    assert next_sweep(TaskStatus.BLOCKED, reason, None, None, deadline) == (None if final else deadline)
    assert next_sweep(TaskStatus.DONE, None, None, later, deadline) is None


def test_generated_id_is_shown_short_and_a_chosen_one_whole() -> None:
    for generated in (task_id_for("s", "key", "scout"), "4oaFqxPGUZXqDRaiXnrn"):
        assert shown_id(generated) == generated[:SHORT_ID_CHARS]
    assert shown_id("report-of-monday") == "report-of-monday"
    assert shown_id("x" * 1_500) == "x" * MAX_SHOWN_ID_CHARS
