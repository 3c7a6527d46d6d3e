"""A person acts in a browser while role processes and the store are killed: the documents are right afterwards."""

from __future__ import annotations

import json
import signal
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from playwright.sync_api import Browser, expect

from tests.support.fleet import role_processes, with_signal
from tests.support.patience import PATIENCE_SECONDS
from tests.support.screens import SKILLS, WAIT_MS, Place, Watched, lay_out, serve_place, watched
from tests.support.walk import LOG, MENDED, VARIABLES, serving_models, walk_settings

expect.set_options(timeout=WAIT_MS)
pytestmark = pytest.mark.timeout(4 * WAIT_MS / 1_000)


def kill(place: Place, *, all_of_it: bool) -> None:
    """End the role processes, or the whole fleet with its store and console, as a crash does."""
    assert place.fleet is not None
    never, deadline = threading.Event(), time.monotonic() + PATIENCE_SECONDS
    while not (roles := role_processes(place.fleet)) and time.monotonic() < deadline:
        never.wait(0.05)  # no event tells when another process has its name
    family = [place.fleet, *place.fleet.children(recursive=True)] if all_of_it else roles
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


def shown(place: Place, task: str) -> dict[str, Any]:
    return dict(json.loads(place.command("show", task, "--json"))["task"])


def decide(place: Place, console: Watched, walk: str, lost: str) -> None:
    """Allow an action, change a plan, and see a task give up; each click comes after a kill."""
    page = console.page
    console.open(f"tasks/{walk}")
    expect(page.get_by_text(LOG).first).to_be_visible()
    kill(place, all_of_it=False)
    page.get_by_role("button", name="Allow once").click()
    page.get_by_role("link", name="See its graph, or change it").click()
    plan = page.get_by_label("Change, add or delete tasks")
    plan.fill(plan.input_value() + "- key: b\n  assigned_to: scout\n  objective: another part of the walk\n")
    page.get_by_role("button", name="Check and draw it").click()
    expect(page.locator("g.box")).to_have_count(2)
    kill(place, all_of_it=False)
    page.get_by_role("button", name="Approve this plan").click()
    expect(page.locator("h1 .status")).to_have_text("done")
    console.open(f"tasks/{lost}")
    expect(page.locator("h1 .status.gave-up")).to_be_visible()
    MENDED.set()
    kill(place, all_of_it=True)
    expect(page.get_by_text("The console does not answer.")).to_be_visible()
    assert console.faults == []


def mend_and_fork(place: Place, console: Watched, walk: str, lost: str) -> str:
    """Try the task again that gave up, and fork the run of the other; returns the id of the fork."""
    page = console.page
    console.open(f"tasks/{lost}")
    kill(place, all_of_it=False)
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("h1 .status")).to_have_text("done")
    console.open(f"tasks/{walk}/conversation")
    page.locator("#row-2").get_by_role("link", name="fork before it").click()
    page.get_by_label("Say something to its model first").fill("take another way")
    kill(place, all_of_it=False)
    page.get_by_role("button", name="Fork", exact=True).click()
    expect(page.locator("h1 .status")).to_have_text("done")
    fork = page.url.partition("/tasks/")[2].partition("?")[0]
    console.check()
    return fork


def test_approval_changed_plan_dead_letter_and_fork_hold_while_all_is_killed(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    with serving_models() as url:
        lay_out(tmp_path, {}, settings=walk_settings(url))
        (tmp_path / "walk").mkdir()
        here = ("--context", f"path={tmp_path / 'walk'}")
        with serve_place(tmp_path, "architect", "scout") as place, watched(place, browser) as console:
            walk = place.submit_to_model("plan the walk", "architect", "--review-plan", *here)
            lost = place.submit_to_model("mend it", "scout", *here)
            decide(place, console, walk, lost)
        (tmp_path / "up.log").unlink()
        with serve_place(tmp_path, "architect", "scout") as again, watched(again, browser) as console:
            fork = mend_and_fork(again, console, walk, lost)
            tasks = {name: shown(again, task) for name, task in {"walk": walk, "lost": lost, "fork": fork}.items()}
            assert {name: task["status"] for name, task in tasks.items()} == dict.fromkeys(tasks, "done")
            children = [shown(again, child) for child in tasks["walk"]["children"]]
            assert sorted((child["plan_key"], child["status"]) for child in children) == [("a", "done"), ("b", "done")]
            assert (tmp_path / "walk" / "steps.log").read_text() == "walked\n"
            assert tasks["fork"]["summary"] == "the fork took another way" and tasks["fork"]["continues"] == walk
            assert not tasks["fork"].get("children")
