"""A model delegates to another role, and both processes are killed in between: the result comes back exactly once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import anyio
import pytest
import yaml

from fireswarm.contracts.swarm.task import StatusReason, Task, TaskSpec, TaskStatus
from fireswarm.runs.sinks.run_reader import read_events
from fireswarm.settings import load_settings
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.build import parse_task
from fireswarm.swarm.opening.open_parts import open_parts
from fireswarm.swarm.parts import SwarmParts
from tests.support.fleet import environment, until, with_signal
from tests.support.processes import Process, free_port, reachable
from tests.support.providers import FakeProviders, Received, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.chaos]

LIMIT_SECONDS = 240.0
LEASE_SECONDS = 4.0
LOOKED_UP, ANSWER = "look up the tide", "The tide is low at noon: walk then."
FOUND = "low tide at noon"
CALL = "toolu_0_0"
"""The id of the architect's only call, as the server gives it."""


@dataclass(slots=True)
class Models:
    """What both roles' models answer. The calls named in ``held`` get no answer; ``asked`` tells when one comes."""

    held: set[str] = field(default_factory=set[str])
    calls: Counter[str] = field(default_factory=Counter[str])
    asked: dict[str, anyio.Event] = field(default_factory=dict[str, anyio.Event])

    def event(self, call: str) -> anyio.Event:
        return self.asked.setdefault(call, anyio.Event())

    def __call__(self, request: Received) -> Reply:
        role = "scout" if LOOKED_UP in _text(request.body["messages"][0]) else "architect"
        call = f"{role} {request.answers}"
        self.calls[call] += 1
        self.event(call).set()
        fault = "slow" if call in self.held else ""
        match call:
            case "architect 0":
                return Reply(calls=(("delegate", {"role": "scout", "objective": LOOKED_UP}),), fault=fault)
            case "architect 1":
                return Reply(ANSWER, fault=fault)
            case "scout 0":
                return Reply(FOUND, fault=fault)
            case _:
                raise AssertionError(f"{call} is one call too many")


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else " ".join(str(block.get("text", "")) for block in content)


def results_in(request: Received) -> list[dict[str, Any]]:
    """The results of calls in a request."""
    blocks = [
        block for each in request.body["messages"] if isinstance(each["content"], list) for block in each["content"]
    ]
    return [block for block in blocks if block["type"] == "tool_result"]


@dataclass(slots=True)
class Scene:
    """A store and two role processes, a model server, and a connection to the store."""

    root: Path
    models: Models
    server: FakeProviders
    store: Process
    roles: dict[str, Process]
    host: str
    swarm: SwarmParts
    root_id: str = ""

    async def submit(self, objective: str) -> None:
        """Submit a new objective to the architect, and forget what the models were asked for the last one."""
        self.server.release.set()
        self.server.release = asyncio.Event()
        self.server.received.clear()
        self.models.calls.clear()
        self.models.asked.clear()
        spec = TaskSpec(objective=objective, assigned_to="architect", session_hash="walk", max_attempts=20)
        self.root_id = (await self.swarm.board.submit(spec)).task.task_id

    async def when(self, holds: Callable[[Task, list[Task]], bool]) -> tuple[Task, list[Task]]:
        """Wait until the store has the parent and its children in such a state; a listener tells of each change."""
        async with self.swarm.store.listen(queries.chain(self.root_id)) as snapshots:
            async for found in snapshots:
                tasks = [parse_task(snapshot.data, snapshot.path) for snapshot in found]
                parent = next((task for task in tasks if task.task_id == self.root_id), None)
                children = [task for task in tasks if task.task_id != self.root_id]
                if parent is not None and holds(parent, children):
                    return parent, children
        raise AssertionError("the listener ended")

    async def start(self) -> None:
        """Start what does not run."""
        self.store.ensure()
        await until(lambda: reachable(self.host), seconds=30, what="serving the store")
        for process in self.roles.values():
            process.ensure()

    def kill(self, *processes: Process) -> None:
        """Kill processes that run, and wait for their ends."""
        for process in processes:
            assert process.signal(signal.SIGKILL), f"{process.name} had ended: {process.log.read_text()[-2000:]}"
            assert process.running is not None
            process.running.wait()


