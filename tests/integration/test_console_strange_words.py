"""What strangers wrote stays words on the pages of agents, runs, skills, memory, mail, money, queries and forms."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from fireswarm.contracts.ports import Merge
from fireswarm.contracts.skills.skill import Fact
from fireswarm.contracts.swarm.envelope import Envelope, TaskRef
from fireswarm.contracts.swarm.status import AgentState, AgentStatus
from fireswarm.storage.documents.paths import run_path
from tests.browser.test_strangers import PAYLOADS
from tests.support.console import Browser, open_browser
from tests.support.swarm import SwarmRig, open_test_swarm

pytestmark = pytest.mark.anyio

BAD = (
    "<script>alert",
    "<img",
    "<svg onload",
    "<iframe",
    'href="javascript:',
    'href="data:',
    "\u202e",
    "<base",
    "<meta http",
)


async def write(swarm: SwarmRig, payload: str) -> str:
    """Write documents that hold the payload wherever a hand, a model or a process may have put it."""
    task = await swarm.submit(payload[:500])
    held = await swarm.claim_one()
    journal = await swarm.journal(held)
    journal.note("works")
    await journal.flush()
    strange = {
        "error": payload,
        "summary": payload,
        "agent_id": payload,
        "usage": {"calls": 1, "model": payload, "usd": 1},
    }
    await swarm.store.commit([Merge(run_path(held.run_id), {**strange, "status": "error"})])
    agent = AgentStatus(
        agent_id=f"a{payload}"[:200].replace("/", "-"),
        role="scout",
        session_hash="s1",
        status=AgentState.IDLE,
        message=payload,
        restarted=payload,
        version=payload,
        host=payload,
        created_at=swarm.clock.now(),
    )
    await swarm.core.heartbeats.beat(agent)
    fact = Fact(bucket=f"b{payload}"[:100], key=f"k{payload}"[:200], value=payload, source=payload, evidence=(payload,))
    await swarm.store.commit(await swarm.core.memory.learn("s1", task.task_id, [fact]))
    envelope = Envelope(
        envelope_id="strange",
        task=TaskRef(task_id=task.task_id, assigned_to="scout"),
        session_hash="s1",
        notes=payload,
        trace=task.trace,
    )
    await swarm.core.mailbox.send(envelope, "architect", "scout", sender_role="architect")
    return agent.agent_id


@pytest.mark.parametrize("number", range(len(PAYLOADS)))
async def test_words_of_strangers_stay_words_on_each_page(number: int) -> None:
    payload = PAYLOADS[number]
    async with open_test_swarm(session="s1") as swarm, open_browser(swarm) as browser:
        agent, asked = await write(swarm, payload), quote(payload, safe="")
        facts = await swarm.client.recall("strange", limit=1)
        paths = [
            "/", "/agents", f"/agents/{quote(agent, safe='')}", f"/skills?query={asked}",
            "/runs", f"/runs?agent={asked}",
            "/memory", f"/memory?query={asked}", "/mail", f"/mail?task={asked}", "/spend", f"/spend?session={asked}",
            f"/store/query?collection=agent_runs&field=error&operator=%3D%3D&value={asked}&order={asked}",
            f"/store/query?collection=agent_runs&field=error&operator=%3D%3D&value={asked}",
            *(f"/memory/{fact.fact_id}" for fact in facts),
        ]  # fmt: skip
        for path in paths:
            await check(browser, path)
        form = {
            "objective": payload,
            "expected_outcome": payload,
            "skill": payload,
            "depends_on": payload,
            "usd": payload,
        }
        answer = await browser.send("/tasks", **form)
        assert answer.status_code == 422 and not any(bad in answer.text for bad in BAD)


async def check(browser: Browser, path: str) -> None:
    answer = await browser.client.get(f"/ui{path}")
    assert answer.status_code in (200, 400, 404, 422), path
    for bad in BAD:
        assert bad not in answer.text, path
    assert "49{" not in answer.text
