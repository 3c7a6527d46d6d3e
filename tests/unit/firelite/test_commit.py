"""What one write makes of a document, against the same change made value by value."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fireswarm.firelite.database import Database
from fireswarm.firelite.documents.fields import merge, parse_mask
from fireswarm.firelite.documents.limits import SMALL_BYTES
from fireswarm.firelite.documents.protos import Document, Write
from fireswarm.firelite.errors import InvalidArgument

from .test_fields import DOCUMENTS, NAMES, content_of, document

NAME = "projects/p/databases/d/documents/c/d"


@pytest.fixture
def db() -> Generator[Database]:
    with Database.open(None) as opened:
        yield opened


def written(db: Database, write: Any) -> Any:
    db.group.commit_now([write])
    record = db.store.get(NAME)
    assert record is not None
    return Document.FromString(record.data or b"")


def update(content: dict[str, Any], *mask: str, masked: bool = False) -> Any:
    write = Write()
    write.update.CopyFrom(document(content))
    write.update.name = NAME
    if mask or masked:
        write.update_mask.field_paths.extend(mask)
        write.update_mask.SetInParent()
    return write


@settings(deadline=None)
@given(DOCUMENTS, DOCUMENTS, st.lists(NAMES, unique=True, max_size=3))
def test_a_mask_of_whole_fields_merges_like_one_value_at_a_time(
    before: dict[str, Any], change: dict[str, Any], mask: list[str]
) -> None:
    expected = document(before)
    merge(expected.fields, document(change).fields, parse_mask(mask).paths)
    with Database.open(None) as db:
        written(db, update(before))
        result = written(db, update(change, *mask, masked=True))
    assert content_of(result) == content_of(expected)


def test_a_map_that_a_mask_names_is_replaced_whole(db: Database) -> None:
    written(db, update({"lease": {"owner": 1, "epoch": 2}, "other": 3}))
    result = written(db, update({"lease": {"epoch": 4}}, "lease"))
    assert content_of(result) == {"lease": {"epoch": 4}, "other": 3}


def test_times_that_a_client_sends_are_not_its_to_set(db: Database) -> None:
    first = written(db, update({"a": 1}))
    write = update({"a": 2}, "a")
    write.update.create_time.seconds = write.update.update_time.seconds = 7
    second = written(db, write)
    assert second.create_time == first.create_time
    assert second.update_time.seconds > 7


def test_a_write_that_changes_nothing_keeps_the_version(db: Database) -> None:
    first = written(db, update({"a": 1, "b": {"c": 2}}))
    assert written(db, update({"b": {"c": 2}}, "b", "missing")) == first
    assert written(db, update({"a": 1, "b": {"c": 2}})) == first


def test_fields_checked_when_they_were_written_still_count_for_the_size(db: Database) -> None:
    def large(field: str) -> Any:
        write = update({}, field)
        write.update.fields[field].bytes_value = bytes(8 * SMALL_BYTES)
        return write

    written(db, large("a"))
    with pytest.raises(InvalidArgument, match="exceeds the maximum"):
        written(db, large("b"))
