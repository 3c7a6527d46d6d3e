"""`swarm retry` decides about steps that earlier runs left in doubt, or whose result could not be used."""

from __future__ import annotations

from typing import Any

import pytest

from fireswarm.contracts.ports import Merge
from fireswarm.contracts.swarm.outcome import Failed
from fireswarm.contracts.swarm.task import StatusReason, Task
from fireswarm.errors import InvalidInput, StepUncertain
from fireswarm.runs.sinks.run_reader import read_events
from fireswarm.swarm.board import HeldLease
from fireswarm.swarm.turn.outcome import outcome_of_error
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio


class Crash(BaseException):
    """Stands in for the death of the process."""


class Mails:
    """A step with an effect outside, counted."""

    def __init__(self) -> None:
        self.sent = 0

    async def send(self) -> dict[str, Any]:
        self.sent += 1
        return {"sent": self.sent}

    async def send_and_crash(self) -> dict[str, Any]:
        self.sent += 1
        raise Crash

    async def step(self, swarm: SwarmRig, held: HeldLease, run: Any = None) -> Any:
        journal = await swarm.journal(held)
        skipped = {"sent": "unknown"}
        result = await journal.steps.step(
            "act:mail", {"to": "all"}, run or self.send, idempotent=False, skipped=skipped
        )
        await journal.flush()
        return result


async def escalated(swarm: SwarmRig, mails: Mails) -> Task:
    """A task whose step crashed in the middle, and whose next run gave up on it."""
    await swarm.submit()
    with pytest.raises(Crash):
        await mails.step(swarm, await swarm.claim_one(), mails.send_and_crash)
    await swarm.clock.advance(61)
    await swarm.board.sweep("scout")
    held = await swarm.claim_one()
    with pytest.raises(StepUncertain) as uncertain:
        await mails.step(swarm, held)
    await swarm.board.settle(held, outcome_of_error(uncertain.value))
    return await swarm.task(held.task.task_id)


async def test_uncertain_step_needs_a_decision(swarm: SwarmRig) -> None:
    task = await escalated(swarm, Mails())
    assert (task.status_reason, task.uncertain_step) == (StatusReason.ESCALATED, "act:mail")
    assert "--skip act:mail`" in (task.error or "")
    with pytest.raises(InvalidInput, match="--redo 'act:mail'"):
        await swarm.board.retry(task.task_id)
    with pytest.raises(InvalidInput, match="it gave up on: act:mail"):
        await swarm.board.retry(task.task_id, redo=["act:male"])


@pytest.mark.parametrize(("decision", "sent", "result"), [("redo", 2, {"sent": 2}), ("skip", 1, {"sent": "unknown"})])
async def test_decision_holds_and_is_journaled(swarm: SwarmRig, decision: str, sent: int, result: Any) -> None:
    mails = Mails()
    task = await escalated(swarm, mails)
    decided: dict[str, Any] = {decision: ["act:mail"]}
    await swarm.board.retry(task.task_id, **decided)
    held = await swarm.claim_one()
    assert await mails.step(swarm, held) == result and mails.sent == sent
    run = await swarm.store.get(f"agent_runs/{held.run_id}")
    kinds = [event["type"] for event in await read_events(swarm.store, run)]
    assert {"redo": "step_redone", "skip": "step_skipped"}[decision] == kinds[0]


@pytest.mark.parametrize("decision", ["redo", "skip"])
async def test_decision_is_used_once_also_after_the_next_crash(swarm: SwarmRig, decision: str) -> None:
    mails = Mails()
    task = await escalated(swarm, mails)
    decided: dict[str, Any] = {decision: ["act:mail"]}
    await swarm.board.retry(task.task_id, **decided)
    await mails.step(swarm, await swarm.claim_one())
    before = mails.sent
    await swarm.clock.advance(61)
    await swarm.board.sweep("scout")
    await mails.step(swarm, await swarm.claim_one())
    assert mails.sent == before


async def test_decision_written_in_the_console_holds(swarm: SwarmRig) -> None:
    mails = Mails()
    task = await escalated(swarm, mails)
    fields = {"status": "queued", "step_decisions": {"act:mail": "skip"}}
    await swarm.store.commit([Merge(f"agent_tasks/{task.task_id}", fields)])
    assert await mails.step(swarm, await swarm.claim_one()) == {"sent": "unknown"}


async def test_step_with_an_unusable_result_runs_again_by_default(swarm: SwarmRig) -> None:
    mails = Mails()
    await swarm.submit()
    held = await swarm.claim_one()
    await mails.step(swarm, held)
    await swarm.board.settle(held, Failed("no use", StatusReason.ESCALATED, redo_steps=("act:mail",)))
    await swarm.board.retry(held.task.task_id)
    await mails.step(swarm, await swarm.claim_one())
    assert mails.sent == 2
