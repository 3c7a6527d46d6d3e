"""A message to a role creates one task of that role, or is answered with a refusal."""

from __future__ import annotations

from typing import Any

import pytest

from fireswarm.contracts.ports import Create, Merge, Query
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.contracts.swarm.task import Submitted, TaskSpec, TaskStatus
from fireswarm.storage.documents import queries
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.worker import mail, work_by_mail
from tests.support.swarm import SwarmRig
from tests.support.working import eventually, with_skills, work_message, working

pytestmark = pytest.mark.anyio


async def outcome(swarm: SwarmRig, message_id: str) -> tuple[str, str]:
    data = (await swarm.store.get(f"agent_mailbox/{message_id}")).data
    return data["status"], data.get("outcome", "")


async def replies_to(swarm: SwarmRig, agent: str) -> list[Any]:
    mail = await swarm.store.query(Query("agent_mailbox", (("to_agent_id", "==", agent),)))
    return [snapshot.data for snapshot in mail]


@pytest.mark.parametrize("to", ["scout", "scout-1"])
async def test_message_to_a_role_or_agent_creates_a_task_with_its_artifacts(swarm: SwarmRig, to: str) -> None:
    seen: list[Any] = []

    async def noop(request: SkillRequest) -> SkillResult:
        seen.append((request.objective, [artifact.value for artifact in request.artifacts]))
        return SkillResult(summary="counted")

    sent = work_message(artifacts=(Artifact(type="note", value="a b c"),))
    async with working(with_skills(swarm, noop=noop)) as worker:
        await swarm.core.mailbox.send(sent, "architect-1", to, sender_role="architect")
        await eventually(swarm, lambda: worker.settled == 1, "trying")
        [task] = await swarm.board.list()
        fields = {"skill": "noop", "status": "queued"}  # the role of the test has no skill that it could choose
        await swarm.store.commit([Merge(f"agent_tasks/{task.task_id}", fields)])
        await eventually(swarm, lambda: worker.settled == 2, "working")
        assert worker.faults == 0
    [task] = await swarm.board.list()
    assert (task.status, task.created_by, task.session_hash) == (TaskStatus.DONE, "architect-1", "s1")
    assert await outcome(swarm, "m1") == ("read", f"task {task.task_id}")
    assert seen == [("count the words", ["a b c"])]


async def test_message_that_is_handled_twice_creates_one_task(swarm: SwarmRig) -> None:
    await swarm.core.mailbox.send(work_message(), "architect-1", "scout", sender_role="architect")
    snapshot = await swarm.store.get("agent_mailbox/m1")
    for _ in range(2):
        await mail.act_on(swarm.core, "scout", snapshot, work_by_mail.create_work)
    assert len(await swarm.board.list()) == 1


@pytest.mark.parametrize(
    ("sender", "notes", "reason"),
    [("scout-1", "do it", "scout may not hand work to executor"), ("architect-1", "  ", "payload.notes is empty")],
)
async def test_refusal_is_written_to_the_message_and_sent_to_the_sender(
    swarm: SwarmRig, sender: str, notes: str, reason: str
) -> None:
    await swarm.core.mailbox.send(
        work_message(notes=notes, role="executor"), sender, "executor", sender_role="architect"
    )
    async with working(swarm.core, "executor", "executor-1"):
        await swarm.clock.settle()
    assert await swarm.board.list() == []
    status, told = await outcome(swarm, "m1")
    assert status == "read" and told.startswith("refused: ") and reason in told
    [reply] = await replies_to(swarm, sender)
    assert reply["status"] == "new" and reason in reply["payload"]["notes"]


async def test_message_written_in_the_console_needs_a_receiver_and_notes_only(swarm: SwarmRig) -> None:
    data = {"to_agent_id": "scout", "kind": "message", "status": "new", "payload": {"notes": "count the words"}}
    async with working(with_skills(swarm)):
        await swarm.store.commit([Create("agent_mailbox/by-hand", data)])
        await swarm.clock.settle()
    [task] = await swarm.board.list()
    assert (task.objective, task.created_by, task.session_hash) == ("count the words", "operator", "console")


async def test_messages_written_in_the_console_are_listed_with_their_outcome(swarm: SwarmRig) -> None:
    written = {"to_agent_id": "scout", "kind": "message", "status": "new"}
    notes = {"m1": "count the words", "m2": ""}
    creates = [Create(f"agent_mailbox/{name}", written | {"payload": {"notes": text}}) for name, text in notes.items()]
    await swarm.store.commit(creates)
    async with working(swarm.core):
        await swarm.clock.settle()
    listed = await swarm.core.mailbox.read(queries.newest("agent_mailbox", "created_at", 10, session_hash="console"))
    assert {item.message_id: item.outcome.partition(" ")[0] for item in listed} == {"m1": "task", "m2": "refused:"}


async def test_message_that_only_informs_an_agent_stays_new(swarm: SwarmRig) -> None:
    await swarm.core.mailbox.send(work_message(), "scout-1", "scout", sender_role="scout")
    data = (await swarm.store.get("agent_mailbox/m1")).data
    await swarm.store.commit(
        [Create("agent_mailbox/info", {**data, "message_id": "info", "kind": "", "to_agent_id": "scout-1"})]
    )
    async with working(with_skills(swarm)):
        await swarm.clock.settle()
    assert await outcome(swarm, "info") == ("new", "")
    assert len(await swarm.store.query(Query("agent_tasks"))) == 1


async def test_refusal_of_a_message_with_the_longest_id_is_sent_too(swarm: SwarmRig) -> None:
    message_id = "m" * 512
    await swarm.core.mailbox.send(work_message(message_id, notes=" "), "architect-1", "scout", sender_role="architect")
    async with working(with_skills(swarm)) as worker:
        await swarm.clock.settle()
        assert worker.faults == 0
    assert (await outcome(swarm, message_id))[0] == "read"
    assert len(await replies_to(swarm, "architect-1")) == 1


@pytest.mark.parametrize("size", [1_048_000, 1_048_400])
async def test_message_without_room_for_a_refusal_is_ended_and_the_next_one_creates_work(
    swarm: SwarmRig, size: int
) -> None:
    full = {"to_agent_id": "scout", "kind": "message", "status": "new", "filler": "x" * size}
    async with working(with_skills(swarm)) as worker:
        await swarm.store.commit([Create("agent_mailbox/full", full)])
        await swarm.clock.settle()
        await swarm.core.mailbox.send(work_message(), "architect-1", "scout", sender_role="architect")
        await swarm.clock.settle()
        assert worker.faults == 0
    assert [task.objective for task in await swarm.board.list()] == ["count the words"]


async def test_error_in_the_code_refuses_one_message_and_the_next_one_creates_work(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = work_by_mail.submit_task

    async def broken(parts: SwarmParts, spec: TaskSpec) -> Submitted:
        if spec.objective == "break":
            raise RuntimeError("a defect")
        return await submit(parts, spec)

    monkeypatch.setattr(work_by_mail, "submit_task", broken)
    for message_id, notes in (("m1", "break"), ("m2", "count the words")):
        await swarm.core.mailbox.send(
            work_message(message_id, notes=notes), "architect-1", "scout", sender_role="architect"
        )
    async with working(with_skills(swarm)):
        await swarm.clock.settle()
    assert [task.objective for task in await swarm.board.list()] == ["count the words"]
    assert await outcome(swarm, "m1") == ("read", "refused: a defect")
