"""What a role adds to the shared turn: facts before the skill runs, writes committed with its result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from fireswarm.contracts.ports import Write
from fireswarm.contracts.skills.skill import Fact, SkillResult
from fireswarm.contracts.swarm.task import Task
from fireswarm.storage.memory import Memory
from fireswarm.swarm.roles import memory as memory_role


async def _no_facts(memory: Memory, task: Task) -> tuple[Fact, ...]:
    return ()


def _no_writes(memory: Memory, task: Task, result: SkillResult) -> Sequence[Write]:
    return ()


@dataclass(frozen=True, slots=True)
class RoleHooks:
    """``facts`` are fetched before the skill runs; ``effects`` are committed with its result."""

    facts: Callable[[Memory, Task], Awaitable[tuple[Fact, ...]]] = _no_facts
    effects: Callable[[Memory, Task, SkillResult], Sequence[Write]] = _no_writes


HOOKS: Mapping[str, RoleHooks] = {memory_role.NAME: RoleHooks(memory_role.recall_facts, memory_role.summary_writes)}
"""Hooks by role. A role that is not listed adds nothing."""


def hooks_of(role: str) -> RoleHooks:
    """Return the hooks of a role; empty ones for a role without any."""
    return HOOKS.get(role) or RoleHooks()
