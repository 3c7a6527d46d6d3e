"""Results reach people: what a role, a skill or a command leaves in the output folder is shown as artifacts."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import fireswarm as fs
from fireswarm.contracts.ports import Update, Write
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.swarm.constraints import Constraints
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.records.artifacts import find_artifact, read_content
from fireswarm.swarm.turn.given.files import input_root
from fireswarm.swarm.turn.outputs import KEPT_DAYS, output_folder, remove_old_outputs, remove_outputs
from tests.integration.test_calling_in_a_swarm import Expert, report
from tests.integration.test_thinking import Killed, events_of, one_turn, reclaimed, submit, thinking, was_killed
from tests.support.commands import agent, kept
from tests.support.experts import bash, calls
from tests.support.swarm import SwarmRig, open_test_swarm

pytestmark = pytest.mark.anyio

READ_ONLY = Constraints(read_only=True)
SECRET = "ghp_" + "A1b2C3d4E5f6" * 3


@pytest.fixture
async def swarm() -> Any:
    async with open_test_swarm() as opened:
        yield opened


def files_of(task: Task) -> dict[str, Artifact]:
    assert task.result is not None, task.summary
    return {each.name: each for each in task.result.artifacts if each.name != "answer"}


async def text_of(core: SwarmParts, task: Task, name: str) -> str:
    return (await read_content(core.blobs, find_artifact(task, name))).data.decode()


def store(name: str, content: str, **more: str) -> tuple[str, dict[str, str]]:
    return "write_artifact", {"name": name, "content": content, **more}


async def test_read_only_task_leaves_results_and_no_change(swarm: SwarmRig, tmp_path: Path) -> None:
    work = calls(
        bash('echo table > "$OUTPUT_DIR/table.csv"; touch made; echo $OUTPUT_DIR'),
        ("write_file", {"path": "notes.md", "content": "# Notes\n"}),
        store("report.md", f"# Report {SECRET}\n", type="report"),
    )
    core = thinking(swarm, Expert(work, report), tmp_path)
    await submit(swarm, tmp_path, constraints=READ_ONLY)
    task = await one_turn(swarm, core)
    assert task.status is TaskStatus.DONE, task.summary
    assert {name: each.type for name, each in files_of(task).items()} == {
        "table.csv": "file",
        "notes.md": "file",
        "report.md": "report",
    }
    assert await text_of(core, task, "table.csv") == "table\n"
    told = await text_of(core, task, "report.md")
    assert told.startswith("# Report ") and SECRET not in told
    assert list((tmp_path / "space").iterdir()) == []
    assert all(each.source_task_id == task.task_id for each in files_of(task).values())


@pytest.mark.parametrize("read_only", [False, True])
async def test_task_without_a_folder_works_in_its_output_folder(
    swarm: SwarmRig, tmp_path: Path, read_only: bool
) -> None:
    work = calls(bash("echo haiku > haiku.txt; mkdir .git; echo x > .git/x"), ("list_files", {}))
    core = thinking(swarm, Expert(work, report), tmp_path)
    await swarm.submit("write a haiku", constraints=Constraints(read_only=read_only))
    task = await one_turn(swarm, core)
    assert list(files_of(task)) == ["haiku.txt"]
    assert await text_of(core, task, "haiku.txt") == "haiku\n"


async def test_waiting_task_shows_what_it_has(swarm: SwarmRig, tmp_path: Path) -> None:
    first = calls(store("draft.md", "one"), bash("echo 1 > $OUTPUT_DIR/a.txt"), ("ask_user", {"question": "Go on?"}))
    expert = Expert(first, calls(bash("echo 2 > $OUTPUT_DIR/b.txt")), report)
    await submit(swarm, tmp_path)
    core = thinking(swarm, expert, tmp_path)
    waiting = await one_turn(swarm, core)
    assert waiting.status_reason is StatusReason.INPUT_REQUIRED
    assert sorted(files_of(waiting)) == ["a.txt", "draft.md"]
    shutil.rmtree(output_folder(core, waiting))  # the task goes on, on another machine
    await swarm.board.answer(waiting.task_id, {waiting.questions[0].key: "yes"})
    ended = await one_turn(swarm, thinking(swarm, expert, tmp_path), "another")
    assert ended.status is TaskStatus.DONE
    assert sorted(files_of(ended)) == ["a.txt", "b.txt", "draft.md"]
    assert await text_of(core, ended, "draft.md") == "one"


async def test_same_name_replaces_the_artifact(swarm: SwarmRig, tmp_path: Path) -> None:
    work = calls(store("a.md", "one", type="report"), store("a.md", "two", type="report"))
    core = thinking(swarm, Expert(work, calls(bash("echo three > $OUTPUT_DIR/a.md")), report), tmp_path)
    await submit(swarm, tmp_path)
    task = await one_turn(swarm, core)
    assert [each.type for each in files_of(task).values()] == ["report"]
    assert task.result is not None and sum(each.name == "a.md" for each in task.result.artifacts) == 1
    assert await text_of(core, task, "a.md") == "three\n"


async def test_file_that_cannot_be_taken_is_noted(swarm: SwarmRig, tmp_path: Path) -> None:
    work = calls(bash("cd $OUTPUT_DIR; ln -s /etc/passwd link; mkfifo pipe; echo good > good.txt"))
    core = thinking(swarm, Expert(work, report), tmp_path)
    await submit(swarm, tmp_path)
    task = await one_turn(swarm, core)
    assert list(files_of(task)) == ["good.txt"]
    assert "outputs_left_out" in await events_of(swarm, task)


async def test_path_that_may_not_be_read_becomes_no_artifact(swarm: SwarmRig, tmp_path: Path) -> None:
    rules = {"permissions": {"deny": ["Read(secret.txt)"]}}
    expert = Expert(calls(("write_artifact", {"name": "a.txt", "path": "secret.txt"})), report)
    core = thinking(swarm, expert, tmp_path, **rules)
    (tmp_path / "space" / "secret.txt").write_text("x")
    await submit(swarm, tmp_path)
    task = await one_turn(swarm, core)
    assert files_of(task) == {} and "may not be read" in task.summary


async def test_artifact_is_stored_once_whenever_a_process_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker is killed after each of its commits, and goes on where its folder is gone."""
    number, over = 0, False
    while not over:
        number += 1
        over = await _stored_despite_a_kill(tmp_path / f"c{number}", monkeypatch, number)
    assert number > 3


