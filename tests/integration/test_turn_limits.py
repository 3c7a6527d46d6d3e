"""A turn may be as long as it makes progress; a turn in which nothing happens ends, and so does a poisonous one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.swarm.outcome import Retry
from fireswarm.contracts.swarm.role import RoleLimits
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.swarm.board import BoardRules
from fireswarm.swarm.parts import SwarmParts
from tests.integration.test_thinking import act, answers_so_far, decide, one_turn, submit, thinking, told
from tests.support.patience import PATIENCE_SECONDS
from tests.support.swarm import SwarmRig, open_test_swarm
from tests.support.working import Gate, eventually, with_skills, working

pytestmark = pytest.mark.anyio


def with_limits(core: SwarmParts, **limits: float) -> SwarmParts:
    """Return the core with these limits of every role."""
    given = RoleLimits.model_validate(limits)
    roles = {name: card.model_copy(update={"limits": given}) for name, card in core.roles.items()}
    return replace(core, roles=roles)


async def finish_step(swarm: SwarmRig, held: Any) -> None:
    """Finish one step that no earlier run has finished."""
    journal = await swarm.journal(held)

    async def work() -> int:
        return 1

    await journal.steps.step(f"step {held.epoch}", None, work, idempotent=True)


@pytest.mark.parametrize("name", ["idle_seconds", "turn_timeout_seconds"])
async def test_turn_that_makes_progress_may_take_longer_than_its_limit(
    swarm: SwarmRig, tmp_path: Path, name: str
) -> None:
    async def slow(request: ChatRequest) -> dict[str, Any]:
        await swarm.clock.advance(30)
        if answers_so_far(request) < 8:
            return decide(act("run_command", command=f"echo {answers_so_far(request)}"))
        return decide(act("finish", answer="it took four minutes"))

    core = with_limits(thinking(swarm, slow, tmp_path), **{name: 20})
    task = await submit(swarm, tmp_path)
    async with working(core) as worker:
        with anyio.fail_after(PATIENCE_SECONDS):
            while not worker.settled:
                await swarm.clock.settle()
    ended = await swarm.task(task.task_id)
    assert (ended.status, ended.attempt, ended.epoch) == (TaskStatus.DONE, 0, 1)


async def test_turn_in_which_nothing_happens_is_ended_and_tried_again(swarm: SwarmRig) -> None:
    gate = Gate()
    core = with_limits(with_skills(swarm, gate=gate), idle_seconds=300)
    task = await swarm.submit(skill="gate")
    async with working(core):
        await eventually(swarm, lambda: gate.began == 1, "starting")
        await swarm.clock.advance(299)
        assert (await swarm.task(task.task_id)).status is TaskStatus.IN_PROGRESS
        await swarm.clock.advance(1)
        stored = await swarm.task(task.task_id)
        assert (stored.status_reason, stored.attempt) == (StatusReason.RETRY_BACKOFF, 1)
        assert stored.error == "nothing happened in the turn for 300 s, the limit of role scout"
        assert (await swarm.raw(task.task_id))["lease"] is None


async def test_each_turn_of_a_worker_is_watched_by_itself(swarm: SwarmRig) -> None:
    first, second = Gate(), Gate()
    core = with_limits(with_skills(swarm, first=first, second=second), idle_seconds=300)
    async with working(core) as worker:
        early = await swarm.submit("early", skill="first")
        await eventually(swarm, lambda: first.began == 1, "starting")
        await swarm.clock.advance(200)
        late = await swarm.submit("late", skill="second", constraints={"timeout_seconds": 50})
        await eventually(swarm, lambda: second.began == 1, "starting")
        await swarm.clock.advance(50)
        reasons = [(await swarm.task(task.task_id)).status_reason for task in (early, late)]
        assert reasons == [None, StatusReason.RETRY_BACKOFF]
        first.opened.set()
        await eventually(swarm, lambda: worker.settled == 2, "ending")
        assert (await swarm.task(early.task_id)).status is TaskStatus.DONE
        second.opened.set()


async def test_command_at_its_limit_tells_the_model_and_the_task_goes_on(swarm: SwarmRig, tmp_path: Path) -> None:
    heard: list[str] = []

    def model(request: ChatRequest) -> dict[str, Any]:
        if not answers_so_far(request):
            return decide(act("run_command", command="echo begun; touch begun; exec tail -f /dev/null"))
        heard.append(told(request))
        return decide(act("finish", answer="the command takes too long"))

    core = thinking(swarm, model, tmp_path)
    task = await submit(swarm, tmp_path, constraints={"timeout_seconds": 0.5})
    async with working(core) as worker:
        with anyio.fail_after(PATIENCE_SECONDS):
            while not worker.settled:
                await swarm.clock.settle()  # the command's limit is of real time; the turn's stands still
    ended = await swarm.task(task.task_id)
    assert (ended.status, ended.attempt) == (TaskStatus.DONE, 0), ended.error
    assert "killed after 0.5 s" in heard[0]


async def test_failure_costs_an_attempt_only_if_the_turn_finished_no_step(swarm: SwarmRig, tmp_path: Path) -> None:
    def model(request: ChatRequest) -> dict[str, Any]:
        if answers_so_far(request) < 1:
            return decide(act("run_command", command="echo one"))
        return {"error": 500, "message": "down"}

    core = thinking(swarm, model, tmp_path, runtime={"max_llm_retries": 0})
    await submit(swarm, tmp_path)
    counted: list[tuple[int, int]] = []
    for _ in range(3):
        task = await one_turn(swarm, core)
        counted.append((task.attempt, task.setbacks))
        await swarm.clock.advance(300)
        await swarm.board.sweep("scout")
    assert counted == [(0, 1), (1, 1), (2, 1)]


async def _fail(swarm: SwarmRig, held: Any) -> None:
    await swarm.settle(held, Retry("it broke"))


async def _lose(swarm: SwarmRig, held: Any) -> None:
    await swarm.clock.advance(100)


@pytest.mark.parametrize("end", [_fail, _lose])
async def test_task_whose_turn_always_finishes_one_step_and_then_fails_is_given_up(end: Any) -> None:
    async with open_test_swarm(rules=BoardRules(max_setbacks=3)) as swarm:
        task = await swarm.submit(max_attempts=2)
        runs = 0
        while task.status_reason is not StatusReason.DEAD_LETTER:
            held = await swarm.claim_one()
            runs += 1
            await finish_step(swarm, held)
            await end(swarm, held)
            await swarm.clock.advance(300)
            await swarm.board.sweep("scout")
            task = await swarm.task(held.task.task_id)
        assert (runs, task.setbacks, task.attempt) == (5, 3, 2)
        retried = await swarm.board.retry(task.task_id)
        assert (retried.setbacks, retried.attempt) == (0, 0)


async def test_skill_that_a_model_calls_has_the_limit_of_its_role_and_the_model_is_told(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    folder = tmp_path / "skills" / "endless"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: endless\ndescription: Counts things without an end.\nmetadata:\n  entry: run.py\n---\n# Endless\n"
    )
    (folder / "run.py").write_text("import threading\ndef run(request):\n    threading.Event().wait()\n")
    heard: list[str] = []

    def model(request: ChatRequest) -> Mapping[str, Any]:
        if not answers_so_far(request):
            return decide(act("use_skill", name="endless", reason="to count"))
        heard.append(told(request))
        return decide(act("finish", answer="it does not end"))

    core = thinking(swarm, model, tmp_path, runtime={"confinement": "none"})
    core = with_limits(core, idle_seconds=0.5)
    core = replace(
        core, roles={name: card.model_copy(update={"skills": ("endless",)}) for name, card in core.roles.items()}
    )
    await submit(swarm, tmp_path)
    ended = await one_turn(swarm, core)
    assert ended.status is TaskStatus.DONE, ended.error
    assert "was stopped after 0.5 s" in heard[0]
