"""A commit may fail after it was applied. Nothing is concluded from the failure: the document is read again."""

from __future__ import annotations

import itertools
from functools import partial

import anyio
import anyio.lowlevel
import pytest
from google.api_core import exceptions as google

from fireswarm.contracts.ports import Update
from fireswarm.contracts.skills.skill import PlannedTask, Question
from fireswarm.contracts.swarm.agent import AgentSpec
from fireswarm.contracts.swarm.outcome import Failed, Handoff, Outcome, Released, Retry, Waiting
from fireswarm.contracts.swarm.task import StatusReason, TaskResult, TaskStatus
from fireswarm.errors import FireswarmError, LeaseLost, NotFound, StoreError
from fireswarm.storage.firestore.errors import TRANSIENT
from fireswarm.storage.firestore.store import COMMIT_ATTEMPTS
from fireswarm.swarm.board import HeldLease
from fireswarm.swarm.board.claim import Claimer
from fireswarm.swarm.submission import stored_agents
from tests.support.swarm import SwarmRig, done
from tests.support.unreliable import time_flows, unreliable
from tests.support.working import working

pytestmark = pytest.mark.anyio

UNCLEAR = (*TRANSIENT, google.DataLoss)
REFUSED = (google.Aborted, google.PermissionDenied, google.Unauthenticated, google.ResourceExhausted)
FAULTS = [("before", code) for code in (*UNCLEAR, *REFUSED)] + [("after", code) for code in UNCLEAR]


async def claim_all(claimer: Claimer, wanted: int) -> list[HeldLease]:
    """Claim as a worker does: after an error of the store, try again."""
    held: list[HeldLease] = []
    for _ in range(6):
        try:
            held += await claimer.claim(wanted)
        except StoreError:
            continue
    return held


async def assert_held(swarm: SwarmRig, held: list[HeldLease], ids: list[str], agent: str) -> None:
    """Each task in progress under *agent* is in *held* once, and each one held can be settled."""
    tasks = [await swarm.task(task_id) for task_id in ids]
    owned = {task.task_id for task in tasks if task.lease is not None and task.lease.owner_agent_id == agent}
    assert sorted(lease.task.task_id for lease in held) == sorted(owned) == sorted(ids)
    async with time_flows(swarm):
        for lease in held:
            await swarm.settle(lease)


@pytest.mark.parametrize(("when", "code"), FAULTS)
@pytest.mark.parametrize("lost", [1, COMMIT_ATTEMPTS])
@pytest.mark.parametrize("contended", [False, True])
async def test_no_lease_is_forgotten_when_a_claim_fails(
    both: SwarmRig, when: str, code: type[Exception], lost: int, contended: bool
) -> None:
    ids = [(await both.submit(f"task {number}")).task_id for number in range(3)]
    claimer = both.board.claimer("scout", "agent-a")
    claimer.contention.factor = 4.0 if contended else 1.0
    api = unreliable(both, *[(when, code("fault"))] * lost)
    async with time_flows(both):
        held = await claim_all(claimer, 3)
    api.recover()
    await assert_held(both, held, ids, "agent-a")


async def test_claim_in_doubt_that_another_agent_won_is_no_lease(both: SwarmRig) -> None:
    await both.submit()
    claimer = both.board.claimer("scout", "agent-a")
    api = unreliable(both, *[("before", google.ServiceUnavailable("fault"))] * COMMIT_ATTEMPTS)
    async with time_flows(both):
        assert await claimer.claim(1) == []
    assert claimer.in_doubt
    api.recover()
    [held] = await both.claim("agent-b")
    assert await claimer.claim(1) == []
    await both.settle(held)


async def test_a_sibling_keeps_its_lease_whichever_commit_of_a_round_fails(both: SwarmRig) -> None:
    for failing in range(3):
        ids = [(await both.submit(f"round {failing}, task {number}")).task_id for number in range(3)]
        claimer = both.board.claimer("scout", f"agent-{failing}")
        claimer.contention.factor = 4.0
        fine = [("never", google.Unknown("")) for _ in range(failing)]
        unreliable(both, *fine, ("before", google.PermissionDenied("not now")))
        async with time_flows(both):
            held = await claim_all(claimer, 3)
        await assert_held(both, held, ids, f"agent-{failing}")


