"""The board under random histories: submits, claims, renewals, expiries, stale settles, cancels, crashes.

After every step the stored documents have to satisfy the invariants of ``docs/explanation/architecture.md``, regardless
of the order of steps. Time is virtual, so a history covers hours of leases in milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fireswarm.contracts.skills.skill import PlannedTask, Question
from fireswarm.contracts.swarm.outcome import Failed, Handoff, Outcome, Released, Retry, Snooze, Waiting
from fireswarm.contracts.swarm.task import WAITS_FOR_OTHERS, StatusReason, Task, TaskStatus
from fireswarm.errors import InvalidInput, LeaseLost, TerminalTask
from fireswarm.swarm.board import HeldLease
from tests.support.swarm import SwarmRig, done, open_test_swarm

AGENTS = st.sampled_from(["a", "b", "c"])
PICK = st.integers(min_value=0, max_value=10_000)


def outcomes() -> st.SearchStrategy[Outcome]:
    question = Question(name="x", description="which?")
    two = (
        PlannedTask(key="p", assigned_to="scout", objective="p"),
        PlannedTask(key="q", assigned_to="scout", objective="q", depends_on=("p",)),
    )
    return st.sampled_from(
        [
            done(),
            Retry("again"),
            Failed("no"),
            Failed("look", StatusReason.ESCALATED),
            Waiting(StatusReason.INPUT_REQUIRED, "asks", (question,)),
            Snooze(20),
            Released(),
            Handoff(two),
            Handoff(two, resume=False),
        ]
    )


class BoardMachine(RuleBasedStateMachine):
    """Drives a board with random steps and checks the invariants of its documents after each."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.submitted: list[str] = []
        self.held: list[HeldLease] = []
        self.terminal: dict[str, dict[str, Any]] = {}
        self.epochs: dict[str, int] = {}
        self.count = 0

    def run[T](self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(call)

    @initialize()
    def start(self) -> None:
        self.swarm: SwarmRig = self.run(self.stack.enter_async_context(open_test_swarm()))

    @rule(priority=st.integers(1, 10), needs=st.lists(PICK, max_size=3), attempts=st.integers(1, 4))
    def submit(self, priority: int, needs: list[int], attempts: int) -> None:
        self.count += 1
        known = {self.submitted[pick % len(self.submitted)] for pick in needs} if self.submitted else set[str]()
        try:
            task = self.run(
                self.swarm.submit(
                    f"task {self.count}", priority=priority, depends_on=tuple(sorted(known)), max_attempts=attempts
                )
            )
        except InvalidInput as refused:
            assert "canceled" in str(refused)
            return
        self.submitted.append(task.task_id)

    @rule(agent=AGENTS, wanted=st.integers(1, 4))
    def claim(self, agent: str, wanted: int) -> None:
        self.held += self.run(self.swarm.claim(agent, wanted=wanted))

    @precondition(lambda self: self.held)
    @rule(pick=PICK)
    def renew(self, pick: int) -> None:
        held = self.held[pick % len(self.held)]
        live = self.is_live(held)
        try:
            self.run(self.swarm.board.renew(held))
        except LeaseLost:
            assert not live
        else:
            assert live

    @precondition(lambda self: self.held)
    @rule(pick=PICK, outcome=outcomes())
    def settle(self, pick: int, outcome: Outcome) -> None:
        held = self.held[pick % len(self.held)]
        live = self.is_live(held)
        before = self.run(self.swarm.raw(held.task.task_id))
        try:
            self.run(self.swarm.board.settle(held, outcome))
        except LeaseLost:
            assert not live, "the holder of the live epoch was refused"
            assert self.run(self.swarm.raw(held.task.task_id)) == before, "a stale epoch wrote something"
        else:
            assert live, "a stale epoch was accepted"

    def is_live(self, held: HeldLease) -> bool:
        task = self.run(self.swarm.task(held.task.task_id))
        return task.status is TaskStatus.IN_PROGRESS and task.lease is not None and task.lease.epoch == held.epoch

    @rule(seconds=st.sampled_from([0.5, 5.0, 25.0, 61.0, 400.0]))
    def let_time_pass(self, seconds: float) -> None:
        self.run(self.swarm.clock.advance(seconds))

    @rule()
    def sweep(self) -> None:
        self.run(self.swarm.board.sweep("scout"))

    @precondition(lambda self: self.submitted)
    @rule(pick=PICK, tree=st.booleans())
    def cancel(self, pick: int, tree: bool) -> None:
        task_id = self.submitted[pick % len(self.submitted)]
        was = self.run(self.swarm.task(task_id)).status
        try:
            canceled = self.run(self.swarm.board.cancel(task_id, tree=tree))
        except TerminalTask:
            assert was.terminal
            assert not tree
        else:
            assert (task_id in canceled) is not was.terminal

    @precondition(lambda self: self.submitted)
    @rule(pick=PICK)
    def operator_retries(self, pick: int) -> None:
        task_id = self.submitted[pick % len(self.submitted)]
        was = self.run(self.swarm.task(task_id))
        try:
            self.run(self.swarm.board.retry(task_id))
        except TerminalTask:
            assert was.status.terminal
        except InvalidInput:
            assert was.status is not TaskStatus.BLOCKED or was.status_reason in (
                *WAITS_FOR_OTHERS,
                StatusReason.INPUT_REQUIRED,
            )

    @precondition(lambda self: self.submitted)
    @rule(pick=PICK)
    def operator_answers(self, pick: int) -> None:
        task_id = self.submitted[pick % len(self.submitted)]
        was = self.run(self.swarm.task(task_id))
        if was.status_reason is StatusReason.INPUT_REQUIRED:
            self.run(self.swarm.board.answer(task_id, {"x": "1"}))

    # ── invariants after every step ───────────────────────────────────────────────────────────────────

    @invariant()
    def documents_hold_together(self) -> None:
        if not hasattr(self, "swarm"):
            return
        tasks = {task.task_id: task for task in self.run(self.swarm.board.list(limit=1000))}
        for task_id in self.submitted:
            assert task_id in tasks, "a submitted task is lost"
        for task in tasks.values():
            self.one_task_holds_together(task, tasks)

    def one_task_holds_together(self, task: Task, tasks: dict[str, Task]) -> None:
        raw = self.run(self.swarm.raw(task.task_id))
        if task.task_id in self.terminal:
            assert raw == self.terminal[task.task_id], "a terminal task changed"
        elif task.status.terminal:
            self.terminal[task.task_id] = raw
        assert task.epoch >= self.epochs.get(task.task_id, 0), "an epoch went back"
        self.epochs[task.task_id] = task.epoch
        assert (task.status is TaskStatus.BLOCKED) == (task.status_reason is not None)
        assert (task.status is TaskStatus.IN_PROGRESS) == (task.lease is not None)
        if task.lease is not None:
            assert task.lease.epoch == task.epoch
            assert task.sweep_at == task.lease.expires_at, "no sweep would ever look at this lease"
        if task.status_reason in (StatusReason.RETRY_BACKOFF, StatusReason.PAUSED):
            assert task.sweep_at == task.not_before, "no sweep would ever end this pause"
        if task.status_reason in WAITS_FOR_OTHERS:
            waited = [*task.depends_on, *task.children]
            unfinished = [tasks[task_id] for task_id in waited if not tasks[task_id].status.terminal]
            assert task.waiting_on == len(unfinished) > 0, "it waits for the wrong number of tasks"

    def teardown(self) -> None:
        if hasattr(self, "swarm"):
            self.run(self.everything_can_be_finished())
            self.run(self.stack.aclose())
        self.runner.close()

    async def everything_can_be_finished(self) -> None:
        """Given time and workers, no task stays queued, leased or paused after any history."""
        for _ in range(40):
            await self.swarm.clock.advance(700)
            await self.swarm.board.sweep("scout")
            while held := await self.swarm.claim("z", wanted=10):
                for lease in held:
                    await self.swarm.settle(lease)
        for task in await self.swarm.board.list(limit=1000):
            assert task.status in (TaskStatus.DONE, TaskStatus.CANCELED, TaskStatus.BLOCKED)
            assert task.status_reason not in (StatusReason.RETRY_BACKOFF, StatusReason.PAUSED)


TestBoardMachine = BoardMachine.TestCase
TestBoardMachine.settings = settings(
    max_examples=30, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
