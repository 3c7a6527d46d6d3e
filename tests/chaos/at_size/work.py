"""The work of the run: graphs, tasks written, edited and deleted by hand, repetitions, messages sent twice, poison."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup
from google.cloud.firestore_v1 import AsyncClient

from fireswarm.contracts.ports import Create
from fireswarm.contracts.swarm.task import TaskSpec
from fireswarm.errors import Conflict
from fireswarm.swarm.parts import SwarmParts
from tests.chaos.at_size.hands import Hands
from tests.chaos.test_poison_documents import spoil
from tests.support.working import work_message

SESSION = "chaos"
ROLES = ("architect", "executor", "memory", "predictor", "scout")
ATTEMPTS = 50
GRAPH_SIZES = (3, 6, 12, 30, 60, 120, 300)
GRAPHS = 0.3
"""Tasks below the root of a graph, and the share of graphs among the kinds of work."""

LARGEST_OTHER = 4
NEWER_SKILL = "leave-more-evidence"
"""A skill that only the fleet of a newer version has."""

EVIDENCE = """
import uuid
from pathlib import Path
from fireswarm.contracts.skills.skill import SkillResult

def run(request):
    # The file's time is the kernel's: the clock of this process may be shifted. Confined code writes to `path` only,
    # and a task made of a message has none.
    if "path" in request.context:
        (Path(request.context["path"]) / f"{request.task_id}.{uuid.uuid4().hex}").touch()
    return SkillResult(summary=f"executed {request.context.get('word', '')}")
"""
FAIL_ONCE = """
import uuid
from pathlib import Path
from fireswarm.contracts.skills.skill import SkillResult

def run(request):
    folder = Path(request.context["path"])
    failed = folder / "failed" / request.task_id
    if not failed.exists():
        failed.touch()
        return SkillResult.failure("the first attempt fails", retryable=True)
    (folder / f"{request.task_id}.{uuid.uuid4().hex}").touch()
    return SkillResult(summary="executed at last")
