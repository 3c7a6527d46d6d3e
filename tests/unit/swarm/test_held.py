"""The tasks that a worker holds."""

from __future__ import annotations

import copy

import pytest

from fireswarm.swarm.worker.held import HeldTasks
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("first", [0, 1])
async def test_same_run_that_is_claimed_twice_is_held_twice(swarm: SwarmRig, first: int) -> None:
    """A hand resets a running task to an earlier epoch, and the same worker claims it again."""
    await swarm.submit("reset while it runs")
    lease = await swarm.claim_one()
    held = HeldTasks()
    for _ in range(2):
        held.add(copy.copy(lease))
    works = list(held.ready)
    assert works[0].lease.run_id == works[1].lease.run_id
    assert len(held) == 2, "each is renewed, and ended with the worker"
    held.forget(works[first])
    assert held.all() == [works[1 - first]]
    held.end(works[1 - first], "the worker stops")
    assert len(held) == 0
