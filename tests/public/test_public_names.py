"""The public API for programs that embed a swarm: only names of `fireswarm` itself."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import fireswarm as fs
from fireswarm.testing import OpenSwarm

pytestmark = pytest.mark.anyio


@fs.skill("count-words", "Counts the words of the text file that `path` names.")
def count_words(request: fs.SkillRequest) -> fs.SkillResult:
    words = len(Path(request.context["path"]).read_text(encoding="utf-8").split())
    (request.workdir / "words.txt").write_text(f"{words}\n", encoding="utf-8")
    made = fs.Artifact(type="word_count", name="words.txt", value=words, uri="workdir:words.txt")
    return fs.SkillResult(summary=f"{words} words", artifacts=(made,))


@fs.skill("say-hello", "Greets somebody by name.")
async def say_hello(request: fs.SkillRequest) -> fs.SkillResult:
    return fs.SkillResult(summary=f"hello {request.context.get('name', 'world')}")


@fs.skill("ask-name", "Asks for a name and uses it.")
def ask_name(request: fs.SkillRequest) -> fs.SkillResult:
    if "name" not in request.answers:
        question = fs.Question(name="name", description="Which name?")
        return fs.SkillResult(state=fs.SkillState.INPUT_REQUIRED, summary="which name?", questions=(question,))
    return fs.SkillResult(summary=f"hello {request.answers['name']}")


@fs.skill("break", "Raises an error.")
def breaks(request: fs.SkillRequest) -> fs.SkillResult:
    raise RuntimeError("the disk is on fire")


@fs.skill("leave", "Ends its process.")
def leaves(request: fs.SkillRequest) -> fs.SkillResult:
    raise SystemExit(3)


@fs.skill("wrong", "Returns something that is not a result.")
def wrong(request: fs.SkillRequest) -> Any:
    return 7


def test_every_public_name_is_importable() -> None:
    assert set(fs.__all__) - {"__version__"} <= set(dir(fs))
    for name in fs.__all__:
        assert getattr(fs, name) is not None


def test_version_is_that_of_the_package_file() -> None:
    project = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert fs.__version__ == project["project"]["version"]


def test_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="open_kitt"):
        fs.open_kitt  # type: ignore[attr-defined]  # noqa: B018 - the access is the test


def test_importing_the_package_loads_no_submodule() -> None:
    program = "import sys, fireswarm; print([name for name in sys.modules if name.startswith('fireswarm.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_function_skill_runs_in_a_local_swarm(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("one two three", encoding="utf-8")
    async with fs.Swarm.local(roles={"librarian": [count_words]}, root=tmp_path) as swarm:
        context = {"path": str(tmp_path / "note.txt")}
        result = await swarm.run("Count the words", role="librarian", context=context, timeout_seconds=20)
        assert (result.summary, result.artifacts[0].value) == ("3 words", 3)
        again = await swarm.run("Count the words", role="librarian", context=context)
        assert again.summary == "3 words"
    assert not (tmp_path / ".fireswarm").exists()


async def test_role_with_several_functions_chooses_by_description(tmp_path: Path) -> None:
    async with fs.Swarm.local(roles={"helper": [count_words, say_hello]}, root=tmp_path) as swarm:
        result = await swarm.run("greet Ada by name", role="helper", context={"name": "Ada"})
        assert result.summary == "hello Ada"


async def test_answered_question_lets_the_task_finish(tmp_path: Path) -> None:
    async with fs.Swarm.local(roles={"greeter": [ask_name]}, root=tmp_path) as swarm:
        task = await swarm.wait(await swarm.submit("greet", role="greeter"))
        assert task.status_reason is fs.StatusReason.INPUT_REQUIRED
        await swarm.answer(task, {"name": "Ada"})
        task = await swarm.wait(task)
        assert (task.status, task.summary) == (fs.TaskStatus.DONE, "hello Ada")


async def test_task_that_is_not_done_raises_with_its_reason(tmp_path: Path) -> None:
    async with fs.Swarm.local(roles={"greeter": [ask_name]}, root=tmp_path) as swarm:
        with pytest.raises(fs.errors.NotDone, match="input_required: It asks for input"):
            await swarm.run("greet", role="greeter")


async def test_function_that_raises_or_returns_nonsense_dead_letters_its_task(tmp_path: Path) -> None:
    async with fs.Swarm.local(roles={"bad": [breaks], "gone": [leaves], "odd": [wrong]}, root=tmp_path) as swarm:
        for role, said in (
            ("bad", "the disk is on fire"),
            ("gone", r"called sys.exit\(3\)"),
            ("odd", "returned int instead of SkillResult"),
        ):
            with pytest.raises(fs.errors.NotDone, match=said):
                await swarm.run("try", role=role, max_attempts=1)


async def test_events_of_a_task_are_followed_to_its_end(tmp_path: Path) -> None:
    async with fs.Swarm.local(roles={"greeter": [say_hello]}, root=tmp_path) as swarm:
        task = await swarm.submit("greet", role="greeter")
        async with swarm.events(task) as events:
            types = [event.type async for event in events]
    assert types == ["step_started", "step_finished"]


async def test_invalid_submissions_are_refused(tmp_path: Path) -> None:
    async with fs.Swarm.local(roles={"greeter": [say_hello]}, root=tmp_path) as swarm:
        with pytest.raises(fs.errors.InvalidInput, match="there is no role 'nobody'"):
            await swarm.submit("greet", role="nobody")
        with pytest.raises(fs.errors.InvalidInput, match="priority"):
            await swarm.submit("greet", role="greeter", priority=99)
        with pytest.raises(fs.errors.InvalidInput, match="there is no skill 'dance'"):
            await swarm.submit("greet", role="greeter", skill="dance")


def test_bad_skill_names_are_refused() -> None:
    with pytest.raises(fs.errors.ConfigError, match="not a skill name"):
        fs.skill("Count Words", "Counts.")
    with pytest.raises(fs.errors.ConfigError, match="description"):
        fs.skill("count-words", " ")


async def test_read_only_tasks_run_only_functions_declared_not_to_write(tmp_path: Path) -> None:
    @fs.skill("look", "Looks at a folder.", writes=False)
    def look(request: fs.SkillRequest) -> fs.SkillResult:
        return fs.SkillResult(summary="seen")

    async with fs.Swarm.local(roles={"viewer": [look], "greeter": [say_hello]}, root=tmp_path) as swarm:
        seen = await swarm.run("look", role="viewer", constraints={"read_only": True})
        assert seen.summary == "seen"
        refused = await swarm.submit("greet", role="greeter", constraints={"read_only": True})
        ended = await swarm.wait(refused)
    assert (ended.status, ended.status_reason) == (fs.TaskStatus.BLOCKED, fs.StatusReason.DEAD_LETTER)
    assert "read_only" in ended.summary


async def test_client_submits_to_a_served_store_and_cancels(tmp_path: Path) -> None:
    async with fs.Swarm.local(roles={"greeter": [say_hello]}, store="embedded", root=tmp_path) as swarm:
        first = await swarm.submit("x", role="greeter")
        other = await swarm.submit("never", role="greeter", depends_on=[first.task_id])
        await swarm.wait(other)
    async with fs.Swarm.open("embedded", root=tmp_path) as client:
        task = await client.submit("later", role="scout")
        assert (await client.get(task)).status is fs.TaskStatus.QUEUED
        assert await client.cancel(task) == [task.task_id]
        assert (await client.wait(task)).status is fs.TaskStatus.CANCELED


async def test_virtual_clock_triggers_a_retry(local_swarm: OpenSwarm, virtual_clock: fs.VirtualClock) -> None:
    attempts: list[int] = []

    @fs.skill("flaky", "Fails at its first attempt.")
    def flaky(request: fs.SkillRequest) -> fs.SkillResult:
        attempts.append(1)
        if len(attempts) == 1:
            raise RuntimeError("not yet")
        return fs.SkillResult(summary="done")

    async with local_swarm({"worker": [flaky]}) as swarm:
        task = await swarm.submit("try", role="worker")
        while (await swarm.get(task)).status is not fs.TaskStatus.DONE:
            await virtual_clock.advance(1)
    assert len(attempts) == 2


SCRIPT = """
import asyncio
import fireswarm as fs

async def main():
    async with fs.Swarm.local(roles={"scout": ["workspace-inventory"]}) as swarm:
        print((await swarm.run("take stock", role="scout", context={"path": "."}, timeout_seconds=60)).summary)

asyncio.run(main())
"""


def test_script_without_a_main_guard_runs_a_skill_in_a_child_process(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r".*\d+ files?.*\n", done.stdout), done.stdout
