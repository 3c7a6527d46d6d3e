"""What the console says of work that nobody does: a role without a process, a paused one, a document with a fault."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

import pytest

from fireswarm.contracts.ports import Create, Update
from fireswarm.contracts.swarm.status import AgentState, AgentStatus, QueueHints
from tests.support.console import Browser, open_browser
from tests.support.schedules import every_minute
from tests.support.swarm import SwarmRig, open_test_swarm

pytestmark = pytest.mark.anyio


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    async with open_test_swarm(session="s1") as swarm, open_browser(swarm) as opened:
        yield opened


async def beat(swarm: SwarmRig, agent_id: str = "scout-1", role: str = "scout", **fields: Any) -> None:
    now = swarm.clock.now()
    given = {"role": role, "session_hash": "s1", "status": AgentState.IDLE, "created_at": now, **fields}
    await swarm.core.heartbeats.beat(AgentStatus.model_validate({"agent_id": agent_id, **given}))


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def waiting_longest(page: str) -> str:
    """The line of the overview with the queues of the roles."""
    return next(iter(re.findall(r"<p>Waiting longest: .*?</p>", page)), "")


async def test_queue_of_a_dead_agent_is_read_and_not_what_its_last_heartbeat_said(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fireswarm.api.console.pages.agents.KEPT_SECONDS", 0.0)
    swarm = browser.swarm
    first = await swarm.submit("first")
    await beat(swarm, queue_hints=QueueHints(queued=7, oldest_seconds=500))
    await swarm.clock.advance(timedelta(minutes=10).total_seconds())
    await swarm.submit("second")
    line = waiting_longest(await browser.page("/"))
    assert ">scout</a> 2 queued" in line and "(no process of it lives" in line
    assert f'datetime="{first.created_at.isoformat(timespec="seconds")}"' in line
    assert "No process lives, so nothing is worked on" not in await browser.page("/")  # it died ten minutes ago
    await beat(swarm, "scout-2")
    assert waiting_longest(await browser.page("/")) == ""


async def test_age_of_a_queue_counts_from_the_heartbeat_that_tells_it(browser: Browser) -> None:
    swarm = browser.swarm
    began = swarm.clock.now()
    await beat(swarm, "scout-old", queue_hints=QueueHints(queued=9, oldest_seconds=5))
    await swarm.clock.advance(20)
    await beat(swarm, "scout-new", queue_hints=QueueHints(queued=3, oldest_seconds=20))
    await swarm.clock.advance(20)
    line = waiting_longest(await browser.page("/"))
    assert ">scout</a> 3 queued" in line and f'datetime="{began.isoformat(timespec="seconds")}"' in line
    await beat(swarm, "scout-new", queue_hints=QueueHints())
    browser.console.feed.forget()
    assert waiting_longest(await browser.page("/")) == ""


async def test_overview_and_agents_tell_the_same_state(browser: Browser) -> None:
    swarm = browser.swarm
    await beat(swarm, status=AgentState.STARTING, queue_hints=QueueHints(queued=1))
    await swarm.client.orders.pause("scout")
    for path in ("/", "/agents"):
        assert "<td>paused</td>" in await browser.page(path)
    assert ">paused</a>)" in waiting_longest(await browser.page("/"))
    await swarm.clock.advance(50)
    browser.console.feed.forget()
    for path in ("/", "/agents"):
        assert "<td>silent</td>" in await browser.page(path)
    await swarm.clock.advance(50)
    browser.console.feed.forget()
    assert "No process lives, so nothing is worked on" in await browser.page("/")
    page = await browser.page("/agents/scout-1")
    assert "Pause scout-1" not in page and "nothing says how" in page
    assert "Ended in the last day" in await browser.page("/agents")


async def test_paused_role_is_resumed_on_the_page_of_its_task(browser: Browser) -> None:
    swarm = browser.swarm
    await beat(swarm)
    task = await swarm.submit("waits")
    assert 'name="reason"' in await browser.page("/agents")
    await browser.send("/agents", name="scout", do="pause", reason="the disk")
    page = await browser.page(f"/tasks/{task.task_id}")
    assert "paused by an operator: the disk, since 2026-01-01 00:00:00 UTC" in page and "Resume scout</button>" in page
    await every_minute(swarm)
    assert "its role is paused</a>" in await browser.page("/schedules")
    await browser.send("/agents", name="scout", do="resume")
    assert "Resume scout</button>" not in await browser.page(f"/tasks/{task.task_id}")


async def test_task_says_if_nobody_lives_to_take_it(browser: Browser) -> None:
    swarm = browser.swarm
    task = await swarm.submit("waits")
    assert "<code>swarm up</code> starts the roles" in await browser.page(f"/tasks/{task.task_id}")
    assert "for an agent of the role scout; none lives." in await browser.page(f"/tasks/{task.task_id}")
    await beat(swarm)
    assert "none lives" not in await browser.page(f"/tasks/{task.task_id}")
    await swarm.claim_one("scout-1")
    assert "scout-1 works on it" in await browser.page(f"/tasks/{task.task_id}")
    await swarm.clock.advance(600)
    page = text_of(await browser.page(f"/tasks/{task.task_id}"))
    assert "since the lease of scout-1 expired at 2026-01-01 00:01:00 UTC; none lives" in page
    assert "take the task over" not in page
    await swarm.store.commit([Update(f"agent_tasks/{task.task_id}", {"assigned_to": "ghost"})])
    assert "no role card of this name here" in await browser.page(f"/tasks/{task.task_id}")


async def test_documents_that_nobody_works_on_are_named_with_their_reason(browser: Browser) -> None:
    swarm = browser.swarm
    assert "Nothing: each task has a role" in await browser.page("/store/check")
    broken = {"status": "blocked", "assigned_to": "scout", "updated_at": swarm.clock.now(), "objective": "<b>x"}
    await swarm.store.commit([
        Create("agent_tasks/hand-1", {"status": "queued", "assigned_to": "ghost", "objective": "paint"}),
        Create("agent_tasks/hand-2", broken | {"priority": "very <b>high"}),
        Create("agent_runs/hand-3.1", {"status": "completed", "started_at": swarm.clock.now()}),
        Create("agent_schedules/late", {"assigned_to": "scout", "cron": "soon", "task": {"objective": "x"}}),
    ])  # fmt: skip
    browser.console.feed.forget()
    assert 'href="/ui/store/check"' in await browser.page("/inbox")
    page = await browser.page("/store/check")
    assert "no role of this swarm has the name" in text_of(page) and "<b>high" not in page
    for address in (
        "agent_tasks?id=hand-1",
        "agent_tasks?id=hand-2",
        "agent_runs?id=hand-3.1",
        "agent_schedules?id=late",
    ):
        assert f'href="/ui/store/{address}"' in page
    shown = await browser.page("/store/agent_tasks?id=hand-2")
    assert "<details open>" in shown and "very &lt;b&gt;high" in shown and "hand-1" not in shown
    for odd in ("none", "a%2Fb", "..", "x" * 2_000):
        assert "No documents here." in await browser.page(f"/store/agent_tasks?id={odd}")


async def test_overview_tells_at_once_who_holds_a_task(browser: Browser) -> None:
    swarm = browser.swarm
    await beat(swarm)
    assert "<td>idle</td><td></td>" in await browser.page("/")
    task = await swarm.submit("works")
    held = await swarm.claim_one("scout-1")
    browser.console.feed.newest = [await swarm.task(task.task_id)]  # as the listener tells it
    assert f'<td>working</td><td><a href="/ui/tasks/{task.task_id}">' in await browser.page("/")
    await swarm.settle(held)
    browser.console.feed.newest = [await swarm.task(task.task_id)]
    assert "<td>idle</td><td></td>" in await browser.page("/")


async def test_end_of_an_agent_is_told_for_a_day_with_what_it_held(browser: Browser) -> None:
    swarm = browser.swarm
    place = "1764409072.5ab1.scout-1"
    task = await swarm.submit("works")
    held = await swarm.claim_one("scout-a")
    await beat(swarm, "scout-a", place=place, status=AgentState.WORKING, started_at=swarm.clock.now(),
               queue_hints=QueueHints(running=1, capacity=4, holding=(task.task_id,)))  # fmt: skip
    await swarm.settle(held)
    await swarm.clock.advance(3600)
    await beat(swarm, "scout-b", place=place, restarted="scout-1 was killed by SIGKILL", started_at=swarm.clock.now())
    await swarm.clock.advance(2 * 3600)
    agents = text_of(await browser.page("/agents"))
    assert "It ended: scout-1 was killed by SIGKILL" in agents
    page = text_of(await browser.page("/agents/scout-a"))
    assert "How it ended scout-1 was killed by SIGKILL scout-b has its place." in page
    assert "Held at its last heartbeat 1 of 4" in page and "no process took its place" not in page
    assert 'href="/ui/runs?agent=scout-a"' in await browser.page("/agents/scout-a")


async def test_agent_without_a_heartbeat_leads_to_its_runs(browser: Browser) -> None:
    swarm = browser.swarm
    await swarm.submit("works")
    held = await swarm.claim_one("scout-old")
    journal = await swarm.journal(held)
    journal.note("works")
    await journal.flush()
    sent = await browser.client.get("/ui/agents/scout-old")
    assert (sent.status_code, sent.headers["location"]) == (303, "/ui/runs?agent=scout-old")
    assert "it has no runs" in await browser.page("/agents/scout-none", 404)


async def test_tasks_that_no_list_can_show_are_counted(browser: Browser) -> None:
    swarm = browser.swarm
    await swarm.submit("listed")
    assert "cannot be listed" not in await browser.page("/tasks?status=queued")
    await swarm.store.commit(
        [Create("agent_tasks/hand-1", {"status": "queued", "assigned_to": "ghost", "objective": "x"})]
    )
    page = await browser.page("/tasks?status=queued")
    assert "1 more task cannot be listed" in page and 'href="/ui/store/check"' in page
    assert "cannot be listed" not in await browser.page("/tasks?status=queued&role=scout")
    assert re.search(r'tasks <span class="note">1</span>', await browser.page("/tasks/hand-1"))
