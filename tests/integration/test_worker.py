"""One worker: it wakes up, settles, renews leases, stops on cancel, drains, and does not poll while idle."""

from __future__ import annotations

import contextlib
import logging
import re
from dataclasses import replace
from datetime import timedelta

import pytest

from fireswarm.cli.swarm.fleet import WORK_LOG
from fireswarm.contracts.ports import Create, Delete, Merge
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import Fact, PlannedTask, Question, SkillRequest, SkillResult, SkillState
from fireswarm.contracts.swarm.status import AgentState
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.errors import StepUncertain
from fireswarm.settings.swarm import WorkerSettings
from fireswarm.storage.documents import queries
from fireswarm.swarm.turn.outputs import output_folder
from fireswarm.swarm.worker import loop
from fireswarm.swarm.worker.heartbeat import Heartbeat
from tests.support.swarm import SwarmRig
from tests.support.working import Gate, eventually, with_skills, working

pytestmark = pytest.mark.anyio


async def test_listener_wakes_an_idle_worker(swarm: SwarmRig) -> None:
    async with working(swarm.core) as worker:
        await swarm.clock.settle()
        before = swarm.clock.now()
        task = await swarm.submit(skill="noop")
        await eventually(swarm, lambda: worker.settled == 1, "working on it")
        assert swarm.clock.now() == before, "it waited for a sweep instead of the listener"
    assert (await swarm.task(task.task_id)).status is TaskStatus.DONE


async def test_idle_worker_stays_far_below_the_free_quota(swarm: SwarmRig) -> None:
    async with working(swarm.core):
        await swarm.clock.settle()
        before = swarm.store.usage.copy()
        await swarm.clock.advance(3600)
        used = swarm.store.usage.minus(before)
    assert used.reads <= 50_000 / 24 / 5
    assert used.writes <= 20_000 / 24 / 5


async def test_log_says_how_turns_ended_but_not_those_that_were_quick_and_done(
    swarm: SwarmRig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, WORK_LOG)

    async def ask(request: SkillRequest) -> SkillResult:
        return SkillResult(state=SkillState.FAILED, summary="no \x1b[2J disk\nx")

    core = with_skills(swarm, ask=ask)
    async with working(core) as worker:
        for seconds in (3600.0, 0.0):
            monkeypatch.setattr(loop, "QUICK_SECONDS", seconds)
            await swarm.submit(f"quick {seconds}", skill="noop")
            await eventually(swarm, lambda: worker.settled >= 1, "working")
            worker.settled = 0
        await swarm.submit("fails", skill="ask", max_attempts=1)
        await eventually(swarm, lambda: worker.settled == 1, "failing")
    said = [record.message for record in caplog.records if record.name == WORK_LOG and record.levelno == logging.INFO]
    assert len(said) == 2
    assert re.fullmatch(r"task [0-9a-f]{8} is done after [0-9.]+ s", said[0])
    assert re.fullmatch(r"task [0-9a-f]{8} is dead_letter after [0-9.]+ s", said[1])


async def test_cancel_stops_the_running_turn_at_once(swarm: SwarmRig) -> None:
    gate = Gate()
    async with working(with_skills(swarm, gate=gate)) as worker:
        task = await swarm.submit(skill="gate")
        await eventually(swarm, lambda: gate.began == 1, "starting")
        await swarm.board.cancel(task.task_id, "changed my mind")
        await eventually(swarm, lambda: not worker.held, "stopping")
    stored = await swarm.task(task.task_id)
    assert (stored.status, stored.summary) == (TaskStatus.CANCELED, "canceled: changed my mind")
    assert gate.ended == 0
    run = (await swarm.store.get(f"agent_runs/{task.task_id}.1")).data
    assert run is not None
    assert (run["status"], run["error"]) == ("error", "canceled: changed my mind")