@contextlib.asynccontextmanager
async def scene(root: Path) -> AsyncGenerator[Scene]:
    """Serve models and the store, start both roles, and end everything afterwards."""
    models, port = Models(), free_port()
    host = f"127.0.0.1:{port}"
    async with FakeProviders(models).serving() as server:
        providers = {"anthropic": {"base_url": server.url}}
        settings = {
            "session": "walk",
            "leases": {"lease_seconds": LEASE_SECONDS, "backoff_base_seconds": 0.05},
            "worker": {"concurrency": 1, "drain_seconds": 1},
            "model": {"provider": "anthropic", "providers": providers},
        }
        (root / "swarm.yaml").write_text(yaml.safe_dump(settings))
        target = {"FIRESTORE_EMULATOR_HOST": host, "GOOGLE_CLOUD_PROJECT": "walk", "FIRESWARM_TRUST_SETTINGS": "true"}
        env = environment() | target | {"ANTHROPIC_API_KEY": "sk-test"}
        serve = ["store", "serve", "--port", str(port), "--data", str(root / "walk.firelite")]
        store = Process("store", serve, env, root / "store.log", root)
        roles = {
            name: Process(name, ["role", name], env, root / f"{name}.log", root) for name in ("architect", "scout")
        }
        try:
            store.ensure()
            await until(lambda: reachable(host), seconds=30, what="serving the store")
            with mock.patch.dict(os.environ, target):
                async with open_parts(load_settings(root, environment=env)) as swarm:
                    yield Scene(root, models, server, store, roles, host, swarm)
        finally:
            server.release.set()
            for process in (*roles.values(), store):
                if process.running is not None and process.running.poll() is None:
                    with_signal(process.running, signal.SIGKILL)
                    process.running.wait()


def suspended(parent: Task, children: list[Task]) -> bool:
    return len(children) == 1 and (parent.status, parent.status_reason) == (TaskStatus.BLOCKED, StatusReason.DELEGATING)


async def when_the_child_exists(at: Scene) -> Counter[str]:
    """The scout is stopped, so that the child is in the queue when both die."""
    at.roles["scout"].signal(signal.SIGSTOP)
    _, [child] = await at.when(suspended)
    assert child.status is TaskStatus.QUEUED
    return Counter({"architect 0": 1, "architect 1": 1, "scout 0": 1})


async def while_the_child_runs(at: Scene) -> Counter[str]:
    at.models.held = {"scout 0"}
    await at.models.event("scout 0").wait()
    return Counter({"architect 0": 1, "architect 1": 1, "scout 0": 2})


async def when_the_child_is_settled(at: Scene) -> Counter[str]:
    """The architect is stopped while the child runs, so that it cannot go on before both die."""
    at.models.held = {"scout 0"}
    await at.when(suspended)
    await at.models.event("scout 0").wait()
    at.roles["architect"].signal(signal.SIGSTOP)
    at.server.release.set()
    parent, _ = await at.when(lambda _parent, children: bool(children) and children[0].status is TaskStatus.DONE)
    assert not parent.status.terminal
    return Counter({"architect 0": 1, "architect 1": 1, "scout 0": 1})


async def while_the_parent_reads_the_result(at: Scene) -> Counter[str]:
    at.models.held = {"architect 1"}
    await at.models.event("architect 1").wait()
    return Counter({"architect 0": 1, "architect 1": 2, "scout 0": 1})


async def test_result_of_a_delegated_task_comes_back_once_after_kill_9_of_both(tmp_path: Path) -> None:
    """The store is killed too at every second point."""
    async with scene(tmp_path) as at:
        with anyio.fail_after(LIMIT_SECONDS):
            await _survives(at, when_the_child_exists, store_too=False)
            await _survives(at, while_the_child_runs, store_too=True)
            await _survives(at, when_the_child_is_settled, store_too=False)
            await _survives(at, while_the_parent_reads_the_result, store_too=True)


async def _survives(at: Scene, point: Callable[[Scene], Awaitable[Counter[str]]], *, store_too: bool) -> None:
    await at.start()
    await at.submit(f"plan the walk, {point.__name__}")
    expected = await point(at)
    at.kill(*at.roles.values(), *([at.store] if store_too else []))
    at.models.held = set()
    await at.start()
    parent, children = await at.when(lambda parent, _children: parent.status.terminal)
    assert parent.status is TaskStatus.DONE, (point.__name__, parent.error)
    assert parent.result is not None and parent.result.summary == ANSWER
    assert [(child.status, child.assigned_to) for child in children] == [(TaskStatus.DONE, "scout")]
    assert at.models.calls == expected, f"{point.__name__}: an answer in the journal was asked for again"
    await _check_results(at, parent)


async def _check_results(at: Scene, parent: Task) -> None:
    """The result is under the id of its call once in each request with it, and settled once in the journal."""
    assert at.server.refused == []
    told = [request for request in at.server.calls if results_in(request)]
    assert len(told) == at.models.calls["architect 1"]
    assert len({request.raw for request in told}) == 1, "a request that is repeated is the same, byte by byte"
    for request in told:
        [result] = results_in(request)
        assert result["tool_use_id"] == CALL
        assert FOUND in str(result["content"])
    finished: Counter[str] = Counter()
    for epoch in range(1, parent.epoch + 1):
        run = await at.swarm.store.get(f"agent_runs/{parent.run_id(epoch)}")
        for event in await read_events(at.swarm.store, run):
            if event["type"] == "step_finished":
                finished[str(event["payload"]["step"])] += 1
    assert finished and set(finished.values()) == {1}, finished
