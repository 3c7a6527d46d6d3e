"""A model finds all that its task was given: as files below inputs/, and a fair share of them in its first message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.skills.artifact import Artifact, Attachment
from fireswarm.contracts.swarm.outcome import Done
from fireswarm.contracts.swarm.task import Task, TaskResult, TaskStatus
from fireswarm.swarm.records.artifacts import find_artifact
from fireswarm.swarm.turn.given.files import input_root
from fireswarm.swarm.turn.given.material import TEXT_CHARS, outline, shares
from fireswarm.swarm.turn.turn import run_turn
from tests.integration.test_thinking import act, answers_so_far, decide, one_turn, submit, thinking, told
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio


class Expert:
    """Answers in order, and keeps what it is told; a request that no rule answers fails the test."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.told: list[str] = []
        self.first = ""

    def __call__(self, request: ChatRequest) -> Any:
        if not answers_so_far(request):
            self.first = request.messages[0].text
        self.told.append(told(request))
        return self.answers.pop(0)


def plan(*tasks: dict[str, Any]) -> dict[str, Any]:
    return decide(act("finish", answer="a plan", result={"tasks": list(tasks)}))


def part(key: str, role: str = "scout", **more: Any) -> dict[str, Any]:
    return {"key": key, "assigned_to": role, "objective": f"look at {key}", **more}


async def turn(swarm: SwarmRig, folder: Path, expert: Any, role: str) -> Task:
    return await one_turn(swarm, thinking(swarm, expert, folder), role=role)


async def by_key(swarm: SwarmRig, key: str) -> Task:
    return next(task for task in await swarm.board.list() if task.plan_key == key)


