"""Runs and conversations in the console: what was asked, what failed, what a skill was given, and who worked."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fireswarm.contracts.ports import Delete, Merge
from fireswarm.contracts.swarm.task import StatusReason
from fireswarm.storage.documents.paths import run_path, task_path
from fireswarm.swarm.turn.turn import run_turn
from tests.integration.test_approvals import COMMAND, Model
from tests.integration.test_approvals import thinking as asking
from tests.integration.test_inputs import Expert, turn
from tests.integration.test_thinking import act, decide, one_turn, submit
from tests.support.console import CONSOLE_SECRET, Browser, open_browser
from tests.support.swarm import open_test_swarm

pytestmark = pytest.mark.anyio

REFUSED = {"error": 400, "message": f"prompt is too <long> {CONSOLE_SECRET}"}


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    async with open_test_swarm(session="s1") as swarm, open_browser(swarm) as opened:
        yield opened


def text_of(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def rows_of(page: str) -> list[str]:
    """The line of each event of a run."""
    return [text_of(row) for row in re.findall(r"<li><details><summary>(.*?)</summary>", page, re.DOTALL)]


async def test_conversation_ends_with_the_call_that_failed_and_links_its_run(browser: Browser, tmp_path: Path) -> None:
    await submit(browser.swarm, tmp_path)
    task = await turn(browser.swarm, tmp_path, Expert(decide(act("run_command", command="echo a")), REFUSED), "scout")
    page = await browser.page(f"/tasks/{task.task_id}/conversation")
    end = page.rpartition("<h3>")[2]
    assert f'<a href="/ui/runs/{task.run_id(1)}">run 1</a> ended without a result' in end
    assert "answered 400: prompt is too &lt;long&gt;" in end and CONSOLE_SECRET not in page


async def test_conversation_without_an_answer_tells_why(browser: Browser, tmp_path: Path) -> None:
    await submit(browser.swarm, tmp_path)
    task = await turn(browser.swarm, tmp_path, Expert(REFUSED), "scout")
    shown = text_of(await browser.page(f"/tasks/{task.task_id}/conversation"))
    assert "No model has answered in this task. Then run 1 ended without a result: scripted answered 400" in shown


async def test_conversation_that_went_well_or_goes_on_ends_with_no_failure(browser: Browser, tmp_path: Path) -> None:
    swarm = browser.swarm
    for script in (Expert(REFUSED), Expert(decide(act("finish", answer="all is well")))):
        task = await submit(swarm, tmp_path)
        if task.status_reason is StatusReason.ESCALATED:
            await swarm.client.retry(task)
        task = await turn(swarm, tmp_path, script, "scout")
    shown = text_of(await browser.page(f"/tasks/{task.task_id}/conversation"))
    assert task.epoch == 2 and "all is well" in shown and "ended without a result" not in shown


async def test_conversation_of_a_task_that_gave_up_after_a_run_that_went_well_tells_why(
    browser: Browser, tmp_path: Path
) -> None:
    await submit(browser.swarm, tmp_path)
    task = await turn(browser.swarm, tmp_path, Expert(decide(act("finish", answer="well"))), "scout")
    gate = {"status": "blocked", "status_reason": "gate_failed", "summary": "a check failed"}
    await browser.swarm.store.commit([Merge(task_path(task.task_id), gate)])
    shown = text_of(await browser.page(f"/tasks/{task.task_id}/conversation"))
    assert "The task gave up after run 1 : a check failed" in shown


async def test_events_say_what_a_person_was_asked(browser: Browser, tmp_path: Path) -> None:
    await submit(browser.swarm, tmp_path)
    task = await one_turn(browser.swarm, asking(browser.swarm, Model(), tmp_path))
    assert task.status_reason is StatusReason.APPROVAL_REQUIRED
    rows = rows_of(await browser.page(f"/runs/{task.run_id(1)}"))
    assert any(row.endswith(f"question asked for approval: {COMMAND}") for row in rows)
    assert not any("failed" in row or re.search(r"[0-9a-f]{16}", row) for row in rows), rows


async def test_events_say_which_question_a_model_asked(browser: Browser, tmp_path: Path) -> None:
    await submit(browser.swarm, tmp_path)
    task = await turn(browser.swarm, tmp_path, Expert(decide(act("ask_user", question="Which port?"))), "scout")
    rows = rows_of(await browser.page(f"/runs/{task.run_id(1)}"))
    assert any(row.endswith("question asked a person: Which port?") for row in rows)


async def test_events_tell_failures_from_questions(browser: Browser) -> None:
    await browser.swarm.submit()
    held = await browser.swarm.claim_one()
    journal = await browser.swarm.journal(held)
    digest = "de633a540c70aa74234e98de633a540c70aa7423"
    journal.note("step_failed", step=f"0/approve:1.1/{digest}:74234e98afe7498f", error="NeedsAnswer: ")
    journal.note("step_failed", step="1/llm:2.0:74234e98afe7498f", error="it answered 400")
    await journal.flush()
    rows = [row.partition(" ")[2] for row in rows_of(await browser.page(f"/runs/{held.run_id}"))]
    assert rows == ["question asked a person", "step failed call of the model 2.0: it answered 400"]


async def test_run_of_a_skill_names_its_objective_and_inputs_and_no_conversation(browser: Browser) -> None:
    swarm = browser.swarm
    task = await swarm.submit("count <the> beds", skill="noop", context={"path": "beds.csv", "key": CONSOLE_SECRET})
    held = await swarm.claim_one()
    ending = await run_turn(held, swarm.core)
    await swarm.settle(held)
    await swarm.store.commit(ending.writes)
    page = await browser.page(f"/runs/{held.run_id}")
    assert f'<a href="/ui/tasks/{task.task_id}">count &lt;the&gt; beds</a></h1>' in page
    assert '"path": "beds.csv"' in page.replace("&#34;", '"') and CONSOLE_SECRET not in page
    assert "/conversation" not in page and "changed after this run" not in page
    assert "/conversation" not in await browser.page(f"/tasks/{task.task_id}")
    await swarm.store.commit([Merge(task_path(task.task_id), {"work_epoch": 1})])
    assert "They were changed after this run." in await browser.page(f"/runs/{held.run_id}")
    await swarm.store.commit([Delete(task_path(task.task_id))])
    assert f"{task.task_id} (deleted)" in await browser.page(f"/runs/{held.run_id}")


async def test_run_with_a_model_links_its_conversation(browser: Browser, tmp_path: Path) -> None:
    await submit(browser.swarm, tmp_path)
    task = await turn(browser.swarm, tmp_path, Expert(decide(act("finish", answer="well"))), "scout")
    for path in (f"/runs/{task.run_id(1)}", f"/tasks/{task.task_id}"):
        assert f'<a href="/ui/tasks/{task.task_id}/conversation">' in await browser.page(path), path


async def test_agent_of_a_run_is_linked_wherever_the_run_is_shown(browser: Browser) -> None:
    swarm = browser.swarm
    task = await swarm.submit()
    held = await swarm.claim_one("scout-dead")
    assert (await browser.page(f"/tasks/{task.task_id}")).count('<a href="/ui/agents/scout-dead">') == 1
    await swarm.clock.advance(120)
    await swarm.board.sweep("scout")
    assert (await swarm.store.get(run_path(held.run_id))).data is not None
    for path in (f"/tasks/{task.task_id}", "/runs", f"/runs/{held.run_id}"):
        page = await browser.page(path)
        assert "died or hung" in page and '<a href="/ui/agents/scout-dead">scout-dead</a>' in page, path
