"""The blocking client: snapshots in threads, bulk writer, recursive delete, partitions."""

from __future__ import annotations

import queue
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.firestore import Client, Transaction, transactional
from google.cloud.firestore_v1.base_query import FieldFilter

PATIENCE_SECONDS = 10


@contextmanager
def watching(target: Any) -> Generator[queue.Queue[list[str]]]:
    """Subscribe to *target*; yield a queue with the changes of each callback."""
    told: queue.Queue[list[str]] = queue.Queue()

    def on_snapshot(_: Any, changes: Any, __: Any) -> None:
        told.put([f"{change.type.name} {change.document.id}" for change in changes])

    watch = target.on_snapshot(on_snapshot)
    consumer = watch._consumer._thread
    try:
        yield told
    finally:
        watch.unsubscribe()
        consumer.join(PATIENCE_SECONDS)


def test_on_snapshot_of_a_query_reports_added_modified_and_removed(sync_client: Client) -> None:
    collection = sync_client.collection("c")
    collection.document("a").set({"n": 1})
    query = collection.where(filter=FieldFilter("n", ">", 0)).order_by("n")
    with watching(query) as told:
        assert told.get(timeout=PATIENCE_SECONDS) == ["ADDED a"]
        collection.document("b").set({"n": 2})
        assert told.get(timeout=PATIENCE_SECONDS) == ["ADDED b"]
        collection.document("a").update({"n": 3})
        assert told.get(timeout=PATIENCE_SECONDS) == ["MODIFIED a"]
        collection.document("b").update({"n": -1})
        assert told.get(timeout=PATIENCE_SECONDS) == ["REMOVED b"]
        collection.document("a").delete()
        assert told.get(timeout=PATIENCE_SECONDS) == ["REMOVED a"]


def test_on_snapshot_of_a_document_reports_its_changes(sync_client: Client) -> None:
    ref = sync_client.document("c/a")
    with watching(ref) as told:
        assert told.get(timeout=PATIENCE_SECONDS) == []
        ref.set({"n": 1})
        assert told.get(timeout=PATIENCE_SECONDS) == ["ADDED a"]
        ref.update({"n": 2})
        assert told.get(timeout=PATIENCE_SECONDS) == ["MODIFIED a"]
        ref.delete()
        assert told.get(timeout=PATIENCE_SECONDS) == ["REMOVED a"]


def test_on_snapshot_of_a_limited_query_is_refilled(sync_client: Client) -> None:
    collection = sync_client.collection("c")
    for number in range(3):
        collection.document(str(number)).set({"n": number})
    with watching(collection.order_by("n").limit(2)) as told:
        assert told.get(timeout=PATIENCE_SECONDS) == ["ADDED 0", "ADDED 1"]
        collection.document("0").delete()
        assert told.get(timeout=PATIENCE_SECONDS) == ["REMOVED 0", "ADDED 2"]


def test_blocking_transactions_read_and_update_in_turn(sync_client: Client) -> None:
    ref = sync_client.document("c/a")
    ref.set({"n": 1})

    @transactional
    def add(transaction: Transaction) -> int:
        seen: Any = ref.get(transaction=transaction)
        transaction.update(ref, {"n": seen.get("n") + 1})
        return int(seen.get("n"))

    assert [add(sync_client.transaction()), add(sync_client.transaction())] == [1, 2]
    result: Any = ref.get()
    assert result.get("n") == 3


def test_the_bulk_writer_reports_each_write(sync_client: Client) -> None:
    sync_client.document("c/taken").set({})
    errors: list[int] = []

    def on_error(failure: Any, _: Any) -> bool:
        errors.append(failure.code)
        return False

    writer = sync_client.bulk_writer()
    writer.on_write_error(on_error)
    for number in range(45):
        writer.create(sync_client.document(f"c/{number:02}"), {"n": number})
    writer.create(sync_client.document("c/taken"), {})
    writer.close()
    assert errors == [6]  # ALREADY_EXISTS, and the others went through
    count: Any = sync_client.collection("c").count().get()
    assert count[0][0].value == 46


def test_recursive_delete_removes_everything_below_a_collection(sync_client: Client) -> None:
    for path in ["a/1", "a/1/b/2", "a/3/b/4", "ab/5"]:
        sync_client.document(path).set({})
    sync_client.recursive_delete(sync_client.collection("a"))
    assert [ref.id for ref in sync_client.collections()] == ["ab"]


def test_recursive_delete_of_a_document_keeps_its_siblings(sync_client: Client) -> None:
    for path in ["a/1", "a/1/b/2", "a/1/b/2/c/3", "a/2/b/4"]:
        sync_client.document(path).set({})
    sync_client.recursive_delete(sync_client.document("a/1"))
    left = [snapshot.reference.path for snapshot in sync_client.collection_group("b").stream()]
    assert left == ["a/2/b/4"]


@pytest.mark.quirk("partition_query")
def test_partitions_cover_a_collection_group_without_overlap(sync_client: Client) -> None:
    batch = sync_client.batch()
    for number in range(60):
        batch.set(sync_client.document(f"a/x{number % 3}/g/{number:02}"), {"n": number})
    batch.commit()
    parts = list(sync_client.collection_group("g").get_partitions(4))
    assert 1 < len(parts) <= 5  # the number asked for is of cursors, which cut one part more
    found = [snapshot.get("n") for part in parts for snapshot in part.query().stream()]
    assert sorted(found) == list(range(60))


def test_get_all_reports_missing_documents(sync_client: Client) -> None:
    sync_client.document("c/a").set({"n": 1})
    found = list(sync_client.get_all([sync_client.document("c/a"), sync_client.document("c/b")]))
    assert sorted((snapshot.id, snapshot.exists) for snapshot in found) == [("a", True), ("b", False)]
    with pytest.raises(exceptions.AlreadyExists):
        sync_client.document("c/a").create({})
