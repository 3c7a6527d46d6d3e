"""Plans are changed, runs read, forked and compared in the console, by forms that work without scripts."""

from __future__ import annotations

import html
import json
import re
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fireswarm.api.console.access import ConsoleRole
from fireswarm.contracts.ports import Merge
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.storage.documents.paths import run_path, task_path
from tests.integration.test_console import PAYLOADS
from tests.integration.test_forks import log, three_steps
from tests.integration.test_inputs import Expert, part, plan, turn
from tests.integration.test_thinking import act, decide, logged, one_turn, submit
from tests.support.console import CONSOLE_SECRET, Browser, open_browser
from tests.support.providers import Reply
from tests.support.reached import KEYS, reached, serving
from tests.support.swarm import open_test_swarm

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    async with open_test_swarm(session="s1") as swarm, open_browser(swarm) as opened:
        yield opened


async def planned(browser: Browser, folder: Path) -> Task:
    await submit(browser.swarm, folder, role="architect", review_plan=True)
    expert = Expert(plan(part("a"), part("b", "executor", depends_on=["a"])))
    task = await turn(browser.swarm, folder, expert, "architect")
    assert task.status_reason is StatusReason.APPROVAL_REQUIRED
    return task


def textarea(page: str, name: str) -> str:
    [text] = re.findall(rf'<textarea[^>]* name="{name}"[^>]*>(.*?)</textarea>', page, re.DOTALL)
    return html.unescape(text)


async def test_changed_plan_is_drawn_approved_and_run(browser: Browser, tmp_path: Path) -> None:
    swarm, task = browser.swarm, await planned(browser, tmp_path)
    assert f"/tasks/{task.task_id}/plan" in await browser.page("/inbox")
    page = await browser.page(f"/tasks/{task.task_id}/plan")
    assert page.count('<g class="box ') == 2 and page.count('class="arrow"') == 1
    changed = textarea(page, "plan") + "- key: c\n  assigned_to: scout\n  objective: look at c\n  depends_on: [a]\n"
    drawn = await browser.send(f"/tasks/{task.task_id}/plan", plan=changed, do="draw")
    assert drawn.status_code == 200 and drawn.text.count('class="arrow"') == 2
    assert (await swarm.task(task.task_id)).status_reason is StatusReason.APPROVAL_REQUIRED
    sent = await browser.send(f"/tasks/{task.task_id}/plan", plan=changed, do="approve")
    assert sent.status_code == 303 and sent.headers["location"].partition(".")[0].endswith("?done=planned")
    await turn(swarm, tmp_path, Expert(), "architect")
    made = {child.plan_key for child in await swarm.board.list() if child.parent_task_id == task.task_id}
    assert made == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ("nonsense", "must be a list of tasks"),
        ("- key: a\n  assigned_to: nobody\n  objective: x\n", "nobody"),
        ("- key: a\n  assigned_to: scout\n  objective: x\n  depends_on: [a]\n", "cycle"),
        ("- key: [", "not YAML"),
        ("x " * 60_000, "a page takes 100,000"),
    ],
)
async def test_text_that_is_no_plan_stays_in_the_form_with_the_reason(
    browser: Browser, tmp_path: Path, changed: str, told: str
) -> None:
    task = await planned(browser, tmp_path)
    for do in ("draw", "approve"):
        answer = await browser.send(f"/tasks/{task.task_id}/plan", plan=changed, do=do)
        assert answer.status_code == 422 and told in answer.text
        assert textarea(answer.text, "plan").strip() == changed.strip()
    assert (await browser.swarm.task(task.task_id)).status_reason is StatusReason.APPROVAL_REQUIRED


async def test_plan_of_a_task_that_asks_for_none_is_explained(browser: Browser, tmp_path: Path) -> None:
    task = await browser.swarm.submit("x", role="scout")
    assert "no plan of task" in await browser.page(f"/tasks/{task.task_id}/plan", 422)


@pytest.mark.parametrize("model", ["claude-opus-5", "gemini", "openai:gpt-5"])
async def test_thoughts_of_a_model_are_in_its_conversation(browser: Browser, tmp_path: Path, model: str) -> None:
    reply = Reply("It has <two> files.", thinking=f"First I <look>, {CONSOLE_SECRET[:4]}, then I count.")
    async with serving() as served:
        served.script = (reply,)
        core = reached(browser.swarm, tmp_path, served, {**KEYS, "OPENAI_API_KEY": "test-key"})
        task = await submit(browser.swarm, tmp_path, model=model)
        assert (await one_turn(browser.swarm, core)).status is TaskStatus.DONE
        page = await browser.page(f"/tasks/{task.task_id}/conversation")
    assert page.count("First I &lt;look&gt;") == 2 and "What it thought before it" in page


