"""A commit may fail after it was applied. Nothing is concluded from the failure: the document is read again."""

from __future__ import annotations

import itertools

import anyio
import anyio.lowlevel
import pytest
from google.api_core import exceptions as google

from fireswarm.contracts.ports import Update
from fireswarm.contracts.swarm.outcome import Outcome, Retry
from fireswarm.contracts.swarm.task import TaskStatus
from fireswarm.errors import FireswarmError, LeaseLost, StoreError
from fireswarm.storage.firestore.errors import TRANSIENT
from fireswarm.storage.firestore.store import COMMIT_ATTEMPTS
from fireswarm.swarm.board import HeldLease
from fireswarm.swarm.board.claim import Claimer
from tests.support.swarm import SwarmRig, done
from tests.support.unreliable import time_flows, unreliable

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
