"""The codec encodes values as the official client's helpers do."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from google.cloud.firestore_v1 import _helpers as client_helpers
from google.cloud.firestore_v1.types import Value
from google.cloud.firestore_v1.types import Write as WriteMessage
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fireswarm.contracts.ports import DELETE_FIELD, SERVER_TIME, Create, Merge, Query, Update, Write
from fireswarm.contracts.swarm.task import TaskStatus
from fireswarm.errors import InvalidInput
from fireswarm.storage.firestore import codec

SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(max_size=20),
    st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.just(UTC)),
)
KEYS = st.text(min_size=1, max_size=8).filter(lambda text: text != codec.NESTED)


def json_like(*, nested: bool) -> st.SearchStrategy[Any]:
    maps = st.recursive(SCALARS, lambda inner: st.dictionaries(KEYS, inner, max_size=4), max_leaves=10)
    if not nested:
        return maps
    return st.recursive(
        maps, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=3))
    )


def encoded(value: Any) -> Any:
    message = Value.pb(Value())
    codec.put(message, value)
    return message


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
@given(json_like(nested=False))
def test_values_are_encoded_as_the_client_does(value: Any) -> None:
    assert encoded(value) == Value.pb(client_helpers.encode_value(value))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
@given(json_like(nested=True))
def test_stored_values_are_read_back_unchanged(value: Any) -> None:
    assert codec.take(encoded(value)) == value


def test_enum_members_are_stored_as_their_strings() -> None:
    assert encoded(TaskStatus.DONE).string_value == "done"


def test_unsupported_type_is_rejected_by_name() -> None:
    with pytest.raises(InvalidInput, match="set cannot be stored"):
        encoded({1, 2})


def message_of(write: Write) -> Any:
    message = WriteMessage.pb(WriteMessage())
    codec.write_message(write, "projects/p/databases/d/documents", message)
    return message


def test_writes_name_exactly_the_fields_they_change() -> None:
    create = message_of(Create("a/b", {"x": 1, "at": SERVER_TIME}))
    assert (create.current_document.exists, list(create.update_mask.field_paths)) == (False, [])
    assert [transform.field_path for transform in create.update_transforms] == ["at"]
    update = message_of(Update("a/b", {"x": 1, "gone": DELETE_FIELD, "at": SERVER_TIME}))
    assert (list(update.update_mask.field_paths), list(update.update.fields)) == (["x", "gone"], ["x"])
    assert update.current_document.exists
    merge = message_of(Merge("a/b", {"x": {"y": 1}}))
    assert list(merge.update_mask.field_paths) == ["x"], "a map that is one value is replaced whole"
    assert not merge.HasField("current_document")
    with pytest.raises(InvalidInput, match="invalid field name"):
        message_of(Update("a/b", {"x.y": 1}))


def test_cursor_values_follow_the_query_order() -> None:
    query = Query("c", order_by=(("b", "desc"), ("a", "asc")), start_after={"a": 1, "b": 2})
    message = codec.structured_query(query)
    assert [value.integer_value for value in message.start_at.values] == [2, 1]
    assert not message.start_at.before
