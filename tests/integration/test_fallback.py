"""Fallbacks, and the model of a turn that was interrupted: the same bytes after a crash."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.swarm.turn.turn import run_turn
from tests.integration.test_thinking import one_turn, reclaimed, submit
from tests.support.providers import FakeProviders, Received, Reply
from tests.support.reached import LOOK, asked, model_of_task, reached, run_of, serving
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio

BUSY = Reply(status=529, message="overloaded")


@pytest.fixture
async def served() -> AsyncGenerator[FakeProviders]:
    async with serving() as server:
        yield server


# ── fallback ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("other", ["gemini", "openai:gpt-5", "claude-haiku-4-5"])
async def test_fallback_goes_on_with_the_conversation_and_after_a_crash_gets_the_same_bytes(
    swarm: SwarmRig, tmp_path: Path, served: FakeProviders, other: str
) -> None:
    down = False

    def answer(request: Received) -> Reply:
        if request.model == "claude-sonnet-5-5":
            return LOOK if not request.answers else BUSY
        if request.answers == 1:
            return Reply(calls=(("list_files", {"path": ".", "glob": "*"}),))
        return Reply(status=500, message="down") if down else Reply("counted")

    served.script = answer
    core = reached(swarm, tmp_path, served, model={"fallback": [other]})
    await submit(swarm, tmp_path)
    down = True
    await one_turn(swarm, core)
    down = False
    await reclaimed(swarm)
    again = reached(swarm, tmp_path, served, model={"fallback": [other]})
    ended = await one_turn(swarm, again, "second")
    assert ended.status is TaskStatus.DONE, ended.summary
    assert served.refused == []
    assert asked(served).count("claude-sonnet-5-5") == 2, "it answered once, and was not asked again after the crash"
    *_, failed, repeated = served.calls
    assert failed.raw == repeated.raw
    assert "First I look." not in repeated.raw.decode(), "a thought of another model stays out"
    assert "I look." in repeated.raw.decode()


async def test_model_that_is_gone_is_replaced_and_a_fallback_without_a_key_is_passed_over(
    swarm: SwarmRig, tmp_path: Path, served: FakeProviders
) -> None:
    served.script = lambda request: (
        Reply(status=404, message="no such model") if request.model == "claude-old" else Reply("counted")
    )
    core = reached(swarm, tmp_path, served, {"ANTHROPIC_API_KEY": "test-key"})
    await submit(swarm, tmp_path, model="claude-old", fallback=["gemini", "claude-opus-5"])
    task = await one_turn(swarm, core)
    assert (task.status, asked(served)) == (TaskStatus.DONE, ["claude-old", "claude-opus-5"])
    events = [(event["type"], event["payload"]) for event in (await run_of(swarm, task))["events"]]
    assert any(kind == "llm_request_failed" and "GEMINI_API_KEY" in payload["error"] for kind, payload in events)
    assert [payload["model"] for kind, payload in events if kind == "llm_retry_scheduled"] == [
        "anthropic/claude-opus-5"
    ]


async def test_rejected_request_is_not_sent_to_a_fallback(
    swarm: SwarmRig, tmp_path: Path, served: FakeProviders
) -> None:
    served.script = lambda request: Reply(status=400, message="the account is closed")
    core = reached(swarm, tmp_path, served, model={"fallback": ["gemini"]})
    await submit(swarm, tmp_path)
    assert (await one_turn(swarm, core)).status_reason is StatusReason.ESCALATED
    assert set(asked(served)) == {"claude-sonnet-5-5"}


# ── a crash, and changed settings ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ends", ["crash", "failure"])
async def test_interrupted_turn_goes_on_with_its_model_and_a_failed_one_takes_that_of_the_settings(
    swarm: SwarmRig, tmp_path: Path, served: FakeProviders, ends: str
) -> None:
    served.script = lambda request: LOOK if not request.answers else Reply(status=500, message="down")
    core = reached(swarm, tmp_path, served, roles={"scout": {"model": "claude-opus-5", "effort": "high"}})
    task = await submit(swarm, tmp_path)
    held = await swarm.claim_one()
    ending = await run_turn(held, core)
    if ends == "failure":
        await swarm.board.settle(held, ending.outcome, ending.writes)
    await reclaimed(swarm)
    await swarm.board.sweep("scout")
    served.script = lambda request: Reply("counted")
    changed = reached(swarm, tmp_path, served, roles={"scout": {"model": "claude-haiku-4-5"}})
    ended = await one_turn(swarm, changed, "second")
    assert (ended.task_id, ended.status) == (task.task_id, TaskStatus.DONE), ended.summary
    *_, failed, last = served.calls
    if ends == "crash":
        assert model_of_task(last) == ("claude-opus-5", {"effort": "high"})
        assert failed.body["messages"] == last.body["messages"] and failed.body["system"] == last.body["system"]
    else:
        assert model_of_task(last) == ("claude-haiku-4-5", None)
        assert "First I look." not in last.raw.decode()


async def test_next_turn_takes_the_model_of_the_settings(
    swarm: SwarmRig, tmp_path: Path, served: FakeProviders
) -> None:
    served.script = lambda request: Reply(calls=(("ask_user", {"question": "which one?"}),))
    core = reached(swarm, tmp_path, served, roles={"scout": {"model": "claude-opus-5"}})
    await submit(swarm, tmp_path)
    waiting = await one_turn(swarm, core)
    assert waiting.status_reason is StatusReason.INPUT_REQUIRED
    await swarm.client.answer(waiting, {waiting.questions[0].key: "the first"})
    served.script = lambda request: Reply("counted")
    await one_turn(swarm, reached(swarm, tmp_path, served, roles={"scout": {"model": "claude-haiku-4-5"}}))
    assert asked(served) == ["claude-opus-5", "claude-haiku-4-5"]
