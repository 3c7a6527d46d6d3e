"""Draw the pictures of `docs/how-to/console.md`: `python -m tests.browser.pictures FOLDER` runs the demo and more.

With `--all`, each screen is drawn in both themes and widths, to be looked at. Fonts
differ between machines, so no test compares these pictures. Look at them before you commit them.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, expect

from tests.support.fleet import lay_out
from tests.support.screens import WAIT_MS, Place, chromium, serve_place, watched
from tests.support.walk import VARIABLES, serving_models, walk_settings

WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 800}
LOOKS: dict[str, dict[str, Any]] = {
    "": {"viewport": WIDE, "color_scheme": "light"},
    "-narrow": {"viewport": NARROW, "color_scheme": "dark"},
    "-dark": {"viewport": WIDE, "color_scheme": "dark"},
    "-narrow-light": {"viewport": NARROW, "color_scheme": "light"},
}
KEPT_NARROW = ("inbox", "plan")
ROLES = ("architect", "executor", "memory", "predictor", "scout")
COLORS = 64
OF_SCHEDULE = ("--role", "scout", "--timezone", "Europe/Berlin", "--skill", "workspace-inventory")
NOTES = {
    "README.md": "# Garden\n\nA small irrigation planner. See [the plan](docs/plan.md).\n",
    "docs/plan.md": "# Plan\n\n- TODO: valves of the north bed\n- FIXME: the sensor reports twice\n",
    "garden/valves.py": "def open_valve(number: int) -> None:\n    raise NotImplementedError  # TODO\n",
}


def main() -> None:
    """Write the pictures into the folder that is named."""
    to = Path(sys.argv[1]).resolve()
    to.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=WAIT_MS)
    os.environ.update(VARIABLES)
    with tempfile.TemporaryDirectory() as place, chromium() as browser:
        draw_garden(Path(place) / "garden", browser, to)
        draw_walk(Path(place) / "walk", browser, to)
    for path in to.glob("*.png"):
        Image.open(path).quantize(COLORS).save(path, optimize=True)


def draw_garden(folder: Path, browser: Browser, to: Path) -> None:
    """Draw the screens of the demo, and of two more tasks that need a person."""
    for name, text in NOTES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    Place(folder, "").command("demo")
    with serve_place(folder, *ROLES) as served:
        served.submit("Find out which bed is dry", "scout", "request-clarifier")
        served.command("schedule", "set", "morning-report", "0 6 * * 1-5", "Report on the beds", *OF_SCHEDULE)
        served.command("schedule", "run", "morning-report")
        served.submit("Score the beds", "predictor", "csv-forecast", "--context", "path=missing.csv")
        with watched(served, browser) as console:
            console.open("inbox")
            expect(console.page.locator("article")).to_have_count(2)
            console.open("tasks?role=architect")
            task = console.page.locator("tbody a").first.get_attribute("href") or ""
            console.open("agents")
            agent = console.page.locator("tbody a").first.get_attribute("href") or ""
        screens = {
            "overview": "", "inbox": "inbox", "tasks": "tasks", "agents": "agents", "mail": "mail", "memory": "memory",
            "spend": "spend", "runs": "runs?sort=longest", "new": "new", "store": "store",
            "schedules": "schedules", "skills": "skills?query=count+lines", "agent": agent.removeprefix("/ui/"),
            "query": "store/query?collection=agent_tasks&field=status&operator=%3D%3D&value=done&order=-updated_at",
            "task": task.removeprefix("/ui/"),
        }  # fmt: skip
        draw(served, browser, screens, to)


def draw_walk(folder: Path, browser: Browser, to: Path) -> None:
    """Draw the screens of work by a model: its plan, its conversation, and that of a fork beside it."""
    folder.mkdir()
    with serving_models() as url:
        lay_out(folder, {}, settings=walk_settings(url))
        (folder / "walk").mkdir()
        with serve_place(folder, "architect", "scout") as served, watched(served, browser) as console:
            page, here = console.page, ("--context", f"path={folder / 'walk'}")
            walk = served.submit_to_model("plan the walk", "architect", "--review-plan", *here)
            console.open(f"tasks/{walk}")
            page.get_by_role("button", name="Allow once").press("Enter")
            expect(page.get_by_role("link", name="See its graph, or change it")).to_be_visible()
            draw(served, browser, {"plan": f"tasks/{walk}/plan"}, to)
            page.get_by_role("button", name="Allow once").press("Enter")
            expect(page.locator("h1 .status")).to_have_text("done")
            console.open(f"tasks/{walk}/fork?before=2")
            page.get_by_label("Say something to its model first").fill("take another way")
            page.get_by_role("button", name="Fork", exact=True).click()
            expect(page.locator("h1 .status")).to_have_text("done")
            fork = page.url.partition("/tasks/")[2].partition("?")[0]
            talk = f"tasks/{walk}/conversation"
            screens = {"conversation": talk, "compared": f"{talk}?beside={fork}", "fork": f"tasks/{walk}/fork?before=2"}
            draw(served, browser, screens, to)


def draw(served: Place, browser: Browser, screens: Mapping[str, str], to: Path) -> None:
    """Draw screens, given by name: in one look, some in two, or all in four."""
    for suffix, look in LOOKS.items():
        with watched(served, browser, **look) as console:
            for name, path in screens.items():
                if suffix and "--all" not in sys.argv and not (suffix == "-narrow" and name in KEPT_NARROW):
                    continue
                console.open(path)
                whole = name in ("task", "compared")
                console.page.screenshot(path=to / f"{name}{suffix}.png", full_page=whole)


if __name__ == "__main__":
    main()
