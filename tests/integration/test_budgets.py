"""Budgets: counted for each session, raised at once, told to the model, and the same bytes after a crash."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fireswarm.client import Swarm
from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.swarm.outcome import Failed, Waiting
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.errors import InvalidInput
from fireswarm.llm.spend import StoreLedger
from fireswarm.runs.sinks.run_reader import read_events
from fireswarm.settings.swarm import ReceiverSettings
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import NOTICES
from tests.integration.test_inputs import Expert, part, plan
from tests.integration.test_plan_rounds import by_key, root_of
from tests.integration.test_thinking import act, decide, one_turn, submit, thinking
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio

PRICE = {"scripted": {"input": 1.0, "output": 1.0}}


def command(number: int) -> dict[str, Any]:
    return decide(act("run_command", command=f"echo {number}"))


class Recorded:
    """A model that gives its answers in order, and remembers what it was told."""

    def __init__(self, *answers: Any) -> None:
        self.answers = answers
        self.told: list[list[str]] = []

    def __call__(self, request: ChatRequest) -> Any:
        self.told.append([message.text for message in request.messages if message.role == "user"])
        return self.answers[min(len(self.told), len(self.answers)) - 1]


async def test_model_is_told_the_budget_of_now_after_it_was_raised(swarm: SwarmRig, tmp_path: Path) -> None:
    await submit(swarm, tmp_path, session="other")
    await one_turn(swarm, thinking(swarm, Recorded("counted"), tmp_path))
    one = (await StoreLedger(swarm.store, swarm.clock, "other", "x").session()).tokens
    model = Recorded(command(1), command(2), "counted")
    core = thinking(swarm, model, tmp_path, budget={"session_tokens": int(one * 1.3)})
    await submit(swarm, tmp_path, deadline=swarm.clock.now() + timedelta(hours=9))
    stopped = await one_turn(swarm, core)
    assert stopped.status_reason is StatusReason.BUDGET_EXCEEDED
    events = await read_events(swarm.store, await swarm.store.get(f"agent_runs/{stopped.task_id}.1"))
    assert "Less than a quarter of the budget is left" in str(events), "the request with this note was refused"
    client = Swarm(replace(core, settings=core.settings.model_copy(update={"session": "s1"})))
    await client.budget("session", tokens=1_000_000)
    await client.retry_tree(stopped)
    assert (await one_turn(swarm, core)).status is TaskStatus.DONE
    assert not [text for told in model.told for text in told if "Less than a quarter" in text]


async def test_session_is_charged_for_its_own_work_only(swarm: SwarmRig, tmp_path: Path) -> None:
    await submit(swarm, tmp_path, session="rich")
    assert (await one_turn(swarm, thinking(swarm, Expert("counted"), tmp_path))).status is TaskStatus.DONE
    spent = {name: (await StoreLedger(swarm.store, swarm.clock, name, "x").session()).tokens for name in ("rich", "s1")}
    assert spent["rich"] > 1_000 and spent["s1"] == 0
    core = thinking(swarm, Expert("counted"), tmp_path, budget={"session_tokens": int(spent["rich"] * 1.5)})
    for session, status in (("poor", TaskStatus.DONE), ("rich", TaskStatus.BLOCKED)):
        await submit(swarm, tmp_path, session=session, context={"again": 1})
        ended = await one_turn(swarm, core)
        assert ended.status is status, ended.summary
        assert (ended.status_reason is StatusReason.BUDGET_EXCEEDED) is (session == "rich")


@pytest.mark.parametrize("target", ["task", "session", "day"])
async def test_raised_budget_applies_at_once_without_a_restart(swarm: SwarmRig, tmp_path: Path, target: str) -> None:
    core = thinking(swarm, Expert(command(1), command(2), "counted"), tmp_path, budget={f"{target}_tokens": 2_000})
    task = await submit(swarm, tmp_path)
    stopped = await one_turn(swarm, core)
    assert stopped.status_reason is StatusReason.BUDGET_EXCEEDED
    named = task.task_id[:8] if target == "task" else target
    assert f"swarm budget {named} --tokens" in str(stopped.summary)
    client = Swarm(replace(core, settings=core.settings.model_copy(update={"session": "s1"})))
    await client.budget(task if target == "task" else target, tokens=1_000_000)
    assert [each.task_id for each in await client.retry_tree(task)] == [task.task_id]
    assert (await one_turn(swarm, core)).status is TaskStatus.DONE


async def test_budget_is_raised_while_the_turn_runs(swarm: SwarmRig, tmp_path: Path) -> None:
    async def model(request: ChatRequest) -> Any:
        if len(request.messages) > 1:
            return "counted"
        await swarm.client.budget(task, usd=5)
        return command(1)

    core = thinking(swarm, model, tmp_path, budget={"task_usd": 0.007, "prices": PRICE})
    task = await submit(swarm, tmp_path)
    ended = await one_turn(swarm, core)
    assert (ended.status, ended.epoch) == (TaskStatus.DONE, 1), ended.summary


async def test_budget_of_an_objective_holds_for_all_its_tasks_together(swarm: SwarmRig, tmp_path: Path) -> None:
    await submit(swarm, tmp_path, role="architect")
    root = await one_turn(swarm, thinking(swarm, Expert(plan(part("a"), part("b"))), tmp_path), role="architect")
    run = await swarm.store.get(f"agent_runs/{root.task_id}.1")
    spent = (run.data or {})["usage"]["tokens"]
    await swarm.client.budget(root, tokens=spent + 100)
    core = thinking(swarm, Recorded("counted"), tmp_path, budget={"task_tokens": 1_000_000})
    for _ in range(2):
        stopped = await one_turn(swarm, core)
        assert stopped.status_reason is StatusReason.BUDGET_EXCEEDED
        assert "the objective to" in stopped.summary and f"swarm budget {root.task_id[:8]} --tokens" in stopped.summary
    await swarm.client.budget(root, tokens=spent + 1_000_000)
    assert {task.plan_key for task in await swarm.client.retry_tree(root)} == {"a", "b"}
    for _ in range(2):
        ended = await one_turn(swarm, core)
        assert ended.status is TaskStatus.DONE, ended.summary


async def test_planner_is_told_the_budget_and_the_time_and_a_low_budget_is_told_once(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    measured = Recorded("counted")
    await submit(swarm, tmp_path, session="other")
    await one_turn(swarm, thinking(swarm, measured, tmp_path))
    assert "Budget left" not in measured.told[0][0], "without a budget nothing is told"
    one = (await StoreLedger(swarm.store, swarm.clock, "other", "x").session()).tokens
    model = Recorded(*(command(number) for number in range(6)), "counted")
    core = thinking(swarm, model, tmp_path, budget={"task_tokens": 900_000, "session_tokens": one * 8})
    await submit(swarm, tmp_path, deadline=swarm.clock.now() + timedelta(minutes=90))
    await one_turn(swarm, core)
    opening = model.told[0][0]
    assert f"# Budget left\n900,000 of 900,000 tokens of the task; {one * 8:,} of {one * 8:,} tokens of the " in opening
    assert "90 min until the deadline." in opening
    low = [text for text in model.told[-1] if "Less than a quarter of the budget is left" in text]
    assert len(low) == 1 and "of the session" in low[0] and "of the task" not in low[0]


async def test_time_that_runs_out_is_told_and_a_resumed_run_sends_the_same_bytes(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    heard: list[list[str]] = []

    async def model(request: ChatRequest) -> Any:
        heard.append([message.text for message in request.messages])
        if len(heard) == 1:
            await swarm.clock.advance(80)
            return command(1)
        return {"error": 500, "message": "down"} if len(heard) == 2 else "counted"

    core = thinking(swarm, model, tmp_path, runtime={"max_llm_retries": 0})
    await submit(swarm, tmp_path, deadline=swarm.clock.now() + timedelta(seconds=100))
    await one_turn(swarm, core)
    assert "[Less than a quarter of the budget is left: 20 s until the deadline." in heard[1][-1]
    await swarm.clock.advance(2)
    await swarm.board.sweep("scout")
    assert (await one_turn(swarm, core)).status is TaskStatus.DONE
    assert heard[2] == heard[1]


async def test_retry_of_the_first_task_retries_all_that_stopped_for_the_same_reason(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    await submit(swarm, tmp_path, role="architect", on_child_failure="wait")
    core = thinking(swarm, Expert(plan(part("a"), part("b"), part("c"))), tmp_path)
    await one_turn(swarm, core, role="architect")
    for outcome in (
        Waiting(StatusReason.BUDGET_EXCEEDED, "too dear"),
        Failed("broken"),
        Waiting(StatusReason.BUDGET_EXCEEDED, "too dear"),
    ):
        await swarm.settle(await swarm.claim_one(), outcome)
    root = await root_of(swarm)
    with pytest.raises(InvalidInput, match="several reasons: .*dead_letter.*Choose one with --reason"):
        await swarm.client.retry_tree(root)
    assert len(await swarm.client.retry_tree(root, StatusReason.BUDGET_EXCEEDED)) == 2
    assert len(await swarm.client.retry_tree(root)) == 1
    assert {(await by_key(swarm, key)).status for key in "abc"} == {TaskStatus.QUEUED}
    with pytest.raises(InvalidInput):
        await swarm.client.retry_tree(root)


async def test_receivers_hear_once_that_a_budget_is_nearly_spent(swarm: SwarmRig, tmp_path: Path) -> None:
    await submit(swarm, tmp_path)
    assert (await one_turn(swarm, thinking(swarm, Expert("counted"), tmp_path))).status is TaskStatus.DONE
    spent = (await StoreLedger(swarm.store, swarm.clock, "s1", "x").session()).tokens
    core = thinking(swarm, Expert(command(1), "counted"), tmp_path, budget={"session_tokens": int(spent * 1.2)})
    receiver = ReceiverSettings(command=("/bin/true",))
    core = replace(core, settings=core.settings.model_copy(update={"notify": {"desk": receiver}}))
    for number in (1, 2):
        await submit(swarm, tmp_path, context={"again": number})
        await one_turn(swarm, core)
    found = [dict(each.data or {}) for each in await swarm.store.query(queries.by_id(NOTICES, 9))]
    assert [notice["kind"] for notice in found] == ["budget_80"]
    assert "of a budget is spent" in found[0]["text"] and "session" in found[0]["text"]
