"""The console as a browser sees it: who may enter and act, its pages on odd tasks, and its forms on a live board."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import Path

import anyio
import httpx2
import pytest

from fireswarm.api.console.access import ConsoleRole
from fireswarm.api.console.application import HEADERS, PAGES
from fireswarm.api.console.rendering import draw_diff, draw_markdown
from fireswarm.contracts.ports import Merge
from fireswarm.contracts.skills.artifact import ANSWER, Artifact
from fireswarm.contracts.skills.permissions import Approval
from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.swarm.outcome import Failed
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.storage.documents.paths import task_path
from tests.support.console import CONSOLE_SECRET, Browser, blocked, open_browser
from tests.support.fleet import environment, lay_out
from tests.support.swarm import done, open_test_swarm

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PAYLOADS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "javascript:alert(1)",
    "[click](javascript:alert(1))",
    "![x](https://evil.example/p.png)",
    "{{ 7 * 7 }}{% raw %}",
    "</textarea></pre><iframe src=//evil.example>",
    "<a href='data:text/html,<script>alert(1)</script>'>x</a>",
    "\u202etxt.exe \u2066hidden\u2069 \U000e0041",
)


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    async with open_test_swarm(session="s1") as swarm, open_browser(swarm) as opened:
        yield opened


async def test_link_works_once_and_gives_a_cookie_that_scripts_and_other_sites_cannot_use(browser: Browser) -> None:
    secret = browser.console.entrance.new_link()
    async with httpx2.AsyncClient(transport=browser.transport, base_url="http://localhost") as other:
        preview = await other.head(browser.console.link("", secret))  # as a program that previews links sends it
        assert (preview.status_code, dict(other.cookies)) == (200, {})
        assert (await other.get("/ui/")).status_code == 401
        entered = await other.get(browser.console.link("", secret))
        cookie = entered.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=strict" in cookie and "path=/ui" in cookie
        assert secret not in entered.headers["location"]
        assert (await other.get("/ui/")).status_code == 200
    async with httpx2.AsyncClient(transport=browser.transport, base_url="http://localhost") as third:
        assert (await third.get(browser.console.link("", secret))).status_code == 401
        assert (await third.get("/ui/events")).status_code == 401


@pytest.mark.parametrize("path", [*(path for path in PAGES if "{" not in path), "/nothing"])
async def test_every_page_has_the_headers_that_keep_foreign_code_out(browser: Browser, path: str) -> None:
    answer = await browser.client.get(f"/ui{path}")
    assert answer.status_code == (404 if path == "/nothing" else 200)
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert "unsafe" not in HEADERS["Content-Security-Policy"]
    assert not re.search(r"<script(?![^>]*src=\"/ui/static/)|<style|style=|\son\w+=", answer.text)


@pytest.mark.parametrize(
    ("form", "headers"),
    [
        ({"token": "x" * 43}, {}),
        ({}, {}),
        (None, {"Origin": "https://evil.example"}),
        (None, {"Sec-Fetch-Site": "cross-site"}),
        (None, {"Origin": "null"}),
    ],
)
async def test_form_of_another_site_changes_nothing(
    browser: Browser, form: dict[str, str] | None, headers: dict[str, str]
) -> None:
    [token] = set(re.findall(r'name="token" value="([^"]+)"', await browser.page("/new")))
    sent = {"objective": "forged", **({"token": token} if form is None else form)}
    assert (await browser.client.post("/ui/tasks", data=sent, headers=headers)).status_code == 403
    assert await browser.swarm.client.tasks() == []


async def test_name_of_another_host_is_refused(browser: Browser) -> None:
    assert (await browser.client.get("/ui/", headers={"Host": "evil.example"})).status_code == 421


async def test_viewer_looks_and_changes_nothing() -> None:
    async with open_test_swarm(session="s1") as swarm, open_browser(swarm, ConsoleRole.VIEWER) as viewer:
        task = await swarm.submit("look at me", role="scout")
        assert "look at me" in await viewer.page("/tasks")
        assert (await viewer.send(f"/tasks/{task.task_id}/cancel")).status_code == 403
        assert (await viewer.send("/tasks", objective="another")).status_code == 403
        assert "only look" in await viewer.page("/new", 422)
        assert [(found.objective, found.status) for found in await swarm.client.tasks()] == [
            ("look at me", TaskStatus.QUEUED)
        ]


@pytest.mark.parametrize("payload", PAYLOADS)
async def test_words_of_strangers_stay_words_on_every_page(browser: Browser, payload: str) -> None:
    swarm = browser.swarm
    task = await blocked(swarm, Question(name="ask", type="string", description=payload))
    fields = {
        "objective": payload,
        "summary": payload,
        "error": payload,
        "plan_key": payload,
        "context": {"a": payload},
    }
    answer = Artifact(type=ANSWER, name=payload, value=payload)
    result = {"summary": payload, "artifacts": [answer.model_dump(mode="json")], "insights": [payload]}
    child = await swarm.submit(f"{payload} below", role="scout")
    below = {"parent_task_id": task.task_id, "trace": {"chain_id": task.trace.chain_id}}
    await swarm.store.commit([Merge(task_path(task.task_id), {**fields, "result": result})])
    await swarm.store.commit([Merge(task_path(child.task_id), below)])
    for path in ("/", "/tasks", "/inbox", f"/tasks/{task.task_id}"):
        page = await browser.page(path)
        for bad in ("<script>alert", "<img", "<svg onload", "<iframe", 'href="javascript:', 'href="data:', "\u202e"):
            assert bad not in page, path
        assert "49{" not in page


async def test_objective_is_drawn_with_what_waits_for_what_and_when_it_ran(browser: Browser) -> None:
    swarm = browser.swarm
    root = await swarm.submit("the whole", role="architect")
    first = await swarm.submit("measure <it>", role="scout")
    second = await swarm.submit("compare", role="scout", depends_on=[first.task_id])
    below = {"parent_task_id": root.task_id, "trace": {"chain_id": root.trace.chain_id}}
    await swarm.store.commit([Merge(task_path(task.task_id), below) for task in (first, second)])
    await swarm.clock.advance(10)
    page = await browser.page(f"/tasks/{second.task_id}")
    assert page.count('class="arrow"') == 1 and page.count('class="arrow planned"') == 1
    assert page.count('<g class="box ') == 3 and page.count('class="bar waits"') == 3
    assert "measure &lt;it&gt;" in page and "measure <it>" not in page
    alone = await swarm.submit("alone", role="scout")
    assert 'id="plan"' not in await browser.page(f"/tasks/{alone.task_id}")


async def test_secrets_are_shown_on_no_page(browser: Browser) -> None:
    task = await browser.swarm.submit(f"use {CONSOLE_SECRET}", role="scout", context={"password": CONSOLE_SECRET})
    for path in ("/", "/tasks", f"/tasks/{task.task_id}"):
        assert CONSOLE_SECRET not in await browser.page(path)


async def test_objective_of_a_form_is_submitted_once(browser: Browser) -> None:
    first = await browser.send("/tasks", objective="Count\r\nthe lines", role="scout", priority="7", review_plan="yes")
    assert first.status_code == 303 and first.headers["location"].partition(".")[0].endswith("?done=submitted")
    again = await browser.send("/tasks", objective="Count\r\nthe lines", role="scout")
    assert again.headers["location"].partition(".")[0].endswith("?done=known")
    [task] = await browser.swarm.client.tasks()
    assert (task.objective, task.priority, task.review_plan) == ("Count\nthe lines", 7, True)
    assert (task.created_by, task.assigned_to) == ("console", "scout")


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"objective": ""}, "objective"),
        ({"objective": "x", "role": "nobody"}, "nobody"),
        ({"objective": "x", "priority": "many"}, "priority"),
    ],
)
async def test_unfit_objective_is_refused_with_the_reason(browser: Browser, form: dict[str, str], said: str) -> None:
    answer = await browser.send("/tasks", **form)
    assert answer.status_code == 422 and said in answer.text
    assert await browser.swarm.client.tasks() == []


async def test_questions_are_answered_with_their_types(browser: Browser) -> None:
    asked = (
        Question(name="count", type="integer", description="how many"),
        Question(name="color", type="string", description="which", allowed={"enum": ["red", "blue"]}),
        Question(name="sure", type="boolean", description="really"),
    )
    task = await blocked(browser.swarm, *asked)
    page = await browser.page("/inbox")
    names = re.findall(r'name="(answer-[^"]+)"', page)
    assert len(names) == 3 and "(1)" in page
    wrong = await browser.send(
        f"/tasks/{task.task_id}/answer", **dict(zip(names, ("many", "red", "true"), strict=True))
    )
    assert wrong.status_code == 422 and "count" in wrong.text
    sent = await browser.send(
        f"/tasks/{task.task_id}/answer", back="inbox", **dict(zip(names, ("3", "red", "true"), strict=True))
    )
    assert sent.headers["location"].startswith("/ui/inbox?done=answered.")
    answered = await browser.swarm.client.get(task)
    assert answered.answers == {"count": 3, "color": "red", "sure": True} and answered.status is TaskStatus.QUEUED
    late = await browser.send(f"/tasks/{task.task_id}/answer", **{names[0]: "4"})
    assert late.status_code == 422 and "not open any more" in late.text


@pytest.mark.parametrize(
    ("action", "given", "also"), [("approve", "yes", {}), ("deny", "no", {"reason": "not this folder"})]
)
async def test_request_is_decided_once_by_its_id(
    browser: Browser, action: str, given: str, also: dict[str, str]
) -> None:
    approval = Approval(tool="run_command", shown="rm -rf build", because="it writes", diff="--- a\n+++ b\n-old\n+new")
    asked = (
        Question(name="approval", type="string", description="may it", approval=approval, step="approve/1"),
        Question(name="reason", type="string", description="why not", required=False, step="approve/1"),
    )
    task = await blocked(browser.swarm, *asked, reason=StatusReason.APPROVAL_REQUIRED)
    page = await browser.page("/inbox")
    assert "rm -rf build" in page and '<span class="added">+new</span>' in page
    assert "answer-" not in page, "the reason is no question of its own"
    [question] = set(re.findall(r'name="question" value="([^"]+)"', page))
    without = await browser.send(f"/tasks/{task.task_id}/{action}")
    assert without.status_code == 422
    sent = await browser.send(f"/tasks/{task.task_id}/{action}", question=question, **also)
    assert sent.status_code == 303
    assert (await browser.swarm.client.get(task)).answered == {"approve/1": {"approval": given, **also}}
    assert (await browser.send(f"/tasks/{task.task_id}/{action}", question=question)).status_code in (409, 422)


async def test_task_that_gave_up_is_tried_again_from_the_inbox(browser: Browser) -> None:
    task = await browser.swarm.submit("fails", role="scout", max_attempts=1)
    await browser.swarm.settle(await browser.swarm.claim_one(), Failed("broken"))
    assert "broken" in await browser.page("/inbox")
    sent = await browser.send(f"/tasks/{task.task_id}/retry", back="inbox")
    assert sent.headers["location"].startswith("/ui/inbox?done=retry.")
    assert (await browser.swarm.client.get(task)).status is TaskStatus.QUEUED
    assert "Nothing waits for a person" in await browser.page("/inbox")


async def test_answer_is_drawn_and_its_file_is_saved_and_not_shown(browser: Browser) -> None:
    task = await browser.swarm.submit("answers", role="scout")
    page = Artifact(type="page", name="page.html", value="<script>alert(1)</script>")
    result = done("short", artifacts=(Artifact(type=ANSWER, name="answer", value="# Title\n\n**bold**"), page))
    await browser.swarm.settle(await browser.swarm.claim_one(), result)
    shown = await browser.page(f"/tasks/{task.task_id}")
    assert "<h1>Title</h1>" in shown and "<strong>bold</strong>" in shown
    saved = await browser.client.get(f"/ui/tasks/{task.task_id}/files/1")
    assert saved.headers["content-disposition"].startswith("attachment") and "<script>" in saved.text
    assert await browser.page(f"/tasks/{task.task_id}/files/9", 404)


async def test_open_page_hears_of_a_change_and_the_store_is_read_only_then(browser: Browser) -> None:
    feed = browser.console.feed
    async with anyio.create_task_group() as group:
        group.start_soon(feed.follow)
        assert feed.open_page("a browser")
        version = await feed.changed_since(0)  # the first answer of the listener
        before = browser.swarm.store.usage.reads
        await browser.page("/")
        await browser.page("/")
        assert browser.swarm.store.usage.reads - before < 40
        await browser.swarm.submit("something new", role="scout")
        with anyio.fail_after(60):
            assert await feed.changed_since(version) > version
        feed.close_page("a browser")
        group.cancel_scope.cancel()


async def test_counts_are_read_once_for_all_pages(browser: Browser) -> None:
    await browser.page("/")
    before = browser.swarm.store.usage.copy()
    await browser.page("/agents")
    await browser.page("/spend")
    await browser.page("/spend")
    assert browser.swarm.store.usage.minus(before).reads <= 6


@pytest.mark.parametrize("path", ["/tasks/nothing", "/runs/nothing", "/tasks?status=odd", "/tasks?cursor=odd"])
async def test_unknown_thing_is_said_on_a_page(browser: Browser, path: str) -> None:
    answer = await browser.client.get(f"/ui{path}")
    assert answer.status_code in (404, 422) and "Go to the overview" in answer.text


def test_diff_and_markdown_have_no_markup_of_their_text() -> None:
    assert draw_diff("+<b>") == '<span class="added">+&lt;b&gt;</span>'
    assert "<img" not in draw_markdown("![x](https://evil.example/x.png) <img src=x>")
    assert 'href="https://example.org"' in draw_markdown("[x](https://example.org)")


def test_fleet_serves_the_console_and_stops_with_a_page_open(tmp_path: Path) -> None:
    lay_out(tmp_path, {}, settings={"worker": {"drain_seconds": 1}})
    command = [sys.executable, "-m", "fireswarm.cli", "up", "--roles", "memory", "--console", "0"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            link = next(found[0] for line in process.stdout if (found := re.search(r"http://127\S+", line)))
            with httpx2.Client(follow_redirects=True) as client:
                assert "Nothing waits for a person" in client.get(link).text
                with client.stream("GET", link.partition("/enter")[0] + "/events") as events:
                    assert next(events.iter_lines()) == "retry: 2000"
                    process.send_signal(signal.SIGINT)
                    assert process.wait(120) == 0
        finally:
            process.kill()
