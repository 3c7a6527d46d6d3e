"""The client: every method takes what `submit` returned, a task that was read, or its id."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import fireswarm as fs
from fireswarm.contracts.ports import Create
from fireswarm.storage.documents.paths import task_path

pytestmark = pytest.mark.anyio


@fs.skill("deploy", "Deploys the site.")
def deploy(request: fs.SkillRequest) -> fs.SkillResult:
    return fs.SkillResult(summary="deployed")


@fs.skill("ask-name", "Asks for a name and uses it.")
def ask_name(request: fs.SkillRequest) -> fs.SkillResult:
    if "name" not in request.answers:
        question = fs.Question(name="name", description="Which name?")
        return fs.SkillResult(state=fs.SkillState.INPUT_REQUIRED, summary="which name?", questions=(question,))
    return fs.SkillResult(summary=f"hello {request.answers['name']}")


def asking(root: Path) -> fs.Settings:
    return fs.load_settings(root, environment={}, overrides={"permissions.ask": ["Skill(deploy)"]})


async def test_second_submit_reports_the_task_of_the_first(tmp_path: Path) -> None:
    async with fs.Swarm.open("memory", root=tmp_path) as swarm:
        first = await swarm.submit("look", role="scout", context={"path": "a"})
        again = await swarm.submit("look", role="scout", context={"path": "a"})
        other = await swarm.submit("look", role="scout", context={"path": "b"})
        spec = fs.TaskSpec(objective="look", assigned_to="scout", session_hash=swarm.session, context={"path": "b"})
        of_spec = await swarm.submit(spec)
    assert (first.created, again.created, other.created, of_spec.created) == (True, False, True, False)
    assert first.task_id == again.task_id != other.task_id == of_spec.task_id


async def test_submitted_read_and_named_tasks_are_the_same_to_every_method(tmp_path: Path) -> None:
    async with fs.Swarm.local(roles={"greeter": [ask_name]}, root=tmp_path) as swarm:
        submitted = await swarm.submit("greet", role="greeter")
        waiting = await swarm.wait(submitted.task_id)
        for task in (submitted, waiting, submitted.task_id):
            assert (await swarm.get(task)).task_id == submitted.task_id
            assert [item.task_id for item in await swarm.objective(task)] == [submitted.task_id]
            assert "It asks for input" in await swarm.explain(task)
        await swarm.answer(submitted, {"name": "Ada"})
        async with swarm.follow(submitted) as changes:
            last = [tasks async for tasks in changes][-1]
        async with swarm.events(submitted.task_id) as events:
            assert [event.type async for event in events] == 2 * ["step_started", "step_finished"]
    assert [(task.status, task.summary) for task in last] == [(fs.TaskStatus.DONE, "hello Ada")]


async def test_an_answer_by_id_is_refused_under_a_name(tmp_path: Path) -> None:
    async with fs.Swarm.local(roles={"greeter": [ask_name]}, root=tmp_path) as swarm:
        task = await swarm.wait(await swarm.submit("greet", role="greeter"))
        with pytest.raises(fs.errors.InvalidInput, match="need the id of their question, and name is not the id"):
            await swarm.answer(task.task_id, {"name": "Ada"}, by_id=True)
        await swarm.answer(task.task_id, {task.questions[0].key: "Ada"}, by_id=True)
        assert (await swarm.wait(task)).summary == "hello Ada"


async def test_an_action_is_approved_as_it_was_read(tmp_path: Path) -> None:
    async with fs.Swarm.local(roles={"ops": [deploy]}, root=tmp_path, settings=asking(tmp_path)) as swarm:
        submitted = await swarm.submit("deploy the site", role="ops", skill="deploy")
        waiting = await swarm.wait(submitted)
        assert waiting.status_reason is fs.StatusReason.APPROVAL_REQUIRED
        for unseen in (submitted, submitted.task_id):
            with pytest.raises(fs.errors.InvalidInput, match="give the id of the request, or a task that was read"):
                await swarm.approve(unseen)
        with pytest.raises(fs.errors.InvalidInput, match=r"request 9-9 .* is not open"):
            await swarm.approve(waiting, "9-9")
        await swarm.approve(waiting)
        assert (await swarm.wait(waiting)).summary == "deployed"
        with pytest.raises(fs.errors.TerminalTask):
            await swarm.approve(waiting)


async def test_a_denied_task_ends_without_the_action(tmp_path: Path) -> None:
    async with fs.Swarm.local(roles={"ops": [deploy]}, root=tmp_path, settings=asking(tmp_path)) as swarm:
        waiting = await swarm.wait(await swarm.submit("deploy the site", role="ops", skill="deploy"))
        await swarm.deny(waiting.task_id, waiting.approval().key, reason="not on Fridays")
        ended = await swarm.wait(waiting)
    assert ended.status is fs.TaskStatus.BLOCKED
    assert ended.result is None


async def test_a_failed_task_is_retried(tmp_path: Path) -> None:
    calls: list[int] = []

    @fs.skill("flaky", "Fails at its first attempt.")
    def flaky(request: fs.SkillRequest) -> fs.SkillResult:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("not yet")
        return fs.SkillResult(summary="done")

    async with fs.Swarm.local(roles={"worker": [flaky]}, root=tmp_path) as swarm:
        submitted = await swarm.submit("try", role="worker", max_attempts=1)
        assert (await swarm.wait(submitted)).status_reason is fs.StatusReason.DEAD_LETTER
        await swarm.retry(submitted)
        assert (await swarm.wait(submitted)).status is fs.TaskStatus.DONE


async def test_tasks_are_listed_found_and_canceled(tmp_path: Path) -> None:
    async with fs.Swarm.open("memory", root=tmp_path) as swarm:
        first = await swarm.submit("first", role="scout")
        second = await swarm.submit("second", role="memory")
        elsewhere = await swarm.submit("third", role="scout", session_hash="other")
        assert (await swarm.find(first.task_id[:8])).task_id == first.task_id
        assert await swarm.cancel(second) == [second.task_id]
        assert {task.task_id for task in await swarm.tasks(role="scout")} == {first.task_id, elsewhere.task_id}
        assert [task.task_id for task in await swarm.tasks(status="canceled")] == [second.task_id]
        assert [task.task_id for task in await swarm.tasks(session="other")] == [elsewhere.task_id]
        with pytest.raises(fs.errors.NotFound, match="there is no task ffffffff"):
            await swarm.find("ffffffff")


async def test_tasks_with_names_that_a_person_chose_are_found_and_told_apart(tmp_path: Path) -> None:
    async with fs.Swarm.open("memory", root=tmp_path) as swarm:
        written = {"assigned_to": "scout", "objective": "look", "status": "blocked"}
        names = ("report-of-monday", "report-of-tuesday", "report-🦊-1")
        await swarm.parts.store.commit([Create(task_path(name), written) for name in names])
        assert (await swarm.find("report-of-mon")).task_id == "report-of-monday"
        assert (await swarm.find("report-🦊")).task_id == "report-🦊-1"
        with pytest.raises(fs.errors.InvalidInput, match="report-of-monday, report-of-tuesday. Give more characters"):
            await swarm.find("report-o")
        assert "`swarm retry report-of-tuesday`" in await swarm.explain("report-of-tuesday")


async def test_wait_ends_with_its_time_and_for_an_unknown_id(tmp_path: Path) -> None:
    async with fs.Swarm.open("memory", root=tmp_path) as swarm:
        submitted = await swarm.submit("look", role="scout")
        with pytest.raises(TimeoutError):
            await swarm.wait(submitted, timeout_seconds=0.01)
        assert (await swarm.get(submitted)).status is fs.TaskStatus.QUEUED
        with pytest.raises(fs.errors.NotFound, match="there is no task ghost"):
            await swarm.wait("ghost")


@fs.skill("give-up", "Awaits a task that was canceled.")
async def give_up(request: fs.SkillRequest) -> fs.SkillResult:
    inner = asyncio.ensure_future(asyncio.Event().wait())
    inner.cancel()
    await inner
    return fs.SkillResult(summary="never")


async def test_function_that_cancels_itself_fails_its_task_and_no_other() -> None:
    async with fs.Swarm.local(roles={"ops": [give_up, deploy]}) as swarm:
        with pytest.raises(fs.errors.NotDone, match="canceled by its own code"):
            await swarm.run("try", role="ops", skill="give-up", max_attempts=1, timeout_seconds=20)
        assert (await swarm.run("go", role="ops", skill="deploy", timeout_seconds=20)).summary == "deployed"
