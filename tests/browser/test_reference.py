"""The page of the API's reference in Chromium: wide and narrow, light and dark."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.support.fleet import environment, lay_out
from tests.support.screens import WAIT_MS, Watched

TOKEN = "a-token-for-the-reference-page"
LOOKS: dict[str, Any] = {
    "wide and light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "narrow and dark": {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark"},
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """Serve the API of an empty swarm; its address."""
    folder: Path = tmp_path_factory.mktemp("place")
    lay_out(folder, {"nothing": ""}, settings={"store": {"uri": "memory"}})
    env = environment() | {"FIRESWARM_API_TOKEN": TOKEN, "COLUMNS": "160"}
    command = [sys.executable, "-m", "fireswarm.cli", "api", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True) as api:
        try:
            assert api.stdout is not None
            yield api.stdout.readline().split()[2].removesuffix("/v1,")
        finally:
            api.kill()


@pytest.mark.parametrize("look", LOOKS)
def test_reference_holds_the_rules_of_the_console(look: str, address: str, browser: Browser) -> None:
    context = browser.new_context(extra_http_headers={"Authorization": f"Bearer {TOKEN}"}, **LOOKS[look])
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    seen = Watched(page, f"{address}/ui/")
    seen.observe()
    answer = page.goto(f"{address}/docs")
    assert answer is not None and answer.ok
    seen.check()
    page.get_by_role("link", name="list_tasks", exact=True).click()
    section = page.locator("#list_tasks")
    expect(section).to_be_in_viewport()
    expect(section.get_by_text("words of the objective")).to_be_visible()
    section.get_by_role("link", name="TaskPage").click()
    expect(page.locator("#schema-TaskPage")).to_be_in_viewport()
    assert section.locator("pre").evaluate("each => getComputedStyle(each).whiteSpace") == "pre-wrap", "no style"
    context.close()
