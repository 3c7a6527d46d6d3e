"""Agents, their logs and orders, and the catalog of skills in the console."""

from __future__ import annotations

import re
import socket
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fireswarm.api.console.access import ConsoleRole
from fireswarm.api.console.pages.agents import LOG_LINES
from fireswarm.contracts.ports import Merge
from fireswarm.contracts.swarm.status import AgentState, AgentStatus
from fireswarm.skills.packs.catalog import load_catalog
from tests.support.console import CONSOLE_SECRET, Browser, open_browser
from tests.support.swarm import SwarmRig, open_test_swarm

pytestmark = pytest.mark.anyio

PLACE = "1000.5ab1.scout-1"


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    async with open_test_swarm(session="s1") as swarm, open_browser(swarm) as opened:
        yield opened


async def beat(swarm: SwarmRig, agent_id: str = "scout-1", **fields: Any) -> None:
    now = swarm.clock.now()
    given = {"role": "scout", "session_hash": "s1", "status": AgentState.IDLE, "created_at": now, **fields}
    await swarm.core.heartbeats.beat(AgentStatus.model_validate({"agent_id": agent_id, **given}))


def write_log(swarm: SwarmRig, text: str, name: str = "scout-1") -> Path:
    path = swarm.core.settings.path(f".fireswarm/logs/{name}.log")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


async def test_role_is_paused_resumed_and_drained_and_every_page_that_tells_why_says_so(browser: Browser) -> None:
    swarm = browser.swarm
    await beat(swarm)
    task = await swarm.submit("waits for scout")
    sent = await browser.send("/agents", name="scout", do="pause", reason="<b>the disk</b>")
    assert sent.status_code == 303
    assert "It claims no more tasks" in (await browser.client.get(sent.headers["location"])).text
    agents = await browser.page("/agents")
    assert "The role is paused by an operator: &lt;b&gt;the disk" in agents and "<b>the disk" not in agents
    assert "<td>paused</td>" in agents and "Resume scout" in agents
    assert "paused by an operator" in await browser.page(f"/tasks/{task.task_id}")
    assert "Its role is paused by an operator" in text_of(await browser.page("/agents/scout-1"))
    assert (await browser.send("/agents", name="scout", do="resume")).status_code == 303
    assert "paused by" not in await browser.page(f"/tasks/{task.task_id}")
    assert (await browser.send("/agents", name="scout-1", do="drain")).status_code == 303
    page = text_of(await browser.page("/agents/scout-1"))
    assert "This agent is drained by an operator" in page and "Resume scout-1" in page
    assert "Resume scout " not in text_of(await browser.page("/agents"))


async def test_order_of_a_viewer_to_nobody_or_without_a_word_changes_nothing(browser: Browser) -> None:
    for form, status in (({"name": "nobody", "do": "pause"}, 404), ({"name": "scout", "do": "stop"}, 422)):
        assert (await browser.send("/agents", **form)).status_code == status
    assert (await browser.client.post("/ui/agents", data={"name": "scout", "do": "pause"})).status_code == 403
    async with open_browser(browser.swarm, ConsoleRole.VIEWER) as viewer:
        assert (await viewer.send("/agents", name="scout", do="pause")).status_code == 403
        assert "Pause scout" not in await viewer.page("/agents")
    assert await browser.swarm.client.orders.read() == []


async def test_log_of_an_agent_is_shown_without_secrets_escaped_and_bounded(browser: Browser) -> None:
    swarm = browser.swarm
    await beat(swarm, place=PLACE, host=socket.gethostname())
    lines = [f"line {number} <script>alert(1)</script> \u202e" for number in range(5_000)]
    write_log(swarm, "\n".join([*lines, f"token {CONSOLE_SECRET}", "x" * 50_000]) + "\n")
    page = await browser.page("/agents/scout-1")
    assert "line 4999" in page and f"line {5_000 - LOG_LINES}" not in page and "x" * 2_001 not in page
    assert CONSOLE_SECRET not in page and "<script>alert" not in page and "\u202e" not in page
    assert "Decisions of the model in a turn" in page


