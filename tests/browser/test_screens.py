"""The console in Chromium, on a live fleet: each screen, and actions without a mouse and without a script."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.screens import WAIT_MS, Place, open_place, watched

expect.set_options(timeout=WAIT_MS)
pytestmark = pytest.mark.timeout(4 * WAIT_MS / 1_000)

LOOKS = {
    "wide and light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "narrow and dark": {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark"},
}
SCHEDULED = ("--skill", "note", "--timezone", "Europe/Berlin")
LONG = "חיפוש " * 20 + "w" * 200 + " <b>bold</b>"
SCREENS = (
    "",
    "inbox",
    "tasks",
    "schedules",
    "schedules/again",
    "agents",
    "skills",
    "skills?query=paint+it",
    "mail",
    "memory",
    "spend",
    "new",
    "tasks?status=blocked",
    "tasks?role=memory",
    "store",
    "store/agent_tasks",
    "store/check",
    "store/query?collection=agent_tasks&field=status&operator=%3D%3D&value=done&order=-updated_at",
    "runs",
    "runs?status=failed&sort=longest",
    "spend?within=today",
    "jump?q=it",
)


@pytest.fixture(scope="module")
def place(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Generator[Place]:
    folder: Path = tmp_path_factory.mktemp("place")
    with open_place(folder, "scout", "memory", "executor") as opened:
        yield opened


@pytest.fixture(scope="module")
def tasks(place: Place) -> dict[str, str]:
    """Tasks of several kinds: one that asks, one that gave up, one that waits for a role that does not run, a plan.

    There is a schedule, too.
    """
    place.command("schedule", "set", "again", "0 6 * * 1-5", f"paint it again {LONG}", "--role", "scout", *SCHEDULED)
    return {
        "asks": place.submit(f"paint it {LONG}", "scout", "ask"),
        "fails": place.submit("break it", "executor", "fail"),
        "waits": place.submit("nobody does this", "architect", "note"),
        "plan": place.submit("plan it", "scout", "plan"),
    }


@pytest.mark.parametrize("look", LOOKS)
def test_each_screen_holds_its_rules(look: str, place: Place, tasks: dict[str, str], browser: Browser) -> None:
    with watched(place, browser, **LOOKS[look]) as console:
        console.open("inbox")
        expect(console.page.get_by_text("the part is missing").first).to_be_visible()
        for screen in (*SCREENS, *(f"tasks/{task}" for task in tasks.values())):
            console.open(screen)
            console.check()
        console.open(f"tasks/{tasks['plan']}")
        expect(console.page.get_by_text("4 children ended").first).to_be_visible()
        console.page.get_by_role("link", name="Run 1").first.click()
        console.check()
        console.open("agents")
        console.page.locator("tbody a").first.click()
        expect(console.page.get_by_label("Log")).to_be_visible()
        console.check()


def test_what_changes_before_a_page_hears_of_changes_appears_on_it(place: Place, browser: Browser) -> None:
    """The server keeps the inbox for seconds: a page that reads it before its stream begins reads it once more."""
    with watched(place, browser) as console:
        page = console.page
        page.route("**/events", lambda route: None)
        console.open("inbox")
        place.submit("break what is new", "executor", "fail")
        expect(page.locator("article", has_text="break what is new")).to_be_visible()


def test_question_is_answered_by_keys_alone(place: Place, browser: Browser) -> None:
    task = place.submit("paint the door", "scout", "ask")
    with watched(place, browser) as console:
        page = console.page
        console.open("inbox")
        item = page.locator("article", has_text="paint the door")
        expect(item).to_be_visible()
        for _ in range(20):
            page.keyboard.press("j")
            if item.evaluate("each => each === document.activeElement"):
                break
        expect(item).to_be_focused()
        while not item.locator("select").evaluate("each => each === document.activeElement"):
            page.keyboard.press("Tab")
        page.keyboard.press("b")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(item).to_have_count(0)
        console.open(f"tasks/{task}")
        page.get_by_role("link", name="painted.md").click()
        expect(page.get_by_role("heading", name="Painted", exact=True)).to_be_visible()
        expect(page.locator(".answer strong")).to_have_text("blue")
        console.check()
    assert place.status(task) == "done"


def test_task_is_found_by_keys_alone(place: Place, tasks: dict[str, str], browser: Browser) -> None:
    with watched(place, browser) as console:
        page = console.page
        console.open("spend")
        page.keyboard.press("Control+k")
        page.keyboard.type("nobody THIS")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_contain_text("nobody does this")
        assert page.url.endswith(f"/tasks/{tasks['waits']}") and console.faults == []


def test_open_page_follows_the_swarm(place: Place, browser: Browser) -> None:
    with watched(place, browser) as console:
        console.open("tasks")
        place.submit("seen by an open page", "memory", "note")
        row = console.page.locator("tr", has_text="seen by an open page")
        expect(row.locator(".status")).to_have_text("done")
        assert console.faults == []


def test_every_action_works_without_a_script(place: Place, browser: Browser) -> None:
    with watched(place, browser, java_script_enabled=False) as console:
        page = console.page
        console.open("new")
        page.get_by_label("What is to be done").fill("paint the gate")
        page.get_by_label("Role", exact=True).select_option("scout")
        page.get_by_role("button", name="Submit").click()
        task = page.url.partition("/tasks/")[2].partition("?")[0]
        while not page.get_by_label("Which color?").count():
            page.reload()
        page.get_by_label("Which color?").select_option("red")
        page.get_by_role("button", name="Answer").click()
        while not page.get_by_role("link", name="painted.md").count():
            page.reload()
        page.get_by_label("Go on with a follow-up").fill("and the fence")
        page.get_by_role("button", name="Say").click()
        assert place.status(task) == "done"

        gave_up = place.submit("break that", "executor", "fail")
        console.open(f"tasks/{gave_up}")
        while not page.get_by_role("button", name="Try again").count():
            page.reload()
        page.get_by_label("Budget of this objective in USD").fill("2.5")
        page.get_by_role("button", name="Set").click()
        page.get_by_role("button", name="Try again").click()
        page.locator("#actions summary", has_text="Cancel").click()
        page.get_by_role("button", name="Cancel it with all tasks below, for good").click()
        assert place.status(gave_up) == "canceled"


PRESSES = """async () => {
  const find = (text) => [...document.querySelectorAll("button")].find((each) => each.textContent.startsWith(text));
  document.addEventListener("submit", (event) => { event.preventDefault(); event.stopPropagation(); }, true);
  const press = (pressed, detail) =>
    pressed.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, detail }));
  const before = press(find("Set"), 1);
  await new Promise((resolve) => {
    new MutationObserver(resolve).observe(document.getElementById("head"), { childList: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await new Promise((resolve) => setTimeout(resolve));
  return { before, moved: press(find("Set"), 1), by_key: press(find("Say"), 0) };
}"""


def test_button_that_just_moved_is_not_pressed_by_the_pointer(
    place: Place, tasks: dict[str, str], browser: Browser
) -> None:
    with watched(place, browser) as console:
        page = console.page
        console.open(f"tasks/{tasks['waits']}")
        taller = page.content().replace("</h1>", "</h1><p>One more line.</p>", 1)
        page.route(page.url, lambda route: route.fulfill(body=taller, content_type="text/html"))
        assert page.evaluate(PRESSES) == {"before": True, "moved": False, "by_key": True}
