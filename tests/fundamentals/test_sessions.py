"""Documents written by hand cannot bring data of one session to another."""

from __future__ import annotations

from typing import Any

import pytest

from fireswarm.contracts.ports import Create, Merge
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.contracts.swarm.outcome import Done
from fireswarm.contracts.swarm.task import Task, TaskResult, TaskStatus, idempotency_key, task_id_for
from fireswarm.errors import InvalidInput
from tests.support.swarm import SwarmRig
from tests.support.working import eventually, with_skills, work_message, working

pytestmark = pytest.mark.anyio

SECRET = "the secret of theirs"


async def theirs(swarm: SwarmRig) -> Task:
    """A finished task of the session ``theirs``, whose result is secret."""
    task = await swarm.submit("find it", session="theirs")
    artifacts = (Artifact(type="note", value=SECRET),)
    await swarm.settle(await swarm.claim_one(), Done(TaskResult(summary=SECRET, artifacts=artifacts)))
    return task


async def write(swarm: SwarmRig, task_id: str, **fields: Any) -> None:
    data = {"assigned_to": "scout", "status": "queued", "objective": "find it", "session_hash": "ours", "skill": "noop"}
    await swarm.store.commit([Create(f"agent_tasks/{task_id}", data | fields)])


async def test_dependency_of_another_session_is_refused(swarm: SwarmRig) -> None:
    secret = await theirs(swarm)
    async with working(with_skills(swarm)):
        await write(swarm, "by-hand", depends_on=[secret.task_id])
        await swarm.clock.advance(60)
    raw = await swarm.raw("by-hand")
    assert raw["status"] == "blocked"
    assert f"depends_on names {secret.task_id} of session 'theirs': set session_hash" in raw["summary"]
    assert SECRET not in str(raw)


async def test_submitted_dependency_of_another_session_is_refused(swarm: SwarmRig) -> None:
    secret = await theirs(swarm)
    with pytest.raises(InvalidInput, match="but session ours has no such task: nothing was submitted"):
        await swarm.submit("follow", session="ours", depends_on=(secret.task_id,))
    assert len(await swarm.board.list()) == 1


async def test_result_of_a_task_of_another_session_is_not_passed_on(swarm: SwarmRig) -> None:
    secret, seen = await theirs(swarm), []

    async def noop(request: SkillRequest) -> SkillResult:
        seen.append((request.children, request.artifacts))
        return SkillResult(summary="read")

    ours = await swarm.submit("follow", session="ours", skill="noop")
    await swarm.store.commit(
        [Merge(f"agent_tasks/{ours.task_id}", {"depends_on": [secret.task_id], "children": [secret.task_id]})]
    )
    async with working(with_skills(swarm, noop=noop)) as worker:
        await eventually(swarm, lambda: worker.settled == 1, "working")
    assert seen == [((), ())]
    assert SECRET not in str(await swarm.raw(ours.task_id))


async def test_original_of_another_session_gives_no_result(swarm: SwarmRig) -> None:
    secret = await theirs(swarm)
    async with working(with_skills(swarm)) as worker:
        await write(swarm, "by-hand", duplicate_of=secret.task_id)
        await eventually(swarm, lambda: worker.settled == 1, "doing its own work")
    raw = await swarm.raw("by-hand")
    assert (raw["status"], raw["duplicate_of"]) == ("done", None)
    assert SECRET not in str(raw)


async def test_key_document_that_names_a_task_of_another_session_is_replaced(swarm: SwarmRig) -> None:
    secret = await theirs(swarm)
    key = task_id_for("ours", idempotency_key("find it", {}, ""), "scout")
    await swarm.store.commit([Merge(f"agent_task_keys/{key}", {"task_id": secret.task_id})])
    async with working(with_skills(swarm)) as worker:
        await write(swarm, "by-hand")
        await eventually(swarm, lambda: worker.settled == 1, "working")
    task = await swarm.task("by-hand")
    assert (task.status, task.duplicate_of) == (TaskStatus.DONE, None)
    assert SECRET not in str(await swarm.raw("by-hand"))


async def test_message_of_another_session_gives_no_artifacts(swarm: SwarmRig) -> None:
    seen: list[Any] = []

    async def noop(request: SkillRequest) -> SkillResult:
        seen.append([artifact.value for artifact in request.artifacts])
        return SkillResult(summary="read")

    artifacts = (Artifact(type="note", value=SECRET),)
    envelope = work_message(role="executor", session="theirs", artifacts=artifacts)
    await swarm.core.mailbox.send(envelope, "architect-1", "executor", sender_role="architect")
    async with working(with_skills(swarm, noop=noop)) as worker:
        await write(swarm, "by-hand", message_id="m1")
        await eventually(swarm, lambda: worker.settled == 1, "working")
    assert seen == [[]]


async def test_worker_does_not_reclaim_the_lease_that_it_holds_itself(swarm: SwarmRig) -> None:
    await swarm.submit("long")
    held = await swarm.claim_one()
    path = f"agent_tasks/{held.task.task_id}"
    await swarm.clock.advance(3600)
    await swarm.store.commit([Merge(path, {"sweep_at": None})])
    swept = await swarm.board.reclaim_expired("scout", held={held.task.task_id})
    assert (swept.queued, swept.blocked) == ((), ())
    swept = await swarm.board.reclaim_expired("scout")
    assert swept.queued == (held.task.task_id,)


async def test_submitted_task_of_another_session_under_the_same_id_is_not_returned(swarm: SwarmRig) -> None:
    await theirs(swarm)
    key = task_id_for("ours", idempotency_key("find it", {}, ""), "scout")
    await write(swarm, key, session_hash="theirs")
    ours = await swarm.submit("find it", session="ours")
    assert (ours.session_hash, ours.task_id == key) == ("ours", False)
    assert (await swarm.submit("find it", session="ours")).task_id == ours.task_id


@pytest.mark.parametrize("edit", [{"assigned_to": "executor"}, {"idempotency_key": "another"}])
async def test_submitted_task_is_found_again_after_an_edit(swarm: SwarmRig, edit: dict[str, Any]) -> None:
    task = await swarm.submit("find it")
    await swarm.store.commit([Merge(f"agent_tasks/{task.task_id}", edit)])
    again = await swarm.submit("find it")
    assert again.task_id == task.task_id
