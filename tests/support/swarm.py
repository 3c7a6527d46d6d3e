"""A small swarm for tests: the real board, mailbox, journal and memory on firelite, under a virtual clock."""

from __future__ import annotations

import contextlib
import random
import uuid
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import AsyncClient

from firelite.database import Database
from firelite.query.index_definitions import IndexSet
from firelite.wire.inprocess import connect
from fireswarm.client import Swarm
from fireswarm.clocks import VirtualClock
from fireswarm.contracts.swarm.outcome import Done, Outcome
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.contracts.swarm.task import Task, TaskResult, TaskSpec
from fireswarm.runs.sinks.documents import Journal
from fireswarm.settings import Settings
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.packs.catalog import Catalog
from fireswarm.storage.blobs import FsspecBlobs
from fireswarm.storage.documents.paths import run_path, task_path
from fireswarm.storage.firestore.channel import close
from fireswarm.storage.firestore.store import FirestoreStore
from fireswarm.storage.memory import Memory
from fireswarm.swarm.board import Board, BoardRules, HeldLease
from fireswarm.swarm.opening.open_parts import LOCAL_PROJECT
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.records.heartbeats import Heartbeats
from fireswarm.swarm.records.mailbox import Mailbox
from fireswarm.swarm.records.policy import HandoffPolicy
from fireswarm.swarm.turn.turn import open_journal

ROLES = ("architect", "executor", "memory", "predictor", "scout")


@dataclass(slots=True)
class SwarmRig:
    """The pieces a test works with, and a few verbs that read well."""

    core: SwarmParts
    clock: VirtualClock
    database: Database

    @property
    def client(self) -> Swarm:
        return Swarm(self.core)

    @property
    def board(self) -> Board:
        return self.core.board

    @property
    def store(self) -> Any:
        return self.core.store

    def connect(self) -> AsyncClient:
        """Return another client of the swarm's documents."""
        return connect(self.database, LOCAL_PROJECT)

    async def submit(self, objective: str = "look around", role: str = "scout", **fields: Any) -> Task:
        spec = TaskSpec(objective=objective, assigned_to=role, session_hash=fields.pop("session", "s1"), **fields)
        return (await self.board.submit(spec)).task

    async def claim(self, agent: str = "agent-a", role: str = "scout", wanted: int = 1) -> list[HeldLease]:
        return await self.board.claimer(role, agent).claim(wanted)

    async def claim_one(self, agent: str = "agent-a", role: str = "scout") -> HeldLease:
        [held] = await self.claim(agent, role)
        return held

    async def settle(self, held: HeldLease, outcome: Outcome | None = None) -> None:
        await self.board.settle(held, outcome or done())

    async def task(self, task_id: str) -> Task:
        return await self.board.get(task_id)

    async def run(self, held: HeldLease) -> dict[str, Any]:
        return dict((await self.store.get(run_path(held.run_id))).data or {})

    async def raw(self, task_id: str) -> dict[str, Any]:
        return dict((await self.store.get(task_path(task_id))).data or {})

    async def journal(self, held: HeldLease) -> Journal:
        return await open_journal(held, self.core)


def done(summary: str = "done", **fields: Any) -> Done:
    """A finished outcome."""
    return Done(TaskResult(summary=summary, **fields))


@contextlib.asynccontextmanager
async def open_emulator_swarm(project: str = "", **options: Any) -> AsyncGenerator[SwarmRig]:
    """Open a swarm on the emulator at FIRESTORE_EMULATOR_HOST, in a new project or in the one that is named."""
    client = AsyncClient(project=project or f"test-{uuid.uuid4().hex[:12]}", credentials=AnonymousCredentials())
    options.setdefault("clock", VirtualClock(datetime.now(UTC)))
    try:
        async with open_test_swarm(client=client, **options) as opened:
            yield opened
    finally:
        await close(client)


@contextlib.asynccontextmanager
async def open_test_swarm(
    *,
    rules: BoardRules | None = None,
    database: Database | None = None,
    clock: VirtualClock | None = None,
    client: AsyncClient | None = None,
    keep: Path | None = None,
    **settings: Any,
) -> AsyncGenerator[SwarmRig]:
    """Open a swarm on a database (in memory unless one is given), or on the store of *client*.

    The folder *keep* has the blobs, and the documents unless they are elsewhere, for a process that comes later.
    """
    clock = clock or VirtualClock()
    indexes = IndexSet.load(packaged_path("firestore.indexes.json"))
    with contextlib.ExitStack() as stack:
        folder = str(keep or stack.enter_context(TemporaryDirectory()))
        if database is None:
            file = keep / "test.firelite" if keep and not client else None
            database = stack.enter_context(Database.open(file, indexes=indexes, clock=clock.nanoseconds))
        store = FirestoreStore(client or connect(database, LOCAL_PROJECT), clock)
        roles = {name: RoleCard(name=name, description=name, skills=("noop",)) for name in ROLES}
        board = Board(store, clock, frozenset(roles), rules or BoardRules(), random.Random(1))
        core = SwarmParts(
            settings=Settings.model_validate({"root": Path(folder), **settings}),
            store=store,
            clock=clock,
            blobs=FsspecBlobs(f"{folder}/blobs"),
            board=board,
            mailbox=Mailbox(store, clock, HandoffPolicy.load(packaged_path("mailbox") / "policy.yaml")),
            memory=Memory(store, clock),
            heartbeats=Heartbeats(store, clock),
            roles=roles,
            catalog=Catalog(),
            workdir=Path(folder) / "work",
        )
        yield SwarmRig(core, clock, database)
