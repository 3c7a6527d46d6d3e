"""The parts of a swarm that its workers and its client share. Nothing here opens a store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from fireswarm.contracts.inputs import check_schema
from fireswarm.contracts.ports import Blobs, Clock, ConversationStore, PendingWrites, Store
from fireswarm.contracts.skills.skill import Check, SkillRequest, SkillResult
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.errors import ConfigError
from fireswarm.mind import Mind
from fireswarm.pipelines.loading import Pipelines
from fireswarm.runs.sinks.run_ends import RunEnds
from fireswarm.settings import Settings
from fireswarm.skills.packs.catalog import Catalog
from fireswarm.skills.running.execute import CodeRules
from fireswarm.storage.memory import Memory
from fireswarm.swarm.board import Board
from fireswarm.swarm.records.heartbeats import Heartbeats
from fireswarm.swarm.records.mailbox import Mailbox

InlineSkill = Callable[[SkillRequest], Awaitable[SkillResult]]
"""A skill that runs on the worker's event loop."""


async def noop(request: SkillRequest) -> SkillResult:
    """Do nothing and succeed. For benchmarks, tests and trying out a graph."""
    return SkillResult(summary="nothing to do, done")


@dataclass(frozen=True, slots=True)
class SwarmParts:
    """Store, board, records, roles and skills of one swarm.

    Without a ``mind``, or with one that has no model, roles work by code alone. ``protocol`` instructs a model how to
    answer, ``advisor`` how to give advice. ``pending`` holds spend for the next commit of a journal. Without
    ``conversations``, the store holds conversations.
    """

    settings: Settings
    store: Store
    clock: Clock
    blobs: Blobs
    board: Board
    mailbox: Mailbox
    memory: Memory
    heartbeats: Heartbeats
    roles: Mapping[str, RoleCard]
    catalog: Catalog
    workdir: Path
    inline: Mapping[str, InlineSkill] = field(default_factory=lambda: {"noop": noop})
    processes: anyio.CapacityLimiter | None = None
    mind: Mind | None = None
    protocol: str = ""
    advisor: str = ""
    pending: PendingWrites | None = None
    conversations: ConversationStore | None = None
    pipelines: Pipelines = Pipelines()

    def has_skill(self, name: str) -> bool:
        """Return True for a skill of the catalog, or of this process."""
        return name in self.inline or name in self.catalog.skills

    def fault_of_check(self, check: Check) -> str:
        """Return why a check of a task cannot run, or "". Whether its role may review is the policy's matter."""
        skill = self.catalog.skills.get(check.skill)
        if check.skill and (skill is None or skill.entry is None):
            return f"{check.skill} is no skill with code"
        if check.role and check.role not in self.roles:
            return f"there is no role {check.role!r}; this swarm has {', '.join(sorted(self.roles))}"
        try:
            check_schema(check.json_schema)
        except ConfigError as error:
            return f"the schema of {check.file} cannot be used: {error}"
        return ""

    @property
    def run_ends(self) -> RunEnds:
        """Reads runs, also those that their agents have lost, with their ends."""
        return RunEnds(self.store, self.clock, self.settings.leases.lease_seconds)

    @property
    def code_rules(self) -> CodeRules:
        """The operator's rules for the code of skills."""
        runtime = self.settings.runtime
        return CodeRules(runtime.confinement, runtime.pass_environment, runtime.readable, self.workdir)