async def test_cancel_stops_no_other_turn_of_the_worker(swarm: SwarmRig) -> None:
    gate = Gate()
    core = with_skills(swarm, gate=gate)
    async with working(
        replace(core, settings=swarm.core.settings.model_copy(update={"worker": WorkerSettings(concurrency=3)}))
    ) as worker:
        tasks = [await swarm.submit(f"task {number}", skill="gate") for number in range(3)]
        await eventually(swarm, lambda: gate.began == 3, "starting")
        first, canceled, last = sorted(task.task_id for task in tasks)
        await swarm.board.cancel(canceled)
        await eventually(swarm, lambda: len(worker.held) == 2, "stopping")
        gate.opened.set()
        await eventually(swarm, lambda: worker.settled == 2, "working")
    assert [(await swarm.task(task_id)).status for task_id in (first, canceled, last)] == [
        TaskStatus.DONE,
        TaskStatus.CANCELED,
        TaskStatus.DONE,
    ]


async def test_running_turn_hears_at_once_what_is_said_to_its_task(swarm: SwarmRig) -> None:
    gate = Gate()
    async with working(with_skills(swarm, gate=gate)) as worker:
        task = await swarm.submit(skill="gate")
        await eventually(swarm, lambda: gate.began == 1, "starting")
        await swarm.board.say(task.task_id, "look at the tests, too")
        [work] = worker.held.all()
        await eventually(swarm, lambda: len(work.lease.task.said) == 1, "hearing it")
        gate.opened.set()


async def test_a_long_turn_keeps_its_lease(swarm: SwarmRig) -> None:
    gate = Gate()
    async with working(with_skills(swarm, gate=gate)) as worker:
        task = await swarm.submit(skill="gate")
        await eventually(swarm, lambda: gate.began == 1, "starting")
        for _ in range(30):
            await swarm.clock.advance(10)
            assert (await swarm.board.sweep("scout")).queued == ()
        gate.opened.set()
        await eventually(swarm, lambda: worker.settled == 1, "settling")
    assert ((await swarm.task(task.task_id)).status, gate.began) == (TaskStatus.DONE, 1)


async def test_turn_over_its_timeout_is_stopped_and_retried(swarm: SwarmRig) -> None:
    gate = Gate()
    async with working(with_skills(swarm, gate=gate)):
        task = await swarm.submit(skill="gate", constraints={"timeout_seconds": 50})
        await eventually(swarm, lambda: gate.began == 1, "starting")
        await swarm.clock.advance(49)
        assert (await swarm.task(task.task_id)).status is TaskStatus.IN_PROGRESS
        await swarm.clock.advance(1)
        stored = await swarm.task(task.task_id)
    assert (stored.status_reason, stored.attempt) == (StatusReason.RETRY_BACKOFF, 1)
    assert "nothing happened in the turn for 50 s, the task's timeout_seconds" in stored.summary


async def test_draining_releases_unfinished_tasks(swarm: SwarmRig) -> None:
    gate = Gate()
    core = with_skills(swarm, gate=gate)
    worker_settings = core.settings.worker.model_copy(update={"drain_seconds": 0.05})
    core = replace(core, settings=core.settings.model_copy(update={"worker": worker_settings}))
    async with working(core):
        task = await swarm.submit(skill="gate")
        await eventually(swarm, lambda: gate.began == 1, "starting")
    stored = await swarm.task(task.task_id)
    assert (stored.status, stored.attempt, stored.lease) == (TaskStatus.QUEUED, 0, None)
    [status] = await swarm.core.heartbeats.latest()
    assert status.status == "stopped"


