"""A worker under test: the real loop on the real board, with inline skills and a virtual clock."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from typing import Any

import anyio

from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.contracts.swarm.envelope import Envelope, TaskRef, Trace
from fireswarm.swarm.parts import InlineSkill, SwarmParts, noop
from fireswarm.swarm.worker.loop import Worker
from tests.support.swarm import SwarmRig

SETTLE_ROUNDS = 400


def with_skills(swarm: SwarmRig, **skills: InlineSkill) -> SwarmParts:
    """The swarm's core with inline skills by name (underscores become hyphens)."""
    named = {name.replace("_", "-"): skill for name, skill in skills.items()}
    return replace(swarm.core, inline={"noop": noop, **named})


@contextlib.asynccontextmanager
async def working(
    core: SwarmParts, role: str = "scout", agent: str = "scout-1", *, faults: int = 0
) -> AsyncGenerator[Worker]:
    """Run a worker inside the block; afterwards it has drained and returned, with this number of internal errors."""
    worker = Worker(core, role, agent)
    async with anyio.create_task_group() as group:
        group.start_soon(worker.run)
        try:
            yield worker
        finally:
            worker.stop()
            worker.stop()
    assert worker.faults == faults, "an unexpected error was logged"


async def eventually(swarm: SwarmRig, condition: Callable[[], bool], what: str) -> None:
    """Let everybody run, without time passing, until *condition* holds."""
    for _ in range(SETTLE_ROUNDS):
        if condition():
            return
        await swarm.clock.settle()
    raise AssertionError(f"{what} did not happen")


class Gate:
    """An inline skill that waits until the test opens it, and tells how often it began and ended."""

    def __init__(self) -> None:
        self.began = 0
        self.ended = 0
        self.opened = anyio.Event()

    async def __call__(self, request: SkillRequest) -> SkillResult:
        self.began += 1
        await self.opened.wait()
        self.ended += 1
        return await noop(request)


def work_message(
    message_id: str = "m1", role: str = "scout", notes: str = "count the words", *, session: str = "s1", **fields: Any
) -> Envelope:
    """A message that asks a role for work."""
    return Envelope(
        envelope_id=message_id,
        task=TaskRef(task_id=message_id, assigned_to=role),
        session_hash=session,
        notes=notes,
        trace=Trace(chain_id=message_id, step=1),
        **fields,
    )