@pytest.mark.parametrize(
    ("place", "host", "said"),
    [
        ("", "", "kept nowhere"),
        ("../../etc/passwd", "", "kept nowhere"),
        ("1000.5ab1.../../x-1", "", "kept nowhere"),
        (PLACE, "another-machine", "on the machine another-machine"),
        ("1000.5ab1.scout-9", "", "cannot be read here"),
        ("1000.5ab1.linked-1", "", "cannot be read here"),
    ],
)
async def test_log_that_is_elsewhere_is_explained_and_no_other_file_is_read(
    browser: Browser, tmp_path: Path, place: str, host: str, said: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("private words")
    write_log(browser.swarm, "own words").with_name("linked-1.log").symlink_to(secret)
    await beat(browser.swarm, place=place, host=host or socket.gethostname())
    page = await browser.page("/agents/scout-1")
    assert said in page and "private words" not in page and "own words" not in page


async def test_agent_without_a_heartbeat_or_with_a_malformed_one_has_no_page(browser: Browser) -> None:
    await browser.page("/agents/nobody", 404)
    await browser.swarm.store.commit([Merge("mcp_memory/status-odd", {"type": "agent_status", "role": 7})])
    await browser.page("/agents/odd", 404)


@pytest.fixture
def packs(tmp_path: Path) -> Path:
    texts = {
        "count-lines": "---\nname: count-lines\ndescription: Counts the lines of text files.\n---\n# Count\n",
        "paint-boats": "---\nname: paint-boats\ndescription: Paints boats <b>blue</b>.\nodd-key: 3\n---\n# Paint\n",
    }
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(text)
    return tmp_path


async def test_catalog_is_shown_with_findings_and_ranks_a_query_without_a_model(packs: Path) -> None:
    async with open_test_swarm(session="s1") as swarm:
        swarm.core = replace(swarm.core, catalog=load_catalog([packs]))
        async with open_browser(swarm, ConsoleRole.VIEWER) as browser:
            page = await browser.page("/skills")
            assert "Counts the lines" in page and "&lt;b&gt;blue" in page and "<b>blue" not in page
            [row] = re.findall(r"<tr><td>paint-boats</td>.*?</tr>", page, re.DOTALL)
            assert "odd-key" in row and "warning" in row
            [row] = re.findall(r"<tr><td>count-lines</td>.*?</tr>", page, re.DOTALL)
            assert "warning" not in row
            ranked = await browser.page("/skills?query=how+many+lines+has+this+text")
            first = re.findall(r'id="ranked".*?<tbody>\s*<tr><td>([^<]+)', ranked, re.DOTALL)
            assert first == ["count-lines"] and "No model was asked" in ranked
            for card in swarm.core.roles:
                assert f"<tr><td>{card}</td>" in page
            assert "do not reach the network" in text_of(page)


async def test_page_of_skills_is_read_again_after_a_minute_only(packs: Path) -> None:
    async with open_test_swarm(session="s1") as swarm:
        swarm.core = replace(swarm.core, catalog=load_catalog([packs]))
        async with open_browser(swarm) as browser:
            assert "odd-key" in await browser.page("/skills")
            (packs / "paint-boats" / "SKILL.md").unlink()
            assert "odd-key" in await browser.page("/skills"), "the findings are kept"
            browser.console.feed.forget()
            assert "unreadable" in await browser.page("/skills") or "missing" in await browser.page("/skills")


async def test_secret_at_a_cut_of_a_log_is_not_shown_in_part(browser: Browser) -> None:
    swarm = browser.swarm
    await beat(swarm, place=PLACE, host=socket.gethostname())
    key = [
        "-----BEGIN PRIVATE KEY-----",
        *(f"{number:02}{'A' * 62}" for number in range(26)),
        "-----END PRIVATE KEY-----",
    ]
    for lines in (
        ["x" * 1_980 + CONSOLE_SECRET],
        ["x" * 1_980 + " ghp_A1b2C3d4A1b2C3d4A1b2C3d4A1b2C3d4A1b2"],
        [*key, *(f"line {number}" for number in range(LOG_LINES - 15))],
        ["x" * 150_000 + CONSOLE_SECRET],
    ):
        write_log(swarm, "\n".join(lines) + "\n")
        page = await browser.page("/agents/scout-1")
        for part in (CONSOLE_SECRET[:8], "ghp_A1", "25AAAAAA"):
            assert part not in page, lines[0][:40]
        assert "redacted" in page or len(lines[0]) > LOG_LINES * 100


async def test_pause_of_a_role_is_shown_for_its_agents_alone(browser: Browser) -> None:
    swarm = browser.swarm
    await beat(swarm)
    await swarm.client.orders.pause("memory")
    assert "<td>paused</td>" not in await browser.page("/agents")
    assert "paused by an operator" not in await browser.page("/agents/scout-1")
    await swarm.client.orders.pause("scout")
    assert "<td>paused</td>" in await browser.page("/agents")


async def test_drained_role_says_so_and_resume_does_not_promise_work(browser: Browser) -> None:
    swarm = browser.swarm
    await swarm.client.orders.drain("scout")
    task = await swarm.submit("waits")
    assert "none lives: its processes were drained by an operator, at" in await browser.page(f"/tasks/{task.task_id}")
    sent = await browser.send("/agents", name="scout", do="resume")
    assert "done=resumed_drained." in sent.headers["location"]


async def test_orders_to_many_agents_do_not_hide_one_to_a_role(browser: Browser) -> None:
    swarm = browser.swarm
    for number in range(205):
        await beat(swarm, agent_id=f"scout-{number}")
        await swarm.client.orders.drain(f"scout-{number}")
    await swarm.client.orders.pause("scout")
    assert any(order.role == "scout" and not order.subject for order in await swarm.client.orders.read())
