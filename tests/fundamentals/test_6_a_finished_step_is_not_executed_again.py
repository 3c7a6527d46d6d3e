"""The journal: after a crash no finished step runs again, and an uncertain step only if it is idempotent."""

from __future__ import annotations

from typing import Any

import pytest

from fireswarm.contracts.swarm.outcome import Released
from fireswarm.contracts.swarm.run import MAX_RUN_EVENTS, RunStatus
from fireswarm.errors import LeaseLost, StepUncertain
from fireswarm.runs.sinks.documents import Journal
from fireswarm.runs.sinks.run_reader import read_events
from fireswarm.swarm.board import HeldLease
from tests.support.swarm import SwarmRig, done

pytestmark = pytest.mark.anyio


class Crash(BaseException):
    """Stands in for the death of the process."""


class Work:
    """Three steps, counted; ``crash_at`` kills the process before or after a step's work."""

    def __init__(self, crash_at: str = "") -> None:
        self.executed: list[str] = []
        self.crash_at = crash_at

    async def step(self, name: str) -> dict[str, str]:
        if self.crash_at == f"before {name}":
            raise Crash
        self.executed.append(name)
        if self.crash_at == f"in {name}":
            raise Crash
        return {"made": name}

    async def run(self, journal: Journal, *, idempotent: bool) -> list[Any]:
        made = []
        for name in ("one", "two", "three"):
            made.append(
                await journal.steps.step(name, {"of": name}, lambda name=name: self.step(name), idempotent=idempotent)
            )
            if self.crash_at == f"after {name}":
                raise Crash
        return made


async def die_and_reclaim(swarm: SwarmRig, crash_at: str, *, idempotent: bool) -> tuple[Work, HeldLease]:
    await swarm.submit()
    held = await swarm.claim_one("agent-a")
    work = Work(crash_at)
    with pytest.raises(Crash):
        await work.run(await swarm.journal(held), idempotent=idempotent)
    await swarm.clock.advance(61)
    await swarm.board.sweep("scout")
    return work, await swarm.claim_one("agent-b")


async def reopened(swarm: SwarmRig, held: HeldLease) -> Journal:
    """Release the task, claim it again and return the journal of the new epoch."""
    await swarm.settle(held, Released())
    return await swarm.journal(await swarm.claim_one("agent-b"))


@pytest.mark.parametrize("name", ["one", "two", "three"])
async def test_finished_steps_are_replayed_from_the_journal(swarm: SwarmRig, name: str) -> None:
    dead, held = await die_and_reclaim(swarm, f"after {name}", idempotent=False)
    work = Work()
    assert await work.run(await swarm.journal(held), idempotent=False) == [
        {"made": step} for step in ("one", "two", "three")
    ]
    assert dead.executed + work.executed == ["one", "two", "three"]


@pytest.mark.parametrize("where", ["before two", "in two"])
async def test_uncertain_idempotent_step_runs_again(swarm: SwarmRig, where: str) -> None:
    _, held = await die_and_reclaim(swarm, where, idempotent=True)
    work = Work()
    await work.run(await swarm.journal(held), idempotent=True)
    assert work.executed == ["two", "three"]


@pytest.mark.parametrize("where", ["before two", "in two"])
async def test_uncertain_step_that_is_not_idempotent_stops_the_turn(swarm: SwarmRig, where: str) -> None:
    _, held = await die_and_reclaim(swarm, where, idempotent=False)
    work = Work()
    with pytest.raises(StepUncertain, match="step 'two' .* may have taken effect"):
        await work.run(await swarm.journal(held), idempotent=False)
    assert work.executed == []


async def test_checkpoint_names_the_run_whose_journal_has_the_finished_steps(swarm: SwarmRig) -> None:
    _, held = await die_and_reclaim(swarm, "before two", idempotent=True)
    reclaimed = await swarm.task(held.task.task_id)
    assert reclaimed.checkpoint_uri == f"agent_runs/{held.task.run_id(1)}"
    events = await read_events(swarm.store, await swarm.store.get(reclaimed.checkpoint_uri))
    assert "{'made': 'one'}" in str(events)
    await swarm.settle(held, Released("drained"))
    assert (await swarm.task(held.task.task_id)).checkpoint_uri == f"agent_runs/{held.run_id}"


async def test_step_with_changed_input_is_executed(swarm: SwarmRig) -> None:
    await swarm.submit()
    journal = await swarm.journal(await swarm.claim_one())
    work = Work()
    for value in (1, 2):
        await journal.steps.step("same name", {"value": value}, lambda: work.step("x"), idempotent=True)
    assert work.executed == ["x", "x"]


async def test_failed_step_is_executed_again(swarm: SwarmRig) -> None:
    await swarm.submit()
    held = await swarm.claim_one()
    journal = await swarm.journal(held)

    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await journal.steps.step("one", {}, fail, idempotent=False)
    await journal.flush()
    again = await reopened(swarm, held)
    work = Work()
    await again.steps.step("one", {}, lambda: work.step("one"), idempotent=False)
    assert work.executed == ["one"]


async def test_large_step_results_are_stored_in_the_blob_store_and_replayed(swarm: SwarmRig) -> None:
    await swarm.submit()
    held = await swarm.claim_one()
    large = {"text": "x" * 50_000}

    async def make() -> dict[str, str]:
        return large

    await (await swarm.journal(held)).steps.step("big", {}, make, idempotent=True)
    assert len(str(await swarm.run(held))) < 5_000
    again = await reopened(swarm, held)
    assert await again.steps.step("big", {}, make, idempotent=True) == large
    assert again.pages.events[0]["type"] == "step_replayed"