async def test_skill_results_of_all_kinds_settle_their_tasks(swarm: SwarmRig) -> None:
    async def many_faced(request: SkillRequest) -> SkillResult:
        match request.context["face"]:
            case "ask" if "path" not in request.answers:
                question = Question(name="path", description="Which folder?")
                return SkillResult(state=SkillState.INPUT_REQUIRED, summary="which?", questions=(question,))
            case "ask":
                return SkillResult(summary=f"looked at {request.answers['path']}")
            case "learn":
                fact = Fact(bucket="b", key="files", value=12, keywords=("files",))
                return SkillResult(
                    summary="learnt", facts=(fact,), artifacts=(Artifact(type="x", value=[[1, 2], [3]]),)
                )
            case "refuse":
                return SkillResult(state=SkillState.FAILED, summary="cannot, ever")
            case "crash":
                raise ZeroDivisionError("by zero")
            case "doubt":
                raise StepUncertain("somebody has to look")
            case _:
                raise AssertionError

    async with working(with_skills(swarm, many_faced=many_faced)) as worker:
        faces = ("ask", "learn", "refuse", "crash", "doubt")
        tasks = {face: await swarm.submit(face, skill="many-faced", context={"face": face}) for face in faces}
        await eventually(swarm, lambda: worker.settled == 5, "working on all faces")
        ends = {face: await swarm.task(task.task_id) for face, task in tasks.items()}
        assert ends["ask"].status_reason is StatusReason.INPUT_REQUIRED
        assert ends["learn"].result is not None
        assert ends["learn"].result.artifacts[0].value == [[1, 2], [3]]
        assert [fact.value for fact in await swarm.core.memory.recall("s1", "files")] == [12]
        assert await swarm.core.memory.recall("s2", "files") == [], "a fact crossed sessions"
        assert (ends["refuse"].status_reason, ends["refuse"].error) == (StatusReason.DEAD_LETTER, "cannot, ever")
        assert ends["crash"].status_reason is StatusReason.RETRY_BACKOFF
        assert "ZeroDivisionError: by zero" in ends["crash"].summary
        assert ends["doubt"].status_reason is StatusReason.ESCALATED
        await swarm.board.answer(tasks["ask"].task_id, {"path": "/a"})
        await eventually(swarm, lambda: worker.settled == 6, "running on")
    assert (await swarm.task(tasks["ask"].task_id)).summary == "looked at /a"


async def test_handoff_forbidden_by_the_policy_fails_the_task_with_the_reason(swarm: SwarmRig) -> None:
    async def overreach(request: SkillRequest) -> SkillResult:
        planned = PlannedTask(key="x", assigned_to="executor", objective="x")
        return SkillResult(state=SkillState.DELEGATING, summary="go", tasks=(planned,))

    async with working(with_skills(swarm, overreach=overreach)) as worker:
        task = await swarm.submit(skill="overreach")
        await eventually(swarm, lambda: worker.settled == 1, "settling")
    stored = await swarm.task(task.task_id)
    assert stored.status_reason is StatusReason.DEAD_LETTER
    assert "scout may not hand work to executor" in stored.summary
    assert len(await swarm.board.list()) == 1


async def test_result_too_large_for_a_document_fails_the_task_with_the_reason(swarm: SwarmRig) -> None:
    async def huge(request: SkillRequest) -> SkillResult:
        return SkillResult(summary="huge", insights=("x" * 1_100_000,))

    async with working(with_skills(swarm, huge=huge)) as worker:
        task = await swarm.submit(skill="huge")
        await eventually(swarm, lambda: worker.settled == 1, "settling")
    stored = await swarm.task(task.task_id)
    assert stored.status_reason is StatusReason.DEAD_LETTER
    assert task.task_id in stored.summary


async def test_large_artifact_value_is_stored_in_the_blob_store(swarm: SwarmRig) -> None:
    seen: list[object] = []

    async def make(request: SkillRequest) -> SkillResult:
        return SkillResult(summary="made", artifacts=(Artifact(type="x", value=["y" * 100_000]),))

    async def read(request: SkillRequest) -> SkillResult:
        seen.extend(artifact.value for artifact in request.artifacts)
        return SkillResult(summary="read")

    first = await swarm.submit("make", skill="make")
    await swarm.submit("read", skill="read", depends_on=(first.task_id,))
    async with working(with_skills(swarm, make=make, read=read)) as worker:
        await eventually(swarm, lambda: worker.settled == 2, "doing both")
    assert seen == [["y" * 100_000]]
    assert len(str(await swarm.raw(first.task_id))) < 5_000


