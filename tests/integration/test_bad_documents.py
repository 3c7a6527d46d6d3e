"""An unreadable document in any collection is reported by name and neither blocks nor hides other documents."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import ValidationError

from fireswarm.cli.swarm.doctor import MAX_STALLS
from fireswarm.contracts.ports import Create, Delete, Merge
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import Fact, SkillRequest, SkillResult
from fireswarm.contracts.swarm.task import NO_DEADLINE, StatusReason, TaskSpec, TaskStatus
from fireswarm.settings import load_settings
from fireswarm.swarm.opening.open_parts import open_parts
from tests.integration.test_cli import swarm as command
from tests.support.swarm import SwarmRig
from tests.support.working import Gate, eventually, with_skills, work_message, working


async def spoil(store: Any, now: Any) -> None:
    """Write one unreadable document to each collection that the list commands read."""
    bad = {"session_hash": "s1", "status": "asleep", "created_at": now, "updated_at": now, "started_at": now}
    beat = bad | {"type": "agent_status", "cpu": "warm"}
    fact = bad | {"type": "fact", "bucket": "b", "keywords": ["files"]}
    collections = {"agent_tasks/bad": bad, "agent_runs/bad": bad, "agent_mailbox/bad": bad}
    memory = {"mcp_memory/status-bad": beat, "mcp_memory/fact-bad": fact}
    await store.commit([Create(path, data) for path, data in (collections | memory).items()])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("tasks",), "agent_tasks/bad is not a task"),
        (("runs",), "agent_runs/bad is not a run"),
        (("cost",), "agent_runs/bad is not a run"),
        (("mail",), "agent_mailbox/bad is not a message"),
        (("agents",), "mcp_memory/status-bad is not an agent's status"),
        (("memory",), ""),
        (("show", "{task}"), ""),
    ],
)
def test_list_commands_skip_the_unreadable_document_and_report_it(
    tmp_path: Path, words: tuple[str, ...], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def prepare() -> str:
        async with open_parts(load_settings(tmp_path, environment={})) as core:
            spec = TaskSpec(objective="look around", assigned_to="scout", session_hash="s1")
            task = (await core.board.submit(spec)).task
            await spoil(core.store, core.clock.now())
            return task.task_id

    task_id = anyio.run(prepare)
    done = command(tmp_path, *(word.format(task=task_id) for word in words))
    assert done.returncode == 0, done.stderr
    assert told in caplog.text
    if words[0] in ("tasks", "show"):
        assert "look around" in done.stdout


@pytest.mark.anyio
async def test_memory_returns_the_readable_facts(swarm: SwarmRig, caplog: pytest.LogCaptureFixture) -> None:
    fact = Fact(bucket="b", key="count", value=12, keywords=("files",))
    await swarm.store.commit(await swarm.core.memory.remember(await swarm.submit(), (fact,)))
    await spoil(swarm.store, swarm.clock.now())
    assert [found.value for found in await swarm.core.memory.recall("s1", "files")] == [12]
    assert [found.value for found in await swarm.core.memory.bucket("s1", "b")] == [12]
    assert caplog.text.count("mcp_memory/fact-bad is not a fact") == 2


@pytest.mark.anyio
async def test_unreadable_message_is_refused_and_the_next_one_creates_a_task(swarm: SwarmRig) -> None:
    bad = {"to_agent_id": "predictor", "status": "new", "kind": "message", "created_at": 1}
    await swarm.store.commit([Create("agent_mailbox/bad", bad)])
    good = work_message("good", "predictor", "forecast it")
    await swarm.core.mailbox.send(good, "scout-1", "predictor", sender_role="scout")
    async with working(swarm.core, "predictor", "predictor-1"):
        await swarm.clock.settle()
    assert [task.objective for task in await swarm.board.list()] == ["forecast it"]
    aside = (await swarm.store.get("agent_mailbox/bad")).data
    assert aside["status"] == "read" and "is not a message: " in aside["outcome"]


@pytest.mark.anyio
async def test_malformed_dependent_task_does_not_block_the_settling_of_its_dependency(swarm: SwarmRig) -> None:
    first = await swarm.submit("first")
    broken = await swarm.submit("broken", depends_on=(first.task_id,))
    whole = await swarm.submit("whole", depends_on=(first.task_id,))
    await swarm.store.commit([Merge(f"agent_tasks/{broken.task_id}", {"priority": "high"})])
    await swarm.settle(await swarm.claim_one())
    assert (await swarm.task(first.task_id)).status is TaskStatus.DONE
    assert (await swarm.task(whole.task_id)).status is TaskStatus.QUEUED
    told = await swarm.raw(broken.task_id)
    assert (told["status"], told["status_reason"]) == ("blocked", "dead_letter")
    assert "set aside" in told["summary"] and "priority" in told["summary"]


@pytest.mark.anyio
async def test_heartbeat_names_the_document_that_was_set_aside(swarm: SwarmRig) -> None:
    task = await swarm.submit("good", skill="noop")
    bad = {"assigned_to": "scout", "status": "queued", "objective": "x", "priority": 99}
    await swarm.store.commit([Create("agent_tasks/bad", bad)])
    async with working(with_skills(swarm)):
        await swarm.clock.advance(60)
        [beat] = await swarm.core.heartbeats.latest(5)
    assert (beat.queue_hints.set_aside, beat.queue_hints.faults) == (1, 0)
    assert "agent_tasks/bad" in beat.message and "priority" in beat.message
    assert (await swarm.task(task.task_id)).status is TaskStatus.DONE


@pytest.mark.anyio
async def test_task_that_was_set_aside_is_written_once(swarm: SwarmRig) -> None:
    bad = {"assigned_to": "scout", "status": "in_progress", "objective": "", "sweep_at": swarm.clock.now(), "lease": 5}
    await swarm.store.commit([Create("agent_tasks/bad", bad)])
    await swarm.clock.advance(1)
    await swarm.board.sweep("scout")
    first = await swarm.store.get("agent_tasks/bad")
    assert (first.data["status"], first.data["lease"], "sweep_at" in first.data) == ("blocked", None, False)
    for _ in range(3):
        await swarm.clock.advance(60)
        await swarm.board.sweep("scout")
    assert (await swarm.store.get("agent_tasks/bad")).update_time == first.update_time


@pytest.mark.anyio
@pytest.mark.parametrize("change", [{"priority": 99}, {"objective": 7}, {"lease": "mine"}, None])
async def test_worker_drops_only_the_running_task_whose_document_was_spoiled(swarm: SwarmRig, change: Any) -> None:
    gate = Gate()
    async with working(with_skills(swarm, gate=gate)) as worker:
        spoiled = await swarm.submit("spoiled", skill="gate")
        other = await swarm.submit("other", skill="gate")
        await eventually(swarm, lambda: gate.began == 2, "starting both")
        path = f"agent_tasks/{spoiled.task_id}"
        await swarm.store.commit([Delete(path) if change is None else Merge(path, change)])
        await swarm.clock.advance(60)
        await eventually(swarm, lambda: len(worker.held) == 1, "dropping the spoiled one")
        gate.opened.set()
        await eventually(swarm, lambda: worker.settled == 1, "ending the other")
        assert worker.faults == 0
    assert (await swarm.task(other.task_id)).status is TaskStatus.DONE


@pytest.mark.anyio
async def test_result_that_firestore_cannot_store_fails_its_task_only(swarm: SwarmRig) -> None:
    async def huge(request: SkillRequest) -> SkillResult:
        return SkillResult(summary="made").model_copy(
            update={"artifacts": (Artifact.model_construct(type="x", value=10**30),)}
        )

    async with working(with_skills(swarm, huge=huge)) as worker:
        task = await swarm.submit("huge", skill="huge")
        await eventually(swarm, lambda: worker.settled == 1, "failing")
        assert worker.faults == 0
    ended = await swarm.task(task.task_id)
    assert (ended.status_reason, "cannot be stored" in (ended.error or "")) == (StatusReason.DEAD_LETTER, True)


def test_artifact_with_a_number_beyond_64_bits_is_rejected_with_its_place() -> None:
    with pytest.raises(ValidationError, match=r"total\[1\] does not fit into 64 bits: store it as a string"):
        Artifact(type="x", value={"total": [1, 10**30]})


@pytest.mark.anyio
async def test_document_with_no_room_left_is_set_aside_without_its_reason(swarm: SwarmRig) -> None:
    bad = {"assigned_to": "scout", "status": "queued", "objective": "x", "priority": 5, "sweep_at": swarm.clock.now()}
    full = bad | {"deadline": NO_DEADLINE, "created_at": swarm.clock.now(), "extra": "x" * 1_048_340}
    await swarm.store.commit([Create("agent_tasks/bad", full)])
    assert await swarm.claim() == []
    raw = await swarm.raw("bad")
    assert (raw["status"], raw["status_reason"]) == ("blocked", "dead_letter")


def test_doctor_lists_tasks_that_no_agent_will_touch(tmp_path: Path) -> None:
    tasks: dict[str, dict[str, Any]] = {
        "pending": {"assigned_to": "scout", "status": "pending", "objective": "x"},
        "no-role": {"status": "queued", "objective": "x"},
        "no-status": {"assigned_to": "scout", "objective": "x"},
        "stranger": {"assigned_to": "pilot", "status": "queued", "objective": "x"},
        "broken": {"assigned_to": "scout", "status": "queued", "objective": "x", "priority": 99},
    }

    async def prepare() -> None:
        async with open_parts(load_settings(tmp_path, environment={})) as core:
            await core.store.commit([Create(f"agent_tasks/{name}", data) for name, data in tasks.items()])

    anyio.run(prepare)
    shown = command(tmp_path, "doctor", "--json").stdout
    details = [item["detail"] for item in json.loads(shown) if item["what"] == "tasks"]
    assert {detail.partition(":")[0] for detail in details} == {f"agent_tasks/{name}" for name in tasks}
    assert "agent_tasks/pending: its status is 'pending', which no agent looks for: set it to queued" in details


SET_ASIDE = {"status": "blocked", "status_reason": "dead_letter", "summary": "set aside: x. Correct it"}


def test_doctor_lists_what_documents_do_not_say_first_and_all_in_json(tmp_path: Path) -> None:
    odd = {f"odd-{number}": {"assigned_to": "scout", "objective": "x", **SET_ASIDE} for number in range(MAX_STALLS)}
    tasks = odd | {"zoo": {"assigned_to": "pilot", "status": "queued", "objective": "x"}}

    async def prepare() -> None:
        async with open_parts(load_settings(tmp_path, environment={})) as core:
            await core.store.commit([Create(f"agent_tasks/{name}", data) for name, data in tasks.items()])

    anyio.run(prepare)
    told = command(tmp_path, "doctor").stdout
    assert "agent_tasks/zoo: no role of this swarm has the name 'pilot'" in told
    assert "1 more stalled: `swarm doctor --json` lists all" in told
    every = [item["detail"] for item in json.loads(command(tmp_path, "doctor", "--json").stdout)]
    assert all(any(f"agent_tasks/{name}: " in detail for detail in every) for name in tasks)


IDLE: dict[str, tuple[dict[str, Any], str]] = {
    "no-kind": (
        {"to_agent_id": "scout", "status": "new", "payload": {"notes": "look"}},
        "no kind: set kind to message",
    ),
    "odd-kind": ({"to_agent_id": "scout", "status": "new", "kind": "mesage"}, "its kind is 'mesage': set kind to"),
    "typed-kind": ({"to_agent_id": "scout", "status": "new", "kind": 3}, "its kind is 3: set kind to"),
    "no-status": ({"to_agent_id": "scout", "kind": "message", "payload": {"notes": "look"}}, "status is None"),
    "odd-status": ({"to_agent_id": "scout", "status": "nwe", "kind": "message"}, "its status is 'nwe', which no"),
    "no-receiver": ({"status": "new", "kind": "message", "payload": {"notes": "look"}}, "its to_agent_id is None"),
    "odd-receiver": (
        {"to_agent_id": "nobody", "status": "new", "kind": "message"},
        "'nobody': set it to a role, one of",
    ),
    "agent-answers": (
        {"to_agent_id": "scout-1", "status": "new", "kind": "answers", "payload": {"answers": {}}},
        "it has answers for the agent scout-1: set to_agent_id to the role, scout",
    ),
}
"""Messages that a person may write, and that no agent acts on; and what is said about each."""


@pytest.mark.anyio
async def test_messages_that_no_agent_acts_on_are_named_with_what_they_lack(swarm: SwarmRig) -> None:
    await swarm.store.commit([Create(f"agent_mailbox/{name}", data) for name, (data, _) in IDLE.items()])
    good = {"to_agent_id": "scout", "status": "new", "kind": "message", "payload": {"notes": "look"}}
    await swarm.store.commit([Create("agent_mailbox/good", good)])
    await swarm.core.mailbox.send(work_message("sent", "scout", "look"), "scout-1", "scout", sender_role="scout")
    stalls = {stall.path: stall.reason for stall in await swarm.client.stalls()}
    assert set(stalls) == {f"agent_mailbox/{name}" for name in IDLE}
    for name, (_, told) in IDLE.items():
        assert told in stalls[f"agent_mailbox/{name}"]


@pytest.mark.anyio
async def test_envelopes_and_notices_of_agents_are_not_named(swarm: SwarmRig) -> None:
    bad = {"to_agent_id": "scout", "from_agent_id": "scout-1", "status": "new", "kind": "message", "created_at": 1}
    await swarm.store.commit([Create("agent_mailbox/bad", bad)])
    async with working(swarm.core, "scout", "scout-2"):
        await swarm.clock.settle()
    assert [*await swarm.client.stalls()] == []


@pytest.mark.anyio
async def test_worker_logs_a_message_that_it_will_not_act_on_once(
    swarm: SwarmRig, caplog: pytest.LogCaptureFixture
) -> None:
    await swarm.store.commit([Create("agent_mailbox/no-kind", IDLE["no-kind"][0])])
    async with working(with_skills(swarm)):
        for _ in range(20):
            await swarm.clock.advance(30)
    assert caplog.text.count("agent_mailbox/no-kind stays unread: it has no kind") == 1


@pytest.mark.anyio
@pytest.mark.parametrize("objective", ["", "   ", "\n\t", "\u200b\u200b"])
async def test_task_without_words_is_set_aside_and_retried_once_it_has_some(swarm: SwarmRig, objective: str) -> None:
    bad = {"assigned_to": "scout", "status": "queued", "objective": objective, "session_hash": "s1", "skill": "noop"}
    await swarm.store.commit([Create("agent_tasks/empty", bad)])
    async with working(with_skills(swarm)) as worker:
        await swarm.clock.advance(60)
        raw = await swarm.raw("empty")
        assert (raw["status"], raw["status_reason"]) == ("blocked", "dead_letter")
        assert raw["summary"].endswith("the objective is empty: write it, then `swarm retry empty`.")
        await swarm.store.commit([Merge("agent_tasks/empty", {"objective": "look around"})])
        await swarm.client.retry("empty")
        await eventually(swarm, lambda: worker.settled == 1, "working")
    assert (await swarm.task("empty")).status is TaskStatus.DONE


def test_doctor_names_messages_that_no_agent_acts_on(tmp_path: Path) -> None:
    async def prepare() -> None:
        async with open_parts(load_settings(tmp_path, environment={})) as core:
            await core.store.commit([Create("agent_mailbox/no-kind", IDLE["no-kind"][0])])

    anyio.run(prepare)
    found = json.loads(command(tmp_path, "doctor", "--json").stdout)
    [mail] = [item for item in found if item["what"] == "mail"]
    assert mail["detail"].startswith("agent_mailbox/no-kind: it has no kind: set kind to message")
    assert any(item["what"] == "tasks" and item["ok"] for item in found)


UNREADABLE: dict[str, tuple[dict[str, Any], str]] = {
    "agent_tasks/ended": ({"status": "done", "assigned_to": "scout", "objective": 7}, "is not a task: objective"),
    "agent_runs/bad": ({"status": "asleep", "started_at": datetime.now(UTC)}, "is not a run: run_id: "),
    "agent_runs/timeless": ({"run_id": 1}, "is not a run: "),
    "agent_mailbox/read": ({"status": "read", "created_at": 1}, "is not a message: "),
    "mcp_memory/fact": ({"type": "fact", "created_at": datetime.now(UTC)}, "is not a fact: value: Field required"),
    "mcp_memory/summary": ({"type": "session_summary"}, "is not a fact: value: Field required"),
    "mcp_memory/status-bad": ({"type": "agent_status", "cpu": "warm"}, "is not an agent's status: agent_id: "),
    "agents/bad": ({"name": 3}, "is not an agent: "),
    "agent_notices/bad": ({"state": "new"}, "is not a notice: "),
    "agent_schedules/bad": ({"cron": "never", "objective": "x", "assigned_to": "scout"}, "is not a schedule: "),
}
"""A document of each kind that no page can read, and what is said about it."""


def test_doctor_says_why_a_document_cannot_be_read_in_each_collection(tmp_path: Path) -> None:
    async def prepare() -> None:
        async with open_parts(load_settings(tmp_path, environment={})) as core:
            await core.store.commit([Create(path, data) for path, (data, _) in UNREADABLE.items()])

    anyio.run(prepare)
    found = json.loads(command(tmp_path, "doctor", "--json").stdout)
    details = [item["detail"] for item in found if item["what"] in ("tasks", "mail", "documents", "schedules")]
    for path, (_, told) in UNREADABLE.items():
        assert len([detail for detail in details if f"{path} {told}" in detail]) == 1, (path, details)


def test_doctor_counts_the_documents_beyond_those_that_it_lists(tmp_path: Path) -> None:
    async def prepare(runs: int) -> None:
        async with open_parts(load_settings(tmp_path, environment={})) as core:
            await core.store.commit([Create(f"agent_runs/bad-{number:02}", {"run_id": 1}) for number in range(runs)])

    anyio.run(prepare, MAX_STALLS + 1)
    assert "1 more cannot be read: `swarm doctor --json` lists all" in command(tmp_path, "doctor").stdout
    every = command(tmp_path, "doctor", "--json").stdout
    assert all(f"agent_runs/bad-{number:02} is not a run: " in every for number in range(MAX_STALLS + 1))


def test_stats_count_subcollections_of_one_kind_in_one_line(tmp_path: Path) -> None:
    async def prepare() -> None:
        async with open_parts(load_settings(tmp_path, environment={})) as core:
            paths = [f"mcp_memory/{'f' * 40}{number}/versions/1" for number in range(3)]
            await core.store.commit([Create(path, {"value": 1}) for path in paths])

    anyio.run(prepare)
    lines = command(tmp_path, "store", "stats").stdout.splitlines()
    assert [line for line in lines if "versions" in line] == ["mcp_memory/*/versions\t3"]
    assert len(json.loads(command(tmp_path, "store", "stats", "--json").stdout)["collections"]) == 3
