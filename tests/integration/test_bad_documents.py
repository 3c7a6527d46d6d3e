"""An unreadable document in any collection is reported by name and neither blocks nor hides other documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from fireswarm import wiring
from fireswarm.contracts.ports import Create, Merge
from fireswarm.contracts.skills.skill import Fact
from fireswarm.contracts.swarm.envelope import Envelope, TaskRef, Trace
from fireswarm.contracts.swarm.task import TaskSpec, TaskStatus
from fireswarm.settings import load_settings
from tests.integration.test_cli import swarm as command
from tests.support.swarm import SwarmRig


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
        async with wiring.open_swarm(load_settings(tmp_path, environment={})) as core:
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
    await swarm.store.commit(swarm.core.memory.remember(await swarm.submit(), (fact,)))
    await spoil(swarm.store, swarm.clock.now())
    assert [found.value for found in await swarm.core.memory.recall("s1", ["files"])] == [12]
    assert [found.value for found in await swarm.core.memory.bucket("s1", "b")] == [12]
    assert caplog.text.count("mcp_memory/fact-bad is not a fact") == 2


@pytest.mark.anyio
async def test_unreadable_message_is_set_aside_and_the_next_one_is_delivered(swarm: SwarmRig) -> None:
    bad = {"to_agent_id": "predictor", "status": "new", "created_at": 1, "sweep_at": swarm.clock.now()}
    await swarm.store.commit([Create("agent_mailbox/bad", bad)])
    good = Envelope(
        envelope_id="good",
        task=TaskRef(task_id="t1", assigned_to="predictor"),
        session_hash="s1",
        trace=Trace(chain_id="c1", step=1),
    )
    await swarm.clock.advance(1)
    await swarm.core.mailbox.send(good, "scout-1", "predictor", sender_role="scout")
    [held] = await swarm.core.mailbox.claim("predictor", "predictor-1")
    assert held.message.payload.envelope_id == "good"
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
    assert "malformed task" in told["summary"] and "priority" in told["summary"]