async def test_a_claim_that_the_store_applies_after_it_was_read_is_found(both: SwarmRig) -> None:
    """The connection breaks, the document is still unchanged when it is read, and then the store applies the commit."""
    task = await both.submit()
    claimer = both.board.claimer("scout", "agent-a")
    api = unreliable(both, *[("late", google.DeadlineExceeded("slow"))] * COMMIT_ATTEMPTS)
    async with time_flows(both):
        assert await claimer.claim(1) == []
        await api.apply_late()
        held = await claim_all(claimer, 1)
    await assert_held(both, held, [task.task_id], "agent-a")


@pytest.mark.parametrize(("when", "code"), FAULTS)
@pytest.mark.parametrize("lost", [1, COMMIT_ATTEMPTS])
@pytest.mark.parametrize("outcome", [done(), Retry("again", 60.0), Retry("again")], ids=["done", "retry", "jitter"])
async def test_a_settled_turn_is_recognized(
    both: SwarmRig, when: str, code: type[Exception], lost: int, outcome: Outcome
) -> None:
    task = await both.submit()
    held = await both.claim_one()
    unreliable(both, *[(when, code("fault"))] * lost)
    errors: list[FireswarmError] = []
    async with time_flows(both):
        for _ in itertools.takewhile(lambda _: not held.over, range(6)):
            try:
                await both.board.settle(held, outcome)
            except StoreError as error:
                errors.append(error)
    assert held.over, errors
    stored = await both.task(task.task_id)
    expected = TaskStatus.DONE if outcome == done() else TaskStatus.BLOCKED
    assert (stored.status, stored.epoch, stored.lease) == (expected, 1, None)


async def test_a_document_that_was_in_the_way_of_a_settlement_once_does_not_stop_it(both: SwarmRig) -> None:
    """A person removes it before the next attempt, and the task changes, too."""
    task = await both.submit()
    held = await both.claim_one()
    unreliable(both, ("before", google.AlreadyExists("a child")), ("before", google.FailedPrecondition("changed")))
    await both.settle(held)
    assert (await both.task(task.task_id)).status is TaskStatus.DONE


@pytest.mark.parametrize(("when", "code"), FAULTS)
@pytest.mark.parametrize("lost", [1, COMMIT_ATTEMPTS])
async def test_turns_that_are_settled_together_do_not_cost_each_other(
    both: SwarmRig, when: str, code: type[Exception], lost: int
) -> None:
    """Twelve turns end at once. One was edited, one was taken by another agent, one is canceled on the way."""
    tasks = [await both.submit(f"task {number}") for number in range(12)]
    held = {lease.task.task_id: lease for lease in await both.claim(wanted=12)}
    edited, stolen, canceled = (task.task_id for task in tasks[:3])
    await both.store.commit([Update(f"agent_tasks/{edited}", {"priority": 9})])
    thief = (await both.raw(stolen))["lease"] | {"owner_agent_id": "thief", "epoch": 2}
    await both.store.commit([Update(f"agent_tasks/{stolen}", {"lease": thief, "epoch": 2})])
    unreliable(both, *[(when, code("fault"))] * lost)
    lost_leases: list[str] = []
    scopes = {task_id: anyio.CancelScope() for task_id in held}

    async def settle(task_id: str) -> None:
        with scopes[task_id]:
            for _ in range(8):
                try:
                    await both.board.settle(held[task_id], done())
                except LeaseLost:
                    lost_leases.append(task_id)
                except StoreError:
                    continue
                return

    async with time_flows(both), anyio.create_task_group() as group:
        for task_id in held:
            group.start_soon(settle, task_id)
        await anyio.lowlevel.checkpoint()
        scopes[canceled].cancel()
    states = {task.task_id: (await both.task(task.task_id)).status for task in tasks}
    assert lost_leases == [stolen]
    assert states.pop(stolen) is TaskStatus.IN_PROGRESS
    states.pop(canceled)  # its commit may have been on its way
    assert set(states.values()) == {TaskStatus.DONE}


