"""Hooks of a role in a turn: facts fetched before the skill runs, writes committed with its result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from fireswarm.contracts.ports import Write
from fireswarm.contracts.skills.skill import Fact, SkillResult
from fireswarm.contracts.swarm.task import Task
from fireswarm.storage.memory import Memory
from fireswarm.swarm.roles.memory import MEMORY_ROLE, recall_facts, summary_writes


@dataclass(frozen=True, slots=True)
class RoleHooks:
    """``facts`` are fetched before the skill runs; ``writes`` are committed with its result."""

    facts: tuple[Callable[[Memory, Task], Awaitable[tuple[Fact, ...]]], ...] = ()
    writes: tuple[Callable[[Memory, Task, SkillResult], Sequence[Write]], ...] = ()


NO_HOOKS = RoleHooks()
HOOKS: Mapping[str, RoleHooks] = {MEMORY_ROLE: RoleHooks(facts=(recall_facts,), writes=(summary_writes,))}
"""Hooks by role. Roles without an entry have NO_HOOKS."""
