"""The board's one face: what workers and operators call."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fireswarm.contracts.ports import Clock, Query, Store, Write
from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.outcome import Handoff, Outcome
from fireswarm.contracts.swarm.task import Task, TaskSpec
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.read import parse_readable, parse_task_snapshot
from fireswarm.swarm.board import claim, graph, submit, sweep
from fireswarm.swarm.board.claim import Claimer, Contention
from fireswarm.swarm.board.lease import HeldLease
from fireswarm.swarm.board.operator import actions
from fireswarm.swarm.board.rules import BoardRules
from fireswarm.swarm.board.settle import Settler, Transition
from fireswarm.swarm.board.submit import Submitted
from fireswarm.swarm.board.sweep import Swept


@dataclass(frozen=True, slots=True)
class Board:
    """Task transitions over one store. *roles* are the roles of this swarm: a plan may name no other."""

    store: Store
    clock: Clock
    roles: Collection[str]
    rules: BoardRules = BoardRules()
    rng: random.Random = field(default_factory=random.Random)

    async def submit(self, spec: TaskSpec) -> Submitted:
        """Create a task, or return the one that exists for this objective, context and session."""
        self.check_role(spec.assigned_to)
        return await submit.submit(self.store, self.clock, self.rules, spec)

    def check_role(self, role: str) -> None:
        """Raise NotFound for a role that this swarm does not have."""
        if role not in self.roles:
            raise actions.NotFound(
                f"there is no role {role!r}; this swarm has {', '.join(sorted(self.roles))}. "
                f"Add roles/{role}/ROLE.md to create it."
            )

    def claimer(self, role: str, agent_id: str) -> Claimer:
        """Return the claimer of one agent."""
        contention = Contention(rng=random.Random(self.rng.random()))
        return Claimer(self.store, self.clock, self.rules, role, agent_id, contention)

    async def renew(self, held: HeldLease) -> None:
        """Extend a lease by a whole term; LeaseLost when it is over."""
        await claim.renew(self.store, self.clock, self.rules, held)

    async def assure(self, held: HeldLease) -> float:
        """Return for how many seconds work may still begin under a lease; one that ran out is renewed first.

        LeaseLost when it is over. For what cannot be fenced by a commit: a process that was stopped wakes up in the
        middle of its turn, long after somebody else has taken and finished the task.
        """
        if held.over or held.expires_at <= self.clock.now():
            await self.renew(held)
        return (held.expires_at - self.clock.now()).total_seconds()

    def births(self, held: HeldLease, handoff: Handoff) -> Sequence[Task]:
        """The tasks that settling *handoff* will create; GraphInvalid when the plan cannot be accepted."""
        return submit.children_of(held.task, held.epoch, handoff.tasks, self.roles, self.clock, self.rules)

    def check_plan(self, planned: Sequence[PlannedTask]) -> None:
        """Raise GraphInvalid when a plan could not be accepted."""
        graph.validate(planned, self.roles, self.rules.max_graph_tasks)

    async def settle(self, held: HeldLease, outcome: Outcome, also: Sequence[Write] = ()) -> Transition:
        """Commit a turn's outcome, fenced by the epoch; LeaseLost when it is stale."""
        return await Settler(self.store, self.clock, self.rules, self.rng, self.roles).settle(held, outcome, also)

    async def sweep(self, role: str) -> Swept:
        """Reap expired leases, end back-offs, enforce deadlines."""
        return await sweep.sweep(self.store, self.clock, self.rules, role)

    async def admit_hand_written(self, role: str) -> int:
        """Complete queued documents that were written by hand; returns how many."""
        return await sweep.admit_hand_written(self.store, self.clock, self.rules, role)

    async def cancel(self, task_id: str, reason: str = "by the operator", *, tree: bool = False) -> list[str]:
        """Cancel a task (and all below it); returns the ids canceled now."""
        return await actions.cancel(self.store, self.clock, self.rules, task_id, reason, tree=tree)

    async def retry(self, task_id: str) -> Task:
        """Queue a failed or paused task again."""
        return await actions.retry(self.store, self.clock, self.rules, task_id)

    async def answer(
        self,
        task_id: str,
        answers: Mapping[str, Any],
        *,
        accept: Callable[[Task], None] = lambda _: None,
        also: Sequence[Write] = (),
    ) -> Task:
        """Supply what a blocked task asked for; *accept* may refuse the task, *also* joins the commit."""
        return await actions.answer(self.store, self.rules, task_id, answers, accept=accept, also=also)

    async def get(self, task_id: str) -> Task:
        """Read one task; NotFound when there is none."""
        return (await actions.load(self.store, task_id))[0]

    async def list(self, *, limit: int = 50, **filters: Any) -> list[Task]:
        """The tasks that changed last, filtered by ``status``, ``assigned_to`` or ``session_hash``.

        One that cannot be read is left out, and the log says so.
        """
        query: Query = queries.newest(queries.TASKS, "updated_at", limit, **filters)
        return parse_readable(await self.store.query(query), parse_task_snapshot)
