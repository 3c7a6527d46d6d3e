"""Background duties go on after an error that no test foresaw, and count it."""

from __future__ import annotations

import pytest

from fireswarm.contracts.ports import Create
from fireswarm.errors import NotFound, StoreUnavailable
from tests.support.swarm import SwarmRig
from tests.support.working import eventually, with_skills, working

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("error", [RuntimeError("odd"), NotFound("none"), StoreUnavailable("away")])
async def test_duty_that_fails_is_repeated(swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    failures = [error, error]
    sweep = type(swarm.board).sweep

    async def fail_twice(*arguments: object, **named: object) -> object:
        if failures:
            raise failures.pop()
        return await sweep(*arguments, **named)  # pyright: ignore[reportArgumentType] - passed on as they came

    monkeypatch.setattr(type(swarm.board), "sweep", fail_twice)
    async with working(with_skills(swarm)) as worker:
        await swarm.clock.advance(200)
        await swarm.submit(skill="noop")
        await eventually(swarm, lambda: worker.settled == 1, "working")
        assert not failures
        assert worker.faults == (2 if isinstance(error, RuntimeError) else 0)


async def test_unreadable_message_to_an_agent_is_put_aside(swarm: SwarmRig) -> None:
    bad = {"to_agent_id": "scout-1", "status": "new", "created_at": 1, "payload": 7}
    await swarm.store.commit([Create("agent_mailbox/bad", bad)])
    async with working(with_skills(swarm)):
        await swarm.clock.settle()
    data = (await swarm.store.get("agent_mailbox/bad")).data
    assert data["status"] == "read" and data["outcome"].startswith("refused: ")
