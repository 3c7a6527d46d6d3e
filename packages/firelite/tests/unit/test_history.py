"""Old versions: how long they can be read, and where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1.base_query import FieldFilter

from firelite import spill
from firelite.database import Database
from firelite.storage.versions import HistoryLimits
from firelite.wire.inprocess import connect

pytestmark = pytest.mark.anyio

VERSIONS = 60
VERSION_BYTES = 1000


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "SEGMENT_BYTES", 5 * VERSION_BYTES)


async def write_versions(client: AsyncClient) -> list[Any]:
    """Write versions of one document; returns their times."""
    times: list[Any] = []
    for number in range(VERSIONS):
        written: Any = await client.document("c/a").set({"n": number, "x": "x" * VERSION_BYTES})
        times.append(written.update_time)
    return times


async def value_at(client: AsyncClient, time: Any) -> Any:
    return (await client.document("c/a").get(read_time=time)).get("n")


def open_files(folder: Path) -> int | None:
    """Number of files with old versions that this process has open; None where that cannot be seen."""
    descriptors = Path("/proc/self/fd")
    if not descriptors.exists():
        return None
    links = [descriptor.readlink() for descriptor in descriptors.iterdir() if descriptor.is_symlink()]
    return sum(str(link).startswith(f"{folder}/.firelite-history-") for link in links)


def named_files(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if "history" in path.name]


async def test_versions_beyond_the_memory_are_read_from_the_disk(tmp_path: Path) -> None:
    limits = HistoryLimits(memory_bytes=VERSIONS * 200 + 10 * VERSION_BYTES)
    with Database.open(tmp_path / "data.db", history=limits) as db:
        client = connect(db)
        times = await write_versions(client)
        assert [await value_at(client, time) for time in times] == list(range(VERSIONS))
        query: Any = client.collection("c").where(filter=FieldFilter("n", ">=", 0))
        assert [[s.get("n") for s in await query.get(read_time=time)] for time in times[::10]] == [
            [number] for number in range(0, VERSIONS, 10)
        ]
        assert not named_files(tmp_path), "a killed process leaves no file"


async def test_size_on_the_disk_is_limited_and_the_oldest_versions_go_first(tmp_path: Path) -> None:
    limits = HistoryLimits(memory_bytes=VERSIONS * 200, disk_bytes=20 * VERSION_BYTES)
    with Database.open(tmp_path / "data.db", history=limits) as db:
        client = connect(db)
        times = await write_versions(client)
        assert await value_at(client, times[-5]) == VERSIONS - 5
        with pytest.raises(exceptions.FailedPrecondition, match="too old"):
            await value_at(client, times[0])
        assert (open_files(tmp_path) or 1) <= 6


async def test_disk_that_cannot_be_written_shortens_the_history_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill.tempfile, "mkstemp", _refuse)
    limits = HistoryLimits(memory_bytes=10 * VERSION_BYTES)
    with Database.open(tmp_path / "data.db", history=limits) as db:
        client = connect(db)
        times = await write_versions(client)
        assert await value_at(client, times[-2]) == VERSIONS - 2
        with pytest.raises(exceptions.FailedPrecondition, match="too old"):
            await value_at(client, times[0])


def _refuse(**_: Any) -> None:
    raise OSError(28, "No space left on device")


async def test_read_only_transaction_survives_writes_of_more_than_the_memory(tmp_path: Path) -> None:
    limits = HistoryLimits(memory_bytes=VERSIONS * 200)
    with Database.open(tmp_path / "data.db", history=limits) as db:
        client = connect(db)
        await client.document("c/a").set({"n": -1, "x": "x" * VERSION_BYTES})
        transaction: Any = client.transaction(read_only=True)
        await transaction._begin()
        assert (await client.document("c/a").get(transaction=transaction)).get("n") == -1
        await write_versions(client)
        assert (await client.document("c/a").get(transaction=transaction)).get("n") == -1


async def test_versions_of_almost_an_hour_ago_can_be_read_by_default() -> None:
    now = [1_000_000_000 * 10**9]
    with Database.open(None, clock=lambda: now[0]) as db:
        client = connect(db)
        times = await write_versions(client)
        now[0] += 3590 * 10**9
        await client.document("c/a").set({"n": -1})
        assert await value_at(client, times[0]) == 0
