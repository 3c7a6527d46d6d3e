"""A run whose agent was killed ends when the agent is known to have worked last, whoever notices it, and when."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from fireswarm.contracts.ports import DELETE_FIELD, Merge
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskSpec
from fireswarm.runs.sinks.run_ends import NOT_HELD, end_lost_run
from fireswarm.settings import load_settings
from fireswarm.storage.documents.paths import run_path, task_path
from fireswarm.swarm.board import HeldLease
from fireswarm.swarm.opening.open_parts import open_parts
from tests.support.console import Browser, open_browser
from tests.support.fleet import lay_out
from tests.support.swarm import SwarmRig, done, open_test_swarm
from tests.support.swarm_command import swarm as command

pytestmark = pytest.mark.anyio

WORKED, NIGHT = 6, 8 * 3_600
LEASE_SECONDS = 60
"""Of the default settings."""


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    async with open_test_swarm(session="s1") as swarm, open_browser(swarm) as opened:
        yield opened


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


async def begin(swarm: SwarmRig, objective: str = "dies", *, flushes: int = 1) -> HeldLease:
    """Let an agent claim a task, work for six seconds with one event at their end, and die."""
    await swarm.submit(objective)
    held = await swarm.claim_one("scout-dead")
    journal = await swarm.journal(held)
    for left in range(flushes, 0, -1):
        await swarm.clock.advance(WORKED / flushes)
        journal.note("works", left=left)
        await journal.flush()
    return held


async def worked(swarm: SwarmRig, held: HeldLease) -> float:
    """Seconds of a run's work, as it is stored."""
    run = await swarm.run(held)
    return (run["ended_at"] - run["started_at"]).total_seconds()


async def shown(browser: Browser, task: Task) -> str:
    return text_of(await browser.page(f"/tasks/{task.task_id}"))


async def test_killed_agent_worked_until_its_last_event_however_late_another_one_notices(browser: Browser) -> None:
    swarm = browser.swarm
    held = await begin(swarm)
    await swarm.clock.advance(NIGHT)
    await swarm.board.sweep("scout")
    assert await worked(swarm, held) == WORKED
    assert (await swarm.run(held))["noticed_at"] >= swarm.clock.now()
    page = await browser.page(f"/tasks/{held.task.task_id}")
    assert "Worked 6 s in 1 run" in text_of(page)
    assert "<title>timeout 6.0 s</title>" in page and f"<title>waits {NIGHT:.1f} s</title>" in page


async def test_killed_agent_without_a_stored_event_worked_until_its_last_renewal(browser: Browser) -> None:
    swarm = browser.swarm
    await swarm.submit("thinks for long")
    held = await swarm.claim_one("scout-dead")
    await swarm.clock.advance(LEASE_SECONDS / 3)
    await swarm.board.renew(held)
    await swarm.clock.advance(NIGHT)
    await swarm.board.sweep("scout")
    assert await worked(swarm, held) == LEASE_SECONDS / 3


async def test_lease_of_another_length_does_not_count_as_work(browser: Browser) -> None:
    held = await begin(browser.swarm)
    task = await browser.swarm.raw(held.task.task_id)
    longer = task["lease"] | {"expires_at": held.expires_at + timedelta(hours=1)}
    await browser.swarm.store.commit([Merge(task_path(held.task.task_id), {"lease": longer})])
    await browser.swarm.clock.advance(NIGHT)
    await browser.swarm.board.sweep("scout")
    assert await worked(browser.swarm, held) == WORKED


@pytest.mark.parametrize("flushes", [1, 3], ids=["events on the document", "events on pages"])
async def test_run_that_an_earlier_version_ended_is_shown_with_its_work(browser: Browser, flushes: int) -> None:
    swarm = browser.swarm
    held = await begin(swarm, flushes=flushes)
    await swarm.clock.advance(NIGHT)
    await swarm.board.sweep("scout")
    before = {"ended_at": swarm.clock.now(), "noticed_at": DELETE_FIELD}
    await swarm.store.commit([Merge(run_path(held.run_id), before)])
    assert "Worked 6 s in 1 run" in await shown(browser, held.task)
    assert "<td>6 s</td>" in await browser.page("/runs")


async def test_run_whose_lease_has_expired_does_not_work_any_more(browser: Browser) -> None:
    swarm = browser.swarm
    held = await begin(swarm)
    assert "progress scout-dead" in await shown(browser, held.task)
    assert "timeout" not in await browser.page("/runs?status=running")
    await swarm.clock.advance(NIGHT)
    browser.console.feed.forget()
    page = await browser.page(f"/tasks/{held.task.task_id}")
    assert "Worked 6 s in 1 run" in text_of(page) and "<title>timeout 6.0 s</title>" in page
    for path in ("/runs?status=running", f"/runs/{held.run_id}"):
        assert "expired without a renewal: the process died or hung" in await browser.page(path), path


