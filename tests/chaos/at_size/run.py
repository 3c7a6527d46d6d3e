"""Run work under faults until it is done, and return what the documents then say."""

from __future__ import annotations

import contextlib
import math
import os
import random
import sys
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import anyio
import yaml
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore_v1 import AsyncClient

from fireswarm.contracts.ports import Query
from fireswarm.errors import StoreError
from fireswarm.settings import Settings, load_settings
from fireswarm.swarm.opening.open_parts import open_parts
from fireswarm.swarm.parts import SwarmParts
from tests.chaos.at_size.check import check
from tests.chaos.at_size.hands import Hands
from tests.chaos.at_size.work import EVIDENCE, FAIL_ONCE, NEWER_SKILL, SESSION, Seeder
from tests.support.fleet import GRAPH, lay_out, until
from tests.support.processes import Processes, reachable

LEASE_SECONDS = 5.0
LEASES = {"backoff_base_seconds": 0.1, "backoff_max_seconds": 2.0}
SETTINGS = {
    "session": SESSION,
    "worker": {"concurrency": 2, "drain_seconds": 3},
    "queue": {"max_queued": 0},
}


@dataclass(frozen=True, slots=True)
class Plan:
    """Size of the run. *host*: the address of a store that is not ours, such as Google's emulator.

    A *calm* run has every fault but the end and the standstill of single processes: it may cost no task an attempt.
    ``commit_faults`` is the share of the fleets' commits that fail.
    """

    tasks: int
    seed: int
    poison: int
    replicas: int = 2
    kill_every_seconds: float = 2.0
    limit_seconds: float = 3_600.0
    host: str | None = None
    calm: bool = False
    commit_faults: float = 0.01
    suspend_every_seconds: float = 40.0
    lease_seconds: float = LEASE_SECONDS


async def run(plan: Plan, root: Path) -> dict[str, Any]:
    """Run the plan in the empty folder *root* and return the fields of its JSON line."""
    rng = random.Random(plan.seed)
    evidence, project = root / "evidence", f"chaos-{uuid.uuid4().hex[:8]}"  # a store may have data of an earlier run
    (evidence / "failed").mkdir(parents=True)
    skills = {"leave-evidence": EVIDENCE, "fail-once": FAIL_ONCE, "graph": GRAPH}
    newer = root / "newer"
    newer.mkdir()
    for folder, more in ((root, {}), (newer, {NEWER_SKILL: EVIDENCE})):
        lay_out(folder, skills | more, settings=SETTINGS | {"leases": {**LEASES, "lease_seconds": plan.lease_seconds}})
        _add_courier(folder)
    roles = dict.fromkeys(("architect", "executor", "memory", "predictor", "scout"), plan.replicas) | {"courier": 1}
    processes = Processes(root, rng, plan.host, roles, newer=newer, project=project, commit_faults=plan.commit_faults)
    started = time.monotonic()
    found: dict[str, Any] = {}
    try:
        host = processes.start()
        await until(lambda: reachable(host), seconds=30, what="serving the store")
        with mock.patch.dict(os.environ, FIRESTORE_EMULATOR_HOST=host, GOOGLE_CLOUD_PROJECT=project):
            settings = load_settings(
                root, environment={"FIRESTORE_EMULATOR_HOST": host, "GOOGLE_CLOUD_PROJECT": project}
            )
            async with anyio.create_task_group() as group:
                group.start_soon(processes.keep)
                found |= await _work(plan, settings, processes, evidence, rng)
                group.cancel_scope.cancel()
    finally:
        processes.end()
    seconds = round(time.monotonic() - started, 1)
    processes.counts["unexpected_ends"] = processes.unexpected_ends()
    processes.counts["failed_commits"] = processes.failed_commits()
    counted: Mapping[str, int] = processes.counts
    return {"tasks": plan.tasks, "seed": plan.seed, "seconds": seconds} | dict(counted) | found


async def _work(
    plan: Plan, settings: Settings, processes: Processes, evidence: Path, rng: random.Random
) -> dict[str, Any]:
    async with open_parts(settings) as swarm:
        client = AsyncClient(project=os.environ["GOOGLE_CLOUD_PROJECT"], credentials=AnonymousCredentials())
        hands = Hands(swarm, client, SESSION, rng)
        seeder = Seeder(swarm, evidence, hands, rng)
        async with anyio.create_task_group() as faults:
            faults.start_soon(seeder.seed_all, plan.tasks, client, plan.poison)
            faults.start_soon(hands.try_again)
            if not plan.calm:
                faults.start_soon(processes.break_things, plan.kill_every_seconds, 1.5 * LEASE_SECONDS)
            faults.start_soon(processes.suspend_all, plan.suspend_every_seconds, 1.5 * LEASE_SECONDS)
            with anyio.move_on_after(plan.limit_seconds):
                await seeder.seeded.wait()
                await until(lambda: _all_done(swarm, plan.tasks - hands.counts["deleted"]), seconds=math.inf, every=2)
            faults.cancel_scope.cancel()
        processes.resume()
        with contextlib.suppress(AssertionError):  # the check reports the runs that are open then
            await until(partial(_settled, swarm), seconds=30, every=0.5)
        checked = await check(swarm, plan.tasks - hands.counts["deleted"], evidence, hands.words)
        return dict(seeder.counts) | dict(hands.counts) | checked


async def _all_done(swarm: SwarmParts, tasks: int) -> bool:
    """Return True if so many tasks are done; False while the store cannot be reached."""
    done = Query("agent_tasks", where=(("session_hash", "==", SESSION), ("status", "==", "done")))
    try:
        count = await swarm.store.count(done)
    except StoreError:
        return False
    print(f"{count:,} of {tasks:,} tasks are done", end="\r", file=sys.stderr)
    return count >= tasks


async def _settled(swarm: SwarmParts) -> bool:
    """Return True if no run is open: a stopped process may still hold a lost epoch."""
    for status in ("started", "progress"):
        runs = Query("agent_runs", where=(("session_hash", "==", SESSION), ("status", "==", status)))
        if await swarm.store.count(runs):
            return False
    return True


def _add_courier(root: Path) -> None:
    """Add a role that gets its work by message: its only skill needs no choice."""
    card = root / "roles" / "courier" / "ROLE.md"
    card.parent.mkdir()
    header = {"name": "courier", "description": "works on messages", "skills": ["leave-evidence"]}
    card.write_text(f"---\n{yaml.safe_dump(header)}---\nA role of a test.\n")
