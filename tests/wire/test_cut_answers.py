"""Answers that are not complete: nothing of them is executed or taken for the answer, and the run goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fireswarm.capabilities.workspace.writing import workspace_tools
from fireswarm.mind import ConclusionStatus
from tests.support.minds import Bench, Lab, Ran
from tests.support.providers import Reply
from tests.wire.test_odd_answers import whole

pytestmark = pytest.mark.anyio

CUT = [
    ("anthropic", "max_tokens"),
    ("anthropic", "model_context_window_exceeded"),
    ("anthropic", "pause_turn"),
    ("gemini", "MAX_TOKENS"),
    ("gemini", "MALFORMED_FUNCTION_CALL"),
    ("gemini", "OTHER"),
    ("openai", "length"),
    ("openai", "error"),
]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path, decision_mode="tools").set(skills__prefilter_min_score=1, model__stream=False)
    (bench.cwd / "a.txt").write_text("one\n")
    return bench


async def run(lab: Lab, bench: Bench, provider: str, *replies: Reply, **assigned: Any) -> Ran:
    left = iter(replies)
    return await lab.run(bench, provider, lambda _: next(left), tools=workspace_tools(bench.cwd), **assigned)


@pytest.mark.parametrize(("provider", "stop"), CUT)
async def test_text_that_is_cut_off_is_not_the_answer(provider: str, stop: str, lab: Lab, bench: Bench) -> None:
    ran = await run(lab, bench, provider, whole(provider, "The answer is", stop=stop), Reply("It is 7."))
    assert (ran.conclusion.status, ran.conclusion.answer) == (ConclusionStatus.FINISHED, "It is 7.")
    assert lab.served.refused == []


@pytest.mark.parametrize(("provider", "stop"), CUT)
async def test_call_that_is_cut_off_is_not_executed(provider: str, stop: str, lab: Lab, bench: Bench) -> None:
    reply = whole(provider, "I write.", {"path": "out.txt", "content": "only the first ha"}, stop)
    reply = Reply(reply.text.replace("read_file", "write_file"), fault="shape")
    ran = await run(lab, bench, provider, reply, Reply("Done."))
    assert (ran.conclusion.status, ran.conclusion.answer) == (ConclusionStatus.FINISHED, "Done.")
    assert not (bench.cwd / "out.txt").exists()


async def test_model_whose_answers_are_all_cut_off_is_asked_three_times(lab: Lab, bench: Bench) -> None:
    replies = [whole("anthropic", f"Part {number}", stop="max_tokens") for number in range(9)]
    ran = await run(lab, bench, "anthropic", *replies)
    assert (ran.conclusion.reason, len(lab.served.calls)) == ("no_progress", 3)
    assert "raise model.max_tokens" in ran.conclusion.answer


async def test_last_answer_is_told_when_the_turns_are_over(lab: Lab, bench: Bench) -> None:
    bench.set(skills__prefilter_min_score=1, model__stream=False, runtime__max_turns=2)
    look = Reply(calls=(("list_files", {}),))
    ran = await run(lab, bench, "anthropic", look, whole("anthropic", "It is 7, since", stop="max_tokens"))
    assert ran.conclusion.reason == "max_turns_exceeded"
    assert ran.conclusion.answer.endswith("The last answer: It is 7, since")


@pytest.mark.parametrize("provider", ["anthropic", "gemini", "openai"])
async def test_call_in_the_last_turn_is_not_executed_and_its_text_is_the_answer(
    provider: str, lab: Lab, bench: Bench
) -> None:
    """Some endpoints ignore that the last turn may call nothing."""
    bench.set(skills__prefilter_min_score=1, model__stream=False, runtime__max_turns=2)
    said = iter(["And now?", None])

    async def message(answer: str) -> str | None:
        return next(said)

    look = Reply(calls=(("list_files", {}),))
    last = Reply("My answer is 7.", calls=(("write_file", {"path": "x", "content": "x"}),))
    ran = await run(lab, bench, provider, look, last, Reply("Still 7."), next_message=message)
    assert (ran.conclusion.status, ran.conclusion.answer) == (ConclusionStatus.FINISHED, "Still 7.")
    assert not (bench.cwd / "x").exists()
    assert lab.served.refused == []