async def test_longest_work_is_that_of_those_who_worked(browser: Browser) -> None:
    swarm = browser.swarm
    dead = await begin(swarm, "dies early")
    await swarm.clock.advance(NIGHT)
    await swarm.board.sweep("scout")
    await swarm.client.cancel(dead.task.task_id)
    await swarm.submit("works long")
    held = await swarm.claim_one()
    journal = await swarm.journal(held)
    await swarm.clock.advance(LEASE_SECONDS - 1)
    await swarm.board.settle(held, done(), journal.closing(RunStatus.COMPLETED, "ended", None, None))
    page = await browser.page("/runs?sort=longest")
    assert re.findall(r">(dies early|works long)</a>", page) == ["works long", "dies early"]


async def test_task_of_a_dead_agent_that_a_person_cancels_did_not_work_since(browser: Browser) -> None:
    held = await begin(browser.swarm)
    await browser.swarm.clock.advance(NIGHT)
    await browser.swarm.client.cancel(held.task.task_id)
    assert await worked(browser.swarm, held) == WORKED


async def test_canceled_task_of_a_living_agent_worked_until_then(browser: Browser) -> None:
    held = await begin(browser.swarm)
    await browser.swarm.clock.advance(WORKED)
    await browser.swarm.client.cancel(held.task.task_id)
    assert await worked(browser.swarm, held) == pytest.approx(2 * WORKED)


async def test_run_that_a_later_one_ends_worked_until_its_last_event(browser: Browser) -> None:
    swarm = browser.swarm
    held = await begin(swarm)
    await swarm.store.commit([Merge(task_path(held.task.task_id), {"lease": None, "status": "queued"})])
    await swarm.clock.advance(NIGHT)
    assert "no agent holds its task any more" in await shown(browser, held.task)
    later = await swarm.claim_one("scout-lives")
    journal = await swarm.journal(later)
    await swarm.board.settle(later, done(), journal.closing(RunStatus.COMPLETED, "ended", None, None))
    assert await worked(swarm, held) == WORKED


async def test_suspended_process_did_not_work_after_its_lease_had_expired(browser: Browser) -> None:
    swarm = browser.swarm
    held = await begin(swarm)
    await swarm.clock.advance(NIGHT)
    await end_lost_run(swarm.store, held, "the lease was lost", swarm.clock.now())
    assert await worked(swarm, held) == LEASE_SECONDS


async def test_commands_show_lost_runs_with_their_work(tmp_path: Path) -> None:
    lay_out(tmp_path, {}, settings={})
    async with open_parts(load_settings(tmp_path, {})) as parts:
        submitted = await parts.board.submit(TaskSpec(objective="dies", assigned_to="scout", session_hash="s"))
        task, began = submitted.task, datetime(2026, 1, 1, tzinfo=UTC)
        run = {
            "run_id": task.run_id(1),
            "task_id": task.task_id,
            "agent_id": "scout-dead",
            "role": "scout",
            "session_hash": "s",
            "epoch": 1,
            "status": "progress",
            "events": [{"ts": began + timedelta(seconds=WORKED), "type": "works", "payload": {}}],
            "started_at": began,
        }
        await parts.store.commit([Merge(run_path(task.run_id(1)), run)])
    listed = (await anyio.to_thread.run_sync(command, tmp_path, "runs")).stdout
    assert "timeout" in listed and "6.0 s" in listed
    shown = (await anyio.to_thread.run_sync(command, tmp_path, "show", task.task_id)).stdout
    assert NOT_HELD in shown and "progress" not in shown


async def test_run_that_a_person_wrote_keeps_its_end(browser: Browser) -> None:
    swarm = browser.swarm
    task = await swarm.submit("by hand")
    began = swarm.clock.now()
    named = {"run_id": task.run_id(1), "task_id": task.task_id, "chain_id": task.task_id, "session_hash": "s1"}
    fields = {**named, "epoch": 1, "role": "scout", "agent_id": "scout-x"}
    times = {"started_at": began, "ended_at": began + timedelta(minutes=30)}
    await swarm.store.commit([Merge(run_path(task.run_id(1)), fields | times | {"status": "timeout"})])
    assert "30 min" in await shown(browser, task)


@pytest.mark.parametrize("moment", [datetime.min, datetime.max])
async def test_odd_times_by_hand_break_no_page_and_no_sweep(browser: Browser, moment: datetime) -> None:
    swarm, odd = browser.swarm, moment.replace(tzinfo=UTC, microsecond=0)
    held = await begin(swarm)
    path = task_path(held.task.task_id)
    lease = dict((await swarm.store.get(path)).data or {})["lease"] | {"expires_at": odd}
    await swarm.store.commit([Merge(path, {"lease": lease}), Merge(run_path(held.run_id), {"started_at": odd})])
    for page in ("/runs", f"/tasks/{held.task.task_id}", f"/runs/{held.run_id}"):
        assert "dies" in await browser.page(page), page
    await swarm.clock.advance(NIGHT)
    await swarm.board.sweep("scout")
    assert (await swarm.task(held.task.task_id)).status_reason is not StatusReason.DEAD_LETTER
