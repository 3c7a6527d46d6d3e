"""A browser at the console of a live fleet: what a page did that it must not do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Dialog, Error, Page, sync_playwright

from tests.support.fleet import environment, lay_out, swarm_up

CHROMIUM = shutil.which("chromium")
WAIT_MS = 240_000
LINK = re.compile(r"http://127\S+/enter\S+")
SERIOUS = ("serious", "critical")

ASK = """
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import Question, SkillResult, SkillState

def run(request):
    color = request.answers.get("color")
    if color is None:
        ask = Question(name="color", description="Which color?", allowed={"enum": ["red", "blue"]})
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary="asks", questions=(ask,))
    text = f"# Painted\\n\\nIt is **{color}** now: {request.objective}"
    report = Artifact(type="report", name="painted.md", value=text)
    return SkillResult(summary=f"painted it {color}", artifacts=(report,))
"""
FAIL = """
from fireswarm.contracts.skills.skill import SkillResult, SkillState

def run(request):
    if request.context.get("mended"):
        return SkillResult(summary="went well")
    return SkillResult(state=SkillState.FAILED, summary="the part is missing: " + request.objective)
"""
PLAN = """
from fireswarm.contracts.skills.skill import PlannedTask, SkillResult, SkillState

def run(request):
    if request.children:
        return SkillResult(summary=f"{len(request.children)} children ended")
    def note(key, *needs):
        return PlannedTask(key=key, assigned_to="memory", objective="note " + key, skill="note", depends_on=needs)
    tasks = [note(f"part-{number}") for number in range(3)]
    whole = note("whole", *(each.key for each in tasks))
    return SkillResult(state=SkillState.DELEGATING, summary="planned", tasks=(*tasks, whole))
"""
NOTE = """
from fireswarm.contracts.skills.skill import SkillResult

def run(request):
    return SkillResult(summary="noted")
"""
SKILLS = {"ask": ASK, "fail": FAIL, "plan": PLAN, "note": NOTE}


@dataclass
class Place:
    """A folder with a fleet of role processes that serves the console at *link*."""

    folder: Path
    link: str
    fleet: psutil.Process | None = None
    _cookies: Any = None

    def cookies(self, browser: Browser) -> Any:
        """Return what a browser profile has that entered: the link of a console works once."""
        if self._cookies is None:
            context = browser.new_context()
            context.new_page().goto(self.link)
            self._cookies = context.storage_state()
            context.close()
        return self._cookies

    @property
    def address(self) -> str:
        """Address of the overview."""
        return self.link.partition("enter")[0]

    def submit(self, objective: str, role: str, skill: str, *more: str) -> str:
        """Submit a task at the command line; returns its id."""
        return self.submit_to_model(objective, role, "--skill", skill, *more)

    def submit_to_model(self, objective: str, role: str, *more: str) -> str:
        """Submit a task without a skill, for the role's model; returns its id."""
        told = self.command("submit", objective, "--role", role, *more, "--json")
        return str(json.loads(told)["task"]["task_id"])

    def status(self, task: str) -> str:
        """Return the status of a task as the command line shows it."""
        return str(json.loads(self.command("show", task, "--json"))["task"]["status"])

    def command(self, *arguments: str) -> str:
        """Return what a command of the swarm prints."""
        ended = subprocess.run(
            [sys.executable, "-m", "fireswarm.cli", *arguments],
            cwd=self.folder, env=environment(), capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout


@contextmanager
def open_place(folder: Path, *roles: str, **skills: str) -> Generator[Place]:
    """Run a fleet with a console over a new folder; *skills* are further ones, by name."""
    lay_out(folder, {**SKILLS, **skills}, settings={"worker": {"drain_seconds": 1}})
    with serve_place(folder, *roles) as place:
        yield place


@contextmanager
def serve_place(folder: Path, *roles: str, port: int = 0) -> Generator[Place]:
    """Run a fleet with a console over a folder."""
    with swarm_up(folder, "--roles", ",".join(roles), "--console", str(port)) as process:
        link = _link_in(folder / "up.log", lambda: process.status() != psutil.STATUS_ZOMBIE)
        yield Place(folder, link, process)


def _link_in(log: Path, lives: Callable[[], bool]) -> str:
    while lives():
        if found := LINK.search(log.read_text(errors="replace")):
            return found[0]
    raise AssertionError(log.read_text(errors="replace"))


@dataclass
class Watched:
    """A page of the console, and all that it did against its rules."""

    page: Page
    address: str
    faults: list[str] = field(default_factory=list[str])

    def open(self, path: str) -> None:
        """Open a page of the console."""
        answer = self.page.goto(self.address + path.lstrip("/"))
        assert answer is not None
        assert answer.ok, f"{path}: {answer.status}"

    def observe(self) -> None:
        """Note from now on what the page does against its rules."""
        self.page.on("dialog", self.refuse)
        self.page.on("pageerror", lambda error: self.faults.append(f"error {error}"))
        self.page.on("console", lambda line: self.faults.append(line.text) if "Security Policy" in line.text else None)
        self.page.on(
            "request", lambda asked: self.faults.append(f"asks {asked.url}") if self.is_elsewhere(asked.url) else None
        )

    def refuse(self, dialog: Dialog) -> None:
        """Note that a page opened a dialog: the console never does."""
        self.faults.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def is_elsewhere(self, url: str) -> bool:
        """Return true for an address of another host."""
        return not url.startswith((self.address.partition("/ui")[0] + "/", "data:", "blob:"))

    def check(self) -> None:
        """Fail if a page ran foreign code, broke the policy, asked another host, or has a serious fault for axe."""
        found = Axe().run(self.page).response["violations"]
        serious = [f"{each['id']}: {each['nodes'][0]['html']}" for each in found if each["impact"] in SERIOUS]
        wide = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        faults = [*serious, *self.faults, *([f"it is {wide} pixels too wide"] if wide else [])]
        assert not faults, f"{self.page.url}: {faults}"


@contextmanager
def watched(place: Place, browser: Browser, **options: Any) -> Generator[Watched]:
    """Open a browser profile that has the cookie of the console."""
    context = browser.new_context(storage_state=place.cookies(browser), **options)
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    seen = Watched(page, place.address)
    seen.observe()
    try:
        yield seen
    finally:
        context.close()


@contextmanager
def chromium() -> Generator[Browser]:
    """Start Debian's Chromium, or skip the test with the reason."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed: `make test` installs Debian's as root")
    with sync_playwright() as playwright:
        options = ["--disable-dev-shm-usage"]  # containers have little shared memory
        try:
            browser = playwright.chromium.launch(
                executable_path=CHROMIUM, chromium_sandbox=os.geteuid() != 0, args=options
            )
        except Error as error:
            pytest.skip(f"Chromium does not start here: {error.message.splitlines()[0]}")
        try:
            yield browser
        finally:
            browser.close()
