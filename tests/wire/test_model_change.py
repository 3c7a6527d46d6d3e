"""A run goes on with another model: each provider takes what another one answered, and no foreign signature is sent."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fireswarm.capabilities.workspace.writing import workspace_tools
from fireswarm.contracts.grant import Grant
from fireswarm.llm.providers.scripted import ScriptedModel
from fireswarm.mind import Assignment, Conclusion, ConclusionStatus, think
from fireswarm.runs.make_mind import make_mind, redactor_for
from fireswarm.runs.sinks.files import RunLog
from tests.support.experts import calls
from tests.support.minds import PROVIDERS, SYSTEM, TASK, Bench, Lab
from tests.support.provider_rules import UNSIGNED
from tests.support.providers import Reply

pytestmark = pytest.mark.anyio

FIRST = Reply(
    "I look at both.",
    thinking="Both are needed.",
    calls=(("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"})),
)
SECOND = Reply(calls=(("read_file", {"path": "a.txt"}),))
LISTED = Reply(calls=(("list_files", {}),))
BROKEN = Reply(status=400, message="the account is closed")
CHANGES = [pair for pair in itertools.product(PROVIDERS, repeat=2) if pair[0] != pair[1]]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path, decision_mode="tools").set(skills__prefilter_min_score=1)
    (bench.cwd / "a.txt").write_text("one\n")
    (bench.cwd / "b.txt").write_text("two\n")
    return bench


async def start(bench: Bench, model: Any) -> Conclusion:
    """Begin the run, or go on with it."""
    folder = bench.root / "runs" / "x"
    mind = make_mind(
        bench.settings, bench.catalog(), bench.clock, bench.root, environment=bench.environment, model=model
    )
    log = RunLog(folder, folder.name, bench.clock, redactor_for(bench.settings, bench.environment))
    try:
        return await think(mind, Assignment(TASK, SYSTEM, Grant(bench.cwd), tools=workspace_tools(bench.cwd)), log)
    finally:
        log.close()


def in_order(*replies: Reply) -> Callable[[Any], Reply]:
    """Answers in order, however many the conversation has already."""
    left = iter(replies)
    return lambda _: next(left)


def last_body(lab: Lab) -> str:
    return json.dumps(lab.served.calls[-1].body)


@pytest.mark.parametrize(("first", "second"), CHANGES)
async def test_another_provider_goes_on_with_the_answers_and_results(
    first: str, second: str, lab: Lab, bench: Bench
) -> None:
    begun = await start(bench, lab.adapter(first, in_order(FIRST, SECOND, BROKEN)))
    assert begun.status is ConclusionStatus.FAILED
    ended = await start(bench, lab.adapter(second, in_order(LISTED, Reply("Done.", thinking="Now I know."))))
    assert (ended.status, ended.answer) == (ConclusionStatus.FINISHED, "Done."), ended
    assert lab.served.refused == []
    sent = last_body(lab)
    assert "I look at both." in sent and sent.count("read_file") >= 3
    assert "Both are needed." not in sent, "a thought of another model stays out"
    assert (UNSIGNED in sent) is second.startswith("gemini")


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_another_model_of_a_provider_gets_no_thoughts_that_it_did_not_sign(
    provider: str, lab: Lab, bench: Bench
) -> None:
    await start(bench, lab.adapter(provider, in_order(FIRST, BROKEN)))
    model = lab.adapter(provider, in_order(Reply("Done.")))
    name, model.name = model.name, "claude-haiku-4-5" if "anthropic" in provider else "another-model"
    try:
        ended = await start(bench, model)
    finally:
        model.name = name
    assert ended.status is ConclusionStatus.FINISHED, ended
    assert lab.served.refused == []
    assert "Both are needed." not in last_body(lab) and "I look at both." in last_body(lab)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_run_with_recorded_answers_goes_on_with_a_model(provider: str, lab: Lab, bench: Bench) -> None:
    script = [calls(("read_file", {"path": "a.txt"}), ("list_files", {})), {"error": 400, "message": "no more"}]
    await start(bench, ScriptedModel(script, tools=True))
    ended = await start(bench, lab.adapter(provider, in_order(Reply("Done."))))
    assert ended.status is ConclusionStatus.FINISHED, ended
    assert lab.served.refused == []


async def test_claude_with_a_budget_for_thoughts_goes_on_without_them_in_the_middle_of_calls(
    lab: Lab, bench: Bench
) -> None:
    """The API demands that an answer whose calls are answered begins with a thought, or that thinking is off."""
    await start(bench, lab.adapter("gemini", in_order(FIRST, BROKEN)))
    thinking = {"type": "enabled", "budget_tokens": 2_000}
    async with lab.with_model("anthropic", bench.settings, thinking=thinking) as thoughtful:
        model = thoughtful.adapter("anthropic", in_order(SECOND, Reply("Done.")))
        assert (await start(bench, model)).status is ConclusionStatus.FINISHED
    assert [call.body["thinking"]["type"] for call in lab.served.calls] == ["disabled", "disabled"]
