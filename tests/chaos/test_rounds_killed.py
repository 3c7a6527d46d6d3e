"""A process dies before or after any commit of a plan that fails, changes, asks, revises and goes on: nothing is lost.

`ROUNDS=all` tries every commit; without it, a part that the printed seed chooses.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.ports import Write
from fireswarm.contracts.swarm.task import Task, TaskStatus
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.turn.turn import run_turn
from tests.integration.test_inputs import part, plan
from tests.integration.test_plan_rounds import finish
from tests.integration.test_thinking import Killed, act, answers_so_far, decide, submit, thinking, told, was_killed
from tests.support.swarm import ROLES, SwarmRig, open_test_swarm

pytestmark = pytest.mark.anyio

LOOPS = 80
TOLD = ("look again", "are you sure?")
"""What a conversation is told by another task: its opening is that of an earlier request."""

PART = 8
"""Number of commits that a run of CI tries."""


class Roles:
    """A model for every role: its answer follows from what it is told, so a repeated request has the same answer."""

    def __init__(self) -> None:
        self.asked: dict[tuple[Any, ...], set[str]] = {}

    def __call__(self, request: ChatRequest) -> dict[str, Any]:
        first, number = request.messages[0].text, answers_so_far(request)
        everything = "\n".join(told_by(message) for message in request.messages)
        self.asked.setdefault((opening_of(first), number, *(words in everything for words in TOLD)), set()).add(
            everything
        )
        if first.startswith("# Task\nlook at a\n"):
            if "are you sure?" in everything:
                return "a is sure"  # type: ignore[return-value]
            return "a is good" if "look again" in everything else give_up()  # type: ignore[return-value]
        if first.startswith("# Task\nlook at b\n"):
            return "b is good"  # type: ignore[return-value]
        if first.startswith("# Task\nlook at c\n"):
            return self.write(everything, told(request))
        match first.partition("Round ")[2][:1]:
            case "":
                return plan(part("a"), part("b", "predictor"), part("c", "executor", depends_on=["a"]))
            case "1":
                return finish(retry=[{"key": "a", "note": "look again"}])
            case "2" if "a is sure" not in everything:
                return decide(act("ask", to="a", question="are you sure?"))
            case "2":
                return finish(revise=[{"key": "c", "note": "say more"}])
            case _:
                return finish("one more is done" if "one more" in everything else "the end")

    def write(self, everything: str, last: str) -> dict[str, Any]:
        if "say more" not in everything:
            if "stored artifact" in everything:
                return "written"  # type: ignore[return-value]
            return decide(act("write_artifact", name="c.md", content="short"))
        if "14 bytes" in last:
            return finish("said more")
        return decide(act("write_artifact", name="c.md", content="short and long"))


def told_by(message: Any) -> str:
    return "\n".join([message.role, message.text, *(output.text for output in message.outputs)])


def opening_of(first: str) -> str:
    """Return what tells a conversation from the others: its task and its round."""
    return first[:20] + first.partition("Round ")[2][:1]


def give_up() -> dict[str, Any]:
    return decide(act("finish", answer="", status="failed", reason="nothing is there"))


async def objective(swarm: SwarmRig, core: SwarmParts, agent: str, root_id: str) -> Task:
    """Work on the objective, then on its follow-up, and return the latter."""
    root = await work(swarm, core, agent, root_id)
    following = (await swarm.board.go_on(root.task_id, "one more", "1")).task
    return await work(swarm, core, agent, following.task_id)


async def work(swarm: SwarmRig, core: SwarmParts, agent: str, root_id: str) -> Task:
    """Let all roles work until the objective ends."""
    for _ in range(LOOPS):
        busy = False
        for role in ROLES:
            for held in await swarm.claim(agent, role):
                busy = True
                ending = await run_turn(held, core)
                await swarm.board.settle(held, ending.outcome, ending.writes)
        root = await swarm.task(root_id)
        if root.status.terminal:
            return root
        if not busy:
            await swarm.clock.advance(120)
            for role in ROLES:
                await swarm.board.sweep(role)
    states = [(task.plan_key, task.status.value, task.summary) for task in await swarm.board.list()]
    raise AssertionError(f"the objective did not end: {states}")


async def live(folder: Path, monkeypatch: pytest.MonkeyPatch, kill_at: int, *, after: bool) -> int:
    """Work on an objective; the first process dies before or after commit *kill_at*. Returns the number of commits."""
    model, commits = Roles(), 0
    async with open_test_swarm() as swarm:
        asked = await submit(swarm, folder, role="architect")
        real: Callable[..., Any] = swarm.store.commit

        async def commit(writes: list[Write], **options: Any) -> Any:
            nonlocal commits
            commits += 1
            if commits == kill_at and not after:
                raise Killed
            done = await real(writes, **options)
            if commits == kill_at:
                raise Killed
            return done

        monkeypatch.setattr(swarm.store, "commit", commit)
        core = thinking(swarm, model, folder)
        try:
            last = await objective(swarm, core, "first", asked.task_id)
        except BaseException as error:
            if not was_killed(error):
                raise
            await swarm.clock.advance(120)
            for role in ROLES:
                await swarm.board.sweep(role)
            last = await objective(swarm, thinking(swarm, model, folder), "second", asked.task_id)
        tasks = await swarm.board.list()
        keys = sorted(task.plan_key for task in tasks)
        assert keys == ["", "", "a", "b", "c", "call.2.1.1", "c~2"], "a task is missing, or was made twice"
        assert {task.status for task in tasks} == {TaskStatus.DONE}
        root = await swarm.task(asked.task_id)
        assert root.result is not None and root.result.summary == "the end"
        assert last.result is not None and last.result.summary == "one more is done"
        [report] = [artifact for artifact in root.result.artifacts if artifact.uri]
        assert await swarm.core.blobs.get(str(report.uri)) == b"short and long"
        changed = [key for key, texts in model.asked.items() if len(texts) > 1]
        assert not changed, "the model got other bytes for the same decision"
    monkeypatch.undo()
    return commits


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_changed_plan_survives_a_death_at_any_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    commits = await live(tmp_path / "whole", monkeypatch, kill_at=0, after=after)
    assert commits > 30
    numbers = list(range(1, commits + 1))
    if os.environ.get("ROUNDS") != "all":
        seed = int(os.environ.get("SEED", "0")) or random.randrange(1, 10_000)
        print(f"SEED={seed}")
        numbers = random.Random(seed).sample(numbers, PART)
    for number in numbers:
        print(f"killed at commit {number}")
        await live(tmp_path / f"k{number}", monkeypatch, kill_at=number, after=after)
