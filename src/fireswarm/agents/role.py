"""What a role may add to a turn. A role written by a user needs none of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from fireswarm.contracts.skill import Fact, SkillResult
from fireswarm.contracts.task import Task
from fireswarm.kit import Kit
from fireswarm.ports import Write


@dataclass(frozen=True, slots=True)
class RoleConfig:
    """What the seed's ``run(cfg)`` is given: the kit, and the worker loop that the composition root made."""

    kit: Kit
    loop: Callable[[str], Awaitable[None]]


async def _no_facts(kit: Kit, task: Task) -> tuple[Fact, ...]:
    return ()


def _no_writes(kit: Kit, task: Task, result: SkillResult) -> Sequence[Write]:
    return ()


@dataclass(frozen=True, slots=True)
class RoleHooks:
    """``facts`` are fetched before the skill runs; ``effects`` are committed with its result."""

    facts: Callable[[Kit, Task], Awaitable[tuple[Fact, ...]]] = _no_facts
    effects: Callable[[Kit, Task, SkillResult], Sequence[Write]] = _no_writes


PLAIN = RoleHooks()


async def run(role: str, cfg: RoleConfig) -> None:
    """Claim and work on a role's tasks until the process is told to stop."""
    await cfg.loop(role)