async def test_run_document_keeps_a_bounded_number_of_events_and_loses_none(swarm: SwarmRig) -> None:
    await swarm.submit()
    held = await swarm.claim_one()
    journal = await swarm.journal(held)
    for number in range(3 * MAX_RUN_EVENTS):
        journal.note("tick", number=number)
        if number % 70 == 0:
            await journal.flush()
    await journal.flush()
    run = await swarm.store.get(f"agent_runs/{held.run_id}")
    assert len(run.data["events"]) <= MAX_RUN_EVENTS
    assert [event["payload"]["number"] for event in await read_events(swarm.store, run)] == list(
        range(3 * MAX_RUN_EVENTS)
    )


@pytest.mark.parametrize("flushes", [1, 2, 3])
async def test_events_noted_during_a_flush_are_stored_by_the_next_one(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch, flushes: int
) -> None:
    """A model call notes a retry while its text is being stored: no page, first or later, loses the note."""
    await swarm.submit()
    held = await swarm.claim_one()
    journal = await swarm.journal(held)
    real = swarm.store.commit

    async def commit(writes: Any, **options: Any) -> Any:
        journal.note("meanwhile")
        return await real(writes, **options)

    for number in range(flushes):
        journal.note("before", number=number)
        with monkeypatch.context() as patch:
            patch.setattr(swarm.store, "commit", commit)
            await journal.flush()
    await journal.flush()
    stored = await read_events(swarm.store, await swarm.store.get(f"agent_runs/{held.run_id}"))
    assert [event["type"] for event in stored] == ["before", "meanwhile"] * flushes


@pytest.mark.parametrize("flushes", [0, 1, 2])
async def test_run_ended_by_a_peer_is_not_changed_by_a_late_flush(swarm: SwarmRig, flushes: int) -> None:
    """A worker is suspended after *flushes* flushes; a peer ends its run before the worker continues."""
    await swarm.submit()
    held = await swarm.claim_one()
    journal = await swarm.journal(held)
    for number in range(flushes):
        journal.note("before", number=number)
        await journal.flush()
    journal.note("after")
    await swarm.clock.advance(swarm.board.rules.lease_seconds + 1)
    await swarm.board.sweep("scout")
    with pytest.raises(LeaseLost):
        await journal.flush()
    ended = await swarm.run(held)
    assert ended["status"] == "timeout"
    events = await read_events(swarm.store, await swarm.store.get(f"agent_runs/{held.run_id}"))
    assert [event["type"] for event in events] == ["before"] * flushes


async def test_run_ended_during_its_first_flush_stays_ended(swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker is suspended between the check of its lease and the commit."""
    await swarm.submit()
    held = await swarm.claim_one()
    journal = await swarm.journal(held)
    journal.note("before")

    async def stopped(_: Journal) -> float:
        await swarm.clock.advance(swarm.board.rules.lease_seconds + 1)
        await swarm.board.sweep("scout")
        return 1.0

    monkeypatch.setattr(Journal, "seconds_left", stopped)
    with pytest.raises(LeaseLost, match="its lease expired"):
        await journal.flush()
    assert (await swarm.run(held))["status"] == "timeout"


@pytest.mark.parametrize("idempotent", [True, False])
async def test_worker_without_its_lease_starts_no_step(swarm: SwarmRig, idempotent: bool) -> None:
    """The worker's process was suspended during a turn; meanwhile another agent took the task and finished it."""
    await swarm.submit()
    journal = await swarm.journal(await swarm.claim_one("agent-a"))
    await swarm.clock.advance(swarm.board.rules.lease_seconds + 1)
    await swarm.board.sweep("scout")
    await swarm.settle(await swarm.claim_one("agent-b"))
    work = Work()
    with pytest.raises(LeaseLost):
        await journal.steps.step("one", {}, lambda: work.step("one"), idempotent=idempotent)
    assert work.executed == []


async def test_expired_unclaimed_lease_is_renewed_before_a_step(swarm: SwarmRig) -> None:
    await swarm.submit()
    held = await swarm.claim_one("agent-a")
    journal = await swarm.journal(held)
    await swarm.clock.advance(swarm.board.rules.lease_seconds + 1)
    work = Work()
    await journal.steps.step("one", {}, lambda: work.step("one"), idempotent=True)
    assert work.executed == ["one"]
    assert held.expires_at > swarm.clock.now()


async def test_result_of_a_last_step_that_may_not_be_repeated_is_stored_before_the_task_is_settled(
    swarm: SwarmRig,
) -> None:
    await swarm.submit()
    held = await swarm.claim_one()
    work = Work()
    journal = await swarm.journal(held)
    await journal.steps.step("pay", {}, lambda: work.step("pay"), idempotent=False, last=True)
    again = await reopened(swarm, held)  # the process died before its settling commit
    await again.steps.step("pay", {}, lambda: work.step("pay"), idempotent=False, last=True)
    assert work.executed == ["pay"]


async def test_events_that_only_the_settling_commit_stores_are_all_kept(swarm: SwarmRig) -> None:
    await swarm.submit()
    held = await swarm.claim_one()
    journal = await swarm.journal(held)
    total = MAX_RUN_EVENTS + 30
    for number in range(total):
        journal.note("tick", number=number)
    outcome = done()
    await swarm.board.settle(held, outcome, journal.closing(RunStatus.COMPLETED, "done", outcome.result, None))
    run = await swarm.store.get(f"agent_runs/{held.run_id}")
    assert len((run.data or {})["events"]) <= MAX_RUN_EVENTS
    stored = await read_events(swarm.store, run)
    assert [event["payload"]["number"] for event in stored] == list(range(total))
