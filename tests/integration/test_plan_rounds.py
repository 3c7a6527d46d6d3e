"""A plan changes while it is carried out: tasks are added, retried, canceled and sent back, in bounded rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.llm.chat import ChatRequest, ToolSpec
from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.outcome import Failed
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.errors import GraphInvalid
from fireswarm.swarm.turn.turn import run_turn
from tests.integration.test_inputs import Expert, by_key, part, plan, turn
from tests.integration.test_thinking import act, decide, one_turn, submit, thinking
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio


def finish(answer: str = "a change", **result: Any) -> dict[str, Any]:
    return decide(act("finish", answer=answer, result=result))


async def fail(swarm: SwarmRig, key: str, role: str = "scout") -> None:
    held = await swarm.claim_one(role=role)
    assert held.task.plan_key == key
    await swarm.settle(held, Failed("it broke", StatusReason.ESCALATED))


async def root_of(swarm: SwarmRig) -> Task:
    return next(task for task in await swarm.board.list() if task.parent_task_id is None)


async def start(swarm: SwarmRig, folder: Path, *tasks: dict[str, Any]) -> None:
    await submit(swarm, folder, role="architect")
    await turn(swarm, folder, Expert(plan(*tasks)), "architect")


async def test_planner_is_woken_by_a_failure_while_others_work_and_adds_a_task(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"), part("b", "predictor"), part("c", "executor", depends_on=["a"]))
    await fail(swarm, "a")
    assert (await root_of(swarm)).status is TaskStatus.QUEUED
    planner = Expert(finish(tasks=[part("a2"), part("d", "executor", depends_on=["a2", "b"])], cancel=["a"]))
    waiting = await turn(swarm, tmp_path, planner, "architect")
    assert "Round 1 of 8" in planner.first
    assert "- a (scout): blocked: escalated: it broke" in planner.first
    assert "- b (predictor): queued" in planner.first and "What you said when you planned:\na plan" in planner.first
    assert (waiting.status_reason, waiting.wakes_on_failure) == (StatusReason.DELEGATING, True)
    assert [(await by_key(swarm, key)).status for key in ("a", "c")] == [TaskStatus.CANCELED] * 2
    await turn(swarm, tmp_path, Expert("a is good"), "scout")
    assert (await by_key(swarm, "d")).status is TaskStatus.BLOCKED
    await turn(swarm, tmp_path, Expert("b is good"), "predictor")
    executor = Expert("all is good")
    await turn(swarm, tmp_path, executor, "executor")
    assert "a is good" in executor.first and "b is good" in executor.first
    done = await turn(swarm, tmp_path, Expert("the end"), "architect")
    assert done.status is TaskStatus.DONE


async def test_second_and_third_plan_are_carried_out_and_the_bound_is_told(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"))
    await turn(swarm, tmp_path, Expert("one"), "scout")
    await turn(swarm, tmp_path, Expert(finish(tasks=[part("b", depends_on=["a"])])), "architect")
    second = Expert("two")
    await turn(swarm, tmp_path, second, "scout")
    assert "inputs/a/answer.md" in second.first
    planner = Expert(finish(tasks=[part("c")]), "the end")
    core = thinking(swarm, planner, tmp_path, worker={"plan_rounds": 2})
    done = await one_turn(swarm, core, role="architect")
    assert "Round 2 of 2" in planner.first
    assert "your plan has had 2 rounds, and 2 are allowed" in planner.told[1]
    assert done.status is TaskStatus.DONE


async def test_failed_task_is_retried_with_a_note(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"), part("b", "executor", depends_on=["a"]))
    gives_up = decide(act("finish", answer="", status="failed", reason="the workspace is empty"))
    failed = await turn(swarm, tmp_path, Expert(gives_up), "scout")
    assert (failed.status_reason, failed.summary) == (
        StatusReason.ESCALATED,
        "gave_up: the model says that the task cannot be done: the workspace is empty",
    )
    assert (await by_key(swarm, "b")).status is TaskStatus.BLOCKED
    planner = Expert(finish(retry=[{"key": "a", "note": "look into src"}]))
    await turn(swarm, tmp_path, planner, "architect")
    assert "the workspace is empty" in planner.first
    scout = Expert("found it in src")
    again = await turn(swarm, tmp_path, scout, "scout")
    assert "look into src" in scout.told[0]
    assert again.status is TaskStatus.DONE
    executor = Expert("used it")
    await turn(swarm, tmp_path, executor, "executor")
    assert "found it in src" in executor.first
    assert (await turn(swarm, tmp_path, Expert("the end"), "architect")).status is TaskStatus.DONE


async def test_finished_task_is_sent_back_and_goes_on_with_its_conversation_and_files(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    await start(swarm, tmp_path, part("a", "executor"))
    wrote = decide(act("write_artifact", name="report.md", content="the first draft"))
    first = Expert(wrote, "written")
    await turn(swarm, tmp_path, first, "executor")
    planner = Expert(finish(revise=[{"key": "a", "note": "give a source for each number"}]))
    await turn(swarm, tmp_path, planner, "architect")
    second = Expert(
        decide(act("edit_file", path="$OUTPUT_DIR/report.md", old_text="first draft", new_text="second draft [1]")),
        finish("sources are given"),
    )
    revised = await turn(swarm, tmp_path, second, "executor")
    assert second.told[0].startswith("The architect who planned this task sends it back: give a source")
    assert revised.status is TaskStatus.DONE and revised.plan_key == "a~2" and revised.result is not None
    [report] = [artifact for artifact in revised.result.artifacts if artifact.uri]
    assert await swarm.core.blobs.get(str(report.uri)) == b"the second draft [1]"
    original = await by_key(swarm, "a")
    assert original.status is TaskStatus.DONE and original.result is not None
    [before] = [artifact for artifact in original.result.artifacts if artifact.uri]
    assert await swarm.core.blobs.get(str(before.uri)) == b"the first draft"
    end = Expert("the end")
    done = await turn(swarm, tmp_path, end, "architect")
    assert "inputs/a~2/report.md" in end.first and done.status is TaskStatus.DONE
    assert done.result is not None
    assert [item.uri for item in done.result.artifacts if item.uri] == [report.uri]


async def test_task_that_is_sent_back_begins_with_the_same_message_so_that_a_provider_finds_it_in_its_cache(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    begins: list[str] = []

    class Begins(Expert):
        def __call__(self, request: ChatRequest) -> Any:
            begins.append(request.messages[0].text)
            return super().__call__(request)

    await start(swarm, tmp_path, part("a", "executor"), part("b"))
    await turn(swarm, tmp_path, Begins("written"), "executor")
    await turn(swarm, tmp_path, Expert("looked"), "scout")
    await turn(swarm, tmp_path, Expert(finish(revise=[{"key": "a", "note": "once more"}])), "architect")
    await turn(swarm, tmp_path, Begins("written again"), "executor")
    assert "inputs/handed-over/answer.md" in begins[0]
    assert begins[1] == begins[0]


async def test_planner_waits_for_tasks_at_work_and_hears_of_a_failure_that_it_missed(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    await start(swarm, tmp_path, part("a"), part("b", "predictor"), part("c", "executor"))
    await fail(swarm, "a")
    held = await swarm.claim_one(role="architect")
    other = await swarm.claim_one(role="predictor")
    await swarm.settle(other, Failed("b broke too", StatusReason.ESCALATED))
    ending = await run_turn(held, thinking(swarm, Expert(finish(wait=True)), tmp_path))
    await swarm.board.settle(held, ending.outcome, ending.writes)
    assert (await root_of(swarm)).status is TaskStatus.BLOCKED
    await turn(swarm, tmp_path, Expert("c is done"), "executor")
    planner = Expert(finish(wait=True), "a and b failed")
    done = await turn(swarm, tmp_path, planner, "architect")
    assert "no task of your plan is at work" in planner.told[1]
    assert done.status is TaskStatus.DONE
    assert {(await by_key(swarm, key)).status for key in "ab"} == {TaskStatus.CANCELED}


@pytest.mark.parametrize(
    ("result", "hint"),
    [
        ({"retry": [{"key": "x", "note": "n"}]}, "your plan has no task x; it has: a"),
        ({"retry": [{"key": "a", "note": "n"}]}, "task a is done: only a failed task is retried"),
        ({"cancel": ["x"]}, "your plan has no task x"),
        ({"wait": True}, "no task of your plan is at work"),
        ({"tasks": [part("a")]}, "the plan has tasks a already"),
        ({"tasks": [part("b", depends_on=["z"])]}, "depends on z, which the plan does not have"),
        ({"revise": [{"key": "a", "note": ""}]}, "result does not fit"),
    ],
)
async def test_impossible_change_is_refused_with_the_reason(
    swarm: SwarmRig, tmp_path: Path, result: dict[str, Any], hint: str
) -> None:
    await start(swarm, tmp_path, part("a"))
    await turn(swarm, tmp_path, Expert("one"), "scout")
    planner = Expert(finish(**result), "the end")
    await turn(swarm, tmp_path, planner, "architect")
    assert hint in planner.told[1]


async def test_end_of_an_objective_ends_what_depends_on_its_failed_tasks(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a"), part("b", "executor", depends_on=["a"]))
    await fail(swarm, "a")
    done = await turn(swarm, tmp_path, Expert("it cannot be done"), "architect")
    assert done.status is TaskStatus.DONE
    child = await by_key(swarm, "b")
    assert (child.status, child.summary) == (TaskStatus.CANCELED, "canceled: its objective ended")


async def test_a_role_reads_what_the_other_roles_do_also_those_of_a_user(swarm: SwarmRig, tmp_path: Path) -> None:
    seen: list[Any] = []

    def script(request: Any) -> str:
        seen.extend(tool for tool in request.tools if tool.name == "delegate")
        return "done"

    core = thinking(swarm, script, tmp_path)
    card = core.roles["scout"].model_copy(
        update={"name": "lawyer", "description": "Reads contracts.", "skills": ("clauses",), "offers": ()}
    )
    core = replace(core, roles={**core.roles, "lawyer": card})
    await submit(swarm, tmp_path, role="architect")
    await one_turn(swarm, core, role="architect")
    role = seen[0].parameters["properties"]["role"]
    assert "lawyer" in role["enum"] and "- lawyer: Reads contracts. Skills: clauses." in role["description"]


async def test_work_whose_checks_fail_goes_back_to_its_conversation(swarm: SwarmRig, tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["total"]}
    checks = [{"command": "test -s log.txt"}, {"file": "$OUTPUT_DIR/sum.json", "json_schema": schema}]
    await start(swarm, tmp_path, part("a", "executor", checks=checks, context={"path": "."}))
    write = act("write_artifact", name="sum.json", content="{}")
    executor = Expert(
        decide(write),
        "made",
        decide(act("run_command", command="echo 1 > log.txt")),
        finish("made again"),
        decide(act("write_artifact", name="sum.json", content='{"total": 3}')),
        "made at last",
    )
    done = await turn(swarm, tmp_path, executor, "executor")
    assert done.status is TaskStatus.DONE, done.error
    assert "`test -s log.txt` ended with exit code 1" in executor.told[2]
    assert "'total' is missing" in executor.told[2] or "total" in executor.told[2]
    assert "test -s" not in executor.told[4] and "total" in executor.told[4]


async def test_work_whose_checks_keep_failing_goes_to_the_planner(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a", checks=[{"command": "exit 3"}], max_revisions=1), part("b", "executor"))
    failed = await turn(swarm, tmp_path, Expert("made", "made again"), "scout")
    assert failed.status_reason is StatusReason.ESCALATED
    assert "checks_failed: the checks still fail after 2 tries" in failed.summary
    planner = Expert(finish(wait=True))
    await turn(swarm, tmp_path, planner, "architect")
    assert "the checks still fail" in planner.first


async def test_plan_waits_for_a_persons_approval(swarm: SwarmRig, tmp_path: Path) -> None:
    (tmp_path / "space").mkdir()
    task = await submit(swarm, tmp_path, role="architect", review_plan=True)
    first = plan(part("a", context={"path": "."}), part("b", "executor", depends_on=["a"]))
    asked = await turn(swarm, tmp_path, Expert(first), "architect")
    assert asked.status_reason is StatusReason.APPROVAL_REQUIRED
    approval = asked.questions[0].approval
    assert approval is not None
    assert approval.diff.splitlines()[:3] == ["+ a (scout)", "+   look at a", f"+   in {tmp_path}/space"] or (
        "+   in ." in approval.diff and "+ b (executor, after a)" in approval.diff
    )
    await swarm.client.deny(asked, reason="only one task")
    second = Expert(plan(part("a")))
    asked = await turn(swarm, tmp_path, second, "architect")
    assert "the plan was not approved" in second.told[0] and "only one task" in second.told[0]
    assert len(await swarm.board.list()) == 1
    await swarm.client.approve(asked)
    waiting = await turn(swarm, tmp_path, Expert(), "architect")
    assert waiting.status_reason is StatusReason.DELEGATING
    child = await by_key(swarm, "a")
    assert child.review_plan and child.parent_task_id == task.task_id


async def test_person_changes_the_plan_before_it_runs(swarm: SwarmRig, tmp_path: Path) -> None:
    await submit(swarm, tmp_path, role="architect", review_plan=True)
    first = plan(part("a"), part("b", "executor", depends_on=["a"]))
    asked = await turn(swarm, tmp_path, Expert(first), "architect")
    proposed = asked.questions[2].allowed["default"]
    assert [task["key"] for task in proposed] == ["a", "b"]
    with pytest.raises(GraphInvalid, match="cycle"):
        circle = [PlannedTask.model_validate(task) for task in ({**proposed[0], "depends_on": ["b"]}, proposed[1])]
        await swarm.client.approve(asked, plan=circle)
    changed = [PlannedTask(key="c", assigned_to="predictor", objective="judge it")]
    await swarm.client.approve(asked, plan=changed)
    waiting = await turn(swarm, tmp_path, Expert(), "architect")
    assert waiting.status_reason is StatusReason.DELEGATING
    tasks = {task.plan_key: task for task in await swarm.board.list() if task.plan_key}
    assert list(tasks) == ["c"] and tasks["c"].objective == "judge it"
    await turn(swarm, tmp_path, Expert("judged"), "predictor")
    planner = Expert("the end")
    await turn(swarm, tmp_path, planner, "architect")
    assert "A person changed the tasks of this plan" in planner.first and "- c (predictor" in planner.first


async def test_changed_plan_that_cannot_run_goes_back_to_the_model(swarm: SwarmRig, tmp_path: Path) -> None:
    await submit(swarm, tmp_path, role="architect", review_plan=True)
    asked = await turn(swarm, tmp_path, Expert(plan(part("a"))), "architect")
    lost = [PlannedTask(key="c", assigned_to="scout", objective="look", context={"path": "/no/such/folder"})]
    await swarm.client.approve(asked, plan=lost)
    planner = Expert(plan(part("d")))
    again = await turn(swarm, tmp_path, planner, "architect")
    assert again.status_reason is StatusReason.APPROVAL_REQUIRED
    assert "a person wants these tasks" in planner.told[0] and "/no/such/folder" in planner.told[0]


async def test_all_tools_but_the_last_are_the_same_for_all_roles_so_that_a_provider_caches_them_once(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    offered: list[Sequence[ToolSpec]] = []

    def script(request: ChatRequest) -> str:
        offered.append(request.tools)
        return "done"

    core = thinking(swarm, script, tmp_path)
    for role in ("architect", "executor", "scout"):
        await submit(swarm, tmp_path, role=role)
        await one_turn(swarm, core, role=role)
    first, *others = ([tool for tool in tools if not tool.varies] for tools in offered)
    assert len(first) > 15 and others == [first, first]
    assert [[tool.name for tool in tools if tool.varies] for tools in offered] == [["delegate"]] * 3
    assert all(tools[-1].varies for tools in offered)


async def test_plan_is_approved_with_all_that_its_tasks_do(swarm: SwarmRig, tmp_path: Path) -> None:
    (tmp_path / "space" / "r").mkdir(parents=True)
    await submit(swarm, tmp_path, role="architect", review_plan=True)
    check = {"file": "a.json", "json_schema": {"required": ["total"]}}
    more: dict[str, Any] = {
        "objective": "tidy up\n+ b (executor)\n+   another task",
        "skill": "counting",
        "context": {"path": ".", "note": "run deploy.sh", "repository": "r"},
        "expected_outcome": "pushed\n+ c (scout)",
        "constraints": {"read_only": True},
        "max_revisions": 7,
        "checks": [check],
    }
    asked = await turn(swarm, tmp_path, Expert(plan(part("a", **more))), "architect")
    approval = asked.questions[0].approval
    assert approval is not None
    lines = approval.diff.splitlines()
    assert [line for line in lines if not line.startswith("+   ")] == ["+ a (scout)"]
    for shown in (
        "skill: counting",
        "run deploy.sh",
        '"repository": "r"',
        "expected outcome: pushed",
        "read_only",
        "7",
    ):
        assert any(shown in line for line in lines), shown
    assert any("a.json" in line and "total" in line for line in lines)
