"""The view of a listener equals the query result after every commit and after reconnecting."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firelite.database import Database
from firelite.documents.protos import ListenRequest, StructuredQuery, TargetChangeType, Write
from firelite.listen.watch import ListenStream
from firelite.query.parse import parse_query
from firelite.storage import versions as store_module

ROOT = "projects/p/databases/d/documents"
KEYS = st.sampled_from(["c/a", "c/b", "c/d", "x/y/c/e", "x/y/c/f", "other/z"])
WRITES = st.dictionaries(KEYS, st.one_of(st.none(), st.integers(0, 3)), min_size=1, max_size=3)  # None deletes
STEPS = st.lists(st.one_of(WRITES, st.sampled_from(["reconnect", "disconnect", "connect"])), max_size=12)


def structured(kind: str) -> Any:
    message = StructuredQuery()
    message.from_.add(collection_id="c", all_descendants=kind == "group")
    if kind in ("range", "limit", "group"):
        message.order_by.add().field.field_path = "n"
    if kind == "range":
        message.where.field_filter.field.field_path = "n"
        message.where.field_filter.op = 3  # GREATER_THAN
        message.where.field_filter.value.integer_value = 0
    if kind == "limit":
        message.limit.value = 2
    return message


class Client:
    """Keeps a view as the official clients do."""

    def __init__(self, db: Database, kind: str) -> None:
        self.db = db
        self.message = structured(kind)
        self.query = parse_query(ROOT, self.message)
        self.view: dict[str, int] = {}
        self.token = b""
        self.stream: ListenStream | None = None

    def connect(self) -> None:
        if self.stream is not None:
            return
        self.stream = ListenStream(self.db.hub)
        request = ListenRequest()
        request.add_target.target_id = 1
        request.add_target.resume_token = self.token
        request.add_target.query.parent = ROOT
        request.add_target.query.structured_query.CopyFrom(self.message)
        self.stream.handle(request)
        self.take()

    def disconnect(self) -> None:
        if self.stream is not None:
            self.stream.handle(ListenRequest(remove_target=1))
            self.stream = None

    def take(self) -> None:
        """Apply all pending messages of the stream to the view."""
        if self.stream is None:
            return
        outbox: Any = vars(self.stream)["_outbox"]
        while outbox:
            message = outbox.popleft()
            kind = message.WhichOneof("response_type")
            if kind == "document_change" and message.document_change.target_ids:
                self.view[message.document_change.document.name] = message.document_change.document.fields[
                    "n"
                ].integer_value
            elif kind == "document_change":
                self.view.pop(message.document_change.document.name, None)
            elif kind == "document_delete":
                self.view.pop(message.document_delete.document, None)
            elif kind == "filter" and message.filter.count != len(self.view):
                self.disconnect()
                self.view, self.token = {}, b""
                self.connect()
                return
            elif kind == "target_change":
                self.changed(message.target_change)

    def changed(self, change: Any) -> None:
        if change.target_change_type == TargetChangeType.RESET:
            self.view = {}
        elif change.target_change_type == TargetChangeType.NO_CHANGE:
            self.token = change.resume_token

    def check(self) -> None:
        if self.stream is not None:
            found, _ = self.db.store.run(self.query)
            assert self.view == {record.name: record.fields()["n"].integer_value for record in found}


def commit(db: Database, content: dict[str, int | None]) -> None:
    writes: list[Any] = []
    for key, number in content.items():
        write = Write()
        if number is None:
            write.delete = f"{ROOT}/{key}"
        else:
            write.update.name = f"{ROOT}/{key}"
            write.update.fields["n"].integer_value = number
        writes.append(write)
    db.group.commit_now(writes)


async def play(kind: str, steps: list[Any]) -> None:
    with Database.open(None) as db:
        client = Client(db, kind)
        client.connect()
        for step in steps:
            if isinstance(step, dict):
                commit(db, step)  # pyright: ignore[reportUnknownArgumentType] - drawn from WRITES
            if step in ("reconnect", "disconnect"):
                client.disconnect()
            if step in ("reconnect", "connect"):
                client.connect()
            client.take()
            client.check()
        client.connect()
        client.take()
        client.check()


KINDS = ["all", "range", "limit", "group"]


@pytest.fixture(params=["kept", "lost"])
def history(request: pytest.FixtureRequest) -> Iterator[str]:
    """Keep the history, so that resume tokens work, or lose it, so that filters and resets are needed."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "lost":
            patch.setattr(store_module, "HISTORY_MAX_BYTES", 250)
        yield request.param


def test_view_of_a_listener_equals_the_query_result(history: str) -> None:
    with asyncio.Runner() as runner:

        @settings(deadline=None, max_examples=150)
        @given(st.sampled_from(KINDS), STEPS)
        def holds(kind: str, steps: list[Any]) -> None:
            runner.run(play(kind, steps))

        holds()
    assert history in ("kept", "lost")
