"""Days, money and blockers in the console: what failed when, what worked long, what costs what, who waits for whom."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fireswarm.api.console.feed import MAX_PAUSE_SECONDS, READS_A_MINUTE, Pace
from fireswarm.contracts.ports import Merge
from fireswarm.contracts.swarm.outcome import Failed, Waiting
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.contracts.swarm.status import AgentState, AgentStatus
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.llm.budget import Spend
from fireswarm.llm.spend import StoreLedger
from fireswarm.storage.documents.paths import run_path
from tests.support.console import Browser, open_browser
from tests.support.swarm import SwarmRig, done, open_test_swarm

pytestmark = pytest.mark.anyio
DAY_SECONDS = 86_400


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    async with (
        open_test_swarm(session="s1", budget={"session_usd": 2.0}) as swarm,
        open_browser(swarm) as opened,
    ):
        yield opened


async def spend(swarm: SwarmRig, usd: float) -> None:
    """Store spending of another process."""
    ledger = StoreLedger(swarm.store, swarm.clock, "s1", "scout-9")
    await ledger.add(Spend.of_call(1_000, usd))
    await swarm.store.commit(list(ledger.writes()))


def text_of(page: str) -> str:
    """The words of a page."""
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


async def end(swarm: SwarmRig, error: str = "", *, seconds: float = 0, usage: dict[str, Any] | None = None) -> None:
    """Claim a task, work for some seconds, and end its run: with an error it fails."""
    held = await swarm.claim_one()
    journal = await swarm.journal(held)
    journal.note("works")
    await journal.flush()
    await swarm.clock.advance(seconds)
    outcome = Failed(error) if error else done()
    status = RunStatus.ERROR if error else RunStatus.COMPLETED
    await swarm.board.settle(held, outcome, journal.closing(status, "ended", None, error or None))
    await swarm.store.commit([Merge(run_path(held.run_id), {"usage": usage or {}})])


async def work(swarm: SwarmRig, objective: str, *, seconds: float = 1, usd: float = 0.0, session: str = "s1") -> Task:
    """Let a task wait for a minute, work and end; its run has cost something."""
    task = await swarm.submit(objective, session=session)
    await swarm.clock.advance(60)
    await end(swarm, seconds=seconds, usage={"calls": 1, "tokens": 10, "usd": usd, "provider": "p", "model": "m"})
    return await swarm.task(task.task_id)


async def test_failed_run_stays_in_the_list_of_its_day_after_its_task_was_tried_again(browser: Browser) -> None:
    swarm = browser.swarm
    task = await swarm.submit("fails once", max_attempts=1)
    await end(swarm, "the disk was full")
    assert "1 of them gave up" in text_of(await browser.page("/"))
    await browser.send(f"/tasks/{task.task_id}/retry")
    await end(swarm)
    page = await browser.page("/")
    assert "Today: 1 done, 0 canceled, 1 failed run ." in text_of(page) and "gave up" not in text_of(page)
    [link] = re.findall(r'href="/ui(/runs\?[^"]*)"', page)
    found = await browser.page(link.replace("&amp;", "&"))
    assert "the disk was full" in found and found.count("/ui/runs/") == 1
    assert f'href="/ui/tasks/{task.task_id}"' in found and ">done</span>" in found
    await swarm.clock.advance(DAY_SECONDS)
    browser.console.feed.forget()
    assert "Yesterday: 1 done, 0 canceled, 1 failed run (days of UTC, counted once a minute)." in text_of(
        await browser.page("/")
    )


async def test_runs_are_sorted_by_work_and_by_cost_and_not_by_waiting(browser: Browser) -> None:
    for objective, seconds, usd in (("quick", 2, 0.5), ("long", 300, 0.1), ("dear", 20, 0.9)):
        await work(browser.swarm, objective, seconds=seconds, usd=usd)
    for sort, expected in (("", "dear long quick"), ("longest", "long dear quick"), ("dearest", "dear quick long")):
        page = await browser.page(f"/runs?sort={sort}")
        assert " ".join(re.findall(r">(quick|long|dear)</a>", page)) == expected, sort
    assert "<td>5 min 0 s</td>" in page and "<td>0.9000</td>" in page


async def test_lists_of_runs_are_paged_and_refuse_odd_filters(browser: Browser) -> None:
    swarm = browser.swarm
    for number in range(52):
        await swarm.submit(f"task {number}")
        await end(swarm)
    first = await browser.page("/runs?status=completed&role=scout")
    [following] = re.findall(r'href="/ui(/runs\?[^"]*)">Next page', first)
    second = await browser.page(following.replace("&amp;", "&"))
    ids = [re.findall(r'href="/ui/runs/([^"]+)"', page) for page in (first, second)]
    assert [len(found) for found in ids] == [50, 2] and not set(ids[0]) & set(ids[1])
    for odd in ("status=odd", "sort=odd", "day=yesterday", "day=9999-12-31", "cursor=odd"):
        assert "Go to the overview" in await browser.page(f"/runs?{odd}", 422), odd


async def test_task_says_how_long_it_worked_and_how_long_it_waited(browser: Browser) -> None:
    task = await work(browser.swarm, "works little", seconds=20)
    shown = text_of(await browser.page(f"/tasks/{task.task_id}"))
    assert "Worked 20 s in 1 run, of 80 s from its creation to its end: the rest it waited." in shown


async def test_blockers_are_names_with_links(browser: Browser) -> None:
    first = await browser.swarm.submit("paint <the> wall")
    second = await browser.swarm.submit("hang the picture", depends_on=(first.task_id,))
    page = await browser.page(f"/tasks/{second.task_id}")
    assert (
        f'<a href="/ui/tasks/{first.task_id}">paint &lt;the&gt; wall</a>' in page.partition('<section id="actions"')[0]
    )


async def test_retry_says_that_a_past_deadline_is_gone(browser: Browser) -> None:
    swarm = browser.swarm
    task = await swarm.submit("late", deadline=swarm.clock.now() + timedelta(minutes=1), max_attempts=1)
    await swarm.settle(await swarm.claim_one(), Failed("broken"))
    assert (
        (await browser.send(f"/tasks/{task.task_id}/retry"))
        .headers["location"]
        .partition(".")[0]
        .endswith("done=retry")
    )
    await swarm.settle(await swarm.claim_one(), Failed("broken"))
    await swarm.clock.advance(120)
    assert (
        (await browser.send(f"/tasks/{task.task_id}/retry"))
        .headers["location"]
        .partition(".")[0]
        .endswith("done=retry_late")
    )


async def test_spend_is_shown_by_day_period_and_session(browser: Browser) -> None:
    swarm = browser.swarm
    await work(swarm, "old work", usd=0.25)
    await swarm.clock.advance(DAY_SECONDS)
    await work(swarm, "new work", usd=0.5)
    await work(swarm, "work of others", usd=1.0, session="s2")
    expected = {"": "1.7500", "today": "1.5000", "yesterday": "0.2500", "7d": "1.7500", "today&session=s1": "0.5000"}
    for within, usd in expected.items():
        assert f"{usd} USD for" in text_of(await browser.page(f"/spend?within={within}")), within
    days = [(swarm.clock.now() - timedelta(days=back)).date().isoformat() for back in (0, 1)]
    assert re.findall(r"<td>(\d{4}-\d\d-\d\d)</td>", await browser.page("/spend")) == days
    assert "Go to the overview" in await browser.page("/spend?within=ever", 422)


async def test_overspent_budget_says_by_how_much_and_the_day_where_it_goes(browser: Browser) -> None:
    swarm = browser.swarm
    await swarm.clock.advance((6 - swarm.clock.now().hour) % 24 * 3600)
    await spend(swarm, 2.5)
    shown = text_of(await browser.page("/spend"))
    assert "0 % left, 0.0000 of 2.0000 USD of the session; 0.5000 USD more than that spent." in shown
    assert "has cost 2.5000 USD in all sessions. At this rate it ends with about 10.00 USD." in shown
    assert "Budget of the session: 0 % left" in text_of(await browser.page("/"))


async def test_raised_budget_continues_what_it_stopped(browser: Browser) -> None:
    swarm = browser.swarm
    task = await swarm.submit("costs much")
    await swarm.settle(await swarm.claim_one(), Waiting(StatusReason.BUDGET_EXCEEDED, "its budget is spent"))
    assert "Set and go on" in await browser.page(f"/tasks/{task.task_id}")
    sent = await browser.send("/budget", scope="session", usd="9")
    assert sent.headers["location"].startswith("/ui/tasks?status=blocked&reason=budget_exceeded&done=budget_stopped.")
    sent = await browser.send(f"/tasks/{task.task_id}/budget", usd="5")
    assert sent.headers["location"].partition(".")[0].endswith("done=budget_retried")
    assert (await swarm.task(task.task_id)).status is TaskStatus.QUEUED
    sent = await browser.send(f"/tasks/{task.task_id}/budget", usd="6")
    assert sent.headers["location"].partition(".")[0].endswith("done=budget")


async def test_budget_is_shown_on_the_task_and_raised_where_it_is_shown(browser: Browser) -> None:
    swarm = browser.swarm
    await spend(swarm, 1.9)
    task = await swarm.submit("costs much")
    shown = text_of(await browser.page(f"/tasks/{task.task_id}"))
    assert "Budget of the session: 5 % left, 0.1000 of 2.0000 USD of the session." in shown
    assert "The session s1: 5 % left" in text_of(await browser.page("/spend"))
    answer = await browser.send("/budget", scope="session", usd="19")
    assert answer.status_code == 303
    assert "The session s1: 90 % left, 17.1000 of 19.0000 USD" in text_of(await browser.page("/spend"))
    for form in ({"scope": "year", "usd": "1"}, {"scope": "day", "usd": "much"}, {"scope": "day", "usd": "-1"}):
        assert (await browser.send("/budget", **form)).status_code == 422


async def test_budget_of_an_objective_is_shown_after_it_was_set(browser: Browser) -> None:
    task = await browser.swarm.submit("costs much")
    assert (await browser.send(f"/tasks/{task.task_id}/budget", usd="3")).status_code == 303
    shown = text_of(await browser.page(f"/tasks/{task.task_id}"))
    assert "Budget of the objective: 100 % left, 3.0000 of 3.0000 USD" in shown


async def test_operations_of_agents_are_those_of_a_day_at_their_rate(browser: Browser) -> None:
    swarm = browser.swarm
    now = swarm.clock.now()
    status = AgentStatus(
        agent_id="scout-1",
        role="scout",
        session_hash="s1",
        status=AgentState.IDLE,
        created_at=now,
        started_at=now - timedelta(minutes=30),
        usage={"reads": 100, "writes": 10, "deletes": 1},
    )
    await swarm.core.heartbeats.beat(status)
    shown = text_of(await browser.page("/spend"))
    assert "scout 100 10 1 A day at this rate 4,800 480 48" in shown


@given(costs=st.lists(st.integers(0, 75), min_size=1, max_size=60), gaps=st.lists(st.floats(0, 100), min_size=60))
@settings(max_examples=200, deadline=None)
def test_paced_pages_stay_within_their_reads_a_minute(costs: list[int], gaps: list[float]) -> None:
    pace, now, reads = Pace(), 1_000.0, 0
    started = now
    for cost, gap in zip(costs, gaps, strict=False):
        reads += cost
        pause = pace.pay(cost, now)
        assert pause <= MAX_PAUSE_SECONDS + 0.001
        now += pause + gap
        assert reads <= READS_A_MINUTE * ((now - started) / 60 + 1) + 0.001


def test_quiet_swarm_is_not_paced() -> None:
    pace, pauses = Pace(), list[float]()
    for minute in range(10):
        pauses.append(pace.pay(25, 1_000.0 + 60 * minute))
    assert pauses == pytest.approx([0.0] * 10)


async def test_task_that_waits_for_a_person_keeps_its_age_when_others_depend_on_it(browser: Browser) -> None:
    swarm = browser.swarm
    first = await swarm.submit("asks")
    await swarm.settle(await swarm.claim_one(), Waiting(StatusReason.INPUT_REQUIRED, "asks"))
    before = await swarm.task(first.task_id)
    await swarm.clock.advance(600)
    second = await swarm.submit("after it", depends_on=(first.task_id,))
    now = await swarm.task(first.task_id)
    assert now.updated_at == before.updated_at and now.dependents == (second.task_id,)


async def test_spend_names_what_it_leaves_out_and_calls_no_begun_budget_whole(browser: Browser) -> None:
    swarm = browser.swarm
    for number in range(22):
        await swarm.submit(f"objective {number}")
        await end(swarm, usage={"calls": 1, "tokens": 10, "usd": 0.5 - number / 100})
    await spend(swarm, 0.001)
    page = text_of(await browser.page("/spend"))
    assert "By objective: the 20 most expensive of 22" in page
    assert "99 % left" in page and "100 % left" not in page
    assert "<option>s1</option>" in await browser.page("/spend")