"""


class Seeder:
    """Creates work until a number of tasks is reached; ``counts`` says how much of each kind."""

    def __init__(self, swarm: SwarmParts, evidence: Path, hands: Hands, rng: random.Random) -> None:
        self.swarm = swarm
        self.evidence = str(evidence)
        self.hands = hands
        self.rng = rng
        self.counts: Counter[str] = Counter()
        self.seeded = anyio.Event()

    async def seed_all(self, total: int, client: AsyncClient, poison: int) -> None:
        """Create work for *total* tasks, with *poison* unreadable documents spread over it."""
        async with anyio.create_task_group() as group:
            await self._seed(total, client, poison, group)
        self.seeded.set()

    async def _seed(self, total: int, client: AsyncClient, poison: int, group: TaskGroup) -> None:
        every = max(1, total // max(1, poison))
        changed = (partial(self._edited, group), partial(self._deleted, group))
        kinds = (self._chain, self._single, self._by_hand, self._twins, self._message, self._for_newer, *changed)
        while (left := total - self.counts["tasks"]) > 0:
            before = self.counts["tasks"]
            sizes = [size for size in GRAPH_SIZES if size < left]
            if left < LARGEST_OTHER:
                await self._single()
            elif sizes and self.rng.random() < GRAPHS:
                await self._graph(self.rng.choice(sizes))
            else:
                await self.rng.choice(kinds)()
            for number in range(before // every, self.counts["tasks"] // every):
                await self._poison(client, number)

    def _spec(self, name: str, **fields: Any) -> TaskSpec:
        context = {"path": self.evidence, **fields.pop("context", {})}
        values: dict[str, Any] = {
            "objective": name,
            "assigned_to": self.rng.choice(ROLES),
            "session_hash": SESSION,
            "skill": "leave-evidence",
            "context": context,
            "max_attempts": ATTEMPTS,
            "priority": self.rng.randint(1, 10),
        }
        return TaskSpec.model_validate(values | fields)

    def _name(self, kind: str) -> str:
        self.counts[kind] += 1
        return f"{kind} {self.counts[kind]}"

    async def _graph(self, count: int) -> None:
        spec = self._spec(
            self._name("graph"), assigned_to="architect", skill="graph", context={"count": count, "fails": "7"}
        )
        await self.hands.surely(partial(self.swarm.board.submit, spec))
        self.counts["tasks"] += count + 1

    async def _chain(self) -> None:
        before: tuple[str, ...] = ()
        for _ in range(4):
            spec = self._spec(self._name("chained"), depends_on=before)
            submitted = await self.hands.surely(partial(self.swarm.board.submit, spec))
            before = (submitted.task.task_id,)
        self.counts["tasks"] += 4

    async def _single(self) -> None:
        spec = self._spec(self._name("single"), skill=self.rng.choice(("leave-evidence", "fail-once")))
        for _ in range(2):  # the second time, it exists
            await self.hands.surely(partial(self.swarm.board.submit, spec))
        self.counts["tasks"] += 1

    async def _by_hand(self) -> None:
        name = self._name("by-hand")
        first, second = name.replace(" ", "-"), f"{name.replace(' ', '-')}-after"
        await self._create({first: self._document(name)})
        after = self._document(f"{name} after") | {"depends_on": [first], "note": "mine"}
        await self._create({second: after})
        self.counts["tasks"] += 2

    async def _edited(self, group: TaskGroup) -> None:
        name = self._name("edited")
        task_id = name.replace(" ", "-")
        document = self._document(name)
        await self._create({task_id: document | {"context": document["context"] | {"word": f"{task_id}-before"}}})
        self.hands.edit_later(group, task_id, f"{task_id}-after")
        self.counts["tasks"] += 1

    async def _deleted(self, group: TaskGroup) -> None:
        """Create two tasks of which the second depends on the first, and delete the first."""
        name = self._name("deleted")
        first = name.replace(" ", "-")
        await self._create({first: self._document(name)})
        spec = self._spec(f"{name} after", depends_on=(first,))
        await self.hands.surely(partial(self.swarm.board.submit, spec))
        self.hands.delete_later(group, first)
        self.counts["tasks"] += 2

    async def _for_newer(self) -> None:
        """Create a document of a newer version, and a task for a skill that only the newer version has."""
        name = self._name("newer")
        document = self._document(name) | {"schema_version": 2, "on_child_failure": "ask", "labels": ["new"]}
        await self._create(
            {name.replace(" ", "-"): document | {"skill": self.rng.choice((NEWER_SKILL, "leave-evidence"))}}
        )
        spec = self._spec(f"{name} skill", skill=NEWER_SKILL)
        await self.hands.surely(partial(self.swarm.board.submit, spec))
        self.counts["tasks"] += 2

    async def _twins(self) -> None:
        document = self._document(self._name("twins"))
        ids = [f"twin-{self.counts['twins']}-{number}" for number in range(3)]
        await self._create(dict.fromkeys(ids, document))
        self.counts["tasks"] += 3

    async def _create(self, documents: Mapping[str, dict[str, Any]]) -> None:
        writes = [Create(f"agent_tasks/{task_id}", data) for task_id, data in documents.items()]
        with contextlib.suppress(Conflict):  # an earlier attempt was applied, and its answer lost
            await self.hands.surely(partial(self.swarm.store.commit, writes))

    def _document(self, objective: str) -> dict[str, Any]:
        return {
            "assigned_to": self.rng.choice(ROLES),
            "status": "queued",
            "objective": objective,
            "session_hash": SESSION,
            "skill": "leave-evidence",
            "context": {"path": self.evidence},
            "max_attempts": ATTEMPTS,
        }

    async def _message(self) -> None:
        message_id = self._name("message").replace(" ", "-")
        envelope = work_message(message_id, "courier", f"carry {message_id}", session=SESSION)
        for _ in range(3):
            send = partial(self.swarm.mailbox.send, envelope, "architect-1", "courier", sender_role="architect")
            await self.hands.surely(send)
        self.counts["tasks"] += 1

    async def _poison(self, client: AsyncClient, number: int) -> None:
        good = self._document(f"poison {number}") | {"session_hash": "poison", "priority": 10}
        spoiled = spoil(self.rng, client, good)
        await self.hands.surely(partial(client.document(f"agent_tasks/poison-{number}").set, spoiled))
        self.counts["poison"] += 1
