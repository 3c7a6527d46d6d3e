"""The tasks that a worker holds."""

from __future__ import annotations

import copy

import pytest

from fireswarm.swarm.worker.held import HeldTasks
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("first", [0, 1])
async def test_same_run_that_is_claimed_twice_is_forgotten_twice(swarm: SwarmRig, first: int) -> None:
    """A hand resets a running task to an earlier epoch, and the same worker claims it again."""
    await swarm.submit("reset while it runs")
    lease = await swarm.claim_one()
    held = HeldTasks()
    for _ in range(2):
        held.add(copy.copy(lease))
    works = list(held.ready)
    assert works[0].lease.run_id == works[1].lease.run_id
    held.forget(works[first])
    assert len(held) == (1 if first == 0 else 0), "the newer claim is held until it ends"
    held.forget(works[1 - first])
    assert len(held) == 0
