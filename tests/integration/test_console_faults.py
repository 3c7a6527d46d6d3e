"""What may not break or burden the console: broken documents, secrets, strangers, many pages."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any
from unittest import mock

import pytest
from starlette.types import Message

from fireswarm.api.console.application import make_console
from fireswarm.api.console.feed import MAX_PAGES, MAX_PAGES_OF_BROWSER
from fireswarm.api.console.pages.work.runs import READ_PAGES
from fireswarm.contracts.ports import Merge
from fireswarm.contracts.skills.permissions import Approval
from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.swarm.outcome import Failed
from fireswarm.contracts.swarm.task import StatusReason
from tests.support.console import CONSOLE_SECRET, Browser, blocked, open_browser
from tests.support.swarm import done, open_test_swarm

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    async with open_test_swarm(session="s1") as swarm, open_browser(swarm) as opened:
        yield opened


async def test_change_that_cannot_be_read_hides_no_other_item_and_cannot_be_allowed(browser: Browser) -> None:
    await browser.swarm.submit("readable", role="scout", max_attempts=1)
    await browser.swarm.settle(await browser.swarm.claim_one(), Failed("broken"))
    approval = Approval(tool="Write", shown="a.txt", because="it writes", diff="+part", whole_diff="gone.diff")
    asked = Question(name="approval", type="string", description="may it", approval=approval, step="approve/1")
    await blocked(browser.swarm, asked, reason=StatusReason.APPROVAL_REQUIRED)
    page = await browser.page("/inbox")
    assert "readable" in page and "cannot be shown here" in page and "Refuse" in page and "Allow once" not in page


@pytest.mark.parametrize(
    ("path", "fields", "page"),
    [
        ("mcp_memory/x", {"type": "fact", "created_at": "yesterday"}, "/memory"),
        ("mcp_memory/x", {"type": "fact", "created_at": NOW, "value": {"a": [1]}, "bucket": 3}, "/memory"),
        ("mcp_memory/x", {"type": "agent_status", "created_at": NOW, "role": 7}, "/agents"),
        ("agent_tasks/x", {"status": "blocked", "updated_at": NOW}, "/inbox"),
        ("agent_tasks/x", {"status": "blocked", "updated_at": NOW, "schema_version": 99}, "/"),
        ("agent_mailbox/x", {"created_at": NOW, "payload": 1}, "/mail"),
        ("agent_runs/x", {"started_at": NOW, "usage": {"calls": "many"}}, "/spend"),
    ],
)
async def test_malformed_document_breaks_no_page(
    browser: Browser, path: str, fields: dict[str, Any], page: str
) -> None:
    await browser.swarm.submit("still here", role="scout")
    await browser.swarm.store.commit([Merge(path, fields)])
    text = await browser.page(page)
    if path == "agent_tasks/x":
        assert "cannot be read: x" in text
    assert "still here" in await browser.page("/tasks")


@pytest.mark.parametrize("seconds", [1e15, float("nan"), -1.0])
async def test_impossible_age_of_a_heartbeat_breaks_no_page(browser: Browser, seconds: float) -> None:
    hints = {"queued": 3, "oldest_seconds": seconds}
    beat = {"type": "agent_status", "agent_id": "a", "role": "scout", "session_hash": "s1", "status": "idle"}
    now = browser.swarm.clock.now()
    await browser.swarm.store.commit([Merge("mcp_memory/beat", {**beat, "queue_hints": hints, "created_at": now})])
    assert "3 queued" in await browser.page("/")


async def test_run_with_malformed_events_is_shown(browser: Browser) -> None:
    names = {"run_id": "r1", "task_id": "t1", "agent_id": "a", "role": "scout", "session_hash": "s1"}
    run = {**names, "epoch": 1, "status": "completed", "started_at": NOW, "journal_pages": 1}
    events = ["text", {"type": 7, "payload": "x"}, None]
    await browser.swarm.store.commit(
        [Merge("agent_runs/r1", run), Merge("agent_runs/r1/journal/000001", {"number": 1, "events": events})]
    )
    assert "0 events" in await browser.page("/runs/r1")


async def test_secret_is_removed_before_a_line_is_cut(browser: Browser) -> None:
    for count in range(60, 120, 7):
        await browser.swarm.submit(f"{'b' * count} {CONSOLE_SECRET}", role="scout")
    page = await browser.page("/tasks") + await browser.page("/")
    assert CONSOLE_SECRET[:8] not in page


async def test_browser_has_few_streams_and_all_together_have_a_bound(browser: Browser) -> None:
    feed = browser.console.feed
    assert [feed.open_page("one") for _ in range(MAX_PAGES_OF_BROWSER + 1)] == [True] * MAX_PAGES_OF_BROWSER + [False]
    opened = sum(feed.open_page(f"browser {number}") for number in range(MAX_PAGES))
    assert opened == MAX_PAGES - MAX_PAGES_OF_BROWSER
    feed.close_page("one")
    assert feed.open_page("one")


async def test_body_of_an_unknown_browser_is_not_read(browser: Browser) -> None:
    async def receive() -> Message:
        raise AssertionError("the body was read")

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-length", b"500000")]
    for method in ("POST", "GET"):
        scope = {"type": "http", "method": method, "path": "/ui/tasks", "headers": headers, "query_string": b""}
        await make_console(browser.console)(scope, receive, send)
        assert sent[-2]["status"] == 401


@pytest.mark.parametrize(
    "form",
    [{"objective": "x", "priority": "9" * 5_000}, {f"field{number}": "x" for number in range(300)}],
    ids=["digits", "fields"],
)
async def test_odd_form_is_refused(browser: Browser, form: dict[str, str]) -> None:
    assert (await browser.send("/tasks", **form)).status_code == 422


async def test_deeply_nested_answer_is_refused(browser: Browser) -> None:
    task = await blocked(browser.swarm, Question(name="n", type="integer", description="how many"))
    sent = await browser.send(f"/tasks/{task.task_id}/answer", **{f"answer-{task.questions[0].key}": "[" * 100_000})
    assert sent.status_code == 422


async def test_changes_cost_few_reads_however_many_pages_are_open(browser: Browser) -> None:
    for number in range(30):
        await browser.swarm.submit(f"waits {number}", role="scout", max_attempts=1)
        await browser.swarm.settle(await browser.swarm.claim_one(), Failed("broken"))
    await browser.page("/")
    before = browser.swarm.store.usage.copy()
    for _ in range(20):
        await browser.page("/")
    assert browser.swarm.store.usage.minus(before).reads <= 30, "twenty pages read what one had read"


async def test_fault_of_a_page_is_in_the_log(browser: Browser, caplog: pytest.LogCaptureFixture) -> None:
    with mock.patch("fireswarm.api.console.pages.agents.find_living", side_effect=ZeroDivisionError("odd")):
        page = await browser.page("/agents", 500)
    assert "see the log" in page and "odd" not in page
    assert "ZeroDivisionError: odd" in caplog.text


async def test_long_run_costs_few_reads_a_page_and_all_of_it_can_be_reached(browser: Browser) -> None:
    swarm = browser.swarm
    task = await swarm.submit("count", role="scout")
    held = await swarm.claim_one()
    journal = await swarm.journal(held)
    for number in range(400):
        journal.note("counted", step=f"number {number}")
        await journal.flush()
    await swarm.settle(held, done())
    path, seen, pages = f"/runs/{task.run_id(1)}", set[str](), 0
    while path:
        before = swarm.store.usage.reads
        page = await browser.page(path)
        assert swarm.store.usage.reads - before <= READ_PAGES + 8
        seen |= set(re.findall(r"number \d+", page))
        [path] = re.findall(r'href="/ui(/runs/[^"]+)">Earlier', page) or [""]
        pages += 1
    assert len(seen) == 400 and pages == 4