async def test_files_of_a_turn_whose_work_was_edited_are_there_in_the_next_one(swarm: SwarmRig) -> None:
    gate, found = Gate(), []
    core = with_skills(swarm)

    async def make(request: SkillRequest) -> SkillResult:
        task = await swarm.task(request.task_id)
        note = output_folder(core, task) / "note"
        found.append(note.exists())
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()
        return await gate(request)

    async with working(replace(core, inline={"make": make})) as worker:
        task = await swarm.submit("make one", skill="make")
        await eventually(swarm, lambda: gate.began == 1, "starting")
        await swarm.store.commit([Merge(f"agent_tasks/{task.task_id}", {"objective": "make two"})])
        gate.opened.set()
        await eventually(swarm, lambda: worker.settled == 2, "working on both")
    assert found == [False, True]


async def test_twins_finish_with_the_same_artifacts(swarm: SwarmRig) -> None:
    made = 0

    async def make(request: SkillRequest) -> SkillResult:
        nonlocal made
        made += 1
        return SkillResult(summary="made", artifacts=(Artifact(type="x", value=made),))

    for twin in ("twin-1", "twin-2"):
        fields = {"assigned_to": "scout", "status": "queued", "objective": "make one", "skill": "make"}
        await swarm.store.commit([Create(f"agent_tasks/{twin}", fields)])
    async with working(with_skills(swarm, make=make)) as worker:
        await eventually(swarm, lambda: worker.settled == 2, "ending both")
    ends = [await swarm.task(twin) for twin in ("twin-1", "twin-2")]
    assert made == 1
    assert [end.result.artifacts[0].value for end in ends if end.result] == [1, 1]


async def test_worker_that_loses_its_lease_ends_the_turn(swarm: SwarmRig) -> None:
    gate = Gate()
    async with working(with_skills(swarm, gate=gate)) as worker:
        task = await swarm.submit(skill="gate")
        await eventually(swarm, lambda: gate.began == 1, "starting")
        await swarm.board.cancel(task.task_id)
        for message in await swarm.store.query(queries.inbox("scout-1")):
            await swarm.store.commit([Delete(message.path)])  # the message is lost; the renewal still notices
        await swarm.clock.advance(60)
        await eventually(swarm, lambda: not worker.held, "noticing")
    assert gate.ended == 0


async def test_heartbeat_counts_the_queue_of_its_role(swarm: SwarmRig) -> None:
    for number in range(3):
        await swarm.submit(f"wait {number}")
    await swarm.submit("another role", role="memory")
    await swarm.clock.advance(40)
    await Heartbeat(swarm.core, "scout", "scout-1").write(AgentState.IDLE, [])
    [beat] = await swarm.core.heartbeats.latest(5)
    assert (beat.queue_hints.queued, round(beat.queue_hints.oldest_seconds)) == (3, 40)
    assert beat.lives_at(swarm.clock.now() + timedelta(seconds=149))
    assert not beat.lives_at(swarm.clock.now() + timedelta(seconds=151))


async def test_five_idle_roles_write_at_most_ten_thousand_documents_a_day(swarm: SwarmRig) -> None:
    async with contextlib.AsyncExitStack() as stack:
        for role in ("scout", "architect", "executor", "predictor", "memory"):
            await stack.enter_async_context(working(swarm.core, role, f"{role}-1"))
        before = swarm.store.usage.writes
        for _ in range(60):
            await swarm.clock.advance(60)
        hour = swarm.store.usage.writes - before
    assert 24 * hour <= 10_000
