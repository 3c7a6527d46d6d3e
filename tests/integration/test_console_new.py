"""New objectives in the console: every field reaches the task, files come along, and nothing typed is lost."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime

import httpx2
import pytest

from fireswarm.api.console.access import ConsoleRole
from fireswarm.api.console.forms import MAX_FORM_BYTES, MAX_TEXT_BYTES
from fireswarm.contracts.swarm.task import Task
from tests.support.console import Browser, open_browser
from tests.support.swarm import open_test_swarm

pytestmark = pytest.mark.anyio


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    async with open_test_swarm(session="s1") as swarm, open_browser(swarm) as opened:
        yield opened


async def send(browser: Browser, files: list[tuple[str, bytes]], **form: str) -> httpx2.Response:
    """Send the form as a browser does: with its files, in parts."""
    parts = [("files", (name, content, "text/csv")) for name, content in files]
    return await browser.client.post("/ui/tasks", data={"token": browser.token, **form}, files=parts)


async def task_of(browser: Browser, answer: httpx2.Response) -> Task:
    assert answer.status_code == 303, answer.text
    return await browser.swarm.task(answer.headers["location"].partition("?")[0].rpartition("/")[2])


async def test_every_field_of_the_form_reaches_the_task(browser: Browser) -> None:
    first = await browser.swarm.submit("comes first")
    answer = await send(
        browser,
        [],
        objective="Sum\r\nup",
        role="scout",
        skill="noop",
        model="claude-x",
        effort="low",
        priority="9",
        deadline="2126-01-02T03:04",
        depends_on=f"{first.task_id}, {first.task_id}",
        expected_outcome="a sum",
        usd="2.5",
        timeout_seconds="30",
        read_only="yes",
        context='{"month": "2026-10"}',
        again="second",
    )
    task = await task_of(browser, answer)
    assert (task.objective, task.skill, task.model, task.effort) == ("Sum\nup", "noop", "claude-x", "low")
    assert (task.priority, task.deadline) == (9, datetime(2126, 1, 2, 3, 4, tzinfo=UTC))
    assert (task.depends_on, task.expected_outcome) == ((first.task_id,), "a sum")
    assert task.budget is not None and task.budget.usd == 2.5
    assert (task.constraints.read_only, task.constraints.timeout_seconds) == (True, 30)
    assert (task.context, task.fresh_key) == ({"month": "2026-10"}, "second")


async def test_files_are_stored_and_the_same_form_is_one_task(browser: Browser) -> None:
    files = [("a.csv", b"x\n1\n"), ("b.csv", b"\x00\xff")]
    task = await task_of(browser, await send(browser, files, objective="read both", role="scout"))
    assert [item.name for item in task.attachments] == ["a.csv", "b.csv"]
    blobs = browser.swarm.core.blobs
    assert [await blobs.get(item.uri) for item in task.attachments] == [b"x\n1\n", b"\x00\xff"]
    again = await send(browser, files, objective="read both", role="scout")
    assert again.headers["location"].startswith(f"/ui/tasks/{task.task_id}?done=known.")
    assert len(await browser.swarm.client.tasks()) == 1


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\temp\\a.csv", "a.csv"),
        ("..", "file"),
        ("a\u202evsc.exe", "avsc.exe"),
        ("n" * 300 + ".csv", "n" * 96 + ".csv"),
    ],
)
async def test_name_of_a_file_is_its_last_part(browser: Browser, name: str, kept: str) -> None:
    task = await task_of(browser, await send(browser, [(name, b"1")], objective="look", role="scout"))
    [item] = task.attachments
    assert item.name == kept and await browser.swarm.core.blobs.get(item.uri) == b"1"


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"context": "[1]"}, "JSON object"),
        ({"context": "{" * 100_000}, "JSON object"),
        ({"deadline": "soon"}, "is no time"),
        ({"usd": "-1"}, "greater than 0"),
        ({"usd": "many"}, "as a number"),
        ({"usd": "nan"}, "greater than 0"),
        ({"depends_on": "nothing"}, "nothing"),
        ({"skill": "unknown-skill"}, "unknown-skill"),
        ({"effort": "huge"}, "effort"),
        ({"timeout_seconds": "-1"}, "whole number"),
        ({"path": "/nowhere/at/all"}, "does not exist"),
        ({"priority": "99"}, "priority"),
    ],
)
async def test_wrong_field_is_said_and_nothing_that_was_typed_is_lost(
    browser: Browser, form: dict[str, str], said: str
) -> None:
    sent = {"objective": "a long text", "role": "scout", "expected_outcome": "a good end", **form}
    answer = await send(browser, [("a.csv", b"1")], **sent)
    assert answer.status_code == 422 and said in answer.text
    assert "a long text</textarea>" in answer.text and 'value="a good end"' in answer.text
    assert "Choose the files again" in answer.text
    assert await browser.swarm.client.tasks() == []


async def test_form_that_is_too_large_or_broken_is_refused(browser: Browser) -> None:
    form = {"objective": "x", "role": "scout"}
    assert (await send(browser, [("a", b"1" * MAX_FORM_BYTES)], **form)).status_code == 413
    assert (await send(browser, [("a", b"1")] * 21, **form)).status_code == 422
    assert (await send(browser, [("a", b"1")], objective="x" * (MAX_TEXT_BYTES + 1))).status_code == 422
    assert (await browser.send("/tasks", objective="x" * (MAX_TEXT_BYTES + 1))).status_code == 422
    for content_type in ("multipart/form-data", "multipart/form-data; boundary=x"):
        headers = {"content-type": content_type}
        broken = await browser.client.post("/ui/tasks", content=b"--y\r\nnothing", headers=headers)
        assert broken.status_code in (403, 422), content_type
    assert await browser.swarm.client.tasks() == []


async def test_form_with_files_needs_its_token_and_an_operator(browser: Browser) -> None:
    form = {"objective": "x", "token": "wrong"}
    files = [("files", ("a.csv", b"1", "text/csv"))]
    assert (await browser.client.post("/ui/tasks", data=form, files=files)).status_code == 403
    async with open_browser(browser.swarm, ConsoleRole.VIEWER) as viewer:
        assert (await send(viewer, [("a.csv", b"1")], objective="x")).status_code == 403
        assert "may only look" in await viewer.page("/new", 422)
    assert await browser.swarm.client.tasks() == []