async def test_all_of_sixteen_long_answers_can_be_read_and_the_first_message_stays_in_its_room(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    keys = [f"w{number:02}" for number in range(16)]
    await submit(swarm, tmp_path, role="architect")
    await turn(swarm, tmp_path, Expert(plan(*map(part, keys), part("use", "executor", depends_on=keys))), "architect")
    texts: dict[str, str] = {}
    for _ in keys:
        held = await swarm.claim_one()
        key = held.task.plan_key
        texts[key] = "\n".join(f"CODE{key} line {line} {'x' * 40}" for line in range(350))
        core = thinking(swarm, Expert(texts[key]), tmp_path)
        ending = await run_turn(held, core)
        await swarm.board.settle(held, ending.outcome, ending.writes)
    pages = [(key, offset) for key in keys for offset in (1, 200)]
    reads = [decide(act("read_file", path=f"inputs/{key}/answer.md", offset=offset)) for key, offset in pages]
    expert = Expert(*reads, decide(act("run_command", command="wc -c $INPUT_DIR/*/answer.md")), "used")
    await turn(swarm, tmp_path, expert, "executor")
    assert len(expert.first) < TEXT_CHARS + 16 * 600
    for key in keys:
        assert f"inputs/{key}/answer.md (answer, {len(texts[key].encode()):,} bytes)" in expert.first
        assert f"CODE{key} line 0 " in expert.first
        assert all(f"CODE{key} line {line} " in "".join(expert.told) for line in range(350))
    total = sum(len(text.encode()) for text in texts.values()) + len("a plan")
    assert f"{total} total" in expert.told[-1]


async def test_files_of_dependencies_attachments_and_earlier_tasks_are_read_only_inputs(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    (tmp_path / "brief.md").write_text("the attached brief")
    attached = Attachment(name="brief.md", mime="text/markdown", uri=(tmp_path / "brief.md").as_uri())
    write = act("write_artifact", name="findings.md", content="rq needs Redis", description="what rq needs")
    before = await submit(swarm, tmp_path, role="scout")
    await turn(swarm, tmp_path, Expert(decide(write), "see findings.md"), "scout")
    await submit(
        swarm, tmp_path, role="architect", attachments=(attached,), depends_on=(before.task_id,), fresh_key="2"
    )
    tasks = part("a"), part("b", "executor", depends_on=["a"])
    architect = Expert(
        decide(act("read_file", path=f"inputs/{before.task_id[:8]}/findings.md"), act("list_files", path="inputs")),
        plan(*tasks),
    )
    await turn(swarm, tmp_path, architect, "architect")
    assert f"inputs/{before.task_id[:8]}/findings.md (file, 14 bytes): what rq needs" in architect.first
    assert "rq needs Redis" in architect.told[1]
    assert "inputs/attached/brief.md (18 bytes)" in architect.told[1]
    await turn(swarm, tmp_path, Expert(decide(write), "done"), "scout")
    executor = Expert(
        decide(
            act("read_file", path="$INPUT_DIR/a/findings.md"),
            act("search_files", path="inputs", pattern="attached brief"),
            act("write_file", path="inputs/a/findings.md", content="changed"),
            act("edit_file", path="inputs/a/findings.md", old_text="Redis", new_text="nothing"),
            act("run_command", command="cat $INPUT_DIR/a/findings.md; echo x >> $INPUT_DIR/a/findings.md; echo $?"),
            act("write_artifact", name="copy.md", path="inputs/a/findings.md"),
        ),
        decide(act("read_file", path="inputs/a/findings.md")),
        "done",
    )
    done = await turn(swarm, tmp_path, executor, "executor")
    assert executor.first.count("rq needs Redis") == 1
    assert "the attached brief" in executor.first
    assert "count the things" in executor.first and "- b (executor, after a): look at b <- your task" in executor.first
    assert executor.told[1].count("is an input file, which cannot be changed") == 2
    assert "inputs/attached/brief.md:1:the attached brief" in executor.told[1]
    assert "stored artifact copy.md: 14 bytes" in executor.told[1]
    assert executor.told[2].rstrip().endswith("\trq needs Redis")
    assert done.status is TaskStatus.DONE
    assert not input_root(swarm.core, done.task_id).exists() or done.result is not None


async def test_files_outside_the_session_and_changed_ones_are_named_and_not_read(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("a key of the machine")
    changed = await swarm.core.blobs.put("s1/x/changed.md", b"as it was changed")
    other = await swarm.core.blobs.put("s2/x/other.md", b"of another session")
    artifacts = (
        Artifact(type="file", name="secret.txt", uri=secret.as_uri()),
        Artifact(type="file", name="other.md", uri=other),
        Artifact(type="file", name="changed.md", uri=changed, sha256="0" * 64),
        Artifact(type="file", name="../../up.md", uri=await swarm.core.blobs.put("s1/x/up.md", b"one up")),
        Artifact(type="inventory", name="files", value={"files": [{"name": "ä" * 400}] * 100, "root": "/x"}),
    )
    before = await submit(swarm, tmp_path, role="scout")
    await swarm.settle(await swarm.claim_one(), Done(TaskResult(summary="made", artifacts=artifacts)))
    await submit(swarm, tmp_path, role="executor", depends_on=(before.task_id,), fresh_key="2")
    short = before.task_id[:8]
    expert = Expert(
        decide(
            *(act("read_file", path=f"inputs/{short}/{name}") for name in ("secret.txt", "other.md", "changed.md")),
            act("read_file", path="inputs/../../../../secret.txt"),
            act("read_file", path=f"inputs/{short}/up.md"),
            act("read_file", path=f"inputs/{short}/files.json", limit=4),
        ),
        "done",
    )
    await turn(swarm, tmp_path, expert, "executor")
    assert "a key of the machine" not in "".join(expert.told) and "of another session" not in "".join(expert.told)
    assert "secret.txt: its address is not one of this session's files" in expert.first
    assert "as it was changed" not in "".join(expert.told)
    assert "changed.md cannot be read: the stored file was changed" in expert.told[1]
    assert "one up" in expert.told[1]
    assert "JSON object with files (list of 100), root (text of 2 characters); read_file shows it" in expert.first
    assert '"files": [' in expert.told[1]


async def test_api_and_messages_may_not_attach_files_of_the_machine(swarm: SwarmRig, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("a key of the machine")
    attached = Attachment(name="secret.txt", uri=(tmp_path / "secret.txt").as_uri())
    await submit(swarm, tmp_path, role="executor", attachments=(attached,), created_by="api")
    expert = Expert(decide(act("read_file", path="inputs/attached/secret.txt")), "done")
    await turn(swarm, tmp_path, expert, "executor")
    assert "a key of the machine" not in "".join(expert.told)


async def test_result_of_a_delegated_task_comes_with_its_files(swarm: SwarmRig, tmp_path: Path) -> None:
    await submit(swarm, tmp_path, role="architect")
    ask = decide(act("delegate", role="scout", objective="find it"))
    await turn(swarm, tmp_path, Expert(ask), "architect")
    found = decide(act("write_artifact", name="found.csv", content="a,b\n1,2\n"))
    await turn(swarm, tmp_path, Expert(found, "found it"), "scout")
    [child] = [task for task in await swarm.board.list() if task.parent_task_id]
    path = f"inputs/{child.task_id[:8]}/found.csv"
    expert = Expert(decide(act("read_file", path=path)), "done")
    done = await turn(swarm, tmp_path, expert, "architect")
    assert f"{path} (file, 8 bytes)" in expert.told[0] and "found it" in expert.told[0]
    assert expert.told[1].rstrip().endswith("\t1,2")
    assert done.status is TaskStatus.DONE


def test_shares_give_all_of_small_texts_and_equal_parts_of_large_ones() -> None:
    assert shares([10, 1_000, 500, 20], 430) == [10, 200, 200, 20]
    assert shares([5, 5], 100) == [5, 5]
    assert shares([], 100) == []


def test_json_is_a_whole_value_or_an_outline() -> None:
    assert outline(json.dumps([1, 2, 3])) == "JSON: list of 3"


async def plan_and_work(swarm: SwarmRig, folder: Path, *tasks: dict[str, Any]) -> Task:
    """Plan two tasks that each write report.md, have them done, and return the objective."""
    objective = await submit(swarm, folder, role="architect")
    await turn(swarm, folder, Expert(plan(*tasks)), "architect")
    for task in tasks:
        write = decide(act("write_artifact", name="report.md", content=f"the report of {task['key']}"))
        await turn(swarm, folder, Expert(write, "written"), task["assigned_to"])
    return objective


@pytest.mark.parametrize(
    ("deliver", "names"),
    [
        ([], [("report.md", "b")]),
        (["inputs/a/report.md"], [("report.md", "a")]),
    ],
)
async def test_deliverable_is_on_the_objective(
    swarm: SwarmRig, tmp_path: Path, deliver: list[str], names: list[tuple[str, str]]
) -> None:
    await plan_and_work(swarm, tmp_path, part("a"), part("b", "executor", depends_on=["a"]))
    end = act("finish", answer="see the report", result={"deliver": deliver} if deliver else {})
    done = await turn(swarm, tmp_path, Expert(decide(end)), "architect")
    assert done.result is not None
    files = [artifact for artifact in done.result.artifacts if artifact.uri]
    keys = {task.task_id: task.plan_key for task in await swarm.board.list()}
    assert [(file.name, keys[file.source_task_id or ""]) for file in files] == names
    assert find_artifact(done) == files[0]


async def test_files_of_the_same_name_from_several_last_tasks_are_told_apart(swarm: SwarmRig, tmp_path: Path) -> None:
    await plan_and_work(swarm, tmp_path, part("a"), part("b", "executor"))
    done = await turn(swarm, tmp_path, Expert("both are written"), "architect")
    assert done.result is not None
    names = [artifact.name for artifact in done.result.artifacts if artifact.uri]
    assert len(set(names)) == 2 and {name.rpartition("/")[2] for name in names} == {"report.md"}


async def test_deliverable_that_does_not_exist_is_refused_with_a_hint(swarm: SwarmRig, tmp_path: Path) -> None:
    await plan_and_work(swarm, tmp_path, part("a"))
    expert = Expert(decide(act("finish", answer="x", result={"deliver": ["inputs/a/reprot.md"]})), "done")
    await turn(swarm, tmp_path, expert, "architect")
    assert "deliver names inputs/a/reprot.md, which are no input files" in expert.told[1]


async def test_planned_paths_are_relative_to_the_planners_folder_and_must_exist(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    (tmp_path / "space" / "src").mkdir(parents=True)
    await submit(swarm, tmp_path, role="architect")
    wrong, right = (plan(part("a", context={"path": path})) for path in ("srcs", "src"))
    expert = Expert(wrong, right)
    await turn(swarm, tmp_path, expert, "architect")
    assert f"context.path of a names {tmp_path}/space/srcs, which does not exist" in expert.told[1]
    assert (await by_key(swarm, "a")).context["path"] == str(tmp_path / "space" / "src")
    scout = Expert("looked")
    await turn(swarm, tmp_path, scout, "scout")
    assert f"Workspace: {tmp_path}/space/src" in scout.first


async def test_delegated_path_that_does_not_exist_is_refused(swarm: SwarmRig, tmp_path: Path) -> None:
    await submit(swarm, tmp_path, role="architect")
    expert = Expert(decide(act("delegate", role="scout", objective="find it", context={"path": "nowhere"})), "done")
    await turn(swarm, tmp_path, expert, "architect")
    assert "space/nowhere, which does not exist" in expert.told[1]


async def test_task_whose_folder_is_gone_fails_with_the_path(swarm: SwarmRig, tmp_path: Path) -> None:
    await submit(swarm, tmp_path, role="scout", context={"path": str(tmp_path / "gone")})
    failed = await turn(swarm, tmp_path, Expert("never asked"), "scout")
    assert failed.status is TaskStatus.BLOCKED
    assert "gone, which does not exist on this machine" in str(failed.error)
