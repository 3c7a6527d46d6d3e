"""Leases are judged by the store's time, and an outage of the store costs no finished work."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from google.api_core.exceptions import ServiceUnavailable

from fireswarm.clocks import ServerClock
from fireswarm.contracts.swarm.task import TaskStatus
from fireswarm.storage.firestore.store import FirestoreStore
from fireswarm.swarm.board import Board
from tests.support.swarm import SwarmRig
from tests.support.working import Gate, eventually, with_skills, working

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("hours", [-1, 1])
async def test_worker_whose_clock_is_off_steals_no_lease_at_boot(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    await swarm.submit()
    await swarm.claim_one()

    class Wrong(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return swarm.clock.now() + timedelta(hours=hours)

    monkeypatch.setattr("fireswarm.clocks.datetime", Wrong)
    clock = ServerClock(lambda: 0.0)
    store = FirestoreStore(swarm.connect(), clock)
    swept = await Board(store, clock, frozenset(swarm.core.roles)).sweep("scout")
    assert (swept.queued, swept.blocked) == ((), ())
    assert abs(clock.now() - swarm.clock.now()) < timedelta(milliseconds=1)


class Outage:
    """Lets every call of the API fail while it lasts."""

    def __init__(self, swarm: SwarmRig) -> None:
        store = swarm.store
        self._api = store._channel.api
        self.lasts = False
        store._channel = type(store._channel)(self, store._channel.database, store._channel.metadata)

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._api, name)

        async def attempt(*arguments: Any, **named: Any) -> Any:
            if self.lasts:
                raise ServiceUnavailable("the store stands still")
            return await call(*arguments, **named)

        return attempt if callable(call) and name in ("commit",) else call


async def test_finished_task_is_settled_after_an_outage_longer_than_its_lease(swarm: SwarmRig) -> None:
    gate = Gate()
    async with working(with_skills(swarm, gate=gate)) as worker:
        task = await swarm.submit(skill="gate")
        await eventually(swarm, lambda: gate.began == 1, "starting")
        outage = Outage(swarm)
        outage.lasts = True
        gate.opened.set()
        await eventually(swarm, lambda: gate.ended == 1, "finishing")
        await swarm.clock.advance(200)
        outage.lasts = False
        await swarm.clock.advance(5)
        await eventually(swarm, lambda: worker.settled == 1, "settling")
    ended = await swarm.task(task.task_id)
    assert (ended.status, ended.attempt, ended.epoch, gate.began) == (TaskStatus.DONE, 0, 1, 1)
