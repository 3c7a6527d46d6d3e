"""What an operator asks the console: how many failed, which is slowest, what is left of a budget, who is dead."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path

import pytest

from fireswarm.api.console.access import ConsoleRole
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.swarm.outcome import Failed
from fireswarm.contracts.swarm.status import AgentState, AgentStatus
from fireswarm.contracts.swarm.task import TaskStatus
from tests.support.console import CONSOLE_SECRET, Browser, open_browser
from tests.support.swarm import done, open_test_swarm

pytestmark = pytest.mark.anyio


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    async with (
        open_test_swarm(session="s1", budget={"session_usd": 2.0}) as swarm,
        open_browser(swarm) as opened,
    ):
        yield opened


def text_of(page: str) -> str:
    """The words of a page."""
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


async def test_slowest_tasks_come_first_with_their_duration(browser: Browser) -> None:
    swarm = browser.swarm
    for seconds in (5, 400, 60):
        task = await swarm.submit(f"takes {seconds} s")
        held = await swarm.claim_one()
        await swarm.clock.advance(seconds)
        await swarm.settle(held, done())
        assert (await swarm.task(task.task_id)).ended_at is not None
    page = await browser.page("/tasks?sort=slowest")
    assert re.findall(r"takes (\d+) s<", page) == ["400", "60", "5"]
    assert "<td>6 min 40 s</td>" in page and "<td>5 s</td>" in page
    assert "takes 60 s" not in await browser.page("/tasks?sort=slowest&status=canceled")


async def test_page_of_a_task_says_that_its_holder_is_silent(browser: Browser) -> None:
    swarm = browser.swarm
    task = await swarm.submit("goes on")
    await swarm.claim_one("scout-dead")
    status = AgentStatus(
        agent_id="scout-dead",
        role="scout",
        session_hash="s1",
        status=AgentState.WORKING,
        beat_seconds=10,
        created_at=swarm.clock.now(),
    )
    await swarm.core.heartbeats.beat(status)
    assert "has not reported" not in await browser.page(f"/tasks/{task.task_id}")
    await swarm.clock.advance(20)
    shown = text_of(await browser.page(f"/tasks/{task.task_id}"))
    assert "scout-dead has not reported for 20 s. Another agent may take the task over in 40 s." in shown


async def test_overview_leaves_out_agents_that_stopped_or_died_long_ago(browser: Browser) -> None:
    swarm = browser.swarm
    for name, state in (("scout-lives", AgentState.IDLE), ("scout-stopped", AgentState.STOPPED)):
        status = AgentStatus(
            agent_id=name,
            role="scout",
            session_hash="s1",
            status=state,
            restarted="scout-1 ended with exit code -9" if name == "scout-lives" else "",
            created_at=swarm.clock.now(),
        )
        await swarm.core.heartbeats.beat(status)
    overview, agents = await browser.page("/"), await browser.page("/agents")
    assert "scout-lives" in overview and "scout-stopped" not in overview
    assert "scout-stopped" in agents and "ended with exit code -9" in agents
    await swarm.clock.advance(timedelta(minutes=10).total_seconds())
    browser.console.feed.forget()
    assert "scout-lives" not in await browser.page("/") and "scout-lives" in await browser.page("/agents")


async def test_agent_that_another_one_replaced_is_gone_at_once_and_says_how_it_ended(browser: Browser) -> None:
    swarm = browser.swarm
    for name, told in (("scout-first", ""), ("scout-second", "scout-1 was killed by SIGKILL after 9.0 s")):
        await swarm.core.heartbeats.beat(
            AgentStatus(
                agent_id=name,
                role="scout",
                session_hash="s1",
                status=AgentState.IDLE,
                restarted=told,
                place="1764409072.5ab1.scout-1",
                created_at=swarm.clock.now(),
                started_at=swarm.clock.now(),
            )
        )
        await swarm.clock.advance(1)
    rows = re.findall(r"<tr><td>.*?</tr>", await browser.page("/agents"), re.DOTALL)
    [first] = [text_of(row) for row in rows if ">scout-first<" in row]
    [second] = [text_of(row) for row in rows if ">scout-second<" in row]
    assert "gone" in first and "It ended: scout-1 was killed by SIGKILL" in first
    assert "gone" not in second and "Before it: scout-1 was killed by SIGKILL" in second
    page = text_of(await browser.page("/agents/scout-first"))
    assert "was killed by SIGKILL after 9.0 s scout-second has its place." in page
    assert "How it ended" not in await browser.page("/agents/scout-second")
    await swarm.clock.advance(120)
    for path in ("/agents", "/agents/scout-second"):  # nobody is left to tell it
        assert "nothing says how: its last heartbeat was at" in text_of(await browser.page(path))


async def test_long_objective_is_readable_on_its_page(browser: Browser) -> None:
    text = "count\n" + "many words " * 150 + "the end"
    task = await browser.swarm.submit(text, expected_outcome="a number")
    page = await browser.page(f"/tasks/{task.task_id}")
    assert "the end</pre>" in page and "A good result has: a number" in page


async def test_task_is_in_the_same_state_in_all_parts_of_its_page(browser: Browser) -> None:
    swarm = browser.swarm
    task = await swarm.submit("quick")
    await browser.page(f"/tasks/{task.task_id}")  # its objective is kept for seconds
    await swarm.settle(await swarm.claim_one(), done())
    page = await browser.page(f"/tasks/{task.task_id}")
    assert page.count('<span class="status done">done</span>') == 2 and "queued</span>" not in page


async def test_objective_in_a_folder_that_does_not_exist_is_refused(browser: Browser, tmp_path: Path) -> None:
    missing = await browser.send("/tasks", objective="look", role="scout", path=str(tmp_path / "nofolder"))
    assert missing.status_code == 422 and "does not exist" in missing.text
    empty = await browser.send("/tasks", objective="  ", role="scout")
    assert empty.status_code == 422 and "say what is to be done" in empty.text
    assert (await browser.send("/tasks", objective="look", role="scout", path=str(tmp_path))).status_code == 303
    [task] = await browser.swarm.client.tasks()
    assert task.context == {"path": str(tmp_path)}


async def test_documents_of_each_collection_are_counted_and_shown_without_secrets(browser: Browser) -> None:
    swarm = browser.swarm
    ids = [(await swarm.submit(f"task {number} {CONSOLE_SECRET}", role="scout")).task_id for number in range(27)]
    await browser.page("/")  # it keeps counts of its own
    store = await browser.page("/store")
    assert re.search(r"agent_tasks</code></a></td><td>27<", store)
    first = await browser.page("/store/agent_tasks")
    assert first.count("<details>") == 25 and CONSOLE_SECRET not in first
    [after] = re.findall(r'href="\?after=([^"]+)"', first)
    last = await browser.page(f"/store/agent_tasks?after={after}")
    assert last.count("<details>") == 2 and all(task_id in first + last for task_id in ids)
    assert "no collection" in await browser.page("/store/secrets", 404)
    assert "No documents" in await browser.page("/store/agent_notices")


async def test_find_goes_to_the_only_hit_and_lists_several(browser: Browser) -> None:
    swarm = browser.swarm
    boat = await swarm.submit("paint the boat", role="scout")
    gate = await swarm.submit(f"paint the gate {CONSOLE_SECRET}", role="scout")
    both = await browser.page("/jump?q=paint+THE")
    assert "paint the boat" in both and "paint the gate" in both and CONSOLE_SECRET not in both
    for words, path in (("boat paint", f"/tasks/{boat.task_id}"), (gate.task_id[:8], f"/tasks/{gate.task_id}")):
        found = await browser.client.get("/ui/jump", params={"q": words})
        assert (found.status_code, found.headers["location"]) == (303, f"/ui{path}")
    assert (await browser.client.get("/ui/jump", params={"q": "slowest"})).headers["location"].startswith("/ui/tasks?")
    assert "Nothing has" in await browser.page(f"/jump?q=gate+{CONSOLE_SECRET[:9]}")
    assert "Nothing has" in await browser.page("/jump?q=%00%22%3E/../x")
    assert "Spend and budgets" in await browser.page("/jump")
    held = await swarm.claim_one()
    journal = await swarm.journal(held)
    journal.note("counted")
    await journal.flush()
    run = await browser.client.get("/ui/jump", params={"q": held.run_id})
    assert run.headers["location"] == f"/ui/runs/{held.run_id}"


async def test_find_runs_an_action_and_opens_a_file(browser: Browser) -> None:
    swarm = browser.swarm
    boat = await swarm.submit("paint the boat", role="scout", max_attempts=1)
    await swarm.settle(await swarm.claim_one(), Failed("no paint"))
    await swarm.submit("paint the gate", role="scout")
    page = await browser.page("/jump?q=retry+paint")
    assert page.count("Try again") == 1 and f"/tasks/{boat.task_id}/retry" in page
    await browser.send(f"/tasks/{boat.task_id}/retry")
    assert (await swarm.task(boat.task_id)).status is TaskStatus.QUEUED
    assert "Try again" not in await browser.page("/jump?q=retry+boat")
    assert (await browser.page("/jump?q=cancel+paint")).count("for good</button>") == 2
    paused = await browser.page("/jump?q=pause+scout")
    assert '<button name="do" value="pause">Pause</button>' in paused
    async with open_browser(swarm, ConsoleRole.VIEWER) as viewer:
        assert "<button>Try" not in (shown := await viewer.page("/jump?q=pause+scout")) and 'name="do"' not in shown
    report = Artifact(type="report", name="colours.md", value="# Red")
    await swarm.settle(await swarm.claim_one(), done(artifacts=(report,)))
    browser.console.feed.forget()
    found = await browser.client.get("/ui/jump", params={"q": "colours.md"})
    assert re.fullmatch(r"/ui/tasks/[^/]+/files/0/shown", found.headers["location"])


async def test_find_looks_at_the_summaries_of_tasks_too(browser: Browser) -> None:
    swarm = browser.swarm
    boat = await swarm.submit("paint the boat", max_attempts=1)
    await swarm.settle(await swarm.claim_one(), Failed(f"no <space> left on device {CONSOLE_SECRET}"))
    await swarm.submit("paint the gate")
    for words in ("SPACE left", "boat device"):
        found = await browser.client.get("/ui/jump", params={"q": words})
        assert found.headers["location"] == f"/ui/tasks/{boat.task_id}", words
    page = await browser.page("/jump?q=retry+device")
    assert "no &lt;space&gt; left on device" in page and f"/tasks/{boat.task_id}/retry" in page
    assert CONSOLE_SECRET not in page and "space" not in await browser.page("/jump?q=paint")
    assert "Nothing has" in await browser.page(f"/jump?q=device+{CONSOLE_SECRET[:9]}")
    await swarm.claim_one("scout-busy")
    browser.console.feed.forget()
    assert "Nothing has" in await browser.page("/jump?q=scout-busy")


async def test_tasks_are_filtered_by_words_and_by_the_time_of_their_change(browser: Browser) -> None:
    swarm = browser.swarm
    await swarm.submit("paint the old boat", role="scout")
    await swarm.clock.advance(timedelta(days=2).total_seconds())
    await swarm.submit("paint the new gate", role="scout")
    page = await browser.page("/tasks?text=PAINT+boat")
    assert "old boat" in page and "new gate" not in page
    page = await browser.page("/tasks?within=24h")
    assert "new gate" in page and "old boat" not in page
    assert "unknown filter" in await browser.page("/tasks?within=2y", 422)
    for within, has_gate in (("today", True), ("yesterday", False), ("7d", True)):
        page = await browser.page(f"/tasks?within={within}")
        assert ("new gate" in page, "old boat" in page) == (has_gate, within == "7d"), within
    await swarm.clock.advance(timedelta(days=1).total_seconds())
    page = await browser.page("/tasks?within=yesterday")
    assert "new gate" in page and "old boat" not in page
    for number in range(51):
        await swarm.submit(f"paint fence {number}", role="scout")
    first = await browser.page("/tasks?text=fence&within=24h")
    [following] = re.findall(r'href="/ui(/tasks\?[^"]+)">Next page', first)
    assert "text=fence" in following and "within=24h" in following
    assert len(re.findall(r"paint fence \d+<", await browser.page(following.replace("&amp;", "&")))) == 1


async def test_chosen_tasks_are_previewed_then_retried_or_canceled_each_by_itself(browser: Browser) -> None:
    swarm = browser.swarm
    broken = await swarm.submit("break it", role="scout", max_attempts=1)
    await swarm.settle(await swarm.claim_one(), Failed("broken"))
    queued = await swarm.submit("nobody does this", role="memory")
    ended = await swarm.submit("walk", role="predictor")
    await swarm.settle(await swarm.claim_one(role="predictor"), done("walked"))
    chosen = {f"task-{task.task_id}": "yes" for task in (broken, queued, ended)}
    page = await browser.page("/tasks")
    assert all(f'name="{name}"' in page for name in chosen)
    preview = await browser.send("/tasks/chosen", do="retry", **chosen)
    assert preview.status_code == 200 and "Try again: 3 chosen" in preview.text
    assert (await swarm.task(broken.task_id)).given_up
    retried = await browser.send("/tasks/chosen", do="retry", sure="yes", **chosen, **{"task-gone": "yes"})
    assert "1 task queued again" in retried.text and retried.text.count("not changed") == 2
    assert (await swarm.task(broken.task_id)).status is TaskStatus.QUEUED
    canceled = await browser.send("/tasks/chosen", do="cancel", sure="yes", **chosen)
    assert canceled.text.count("1 task canceled") == 2 and "it had ended before" in canceled.text
    states = [(await swarm.task(task.task_id)).status for task in (broken, queued, ended)]
    assert states == [TaskStatus.CANCELED, TaskStatus.CANCELED, TaskStatus.DONE]
    every = {name.replace("task-", "shown-"): "yes" for name in chosen}
    assert all(f'name="{name}"' in page for name in every)
    shown = await browser.send("/tasks/chosen", do="retry", all="yes", **every)
    assert "Try again: 3 chosen" in shown.text and shown.text.count('name="task-') == 3
    first = await browser.send("/tasks/chosen", do="priority", priority="9", **chosen)
    assert "Priority 9: 3 chosen" in first.text and 'name="priority" value="9"' in first.text
    waits = await swarm.submit("waits its turn")
    both = {**chosen, f"task-{waits.task_id}": "yes"}
    prioritized = await browser.send("/tasks/chosen", do="priority", priority="9", sure="yes", **both)
    assert "its priority is 9 now" in prioritized.text and "not changed: task" in prioritized.text
    assert (await swarm.task(waits.task_id)).priority == 9
    for priority in ("", "0", "11", "x"):
        odd = await browser.send("/tasks/chosen", do="priority", priority=priority, **both)
        assert odd.status_code == 422, priority
    assert (await browser.send("/tasks/chosen", do="cancel")).status_code == 422
    assert (await browser.send("/tasks/chosen", do="explode", **chosen)).status_code == 422