# ── other changes whose answer is lost ──────────────────────────────────────────────────────────────────────────

LOST_ANSWER = ("after", google.Cancelled("fault"))


async def planned_child(swarm: SwarmRig) -> HeldLease:
    """Return the lease of a child with an envelope."""
    await swarm.submit("plan", role="architect")
    held = await swarm.claim_one(role="architect")
    plan = Handoff((PlannedTask(key="look", assigned_to="scout", objective="look", skill="noop"),))
    births = swarm.board.births(held, plan)
    also = swarm.core.mailbox.handoffs(held.task, births, TaskResult(), "mind the gap")
    await swarm.board.settle(held, plan, also)
    return await swarm.claim_one("agent-a")


async def test_an_envelope_is_opened_although_the_answer_is_lost(both: SwarmRig) -> None:
    child = await planned_child(both)
    unreliable(both, LOST_ANSWER)
    async with time_flows(both):
        opened = await both.core.mailbox.open(child.task, child.owner, child.epoch)
    assert opened is not None and opened.notes == "mind the gap"


async def test_an_envelope_that_a_later_holder_opened_stays_with_it(both: SwarmRig) -> None:
    child = await planned_child(both)
    await both.core.mailbox.open(child.task, "agent-b", child.epoch + 1)
    with pytest.raises(LeaseLost, match="opened by agent-b"):
        await both.core.mailbox.open(child.task, child.owner, child.epoch)


async def test_an_operator_s_change_is_not_refused_because_its_answer_is_lost(both: SwarmRig) -> None:
    canceled, retried, answered = [(await both.submit(f"task {number}")).task_id for number in range(3)]
    for held in await both.claim(wanted=3):
        asks = Waiting(StatusReason.INPUT_REQUIRED, "asks", (Question(name="colour", description="Which?"),))
        outcome = {retried: Failed("broken"), answered: asks}.get(held.task.task_id)
        await both.settle(held, outcome or Retry("later", 3600.0))
    for change in (
        partial(both.board.cancel, canceled), partial(both.board.retry, retried),
        partial(both.board.answer, answered, {"colour": "red"}),
    ):  # fmt: skip
        unreliable(both, LOST_ANSWER)
        async with time_flows(both):
            await change()
    states = [(await both.task(task_id)).status for task_id in (canceled, retried, answered)]
    assert states == [TaskStatus.CANCELED, TaskStatus.QUEUED, TaskStatus.QUEUED]


async def test_a_change_of_an_agent_is_made_once_although_its_answer_is_lost(both: SwarmRig) -> None:
    agent = await stored_agents.create(both.store, both.core.roles, "s1", AgentSpec(name="a", role="scout"))
    unreliable(both, LOST_ANSWER)
    async with time_flows(both):
        changed = await stored_agents.change(both.store, both.core.roles, "s1", agent.agent_id, {"name": "b"}, {1})
    assert (changed.name, changed.version) == ("b", 2)
    unreliable(both, LOST_ANSWER)
    async with time_flows(both):
        await stored_agents.delete(both.store, "s1", agent.agent_id, {2})
    with pytest.raises(NotFound):
        await stored_agents.delete(both.store, "s1", agent.agent_id)


@pytest.mark.parametrize("commits", range(5))
@pytest.mark.parametrize(("when", "code"), [("before", google.ServiceUnavailable), ("after", google.Cancelled)])
async def test_a_turn_costs_no_attempt_when_the_store_fails(
    both: SwarmRig, when: str, code: type[Exception], commits: int
) -> None:
    """The store fails for a while, from any commit of the turn on."""
    child = await planned_child(both)
    await both.board.settle(child, Released())
    fine = [("never", google.Unknown(""))] * commits
    unreliable(both, *fine, *[(when, code("fault"))] * (COMMIT_ATTEMPTS + 1))
    task = child.task
    async with working(both.core, agent="agent-b"):
        for _ in range(400):
            await both.clock.advance(0.25)
            task = await both.task(task.task_id)
            if task.status is TaskStatus.DONE:
                break
    assert (task.attempt, task.status) == (0, TaskStatus.DONE)
