"""How fast firelite is on this machine; prints one line of JSON. Times in microseconds, medians unless said otherwise.

python benchmarks/firelite_bench.py [--documents 100000] [--large 300000]

`longest_get_ms` is the longest get during an index build, a sum and a filtered count over the `--large` collection.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import AsyncClient
from google.cloud.firestore_v1 import _helpers
from google.cloud.firestore_v1.base_query import FieldFilter
from google.cloud.firestore_v1.types import document, firestore

from firelite.database import Database
from firelite.documents.protos import Write
from firelite.wire.inprocess import connect

ROUNDS = 1000
CLIENTS = 20


async def timed(action: Callable[[int], Awaitable[object]], rounds: int = ROUNDS) -> dict[str, float]:
    """Median and 99th percentile of one action."""
    for number in range(rounds // 10):
        await action(-1 - number)
    times: list[float] = []
    for number in range(rounds):
        began = time.perf_counter()
        await action(number)
        times.append((time.perf_counter() - began) * 1e6)
    times.sort()
    return {"median_us": round(statistics.median(times), 1), "p99_us": round(times[int(rounds * 0.99)], 1)}


def task(number: int) -> dict[str, Any]:
    return {
        "status": "queued" if number % 5 == 0 else "done",
        "assigned_to": f"role{number % 5}",
        "priority": number % 7,
        "not_before": number,
        "created": number,
        "title": f"task number {number}",
        "lease": {"owner": None, "epoch": 0},
    }


async def commit_two(client: AsyncClient, number: int) -> None:
    batch = client.batch()
    batch.set(client.document(f"runs/{number}"), task(number))
    batch.set(client.document(f"memory/{number}"), {"n": number})
    await batch.commit()


async def documents(client: AsyncClient) -> dict[str, Any]:
    """Commits and reads, one at a time."""
    return {
        "commit_1_write": await timed(lambda n: client.document(f"one/{n}").set(task(n))),
        "commit_2_writes": await timed(lambda n: commit_two(client, n)),
        "get": await timed(lambda n: client.document(f"one/{max(n, 0)}").get()),
    }


async def throughput(client: AsyncClient) -> float:
    """Commits a second with many in flight."""

    async def worker(number: int) -> None:
        for step in range(ROUNDS // CLIENTS):
            await client.document(f"flood/{number}-{step}").set(task(step))

    began = time.perf_counter()
    await asyncio.gather(*(worker(number) for number in range(CLIENTS)))
    return round(ROUNDS / (time.perf_counter() - began))


async def listener(client: Any) -> dict[str, float]:
    """From the start of a commit, and from its acknowledgement, to the listener's message."""
    stop = asyncio.Event()

    async def requests() -> AsyncIterator[Any]:
        names = firestore.Target.DocumentsTarget(documents=[client.document("watched/one")._document_path])
        yield firestore.ListenRequest(
            database=client._database_string, add_target=firestore.Target(documents=names, target_id=1)
        )
        await stop.wait()

    heard: asyncio.Queue[float] = asyncio.Queue()

    async def pump() -> None:
        stream = await client._firestore_api.listen(requests=requests(), metadata=client._rpc_metadata)
        async for message in stream:
            if "document_change" in message:
                heard.put_nowait(time.perf_counter())

    pumping = asyncio.create_task(pump())
    await client.document("watched/one").set({"n": -1})
    await heard.get()
    whole: list[float] = []
    after: list[float] = []
    for number in range(ROUNDS // 2):
        began = time.perf_counter()
        await client.document("watched/one").set({"n": number})
        acknowledged = time.perf_counter()
        told = await heard.get()
        whole.append((told - began) * 1e6)
        after.append((told - acknowledged) * 1e6)
    stop.set()
    await pumping
    return {
        "commit_to_message_median_us": round(statistics.median(whole), 1),
        "acknowledged_to_message_median_us": round(statistics.median(after), 1),
    }


async def queries(db: Database, client: AsyncClient, sizes: list[int]) -> dict[str, Any]:
    """Two queries of the swarm's kind, on collections of growing size."""
    results: dict[str, Any] = {}
    for size in sizes:
        name = f"tasks{size}"
        root = f"projects/{client.project}/databases/(default)/documents/{name}"
        fill(db, root, size)
        collection = client.collection(name)
        queued = collection.where(filter=FieldFilter("status", "==", "queued"))
        best = (
            queued.where(filter=FieldFilter("assigned_to", "==", "role0"))
            .order_by("priority", direction="DESCENDING")
            .order_by("not_before")
            .order_by("created")
            .limit(20)
        )
        due = queued.where(filter=FieldFilter("not_before", "<=", size)).order_by("not_before").limit(20)
        began = time.perf_counter()
        assert len([s async for s in best.stream()]) == 20
        built = (time.perf_counter() - began) * 1e6
        results[str(size)] = {
            "first_query_us": round(built),
            "equal_equal_order3": await timed(lambda _, query=best: query.get(), 300),
            "equal_range": await timed(lambda _, query=due: query.get(), 300),
            "count": await timed(count_of(queued), 300),
            "update": await timed(
                lambda n, name=name, size=size: client.document(f"{name}/{abs(n) % size}").update({"priority": n}), 300
            ),
        }
    return results


async def longest_gets(db: Database, client: Any, size: int) -> dict[str, Any]:
    """The longest get, in milliseconds, while one long query runs."""
    fill(db, f"projects/{client.project}/databases/(default)/documents/large", size)
    large = client.collection("large")
    ranges = large.where(filter=FieldFilter("not_before", ">", 5)).where(filter=FieldFilter("created", ">", 7))
    work: dict[str, Callable[[], Awaitable[object]]] = {
        "index_build": lambda: large.order_by("priority").order_by("created").limit(5).get(),
        "sum": lambda: large.sum("priority").get(),
        "filtered_count": lambda: ranges.count().get(),
    }
    return {name: await longest_get(client.document("large/5"), start()) for name, start in work.items()}


async def longest_get(reference: Any, work: Awaitable[object]) -> float:
    task = asyncio.ensure_future(work)
    longest = 0.0
    while not task.done():
        began = time.perf_counter()
        await asyncio.sleep(0)
        await reference.get()
        longest = max(longest, time.perf_counter() - began)
    await task
    return round(longest * 1e3, 1)


def count_of(query: Any) -> Callable[[int], Awaitable[object]]:
    async def count(_: int) -> None:
        await query.count().get()

    return count


def fill(db: Database, root: str, size: int) -> None:
    helpers: Any = _helpers
    writes: list[Any] = []
    for number in range(size):
        write = Write()
        write.update.name = f"{root}/{number}"
        for field, value in helpers.encode_dict(task(number)).items():
            write.update.fields[field].CopyFrom(document.Value.pb(value))
        writes.append(write)
    for start in range(0, size, 5000):
        db.group.commit_now(writes[start : start + 5000])


async def in_process(folder: Path, sizes: list[int], large: int) -> dict[str, Any]:
    with Database.open(folder / "inprocess.db") as db:
        client = connect(db)
        results = {
            **await documents(client),
            "commits_per_second_20_clients": await throughput(client),
            "listener": await listener(client),
        }
        results["query"] = await queries(db, client, sizes)
    began = time.perf_counter()
    with Database.open(folder / "inprocess.db") as db:
        results["reopen"] = {"documents": db.store.live, "ms": round((time.perf_counter() - began) * 1e3)}
    with Database.open(None) as db:
        results["longest_get_ms"] = await longest_gets(db, connect(db), large)
    return results


async def over_grpc() -> dict[str, Any]:
    client: Any = AsyncClient(project="bench", credentials=AnonymousCredentials())
    results = {
        **await documents(client),
        "commits_per_second_20_clients": await throughput(client),
        "listener": await listener(client),
    }
    await client._firestore_api.transport.close()
    return results


def served(folder: Path) -> dict[str, Any]:
    """The same over gRPC, the server in a process of its own."""
    command = [sys.executable, "-m", "firelite", "serve", "--data", str(folder / "grpc.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        os.environ["FIRESTORE_EMULATOR_HOST"] = json.loads(server.stdout.readline())["endpoint"]
        results = asyncio.run(over_grpc())
        server.terminate()
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000, help="size of the large collection")
    parser.add_argument("--large", type=int, default=300_000, help="size of the collection of the long queries")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(
            json.dumps(
                {
                    "inprocess": asyncio.run(in_process(folder, [100, options.documents], options.large)),
                    "grpc": served(folder),
                }
            )
        )


if __name__ == "__main__":
    main()
