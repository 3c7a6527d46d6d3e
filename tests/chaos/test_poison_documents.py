"""Any Firestore value in any field of any collection: no worker ends, and good tasks are done.

The documents are written with the official client, past all checks of ours. ``FIRESWARM_POISON=N`` sets their number,
``FIRESWARM_SEED`` the first seed; a failure names the seed of its swarm.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.cloud.firestore_v1 import AsyncClient, GeoPoint
from google.cloud.firestore_v1.vector import Vector

from fireswarm.contracts.ports import Query
from fireswarm.contracts.skills.skill import Fact
from fireswarm.contracts.swarm.envelope import Envelope, TaskRef, Trace
from fireswarm.contracts.swarm.outcome import Waiting
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.errors import InvalidInput, NewerDocument
from fireswarm.storage.documents.paths import AGENTS, CONTEXTS, FILES, KEYS, MAILBOX, MEMORY, REQUESTS, RUNS, TASKS
from fireswarm.storage.documents.read import parse_task_snapshot
from tests.support.swarm import SwarmRig, done, open_test_swarm
from tests.support.working import with_skills, working

PER_SWARM = 40
DOCUMENTS = int(os.environ.get("FIRESWARM_POISON", "400"))
SEED = int(os.environ.get("FIRESWARM_SEED", "1"))

COLLECTIONS = (TASKS, RUNS, MAILBOX, MEMORY, FILES, CONTEXTS, AGENTS, KEYS, REQUESTS)
NAMES = ("sweep_at", "lease", "status", "status_reason", "assigned_to", "depends_on", "context", "extra")
"""Fields that are spoiled also where a good document lacks them."""

TEXTS = (
    "",
    "x" * 8_001,
    "..",
    "__id__",
    "a/b",
    "queued",
    "in_progress",
    "blocked",
    "done",
    "canceled",
    "scout",
    "ü\x00",
)
NUMBERS = (0, -1, 1, 99, 10**15, 2**63 - 1, -(2**63), 0.5, -0.0, 1e308, float("nan"), float("inf"), float("-inf"))


def value(rng: random.Random, client: AsyncClient, depth: int = 3) -> Any:
    """Any value that Firestore stores."""
    kind = rng.randrange(12 if depth else 9)
    match kind:
        case 0:
            return None
        case 1:
            return rng.choice((True, False))
        case 2 | 3:
            return rng.choice(NUMBERS)
        case 4:
            return rng.choice(TEXTS)
        case 5:
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=rng.randrange(-700_000, 2_900_000))
        case 6:
            return rng.randbytes(rng.randrange(8))
        case 7:
            return GeoPoint(rng.uniform(-90, 90), rng.uniform(-180, 180))
        case 8:
            return rng.choice((client.document("agent_tasks/elsewhere"), Vector([1.0, 2.0])))
        case 9:
            items = [value(rng, client, depth - 1) for _ in range(rng.randrange(4))]
            return [item for item in items if not isinstance(item, (list, Vector))]
        case _:
            keys = rng.sample(
                ("expires_at", "owner_agent_id", "epoch", "chain_id", "name", "a b", "é"), rng.randrange(4)
            )
            return {key: value(rng, client, depth - 1) for key in keys}


async def good_documents(swarm: SwarmRig) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Real documents of every kind: tasks in each state with their runs, mail, memory, and an agent."""
    waits = await swarm.submit("ask", priority=10)
    asking = await swarm.claim_one()
    await swarm.board.settle(asking, Waiting(StatusReason.INPUT_REQUIRED, "which?"))
    finished = await swarm.submit("finish", priority=10)
    held = await swarm.claim_one()
    journal = await swarm.journal(held)
    journal.note("skill_started", skill="noop")
    await journal.flush()
    await swarm.settle(held, done("finished"))
    await swarm.submit("follow", depends_on=(waits.task_id,))
    await swarm.submit("run")
    running = await swarm.claim_one(agent="another")
    await (await swarm.journal(running)).flush()
    await swarm.submit("queue")
    trace = Trace(chain_id=finished.task_id, step=0)
    for number, to in enumerate(("scout", "scout-1")):
        envelope = Envelope(
            envelope_id=f"m{number}", task=TaskRef(task_id="t", assigned_to="scout"), session_hash="s1", trace=trace
        )
        await swarm.core.mailbox.send(envelope, "architect-1", to, sender_role="architect")
    await swarm.core.mailbox.answer(waits, {"where": "north"}, "operator", "m2")
    await swarm.store.commit(await swarm.core.memory.remember(finished, (Fact(bucket="b", key="k", value=1),)))
    documents: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for collection in COLLECTIONS:
        snapshots = await swarm.store.query(Query(collection))
        documents[collection] = [(item.id, dict(item.data or {})) for item in snapshots]
    documents[MAILBOX] = [(item_id, data | {"status": "new"}) for item_id, data in documents[MAILBOX]]
    return documents


def spoil(rng: random.Random, client: AsyncClient, good: Mapping[str, Any]) -> dict[str, Any]:
    """Replace one to three fields of a good document by any value, and sometimes drop one."""
    data = dict(good)
    names = [*good, *NAMES]
    for name in rng.sample(names, min(len(names), rng.randint(1, 3))):
        data[name] = value(rng, client)
    if rng.random() < 0.3:
        data.pop(rng.choice(names), None)
    return data


async def write_poison(
    good: Mapping[str, list[tuple[str, dict[str, Any]]]], client: AsyncClient, rng: random.Random
) -> None:
    for number in range(PER_SWARM):
        collection = rng.choice((TASKS, TASKS, TASKS, *COLLECTIONS))
        known = good[collection]
        good_id, data = rng.choice(known) if known else ("none", {})
        in_place = rng.random() < 0.3
        await client.document(f"{collection}/{good_id if in_place else f'poison-{number}'}").set(
            spoil(rng, client, data)
        )


async def check_queue(swarm: SwarmRig) -> None:
    """No task that cannot be read is left in the queue, unless a newer version may have written it."""
    for snapshot in await swarm.store.query(Query(TASKS)):
        data = snapshot.data or {}
        try:
            parse_task_snapshot(snapshot)
        except NewerDocument:
            continue
        except InvalidInput:
            queued = data.get("assigned_to") == "scout" and data.get("status") == "queued"
            assert not queued, f"{snapshot.path} is still in the queue: {data}"


@pytest.mark.anyio
@pytest.mark.parametrize("seed", range(SEED, SEED + max(1, DOCUMENTS // PER_SWARM)))
async def test_no_document_stops_a_worker_or_hides_a_good_task(seed: int) -> None:
    rng = random.Random(seed)
    async with open_test_swarm() as swarm:
        client = swarm.connect()
        documents = await good_documents(swarm)
        async with working(with_skills(swarm)) as worker:
            await write_poison(documents, client, rng)
            await swarm.clock.advance(130)
            good = await swarm.submit("a good task", priority=1, skill="noop")
            for _ in range(20):
                await swarm.clock.advance(20)
                if (await swarm.task(good.task_id)).status is TaskStatus.DONE:
                    break
            assert (await swarm.task(good.task_id)).status is TaskStatus.DONE
            assert worker.faults == 0, "an unexpected error was only caught by the last guard"
        await check_queue(swarm)
