"""What strangers and attackers found in the console: each was wrong once."""

from __future__ import annotations

import fcntl
import math
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from fireswarm.api.console.access import ConsoleRole
from fireswarm.api.console.feed import Feed
from fireswarm.contracts.ports import Merge
from fireswarm.contracts.skills.artifact import Artifact, Attachment
from fireswarm.contracts.swarm.outcome import Failed
from fireswarm.errors import InvalidInput
from fireswarm.settings import Settings
from fireswarm.storage.documents.paths import run_path, task_path
from fireswarm.swarm.opening.archive import back_up_now
from tests.support.console import Browser, open_browser
from tests.support.swarm import done, open_test_swarm

pytestmark = pytest.mark.anyio


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    async with open_test_swarm(session="s1") as swarm, open_browser(swarm) as opened:
        yield opened


async def test_latest_changes_are_newest_first_while_a_page_is_open(browser: Browser) -> None:
    feed, swarm = browser.console.feed, browser.swarm
    async with anyio.create_task_group() as group:
        group.start_soon(feed.follow)
        assert feed.open_page("a browser")
        for number in range(4):
            await swarm.submit(f"task {number}", fresh_key=str(3 - number))
            await swarm.clock.advance(1)
        with anyio.fail_after(60):
            while feed.newest is None or len(feed.newest) < 4:
                await feed.changed_since(feed.version)
        assert [task.objective for task in feed.newest] == [f"task {number}" for number in (3, 2, 1, 0)]
        group.cancel_scope.cancel()


async def test_reads_of_others_do_not_pace_the_console(browser: Browser) -> None:
    feed: Feed = browser.console.feed
    browser.swarm.store.usage.reads += 100_000
    feed.open_page("a browser")
    await browser.page("/")
    browser.swarm.store.usage.reads += 100_000
    assert 0 < feed.reads < 100


async def test_files_of_the_tasks_of_an_objective_are_listed_with_it(browser: Browser) -> None:
    swarm = browser.swarm
    root = await swarm.submit("the whole", role="architect")
    child = await swarm.submit("a part")
    table = Artifact(type="data", name="beds.csv", mime="text/csv", value="a\n1\n")
    await swarm.settle(await swarm.claim_one(), done(artifacts=(table,)))
    below = {"parent_task_id": root.task_id, "plan_key": "beds", "trace": {"chain_id": root.trace.chain_id}}
    await swarm.store.commit([Merge(task_path(child.task_id), below)])
    page = await browser.page(f"/tasks/{root.task_id}")
    assert f'<a href="/ui/tasks/{child.task_id}/files/0/shown">beds.csv</a>' in page and "data, of beds" in page


async def test_attached_files_and_the_deadline_are_shown(browser: Browser) -> None:
    file = Attachment(name="beds <b>.csv", mime="text/csv", uri="file:///nowhere/beds.csv")
    task = await browser.swarm.submit("read it", attachments=(file,), deadline=datetime(2126, 1, 2, tzinfo=UTC))
    page = await browser.page(f"/tasks/{task.task_id}")
    assert "With beds &lt;b&gt;.csv" in page and "Deadline 2126-01-02T00:00+00:00" in page


async def test_viewer_is_refused_before_a_body_is_read() -> None:
    async with open_test_swarm(session="s1") as swarm, open_browser(swarm, ConsoleRole.VIEWER) as viewer:
        answer = await viewer.client.post("/ui/tasks", content=b"x" * 30_000_000)
        assert answer.status_code == 403 and answer.headers["connection"] == "close"


async def test_only_the_form_with_files_may_be_large(browser: Browser) -> None:
    assert (await browser.client.post("/ui/budget", content=b"x" * 600_000)).status_code == 413


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/store/query?field=created_at&operator=%3E%3D&value=2026-13-45T99:99", 422),
        ("/store/query?order=-__name__", 422),
        ("/store/query?field=dependents&operator=array_contains&value=x&order=created_at", 422),
    ],
)
async def test_odd_query_is_no_fault(browser: Browser, path: str, status: int) -> None:
    assert 'role="alert"' in await browser.page(path, status)


@pytest.mark.parametrize(
    "form",
    [{"context": '{"a": NaN}'}, {"context": '{"a": 1e400}'}, {"path": "~nosuchuser/x"}, {"path": "x" * 5_000}],
)
async def test_odd_input_of_a_form_is_no_fault(browser: Browser, form: dict[str, str]) -> None:
    answer = await browser.send("/tasks", objective="x", role="scout", **form)
    assert answer.status_code == 422 and 'role="alert"' in answer.text
    assert await browser.swarm.client.tasks() == []


async def test_figures_that_are_no_numbers_break_no_page(browser: Browser) -> None:
    swarm = browser.swarm
    task = await swarm.submit("odd")
    held = await swarm.claim_one()
    journal = await swarm.journal(held)
    journal.note("works")
    await journal.flush()
    odd = {"calls": math.inf, "tokens": math.nan, "usd": math.inf, "model": "m"}
    await swarm.store.commit([Merge(run_path(held.run_id), {"usage": odd})])
    for path in (f"/tasks/{task.task_id}", "/runs", "/runs?sort=dearest", "/spend"):
        await browser.page(path)


async def test_values_under_names_of_secrets_are_hidden_in_documents(browser: Browser) -> None:
    task = await browser.swarm.submit("x", context={"list": [{"token": "zzzz-yyyy-xxxx"}], "kept": "kept-value"})
    for path in ("/store/agent_tasks", "/store/query", f"/tasks/{task.task_id}"):
        page = await browser.page(path)
        assert "zzzz-yyyy" not in page and "kept-value" in page, path


async def test_retry_of_chosen_tasks_and_a_budget_say_what_they_do_to_deadlines(browser: Browser) -> None:
    swarm = browser.swarm
    task = await swarm.submit("late", deadline=swarm.clock.now() + timedelta(minutes=1), max_attempts=1)
    await swarm.settle(await swarm.claim_one(), Failed("broken"))
    await swarm.clock.advance(120)
    chosen = {f"task-{task.task_id}": "yes"}
    told = await browser.send("/tasks/chosen", do="retry", sure="yes", **chosen)
    assert "1 task queued again, without a deadline that has passed" in told.text


async def test_backups_are_written_one_at_a_time_and_clear_up_after_a_killed_one(tmp_path: Path) -> None:
    from fireswarm.client import Swarm

    settings = Settings(root=tmp_path)
    async with Swarm.open(settings=settings) as swarm:
        await swarm.submit("keep me", role="scout")
    first = back_up_now(settings, datetime.now(UTC))
    left = first.parent / ".2020-01-01T00-00-00-000000.tar.gz.abcd"
    left.mkdir()
    with (first.parent / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InvalidInput, match="another backup"):
            back_up_now(settings, datetime.now(UTC))
    back_up_now(settings, datetime.now(UTC))
    assert not left.exists() and len(list(first.parent.glob("*.tar.gz"))) == 2
