"""Public API of the task board."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.lease import HeldLease
from fireswarm.contracts.swarm.outcome import Handoff
from fireswarm.contracts.swarm.task import Task
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import TASKS
from fireswarm.storage.documents.read import parse_readable, parse_task_snapshot
from fireswarm.swarm.board import claim, graph, rounds, settle, submit, sweep
from fireswarm.swarm.board.claim import Claimer, Contention, HasSkill
from fireswarm.swarm.board.operator import actions, edits, explain, say, stalls
from fireswarm.swarm.board.rules import BoardContext


class Board(BoardContext):
    """Task transitions over one store. Each transition is a function of another module, bound here as a method."""

    __slots__ = ()

    check_room = submit.check_room
    submit = submit.submit
    renew = claim.renew
    refresh = claim.refresh
    settle = settle.settle
    admit_hand_written = sweep.admit_hand_written
    reclaim_expired = sweep.reclaim_expired
    requeue_unheld = sweep.requeue_unheld
    sweep = sweep.sweep
    settle_edited = edits.settle_edited
    cancel = actions.cancel
    retry = actions.retry
    retry_tree = actions.retry_tree
    set_budget = actions.set_budget
    prioritize = actions.prioritize
    read_earlier = rounds.read_earlier
    retry_with_note = actions.retry_with_note
    answer = actions.answer
    go_on = say.go_on
    say = say.say
    relatives = explain.relatives
    explain = explain.explain
    stalls = stalls.find_stalls

    def claimer(
        self, role: str, agent_id: str, sessions: Sequence[str] = (), has_skill: HasSkill | None = None
    ) -> Claimer:
        """Return the claimer of one agent; with *sessions*, it claims only tasks of these sessions.

        *has_skill* resolves to False for the skills that the agent lacks.
        """
        contention = Contention(rng=random.Random(self.rng.random()))
        return Claimer(self, role, agent_id, contention, sessions, has_skill)

    def births(self, held: HeldLease, handoff: Handoff) -> Sequence[Task]:
        """Return the tasks that settling *handoff* will create. Raises GraphInvalid for an invalid plan."""
        return rounds.births_of(self, held.task, held.epoch, handoff)

    def check_plan(self, planned: Sequence[PlannedTask], children: Sequence[Task] = ()) -> None:
        """Raise GraphInvalid for an invalid plan; *children* are its earlier tasks."""
        graph.validate(planned, self.roles, self.rules.max_graph_tasks, rounds.by_key(children))

    def draft(self, planner: Task, planned: Sequence[PlannedTask]) -> Sequence[Task]:
        """Return the tasks that a plan of *planner* would create. Raises GraphInvalid and InvalidInput."""
        return submit.children_of(planner, planner.epoch, planned, self.roles, self.clock, self.rules)

    def plan_as_json(self, planned: Sequence[PlannedTask]) -> Sequence[Mapping[str, Any]]:
        """Return a plan as a person's answer holds it. Raises GraphInvalid for an invalid one."""
        self.check_plan(planned)
        return [item.model_dump(mode="json", exclude_defaults=True) for item in planned]

    async def get(self, task_id: str) -> Task:
        """Read one task. Raises NotFound for an unknown id."""
        return (await actions.load(self.store, task_id))[0]

    async def list(self, *, limit: int = 50, **filters: Any) -> list[Task]:
        """Return up to *limit* tasks, most recently changed first.

        *filters* are ``status``, ``assigned_to`` and ``session_hash``. An unreadable document is logged and skipped.
        """
        query = queries.newest(TASKS, "updated_at", limit, **filters)
        return parse_readable(await self.store.query(query), parse_task_snapshot)