async def test_run_is_read_forked_and_compared(browser: Browser, tmp_path: Path) -> None:
    swarm, task = browser.swarm, await three_steps(browser.swarm, tmp_path)
    talk = await browser.page(f"/tasks/{task.task_id}/conversation")
    assert talk.count("fork before it") == 3 and "echo one" in talk and "did one" in talk and "the answer" in talk
    run = await browser.page(f"/runs/{task.run_id(1)}")
    assert run.count("Fork before this answer") == 3
    form = await browser.page(f"/tasks/{task.task_id}/fork?before=2")
    fields = {name: textarea(form, name) for name in ("objective", "context")}
    sent = await browser.send(f"/tasks/{task.task_id}/fork", before="2", text="count backwards", model="", **fields)
    assert sent.status_code == 303 and sent.headers["location"].partition(".")[0].endswith("?done=forked")
    fork_id = sent.headers["location"].partition("/tasks/")[2].partition("?")[0]
    fork = await turn(swarm, tmp_path, Expert(log("other"), "another answer"), "scout")
    assert fork.task_id == fork_id and fork.context == task.context and logged(tmp_path) == ["one", "two", "other"]
    again = await browser.send(f"/tasks/{task.task_id}/fork", before="2", text="count backwards", model="", **fields)
    assert again.headers["location"].startswith(f"/ui/tasks/{fork_id}?done=known.")
    assert "forks it before answer 2" in await browser.page(f"/tasks/{task.task_id}")
    assert "before answer 2" in await browser.page(f"/tasks/{fork_id}")
    both = await browser.page(f"/tasks/{task.task_id}/conversation?beside={fork_id}")
    assert "-the answer" in both and "+another answer" in both and "echo two" in both and "echo other" in both
    assert "count backwards" in both and both.count("given in the origin") == 1


async def test_fork_with_other_inputs_takes_json_and_refuses_to_lose_secrets(browser: Browser, tmp_path: Path) -> None:
    plain = await three_steps(browser.swarm, tmp_path, fresh_key="2")
    task = await three_steps(browser.swarm, tmp_path, context={"key": CONSOLE_SECRET})
    form = await browser.page(f"/tasks/{task.task_id}/fork?before=1")
    context = textarea(form, "context")
    assert CONSOLE_SECRET not in form
    path = f"/tasks/{task.task_id}/fork"
    same = await browser.send(path, before="1", context=context, objective=task.objective)
    assert same.status_code == 303
    made = await browser.swarm.task(same.headers["location"].partition("/tasks/")[2].partition("?")[0])
    assert made.context == task.context and made.objective == task.objective
    lost = await browser.send(path, before="1", context=context.replace("key", "other"))
    assert lost.status_code == 422 and "does not show" in lost.text
    for text, told in (("{", "not JSON"), ("[1]", "one JSON object")):
        answer = await browser.send(f"/tasks/{plain.task_id}/fork", before="1", context=text)
        assert answer.status_code == 422 and told in answer.text
    other = await browser.send(f"/tasks/{plain.task_id}/fork", before="1", context='{"path": "."}')
    assert other.status_code == 303


@pytest.mark.parametrize("before", ["", "x", "-1", "99", "9999999999"])
async def test_number_of_no_answer_is_refused(browser: Browser, tmp_path: Path, before: str) -> None:
    task = await three_steps(browser.swarm, tmp_path)
    assert (await browser.send(f"/tasks/{task.task_id}/fork", before=before)).status_code == 422
    assert len(await browser.swarm.board.list()) == 1


@pytest.mark.parametrize("payload", PAYLOADS)
async def test_words_of_strangers_stay_words_in_conversations_and_plans(
    browser: Browser, tmp_path: Path, payload: str
) -> None:
    swarm = browser.swarm
    await submit(swarm, tmp_path, role="architect", review_plan=True)
    expert = Expert({**log(payload), "text": payload}, plan({**part("a"), "objective": payload}))
    task = await turn(swarm, tmp_path, expert, "architect")
    await swarm.store.commit([Merge(task_path(task.task_id), {"objective": payload, "context": {"a": payload}})])
    for path in ("conversation", "plan", "fork?before=1"):
        page = await browser.page(f"/tasks/{task.task_id}/{path}")
        for bad in ("<script>alert", "<img", "<svg onload", "<iframe", 'href="javascript:', 'href="data:', "\u202e"):
            assert bad not in page, path
        assert "49{" not in page


async def test_viewer_reads_conversations_and_plans_and_changes_nothing(tmp_path: Path) -> None:
    async with open_test_swarm(session="s1") as swarm, open_browser(swarm, ConsoleRole.VIEWER) as viewer:
        task = await planned(viewer, tmp_path)
        assert "fork before it" not in await viewer.page(f"/tasks/{task.task_id}/conversation")
        assert "<textarea" not in await viewer.page(f"/tasks/{task.task_id}/plan")
        assert "only look" in await viewer.page(f"/tasks/{task.task_id}/fork?before=1", 422)
        for path in ("plan", "fork"):
            assert (await viewer.send(f"/tasks/{task.task_id}/{path}", before="1", do="approve")).status_code == 403
        assert [found.status for found in await swarm.board.list()] == [TaskStatus.BLOCKED]


