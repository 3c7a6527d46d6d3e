"""Draw the pictures of `docs/how-to/console.md`: `python -m tests.browser.pictures FOLDER` runs the demo and more.

Fonts differ between machines, so no test compares these pictures. Look at them before you commit them.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import expect

from tests.support.screens import WAIT_MS, Place, chromium, serve_place, watched

WIDE = {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"}
NARROW = {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark"}
ROLES = ("architect", "executor", "memory", "predictor", "scout")
COLORS = 64
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
    with tempfile.TemporaryDirectory() as place, chromium() as browser:
        folder = Path(place) / "garden"
        for name, text in NOTES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        Place(folder, "").command("demo")
        with serve_place(folder, *ROLES) as served:
            served.submit("Find out which bed is dry", "scout", "request-clarifier")
            served.submit("Score the beds", "predictor", "csv-forecast", "--context", "path=missing.csv")
            with watched(served, browser, **WIDE) as console:
                console.open("inbox")
                expect(console.page.locator("article")).to_have_count(2)
                screens = {
                    "overview": "", "inbox": "inbox", "tasks": "tasks", "agents": "agents", "mail": "mail",
                    "memory": "memory", "spend": "spend", "new": "new",
                }  # fmt: skip
                for name, path in screens.items():
                    console.open(path)
                    console.page.screenshot(path=to / f"{name}.png")
                console.open("tasks?role=architect")
                console.page.locator("tbody a").first.click()
                expect(console.page.locator("svg").first).to_be_visible()
                console.page.screenshot(path=to / "task.png", full_page=True)
            with watched(served, browser, **NARROW) as console:
                console.open("inbox")
                console.page.screenshot(path=to / "inbox-narrow.png")
    for path in to.glob("*.png"):
        Image.open(path).quantize(COLORS).save(path, optimize=True)


if __name__ == "__main__":
    main()
