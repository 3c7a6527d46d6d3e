"""The swarm: what a turn is given. A small frozen object, passed along; no globals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from fireswarm.contracts.ports import Blobs, Clock, ConversationStore, PendingWrites, Store
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.mind import Mind
from fireswarm.settings import Settings
from fireswarm.skills.packs.catalog import Catalog
from fireswarm.storage.memory import Memory
from fireswarm.swarm.board import Board
from fireswarm.swarm.records.heartbeats import Heartbeats
from fireswarm.swarm.records.mailbox import Mailbox

InlineSkill = Callable[[SkillRequest], Awaitable[SkillResult]]
"""A skill of the engine itself, cheap enough to run on the event loop."""


async def noop(request: SkillRequest) -> SkillResult:
    """Do nothing, successfully: for benchmarks, tests and trying out a graph."""
    return SkillResult(summary="nothing to do, done")


@dataclass(frozen=True, slots=True)
class Swarm:
    """Everything a role process works with.

    Without a ``mind``, or with one that has no model, roles work by code alone. ``protocol`` is how a model is
    told to answer, ``advisor`` how it is asked for advice; ``pending`` is what was spent, which goes with the next
    commit of a journal. ``contexts`` keeps conversations; None: the store does.
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