async def test_texts_of_any_size_and_results_that_are_gone_leave_the_conversation_readable(
    browser: Browser, tmp_path: Path
) -> None:
    swarm, task = browser.swarm, await three_steps(browser.swarm, tmp_path)
    large = await swarm.core.blobs.put("s1/x/large.json", json.dumps({"text": "x" * 300_000}).encode())
    deep = await swarm.core.blobs.put("s1/x/deep.json", b"[" * 200_000)
    names = {"large": large, "deep": deep, "gone": "gone.json", "elsewhere": "file:///etc/passwd"}
    steps = [f"0/llm:{number}.0:{'0' * 16}" for number in range(4, 8)]
    events = [
        {"ts": NOW, "type": "step_finished", "payload": {"step": step, "result_uri": uri}}
        for step, uri in zip(steps, names.values(), strict=True)
    ]
    odd = {
        "ts": NOW,
        "type": "step_finished",
        "payload": {"step": f"0/llm:8.0:{'0' * 16}", "result": {"text": "y" * 50_000}},
    }
    await swarm.store.commit(
        [Merge(f"{run_path(task.run_id(1))}/journal/000009", {"events": [*events, odd, "text", 3]})]
    )
    page = await browser.page(f"/tasks/{task.task_id}/conversation")
    assert (
        "did one" in page and "too large to be shown" in page and "cut: it has 50,000" in page and "root:" not in page
    )
    assert len(page) < 100_000


async def test_long_answers_are_not_compared(browser: Browser, tmp_path: Path) -> None:
    swarm = browser.swarm
    await submit(swarm, tmp_path)
    task = await turn(swarm, tmp_path, Expert("\n".join("ab" * 5_000)), "scout")
    fork = await swarm.client.fork(task, 1)
    await turn(swarm, tmp_path, Expert("\n".join("ba" * 5_000)), "scout")
    assert "too long to be compared" in await browser.page(f"/tasks/{task.task_id}/conversation?beside={fork.task_id}")


async def test_secrets_stay_out_of_plans_and_cut_documents(browser: Browser, tmp_path: Path) -> None:
    swarm, secret = browser.swarm, CONSOLE_SECRET
    await submit(swarm, tmp_path, role="architect", review_plan=True)
    long = {**part("a"), "objective": f"{'word ' * 17}{secret}"}
    task = await turn(swarm, tmp_path, Expert(plan(long)), "architect")
    assert secret[:12] not in await browser.page(f"/tasks/{task.task_id}/plan")
    for pad in range(19_900, 20_100, 20):
        await swarm.store.commit([Merge("api_requests/x", {"content": f"{'x' * pad}{secret}"})])
        assert secret[:8] not in await browser.page("/store/api_requests")


@pytest.mark.parametrize("default", [5, None, [1], "x"])
async def test_plan_that_a_hand_broke_is_no_fault_of_the_page(
    browser: Browser, tmp_path: Path, default: object
) -> None:
    task = await planned(browser, tmp_path)
    raw = (await browser.swarm.raw(task.task_id))["questions"]
    broken = [{**each, "allowed": {**each.get("allowed", {}), "default": default}} for each in raw]
    await browser.swarm.store.commit([Merge(task_path(task.task_id), {"questions": broken})])
    assert (await browser.client.get(f"/ui/tasks/{task.task_id}/plan")).status_code == 422


async def test_answer_of_a_person_is_shown_with_the_call_that_asked(browser: Browser, tmp_path: Path) -> None:
    swarm = browser.swarm
    await submit(swarm, tmp_path)
    expert = Expert(decide(act("ask_user", name="color", question="Which color?")), "painted")
    task = await turn(swarm, tmp_path, expert, "scout")
    await swarm.client.answer(task, {"color": "the green of <moss>"})
    await turn(swarm, tmp_path, expert, "scout")
    page = await browser.page(f"/tasks/{task.task_id}/conversation")
    assert "Which color?" in page and "<pre>the green of &lt;moss&gt;</pre>" in page


async def test_call_that_may_have_taken_effect_is_shown_with_its_question(browser: Browser, tmp_path: Path) -> None:
    swarm, task = browser.swarm, await three_steps(browser.swarm, tmp_path)
    doubt = {"status": "blocked", "status_reason": "dead_letter", "uncertain_step": "0/act:2.1", "ended_at": None}
    await swarm.store.commit([Merge(task_path(task.task_id), doubt)])
    for path in ("/inbox", f"/tasks/{task.task_id}"):
        page = html.unescape(await browser.page(path))
        assert "two" in page.partition("Was <code>")[2][:200] and "(step 0/act:2.1)" in page
