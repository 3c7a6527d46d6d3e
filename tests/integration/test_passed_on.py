"""A planner names the task whose answer is the result: it is asked again only if there is something to judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.ports import Merge
from fireswarm.contracts.swarm.outcome import Failed
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from tests.integration.test_inputs import Expert, part, turn
from tests.integration.test_plan_rounds import finish, root_of
from tests.integration.test_thinking import act, decide, events_of, submit
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio

NOBODY = Expert()
"""A model that must not be asked."""


async def start(swarm: SwarmRig, folder: Path, *tasks: dict[str, Any], **more: Any) -> None:
    await submit(swarm, folder, role="architect", **more)
    await turn(swarm, folder, Expert(finish("I give the whole to one", tasks=list(tasks), answer_of="a")), "architect")


async def work(swarm: SwarmRig, folder: Path, answer: str = "a is **good**") -> Task:
    return await turn(
        swarm, folder, Expert(decide(act("write_artifact", name="a.md", content="good\n")), answer), "scout"
    )


async def content(swarm: SwarmRig, task: Task) -> dict[str, Any]:
    assert task.result is not None
    return {
        artifact.name: artifact.value if artifact.uri is None else await swarm.core.blobs.get(artifact.uri)
        for artifact in task.result.artifacts
    }


async def test_answer_and_files_of_the_named_task_are_the_result(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"), part("b", "predictor"))
    done = await work(swarm, tmp_path)
    await turn(swarm, tmp_path, Expert("b is good"), "predictor")
    root = await turn(swarm, tmp_path, NOBODY, "architect")
    assert root.status is TaskStatus.DONE and root.result is not None
    assert root.result.summary == "a is **good**"
    assert await content(swarm, root) == await content(swarm, done)
    assert "answer_passed_on" in await events_of(swarm, root)


async def test_planner_judges_a_failure(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"), part("b", "predictor"))
    await work(swarm, tmp_path)
    await swarm.settle(await swarm.claim_one(role="predictor"), Failed("it broke", StatusReason.ESCALATED))
    planner = Expert(finish(retry=[{"key": "b", "note": "again"}], answer_of="a"))
    await turn(swarm, tmp_path, planner, "architect")
    assert "it broke" in planner.first
    await turn(swarm, tmp_path, Expert("b is good"), "predictor")
    assert (await turn(swarm, tmp_path, NOBODY, "architect")).summary == "a is **good**"


async def test_answer_after_a_revision_is_the_later_one(swarm: SwarmRig, tmp_path: Path) -> None:
    await submit(swarm, tmp_path, role="architect")
    await turn(swarm, tmp_path, Expert(finish(tasks=[part("a")])), "architect")
    await work(swarm, tmp_path)
    again = finish(revise=[{"key": "a", "note": "say more"}], answer_of="a")
    await turn(swarm, tmp_path, Expert(again), "architect")
    await turn(swarm, tmp_path, Expert("a is better"), "scout")
    assert (await turn(swarm, tmp_path, NOBODY, "architect")).summary == "a is better"


@pytest.mark.parametrize("result", [{"summary": "x" * 50_000}, None], ids=["long", "none"])
async def test_task_that_a_person_ended_loses_nothing(
    swarm: SwarmRig, tmp_path: Path, result: dict[str, Any] | None
) -> None:
    await start(swarm, tmp_path, part("a"))
    path = next(f"agent_tasks/{task.task_id}" for task in await swarm.board.list() if task.plan_key == "a")
    await swarm.store.commit([Merge(path, {"status": "done", **({"result": result} if result else {})})])
    await swarm.board.settle_edited(await swarm.store.get(path))
    root = await turn(swarm, tmp_path, Expert("my own answer"), "architect")
    assert root.status is TaskStatus.DONE, root.error
    assert root.summary == "my own answer" if result is None else root.summary.startswith("xxx")


async def test_planner_hears_what_the_operator_says(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"))
    root = await root_of(swarm)
    await swarm.board.say(root.task_id, "in French, please")
    planner = Expert("a est bon", "a est bon")
    await work(swarm, tmp_path)
    assert (await turn(swarm, tmp_path, planner, "architect")).summary == "a est bon"
    assert any("in French" in text for text in planner.told)


async def test_planner_with_checks_of_its_own_is_asked(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"), checks=[{"command": "true"}])
    await work(swarm, tmp_path)
    assert (await turn(swarm, tmp_path, Expert("checked"), "architect")).summary == "checked"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tasks": [part("a")], "answer_of": "b"}, "answer_of names 'b', which is no task of your plan; it has: a"),
        ({"answer_of": "a"}, "this plan is done, so finish with your own answer"),
    ],
)
async def test_answer_of_an_unknown_task_is_refused(
    swarm: SwarmRig, tmp_path: Path, given: dict[str, Any], words: str
) -> None:
    await submit(swarm, tmp_path, role="architect")
    planner = Expert(finish("I plan", **given), "my own answer")
    await turn(swarm, tmp_path, planner, "architect")
    assert words in planner.told[1]
