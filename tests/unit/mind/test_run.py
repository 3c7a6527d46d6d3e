"""Complete runs with a scripted model that calls tools itself, or answers with JSON: the same run in both forms."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.swarm.constraints import Constraints
from fireswarm.contracts.swarm.event import EventType
from fireswarm.llm.providers.scripted import ScriptedModel
from fireswarm.mind import ConclusionStatus
from fireswarm.mind.handlers.small_tools import MAX_RESULT_FAULTS
from tests.support.minds import Bench, Heard, ask, command, decided, use
from tests.support.states import may_follow, states_of

pytestmark = pytest.mark.anyio

GOOD = decided(text="hello Ada")
OBJECT = {"type": "object"}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path).set(skills__prefilter_min_score=1)


@pytest.fixture(params=[True, False], ids=["tools", "json"])
def calls_tools(request: pytest.FixtureRequest) -> bool:
    return request.param


def finish(answer: str, result: Any) -> dict[str, Any]:
    return {"name": "finish", "input": {"answer": answer, "result": result}}


class Asked:
    """A script for both forms that remembers its requests."""

    def __init__(self, *answers: Any, tools: bool) -> None:
        self.answers, self.tools = answers, tools
        self.requests: list[ChatRequest] = []

    def __call__(self, request: ChatRequest) -> Any:
        self.requests.append(request)
        return self.answers[min(len(self.requests), len(self.answers)) - 1]

    @property
    def told(self) -> str:
        """All that the model was told last."""
        last = self.requests[-1].messages[-1]
        return "\n".join([*(output.text for output in last.outputs), last.text])


def calls(*each: dict[str, Any], text: str = "as told") -> dict[str, Any]:
    return {"calls": list(each), "text": text}


ANSWER = {"calls": [], "text": "hello Ada"}


async def test_run_of_one_turn_returns_the_answer(bench: Bench, calls_tools: bool) -> None:
    ran = await bench.run(Asked(ANSWER, tools=calls_tools))
    assert (ran.conclusion.status, ran.conclusion.answer) == (ConclusionStatus.FINISHED, "hello Ada")
    assert ran.conclusion.turns == 1


async def test_outputs_are_in_the_next_message(bench: Bench, calls_tools: bool) -> None:
    script = Asked(calls(command("echo one; echo two >&2; exit 3")), ANSWER, tools=calls_tools)
    await bench.run(script)
    assert "[exit code 3]\none\n[stderr]\ntwo" in script.told


async def test_both_forms_leave_the_same_events(bench: Bench, tmp_path: Path) -> None:
    answers = (calls(use("greeter")), calls(command("echo hi"), ask("Who?")), ANSWER)

    async def somebody(question: Question) -> str:
        return "Ada"

    logs: list[list[Any]] = []
    for tools in (True, False):
        other = Bench(tmp_path / str(tools)).set(skills__prefilter_min_score=1)
        ran = await other.run(Asked(*answers, tools=tools), ask=somebody)
        logs.append([(e.event_type, e.payload.get("step_id"), e.payload.get("stdout_summary")) for e in ran.events])
    first, second = ([(kind, step) for kind, step, _ in log] for log in logs)
    assert first == second


async def test_first_prompt_contains_task_context_and_candidates_in_order(bench: Bench) -> None:
    script = Heard(GOOD)
    await bench.run(
        script,
        context={"who": "Ada"},
        material="# Brought\nnothing",
        answers={"name": "Ada"},
        result_form="a JSON map",
        constraints=Constraints(read_only=True),
    )
    first = script.requests[0].messages[0].text
    parts = ["# Task", "## Context", '"who": "Ada"', '"read_only": true', "a JSON map", "## Answers", "# Brought"]
    places = [first.index(part) for part in [*parts, "# Skills you may choose from", "- greeter: Greets"]]
    assert places == sorted(places)


# ── limits ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_run_is_ended_after_max_turns(bench: Bench, calls_tools: bool) -> None:
    bench.set(runtime__max_turns=3)
    ran = await bench.run(Asked(*[calls(command(f"echo {n}"), text="") for n in range(9)], tools=calls_tools))
    assert ran.conclusion.reason == "max_turns_exceeded"
    assert (ran.conclusion.turns, ran.kinds.count("llm_request_sent")) == (3, 3)
    assert ran.kinds[-1] == "run_failed"


async def test_repair_does_not_count_as_a_turn(bench: Bench) -> None:
    bench.set(runtime__max_turns=1)
    script = Heard("nonsense", GOOD)
    ran = await bench.run(script)
    assert (ran.conclusion.status, ran.conclusion.turns) == (ConclusionStatus.FINISHED, 1)
    assert "contains no JSON object" in script.told
    assert '"calls"' in script.told


async def test_second_invalid_answer_ends_the_run_deterministically(bench: Bench) -> None:
    answers = [(await bench.run(Heard("nonsense", '{"thoughts": 1}', GOOD))).conclusion for _ in range(2)]
    assert [answer.reason for answer in answers] == ["decision_invalid"] * 2
    assert answers[0].answer == answers[1].answer
    assert "unknown fields thoughts" in answers[0].answer


async def test_each_turn_may_have_one_repair(bench: Bench) -> None:
    ran = await bench.run(Heard("?", decided(command("echo 1")), "?", decided(command("echo 2")), GOOD))
    assert ran.conclusion.status is ConclusionStatus.FINISHED


async def test_missing_key_ends_the_run_without_a_call_and_names_the_variable(bench: Bench) -> None:
    bench.environment = {}
    ran = await bench.run(None)
    assert ran.conclusion.reason == "missing_provider_api_key"
    assert "ANTHROPIC_API_KEY is not set" in ran.conclusion.answer
    assert "llm_request_sent" not in ran.kinds
    assert ran.of(EventType.RUN_FAILED)[0]["reason"] == "missing_provider_api_key"


async def test_dry_run_composes_the_prompt_without_a_call(bench: Bench) -> None:
    model = ScriptedModel([GOOD])
    ran = await bench.run(model, dry_run=True)
    assert (ran.conclusion.status, model.calls) == (ConclusionStatus.DRY_RUN, 0)
    assert ran.kinds == [
        "run_started", "skill_catalog_loaded", "skill_prefilter_completed", "skill_disclosure_loaded",
        "prompt_budget_computed", "prompt_composed", "run_finished",
    ]  # fmt: skip
    assert ran.of(EventType.RUN_FINISHED)[0]["mode"] == "dry_run"


async def test_missing_candidates_fail_the_run_or_show_all_skills_as_configured(bench: Bench) -> None:
    bench.set(skills__prefilter_min_score=100, skills__prefilter_zero_candidate_strategy="fail_fast")
    ran = await bench.run([GOOD], task="xyzzy plugh")
    assert ran.conclusion.reason == "no_skill_candidates"
    assert ran.kinds[-2:] == ["skill_prefilter_completed", "run_failed"]
    bench.set(skills__prefilter_min_score=100)
    ran = await bench.run([GOOD], task="xyzzy plugh")
    assert ran.conclusion.status is ConclusionStatus.FINISHED
    [shown] = ran.of(EventType.SKILL_PREFILTER_COMPLETED)
    assert shown["strategy"] == "fallback_all_skills"
    assert {each["skill_name"] for each in shown["candidates"]} == {"greeter", "farewell"}


async def test_skill_named_by_the_task_must_exist(bench: Bench) -> None:
    assert (await bench.run([GOOD], named="greeter")).conclusion.skill == "greeter"
    ran = await bench.run([GOOD], named="nobody")
    assert (ran.conclusion.reason, "nobody" in ran.conclusion.answer) == ("not_found", True)


# ── skills ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_use_of_a_skill_shows_all_of_it_and_records_the_reason(bench: Bench, calls_tools: bool) -> None:
    script = Asked(
        calls(use("greeter", "to greet")), calls(use("farewell", "greeted, now part")), ANSWER, tools=calls_tools
    )
    ran = await bench.run(script)
    started = ran.of(EventType.SKILL_INVOCATION_STARTED)
    assert [(each["from"], each["skill"]) for each in started] == [("", "greeter"), ("greeter", "farewell")]
    assert started[1]["reason"] == "greeted, now part"
    assert ran.of(EventType.SKILL_INVOCATION_FINISHED)[0]["reason"] == "handoff: greeted, now part"
    assert "Say goodbye." in script.told
    assert [each["stage"] for each in ran.of(EventType.SKILL_DISCLOSURE_LOADED)] == [0, 1, 1]


async def test_skill_in_use_is_not_shown_again_and_the_third_time_ends_the_run(bench: Bench, calls_tools: bool) -> None:
    script = Asked(calls(use("greeter")), tools=calls_tools)
    ran = await bench.run(script)
    assert "greeter is already in use." in script.told
    assert ran.conclusion.reason == "no_progress"


async def test_skills_used_in_turn_are_progress(bench: Bench, calls_tools: bool) -> None:
    turns = [calls(use("farewell" if n % 2 else "greeter")) for n in range(4)]
    ran = await bench.run(Asked(*turns, ANSWER, tools=calls_tools))
    assert ran.conclusion.status is ConclusionStatus.FINISHED


async def test_files_of_a_skill_are_read_on_request_unless_they_are_outside(bench: Bench, calls_tools: bool) -> None:
    asks = [
        {"name": "read_skill_file", "input": {"skill": "greeter", "path": path}}
        for path in ("references/manners.md", "../farewell/SKILL.md")
    ]
    script = Asked(calls(*asks), ANSWER, tools=calls_tools)
    ran = await bench.run(script)
    assert "Be kind." in script.told
    assert "it is outside the skill's folder" in script.told
    assert [each["stage"] for each in ran.of(EventType.SKILL_DISCLOSURE_LOADED)] == [0, 2]


# ── lack of progress ────────────────────────────────────────────────────────────────────────────────────


async def test_second_empty_answer_ends_the_run(bench: Bench) -> None:
    script = Heard(decided(), decided())
    ran = await bench.run(script)
    assert ran.conclusion.reason == "no_progress"
    assert "You called no tool and gave no answer" in script.told
    ran = await bench.run(Heard(decided(), decided(command("echo 1")), decided(), GOOD))
    assert ran.conclusion.status is ConclusionStatus.FINISHED


# ── questions and results ───────────────────────────────────────────────────────────────────────────────


async def test_question_waits_unless_it_is_answered_now_or_was_before(bench: Bench, calls_tools: bool) -> None:
    plan = calls(ask("Who is it?", "the name!"))
    ran = await bench.run(Asked(plan, tools=calls_tools))
    assert (ran.conclusion.status, ran.conclusion.answer) == (ConclusionStatus.WAITING, "Who is it?")
    assert [(each.name, each.description) for each in ran.conclusion.questions] == [("the_name_", "Who is it?")]

    async def somebody(question: Question) -> str:
        return f"Ada, asked for {question.name}"

    script = Asked(plan, ANSWER, tools=calls_tools)
    assert (await bench.run(script, ask=somebody)).conclusion.status is ConclusionStatus.FINISHED
    assert "Ada, asked for the_name_" in script.told

    async def nobody(_question: Question) -> None: ...

    waits = Asked(plan, tools=calls_tools)
    assert (await bench.run(waits, ask=nobody)).conclusion.status is ConclusionStatus.WAITING
    [question] = ran.conclusion.questions
    script = Asked(plan, ANSWER, tools=calls_tools)
    answered = {question.step: {"the_name_": "Grace"}}
    assert (await bench.run(script, answered=answered)).conclusion.status is ConclusionStatus.FINISHED
    assert "Grace" in script.told
    assert (await bench.run(waits, answers={"the_name_": "Eve"})).conclusion.status is ConclusionStatus.WAITING


def wants_a_number(result: Mapping[str, Any]) -> str:
    return "" if isinstance(result.get("n"), int) else "n must be a number"


async def test_invalid_result_is_sent_back_and_corrected(bench: Bench, calls_tools: bool) -> None:
    script = Asked(
        calls(finish("", "{broken")),
        calls(finish("", {"n": "x"})),
        calls(finish("done", {"n": 5})),
        tools=calls_tools,
    )
    ran = await bench.run(script, check_result=wants_a_number, result_schema=OBJECT)
    assert ran.conclusion.result == {"n": 5}
    assert "the result was rejected: n must be a number" in script.told


async def test_repeatedly_invalid_result_ends_the_run(bench: Bench, calls_tools: bool) -> None:
    answers = [calls(finish("", {"try": number})) for number in range(9)]
    script = Asked(*answers, tools=calls_tools)
    ran = await bench.run(script, check_result=wants_a_number, result_schema=OBJECT)
    assert ran.conclusion.reason == "result_invalid"
    assert len(script.requests) == MAX_RESULT_FAULTS + 1


# ── the states of the specification ─────────────────────────────────────────────────────────────────────


async def test_events_of_every_run_follow_the_table_of_states(bench: Bench, calls_tools: bool) -> None:
    failing = command("echo oops >&2; exit 7")
    bench.set(skills__prefilter_min_score=1, runtime__on_step_failure="retry_once_then_fallback_then_abort")
    scripts: list[tuple[Any, dict[str, Any]]] = [
        (Asked(ANSWER, tools=calls_tools), {"dry_run": True}),
        (Asked(calls(use("greeter"), failing), calls(use("farewell")), ANSWER, tools=calls_tools), {}),
        (Asked(calls(failing), calls(failing), tools=calls_tools), {}),
        (Asked(calls(command("echo 1")), {"error": 401}, tools=calls_tools), {}),
        (Asked(calls(ask("Who?")), tools=calls_tools), {}),
        (Heard("?", decided(command("echo 1")), GOOD), {}),
        (Heard("?", "?"), {}),
        (
            Asked(calls(finish("", {})), calls(finish("", {"n": 1})), tools=calls_tools),
            {"check_result": wants_a_number, "result_schema": OBJECT},
        ),
    ]
    for script, assigned in scripts:
        ran = await bench.run(script, **assigned)
        states = states_of(event.event_type for event in ran.events)
        assert len(states) > 3
        for source, target in zip(states, states[1:], strict=False):
            assert may_follow(source, target), (source, target, ran.kinds)