async def _stored_despite_a_kill(folder: Path, monkeypatch: pytest.MonkeyPatch, kill_at: int) -> bool:
    expert, made = Expert(calls(store("a.md", "one", type="report"), store("b.md", "two")), report), 0
    async with open_test_swarm() as swarm:
        asked = await submit(swarm, folder)
        real: Callable[..., Any] = swarm.store.commit

        async def commit(writes: list[Write], **options: Any) -> Any:
            nonlocal made
            result = await real(writes, **options)
            made += 1
            if made == kill_at:
                raise Killed
            return result

        monkeypatch.setattr(swarm.store, "commit", commit)
        for _ in range(6):
            task = await swarm.task(asked.task_id)
            if task.status is TaskStatus.DONE:
                break
            core = thinking(swarm, expert, folder)
            try:
                await one_turn(swarm, core)
            except BaseException as error:
                if not was_killed(error) and not isinstance(error, ValueError):
                    raise
                shutil.rmtree(output_folder(core, asked), ignore_errors=True)
                await reclaimed(swarm)
        task = await swarm.task(asked.task_id)
        assert task.status is TaskStatus.DONE, f"killed at {kill_at}: {task.summary}"
        assert {name: each.type for name, each in files_of(task).items()} == {"a.md": "report", "b.md": "file"}, kill_at
        assert task.result is not None and len(task.result.artifacts) == 3
        assert await text_of(swarm.core, task, "a.md") == "one"
    monkeypatch.undo()
    return made < kill_at


@fs.skill("leave-files", "Leaves files.")
def leave_files(request: fs.SkillRequest) -> fs.SkillResult:
    folder = request.workdir / "outputs"
    folder.mkdir(parents=True)
    (folder / "named.md").write_text("named\n")
    (folder / "other.md").write_text("other\n")
    (folder / "link").symlink_to("/etc/passwd")
    named = fs.Artifact(type="report", name="named.md", uri="workdir:outputs/named.md")
    return fs.SkillResult(summary="done", artifacts=(named,))


async def test_files_of_a_function_become_artifacts(tmp_path: Path) -> None:
    async with fs.Swarm.local(roles={"writer": [leave_files]}, root=tmp_path) as local:
        task = await local.wait(await local.submit("write", role="writer"))
    assert task.result is not None
    assert [(each.type, each.name) for each in task.result.artifacts] == [("report", "named.md"), ("file", "other.md")]


SKILL = """---
name: leaver
description: Leaves files.
metadata: {entry: scripts/run.py, writes: "false"}
---
Leaves files.
"""
CODE = """import os
from pathlib import Path
from fireswarm import SkillResult

def run(request):
    Path(os.environ["OUTPUT_DIR"], "left.txt").write_text("left\\n")
    return SkillResult(summary="done")
"""


@pytest.mark.parametrize("read_only", [False, True])
async def test_files_of_a_skill_become_artifacts_without_a_model(
    swarm: SwarmRig, tmp_path: Path, read_only: bool
) -> None:
    core = _with_leaver(thinking(swarm, Expert(), tmp_path), tmp_path)
    await submit(swarm, tmp_path, skill="leaver", constraints=Constraints(read_only=read_only))
    task = await one_turn(swarm, replace(core, mind=None))
    assert task.status is TaskStatus.DONE, task.error
    assert await text_of(core, task, "left.txt") == "left\n"


async def test_files_of_a_skill_that_a_model_runs_become_artifacts(swarm: SwarmRig, tmp_path: Path) -> None:
    expert = Expert(calls(("use_skill", {"name": "leaver", "reason": "x"})), report)
    core = _with_leaver(thinking(swarm, expert, tmp_path), tmp_path)
    await submit(swarm, tmp_path, skill="leaver")
    task = await one_turn(swarm, core)
    assert await text_of(core, task, "left.txt") == "left\n"


