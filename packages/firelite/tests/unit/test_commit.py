"""The effect of one write on a document, compared with the same change made value by value."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firelite.database import Database
from firelite.documents.fields import merge, parse_mask
from firelite.documents.limits import SMALL_BYTES
from firelite.documents.protos import Document, Write
from firelite.errors import DiskFull, InvalidArgument

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


def test_write_of_transforms_alone_changes_its_document_and_one_without_an_operation_is_refused(db: Database) -> None:
    write = Write()
    write.transform.document = NAME
    write.transform.field_transforms.add(field_path="count").increment.integer_value = 2
    assert written(db, write).fields["count"].integer_value == 2
    with pytest.raises(InvalidArgument, match="has no operation"):
        db.group.commit_now([Write()])


def test_precondition_without_a_condition_requires_nothing(db: Database) -> None:
    write = update({"a": 1})
    write.current_document.SetInParent()
    assert content_of(written(db, write)) == {"a": 1}


def test_write_before_the_deletion_of_its_document_has_no_time_beside_a_write_to_another_document(db: Database) -> None:
    other = update({"a": 1})
    other.update.name = f"{NAME}-other"
    results = db.group.commit_now([other, update({"a": 1}), Write(delete=NAME)]).results
    assert [result.HasField("update_time") for result in results] == [True, False, False]


def test_full_disk_fails_the_commits_of_a_group_and_not_the_loop_that_writes_them(tmp_path: Path) -> None:
    with Database.open(tmp_path / "data.db") as db:
        connection: Any = vars(db)["_storage"]._connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages}")
        write = update({})
        write.update.fields["a"].bytes_value = bytes(500_000)

        async def submit_and_flush() -> BaseException | None:
            waiting = db.group.submit([write], [NAME])
            db.group.flush()
            return waiting.exception()

        assert isinstance(asyncio.run(submit_and_flush()), DiskFull)


@settings(deadline=None)
@given(DOCUMENTS, DOCUMENTS, st.lists(NAMES, unique=True, max_size=3))
def test_update_with_a_field_mask_equals_merging_value_by_value(
    before: dict[str, Any], change: dict[str, Any], mask: list[str]
) -> None:
    expected = document(before)
    merge(expected.fields, document(change).fields, parse_mask(mask).paths)
    with Database.open(None) as db:
        written(db, update(before))
        result = written(db, update(change, *mask, masked=True))
    assert content_of(result) == content_of(expected)


def test_map_named_by_a_mask_is_replaced_completely(db: Database) -> None:
    written(db, update({"lease": {"owner": 1, "epoch": 2}, "other": 3}))
    result = written(db, update({"lease": {"epoch": 4}}, "lease"))
    assert content_of(result) == {"lease": {"epoch": 4}, "other": 3}


def test_create_and_update_times_sent_by_a_client_are_ignored(db: Database) -> None:
    first = written(db, update({"a": 1}))
    write = update({"a": 2}, "a")
    write.update.create_time.seconds = write.update.update_time.seconds = 7
    second = written(db, write)
    assert second.create_time == first.create_time
    assert second.update_time.seconds > 7


def test_write_without_changes_keeps_the_version(db: Database) -> None:
    first = written(db, update({"a": 1, "b": {"c": 2}}))
    assert written(db, update({"b": {"c": 2}}, "b", "missing")) == first
    assert written(db, update({"a": 1, "b": {"c": 2}})) == first


def test_existing_fields_count_towards_the_document_size_limit(db: Database) -> None:
    def large(field: str) -> Any:
        write = update({}, field)
        write.update.fields[field].bytes_value = bytes(8 * SMALL_BYTES)
        return write

    written(db, large("a"))
    with pytest.raises(InvalidArgument, match="exceeds the maximum"):
        written(db, large("b"))
