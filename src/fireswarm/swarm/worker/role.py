"""`run(cfg)`: work for one role until stopped. All roles, packaged or added, run through it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.worker.loop import Refresh, Worker


@dataclass(frozen=True, slots=True)
class RoleConfig:
    """Configuration of a role process. Set ``stop`` to drain it.

    ``refresh`` returns the parts for the next turn, after a change of the files of roles, skills or capabilities.
    ``begin`` gets the worker before it works.
    """

    parts: SwarmParts
    role: str
    agent_id: str
    stop: anyio.Event = field(default_factory=anyio.Event)
    refresh: Refresh | None = None
    begin: Callable[[Worker], None] | None = None


async def run(cfg: RoleConfig) -> bool:
    """Claim and work on the role's tasks until ``cfg.stop`` is set, then drain; True if an operator ordered that."""
    worker = Worker(cfg.parts, cfg.role, cfg.agent_id, refresh=cfg.refresh)
    if cfg.begin is not None:
        cfg.begin(worker)
    async with anyio.create_task_group() as group:
        group.start_soon(_stop_on_event, cfg.stop, worker)
        await worker.run()
        group.cancel_scope.cancel()
    return worker.drained


async def _stop_on_event(stop: anyio.Event, worker: Worker) -> None:
    await stop.wait()
    worker.stop()