def _with_leaver(core: SwarmParts, folder: Path) -> SwarmParts:
    (folder / "skills" / "leaver" / "scripts").mkdir(parents=True)
    (folder / "skills" / "leaver" / "SKILL.md").write_text(SKILL)
    (folder / "skills" / "leaver" / "scripts" / "run.py").write_text(CODE)
    catalog = load_catalog([folder / "skills"])
    roles = {name: card.model_copy(update={"skills": ("counting", "leaver")}) for name, card in core.roles.items()}
    mind = replace(core.mind, catalog=catalog) if core.mind is not None else None
    return replace(core, catalog=catalog, roles=roles, mind=mind)


async def test_end_of_a_task_leaves_the_output_folder_that_its_follow_up_makes_at_the_same_time(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    core = replace(swarm.core, workdir=tmp_path / "work")
    task = await swarm.submit("look")
    folder = output_folder(core, task)
    folder.mkdir(parents=True)
    (folder / "report.md").write_text("of the first task")
    input_root(core, task.task_id).mkdir(parents=True)
    async with anyio.create_task_group() as group:
        group.start_soon(remove_outputs, core, task)
        await anyio.lowlevel.checkpoint()
        folder.mkdir(exist_ok=True)
        (folder / "report.md").write_text("as the follow-up has it")
    assert (folder / "report.md").read_text() == "as the follow-up has it"
    assert [path.name for path in folder.parent.iterdir()] == [folder.name], "the old one is gone"


def _agent_script(root: Path, *answers: Any) -> tuple[str, ...]:
    (root / "answers.json").write_text(json.dumps(answers))
    return ("--script", str(root / "answers.json"))


def test_agent_prints_its_files_at_the_end(tmp_path: Path) -> None:
    line = 'cd "$OUTPUT_DIR" && echo x > a.txt && ln -s /etc/passwd link && touch .hidden'
    options = _agent_script(tmp_path, calls(store("report.md", f"# R {SECRET}\n", type="report"), bash(line)), "Done.")
    ran = agent(tmp_path, "run", "report", "--yes", *options)
    assert ran.code == 0, ran.stderr
    [folder] = kept(tmp_path).glob("*/outputs")
    assert f"file: {folder}/a.txt" in ran.stderr and f"report: {folder}/report.md" in ran.stderr
    assert "Left out of the artifacts: " in ran.stderr and "link: a link" in ran.stderr
    assert ran.stdout == "Done.\n", "a pipe gets the answer only"
    assert SECRET not in (folder / "report.md").read_text()


def test_agent_stores_artifacts_without_asking_and_read_only(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text("runtime: {profile: read_only}\n")
    write = ("write_file", {"path": "notes.md", "content": "n"})
    bad = ("write_file", {"path": str(tmp_path / "bad.md"), "content": "n"})
    options = _agent_script(tmp_path, calls(store("report.md", "# R\n"), write, bad), "Done.")
    ran = agent(tmp_path, "run", "report", "--json", *options)
    assert ran.code == 0, ran.stderr
    assert [each["name"] for each in ran.json["artifacts"]] == ["notes.md", "report.md"]
    assert not (tmp_path / "bad.md").exists() and not (tmp_path / "notes.md").exists()


def test_run_without_files_leaves_no_output_folder(tmp_path: Path) -> None:
    ran = agent(tmp_path, "run", "nothing", *_agent_script(tmp_path, "Done."))
    assert (ran.code, list(kept(tmp_path).glob("*/outputs"))) == (0, [])


async def test_old_folders_of_tasks_that_ended_or_are_gone_are_removed(swarm: SwarmRig, tmp_path: Path) -> None:
    core = thinking(swarm, Expert(report), tmp_path)
    old = (core.clock.now() - timedelta(days=KEPT_DAYS + 1)).timestamp()
    tasks = {name: await swarm.submit(name) for name in ("waits", "canceled", "recent", "unreadable")}
    for name in ("canceled", "recent"):
        await swarm.board.cancel(tasks[name].task_id)
    await swarm.store.commit([Update(f"agent_tasks/{tasks['unreadable'].task_id}", {"priority": "high"})])
    folders = {name: output_folder(core, task) for name, task in tasks.items()}
    folders |= {"gone": core.workdir / "outputs" / "gone", "odd": core.workdir / "outputs" / "..x \n__"}
    for name, folder in folders.items():
        folder.mkdir(parents=True)
        (folder / "draft.md").write_text("draft")
        now = core.clock.now().timestamp()
        os.utime(folder, (now, now) if name == "recent" else (old, old))
    (core.workdir / "outputs" / "link").symlink_to(tmp_path)
    os.utime(core.workdir / "outputs" / "link", (old, old), follow_symlinks=False)
    assert await remove_old_outputs(core) == 3
    assert {name for name, folder in folders.items() if folder.exists()} == {"waits", "recent", "unreadable"}
    assert (core.workdir / "outputs" / "link").is_symlink()
    assert await remove_old_outputs(core) == 0
