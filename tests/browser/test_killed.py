"""A person acts in a browser while role processes and the store are killed: the documents are right afterwards."""

from __future__ import annotations

import signal
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from playwright.sync_api import Browser, expect

from tests.support.fleet import role_processes, with_signal
from tests.support.screens import SKILLS, WAIT_MS, Place, lay_out, serve_place, watched

expect.set_options(timeout=WAIT_MS)


def kill(place: Place, *, all_of_it: bool) -> None:
    """End the role processes, or the whole fleet with its store and console, as a crash does."""
    assert place.fleet is not None
    family = [place.fleet, *place.fleet.children(recursive=True)] if all_of_it else role_processes(place.fleet)
    assert family
    for each in family:
        with_signal(each, signal.SIGKILL)
    psutil.wait_procs(family[1:], timeout=30)


def test_answer_and_cancel_hold_while_all_is_killed(browser: Browser, tmp_path: Path) -> None:
    lay_out(tmp_path, SKILLS, settings={"worker": {"drain_seconds": 1}})
    with serve_place(tmp_path, "scout") as place:
        asks = place.submit("paint the boat", "scout", "ask")
        waits = place.submit("nobody does this", "memory", "note")
        with watched(place, browser) as console:
            page = console.page
            console.open(f"tasks/{asks}")
            page.get_by_label("Which color?").select_option("blue")
            kill(place, all_of_it=False)
            page.get_by_role("button", name="Answer").click()
            expect(page.get_by_text("painted it blue").first).to_be_visible()
            console.open(f"tasks/{waits}")
            page.locator("#actions summary", has_text="Cancel").click()
            page.get_by_role("button", name="Cancel it with all tasks below, for good").click()
            expect(page.locator("h1 .status")).to_have_text("canceled")
            more = place.submit("paint the oars", "scout", "ask")
            console.open(f"tasks/{more}")
            expect(page.get_by_label("Which color?")).to_be_visible()
            page.get_by_label("Which color?").select_option("red")
            kill(place, all_of_it=True)
            expect(page.get_by_text("The console does not answer.")).to_be_visible()
            expect(page.get_by_label("Which color?")).to_have_value("red")
            port = urlsplit(place.link).port
            assert port is not None
            (tmp_path / "up.log").unlink()
            with serve_place(tmp_path, "scout", port=port) as again:
                expect(page.get_by_text("The console was started again: open its new link.")).to_be_visible()
                page.goto(again.link)
                page.goto(f"{again.address}tasks/{more}")
                page.get_by_label("Which color?").select_option("red")
                page.get_by_role("button", name="Answer").click()
                expect(page.get_by_text("painted it red").first).to_be_visible()
                assert [again.status(task) for task in (asks, waits, more)] == ["done", "canceled", "done"]
                assert console.faults == []
