"""Listen streams in unusual situations: lost history, heartbeats, backlog, closing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest

from firelite.database import Database
from firelite.documents.protos import ListenRequest, Write
from firelite.errors import InvalidArgument, Unavailable
from firelite.listen import watch
from firelite.storage import versions as store_module
from firelite.wire.service import Service

pytestmark = pytest.mark.anyio

ROOT = "projects/p/databases/d/documents"
PATIENCE_SECONDS = 10


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def db() -> AsyncIterator[Database]:
    now = [0]

    def clock() -> int:  # two hours per call: history is always too old
        now[0] += 7200 * 10**9
        return now[0]

    with Database.open(None, clock=clock) as database:
        yield database


class Stream:
    def __init__(self, db: Database) -> None:
        self.requests: asyncio.Queue[Any] = asyncio.Queue()
        self.responses: AsyncGenerator[Any] = watch.ListenStream(db.hub).responses(self.outgoing())

    async def outgoing(self) -> AsyncIterator[Any]:
        while True:
            yield await self.requests.get()

    def add(self, limit: int | None = None, token: bytes = b"", read_us: int | None = None, **target: Any) -> None:
        request = ListenRequest()
        request.add_target.target_id = target.get("target_id", 1)
        request.add_target.resume_token = token
        query = request.add_target.query
        query.parent = ROOT
        query.structured_query.from_.add(collection_id="c")
        if limit is not None:
            query.structured_query.limit.value = limit
        if read_us is not None:
            request.add_target.read_time.seconds = read_us // 1_000_000
        self.requests.put_nowait(request)

    async def next(self) -> Any:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await anext(self.responses)

    async def round(self) -> tuple[list[str], bytes]:
        words: list[str] = []
        while True:
            message = await self.next()
            change = message.target_change
            kind = message.WhichOneof("response_type")
            if kind == "target_change" and not change.target_ids:
                return words, change.resume_token
            if kind == "target_change":
                words.append(watch.TargetChangeType(change.target_change_type).name)
            elif kind == "filter":
                words.append(f"filter {message.filter.count}")
            else:
                name = message.document_change.document.name or message.document_delete.document
                words.append(f"{'+' if kind == 'document_change' else '-'}{name[-1]}")


async def put(db: Database, *keys: str) -> None:
    for key in keys:
        write = Write()
        write.update.name = f"{ROOT}/c/{key}"
        await db.commit([write])


async def drop(db: Database, key: str) -> None:
    await db.commit([Write(delete=f"{ROOT}/c/{key}")])


async def first_round(db: Database, limit: int | None = None) -> bytes:
    stream = Stream(db)
    stream.add(limit)
    _, token = await stream.round()
    await stream.responses.aclose()
    return token


async def test_resume_without_history_resets_the_target(db: Database) -> None:
    await put(db, "a", "b")
    token = await first_round(db)
    await drop(db, "a")
    await put(db, "n", "m")  # by now the history with the delete is dropped
    stream = Stream(db)
    stream.add(token=token)
    words, _ = await stream.round()
    assert words == ["ADD", "RESET", "+b", "+m", "+n", "CURRENT"]
    await stream.responses.aclose()


async def test_limit_query_without_history_is_reset(db: Database) -> None:
    await put(db, "a", "b", "c")
    token = await first_round(db, limit=2)
    await drop(db, "a")
    await put(db, "x", "y")
    stream = Stream(db)
    stream.add(limit=2, token=token)
    words, _ = await stream.round()
    assert words == ["ADD", "RESET", "+b", "+c", "CURRENT"]
    await stream.responses.aclose()


async def test_read_time_in_the_future_resets_the_target(db: Database) -> None:
    await put(db, "a")
    stream = Stream(db)
    stream.add(read_us=10**18)
    words, _ = await stream.round()
    assert words == ["ADD", "RESET", "+a", "CURRENT"]
    await stream.responses.aclose()


async def test_idle_stream_receives_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "HEARTBEAT_SECONDS", 0.01)
    with Database.open(None) as db:
        stream = Stream(db)
        stream.add()
        await stream.round()
        assert (await stream.round())[0] == []  # a consistent snapshot, although nothing changed
        await stream.responses.aclose()


async def test_listener_with_a_full_backlog_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "BACKLOG_MAX_MESSAGES", 10)
    with Database.open(None) as db:
        stream = Stream(db)
        stream.add()
        await stream.round()
        for number in range(10):
            await put(db, str(number))
        with pytest.raises(Unavailable, match="behind"):
            await stream.next()
        await put(db, "after")


async def test_closing_the_database_ends_the_streams() -> None:
    db = Database.open(None)
    stream = Stream(db)
    stream.add()
    await stream.round()
    db.close()
    with pytest.raises(Unavailable, match="closed"):
        await stream.next()
    with pytest.raises(Unavailable, match="closed"):
        await anext(Stream(db).responses)


async def test_empty_request_ends_the_stream() -> None:
    with Database.open(None) as db:
        stream = Stream(db)
        stream.requests.put_nowait(ListenRequest())
        with pytest.raises(InvalidArgument):
            await stream.next()


async def test_targets_without_an_id_get_distinct_ids() -> None:
    with Database.open(None) as db:
        stream = Stream(db)
        ids: list[int] = []
        for _ in range(2):
            stream.add(target_id=0)
            ids.extend((await stream.next()).target_change.target_ids)
            await stream.round()
        assert ids == [1, 2]
        await stream.responses.aclose()


async def test_listener_receives_only_changes_of_its_collection() -> None:
    with Database.open(None) as db:
        stream = Stream(db)
        stream.add()
        await stream.round()
        write = Write()
        write.update.name = f"{ROOT}/elsewhere/x"
        await db.commit([write])
        await put(db, "a")
        assert (await stream.round())[0] == ["+a"]
        await stream.responses.aclose()
        await put(db, "b")  # no listener is left
        assert vars(db.hub)["_filed"] == {}


async def test_large_history_is_dropped_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "HISTORY_MAX_BYTES", 1000)
    with Database.open(None) as db:
        await put(db, *"abcdefgh")
        assert db.store.horizon_us > 0
        service = Service(db)
        assert service.database is db


async def test_failing_listener_does_not_leave_a_commit_waiting() -> None:
    with Database.open(None) as db:

        def defect(*_: Any) -> None:
            raise LookupError("broken")

        db.group.listeners.append(defect)
        loop = asyncio.get_running_loop()
        seen: list[Any] = []
        loop.set_exception_handler(lambda _, context: seen.append(context["exception"]))
        with pytest.raises(LookupError, match="broken"):
            await put(db, "a")
        assert [type(error) for error in seen] == [LookupError]
