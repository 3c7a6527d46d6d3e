"""The page of schedules: what it shows, what its buttons do, and a form that loses nothing."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from datetime import UTC, datetime

import pytest

from fireswarm.api.console.access import ConsoleRole
from fireswarm.storage.documents.paths import SCHEDULES
from tests.support.console import CONSOLE_SECRET, Browser, open_browser
from tests.support.schedules import MINUTE, by_hand, document, edit, every_minute, reading
from tests.support.swarm import open_test_swarm

pytestmark = pytest.mark.anyio

FORM = {"do": "set", "name": "report", "cron": "0 6 * * 1-5", "timezone": "Europe/Berlin", "role": "scout"}


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    async with open_test_swarm(session="s1") as swarm, open_browser(swarm) as opened:
        yield opened


def text_of(page: str) -> str:
    """The words of a page."""
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


async def test_a_schedule_is_shown_with_its_next_time_and_its_last_task(browser: Browser) -> None:
    swarm = browser.swarm
    assert "No schedules." in await browser.page("/schedules")
    await every_minute(swarm)
    swarm.clock.stand_still(MINUTE)
    await (await reading(swarm)).fire_once()
    task_id = (await document(swarm))["last_task_id"]
    browser.console.feed.forget()
    page = await browser.page("/schedules")
    assert f'href="/ui/tasks/{task_id}"' in page
    assert '<span class="status queued">queued</span>' in page
    shown = text_of(page)
    assert "report write it scout" in shown
    assert "Every minute * * * * * UTC" in shown
    assert "2026-01-01 00:02 UTC" in shown
    swarm.clock.stand_still(MINUTE)
    await (await reading(swarm)).fire_once()
    browser.console.feed.forget()
    assert "has not ended (queued)" in await browser.page("/schedules")
    assert 'href="/ui/schedules"' in await browser.page("/")
    one = await browser.page("/schedules/report")
    assert f'href="/ui/tasks/{task_id}"' in one and "has not ended (queued)" in one
    assert "it leaves the time out" in text_of(one)
    assert '<a href="/ui/schedules/report">report</a>' in await browser.page(f"/tasks/{task_id}")
    found = await browser.client.get("/ui/jump", params={"q": "repor"})
    assert found.headers["location"] == "/ui/schedules/report"
    assert "there is no schedule other" in await browser.page("/schedules/other", 404)
    await by_hand(swarm, "bad", cron="nonsense", task={"objective": "x"})
    assert "has to be minute, hour, day of month" in await browser.page("/schedules/bad", 422)


async def test_the_form_sets_a_schedule_and_changes_it(browser: Browser) -> None:
    swarm = browser.swarm
    sent = await browser.send("/schedules", **FORM, objective="Sum\r\nup", skill="noop")
    assert sent.status_code == 303, sent.text
    stored = await swarm.client.schedules.get("report")
    assert (stored.objective, stored.timing, stored.created_by) == ("Sum\nup", "0 6 * * 1-5 Europe/Berlin", "console")
    assert stored.next_at == datetime(2026, 1, 1, 5, tzinfo=UTC)
    twice = await browser.send("/schedules", **FORM, objective="other")
    assert twice.status_code == 422 and "there is a schedule report" in twice.text and ">other</textarea>" in twice.text
    await edit(swarm, task={"objective": "Sum up", "priority": 9, "context": {"path": "/srv"}})
    assert "Change report" in await browser.page("/schedules?name=report")
    change = {**FORM, "changes": "report", "name": "", "cron": "0 7 * * *", "objective": "Sum up", "overlap": "yes"}
    assert (await browser.send("/schedules", **change)).status_code == 303
    stored = await swarm.client.schedules.get("report")
    assert stored.task == {"objective": "Sum up", "priority": 9, "context": {"path": "/srv"}}
    assert (stored.cron, stored.overlap.value) == ("0 7 * * *", "allow")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"cron": "soon"}, "has to be minute, hour"),
        ({"timezone": "Berlin"}, "there is no time zone"),
        ({"objective": " "}, "say what is to be done"),
        ({"name": "a/b"}, "name is &#39;a/b&#39;: give a name of"),
        ({"skill": "no-such"}, "there is no skill"),
        ({"changes": "gone"}, "there is no schedule gone"),
    ],
)
async def test_a_form_with_a_fault_says_it_and_keeps_what_was_typed(
    browser: Browser, wrong: dict[str, str], told: str
) -> None:
    sent = await browser.send("/schedules", **{**FORM, "objective": "keep this", **wrong})
    assert sent.status_code == 422
    assert told in sent.text
    assert "objective" in wrong or ">keep this</textarea>" in sent.text
    assert await browser.swarm.client.schedules.list() == []


async def test_a_form_for_a_new_schedule_replaces_none_also_no_malformed_one(browser: Browser) -> None:
    await by_hand(browser.swarm, "typo", cron="soon", task={"objective": "mine"})
    sent = await browser.send("/schedules", **{**FORM, "name": "typo", "objective": "other"})
    assert sent.status_code == 422 and "there is a schedule typo" in sent.text
    assert (await document(browser.swarm, "typo"))["task"] == {"objective": "mine"}
    assert (await browser.send("/schedules", **{**FORM, "name": "a/b", "objective": "x"})).status_code == 422


async def test_buttons_pause_resume_run_and_remove(browser: Browser) -> None:
    swarm = browser.swarm
    await every_minute(swarm)
    for do, paused in (("pause", True), ("resume", False)):
        answer = await browser.send("/schedules", do=do, name="report")
        assert answer.headers["location"].startswith(f"/ui/schedules?done=schedule_{do}")
        assert (await swarm.client.schedules.get("report")).paused is paused
        assert ("paused</td>" in await browser.page("/schedules")) is paused
    ran = await browser.send("/schedules", do="run", name="report")
    [task] = await swarm.client.tasks()
    assert ran.headers["location"].startswith(f"/ui/tasks/{task.task_id}?done=submitted.")
    assert (await browser.send("/schedules", do="remove", name="report")).status_code == 303
    assert (await browser.send("/schedules", do="remove", name="report")).status_code == 404
    assert (await browser.send("/schedules", do="burn", name="report")).status_code == 422
    assert "No schedules." in await browser.page("/schedules")


async def test_a_malformed_schedule_is_named_and_can_be_removed(browser: Browser) -> None:
    await by_hand(browser.swarm, "odd", cron="at noon", task={"objective": "<b>x</b>"})
    await every_minute(browser.swarm)
    page = await browser.page("/schedules")
    assert "agent_schedules/odd is not a schedule: cron" in page
    assert "<strong>report</strong>" in page
    assert (await browser.send("/schedules", do="remove", name="odd")).status_code == 303
    assert (await browser.swarm.store.get(f"{SCHEDULES}/odd")).data is None


async def test_a_secret_is_neither_shown_nor_lost(browser: Browser) -> None:
    swarm = browser.swarm
    await swarm.client.schedules.set("report", "0 6 * * *", f"use {CONSOLE_SECRET}", role="scout")
    page = await browser.page("/schedules?name=report")
    assert CONSOLE_SECRET not in page
    [shown] = re.findall(r'<textarea id="objective"[^>]*>(.*?)</textarea>', page)
    change = {**FORM, "changes": "report", "objective": shown}
    assert (await browser.send("/schedules", **change)).status_code == 303
    assert (await swarm.client.schedules.get("report")).objective == f"use {CONSOLE_SECRET}"
    refused = await browser.send("/schedules", **{**change, "objective": f"{shown} twice"})
    assert refused.status_code == 422


async def test_who_may_only_look_sees_no_buttons(browser: Browser) -> None:
    await every_minute(browser.swarm)
    async with open_browser(browser.swarm, ConsoleRole.VIEWER) as viewer:
        page = await viewer.page("/schedules")
        assert "<strong>report</strong>" in page and "<button" not in page.partition("<main")[2]
        assert (await viewer.send("/schedules", do="pause", name="report")).status_code == 403


async def test_schedules_are_listed_in_the_order_of_their_next_times(browser: Browser) -> None:
    for name, cron in (("a", "0 7 * * *"), ("b", "0 6 * * *"), ("c", "0 8 * * *")):
        await browser.swarm.client.schedules.set(name, cron, "x", role="scout")
    await browser.swarm.client.schedules.pause("b")
    page = await browser.page("/schedules")
    assert re.findall(r'href="/ui/schedules/(\w)"', page) == ["a", "c", "b"]


async def test_a_far_next_time_breaks_no_page(browser: Browser) -> None:
    swarm = browser.swarm
    for zone, at in (("Pacific/Kiritimati", datetime(9999, 12, 31, 23, 59)), ("America/New_York", datetime(1, 1, 1))):
        await swarm.client.schedules.set("report", "* * * * *", "x", role="scout", timezone=zone)
        await edit(swarm, next_at=at.replace(tzinfo=UTC))
        browser.console.feed.forget()
        for path in ("/schedules", "/schedules/report"):
            assert f"{at:%m-%d %H:%M} UTC" in await browser.page(path)
