"""Complete runs with a scripted model: turns, handoffs, failures, questions, and every kind of ending."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.swarm.event import EventType
from fireswarm.contracts.swarm.task import Constraints
from fireswarm.llm.providers.scripted import ScriptedModel
from fireswarm.mind import ConclusionStatus
from fireswarm.mind.loop import MAX_RESULT_FAULTS
from fireswarm.mind.states import ALLOWED, Machine, State
from tests.support.minds import Bench, Heard, ask, call, command, decided, finish

pytestmark = pytest.mark.anyio

GOOD = decided(finish("hello Ada", result='{"greeted": "Ada"}'), skill="greeter")
SEEDS_POLICY = "retry_once_then_fallback_then_abort"
FAILING = command("echo oops >&2; echo x >> tried; exit 7")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path).set(skills__prefilter_min_score=1)


async def test_run_of_one_turn_returns_answer_and_result(bench: Bench) -> None:
    ran = await bench.run([GOOD])
    assert ran.conclusion.status is ConclusionStatus.FINISHED
    assert (ran.conclusion.answer, ran.conclusion.result) == ("hello Ada", {"greeted": "Ada"})
    assert (ran.conclusion.skill, ran.conclusion.turns) == ("greeter", 1)


async def test_step_results_are_in_the_next_message(bench: Bench) -> None:
    script = Heard(decided(command("echo one; echo two >&2; exit 0")), GOOD)
    ran = await bench.run(script)
    assert ran.conclusion.status is ConclusionStatus.FINISHED
    told = json.loads(script.told.splitlines()[-1])
    assert (told["stdout_summary"], told["stderr_summary"], told["exit_code"]) == ("one\n", "two\n", 0)


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
    places = [first.index(part) for part in [*parts, "# Skills you may choose from", "- greeter: Greets", "# Overview"]]
    assert places == sorted(places)


# ── limits ──────────────────────────────────────────────────────────────────────────────────────────────


def counting(request: ChatRequest) -> str:
    return decided(command(f"echo {len(request.messages)}"))


async def test_run_is_ended_after_max_turns(bench: Bench) -> None:
    bench.set(runtime__max_turns=3)
    ran = await bench.run(counting)
    assert ran.conclusion.reason == "max_turns_exceeded"
    assert (ran.conclusion.turns, ran.kinds.count("llm_request_sent")) == (3, 3)
    assert ran.kinds[-1] == "run_failed"


async def test_repair_does_not_count_as_a_turn(bench: Bench) -> None:
    bench.set(runtime__max_turns=1)
    script = Heard("nonsense", GOOD)
    ran = await bench.run(script)
    assert (ran.conclusion.status, ran.conclusion.turns) == (ConclusionStatus.FINISHED, 1)
    assert "contains no JSON object" in script.told
    assert "planned_actions" in script.told


async def test_second_invalid_decision_ends_the_run_deterministically(bench: Bench) -> None:
    answers = [(await bench.run(Heard("nonsense", '{"thoughts": 1}', GOOD))).conclusion for _ in range(2)]
    assert [answer.reason for answer in answers] == ["decision_invalid"] * 2
    assert answers[0].answer == answers[1].answer
    assert "thoughts: Extra inputs are not permitted" in answers[0].answer


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
        "skill_disclosure_loaded", "prompt_budget_computed", "prompt_composed", "run_finished",
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
    [found] = ran.of(EventType.SKILL_PREFILTER_COMPLETED)
    assert found["strategy"] == "fallback_all_skills"
    assert {each["skill_name"] for each in found["candidates"]} == {"greeter", "farewell"}


async def test_skill_named_by_the_task_must_exist(bench: Bench) -> None:
    assert (await bench.run([GOOD], named="greeter")).conclusion.status is ConclusionStatus.FINISHED
    ran = await bench.run([GOOD], named="nobody")
    assert (ran.conclusion.reason, "nobody" in ran.conclusion.answer) == ("not_found", True)


# ── handoffs, repetition, lack of progress ──────────────────────────────────────────────────────────────


async def test_handoff_discloses_the_next_skill_and_records_the_reason(bench: Bench) -> None:
    script = Heard(decided(call("farewell"), skill="greeter", why="greeted, now part"), GOOD)
    ran = await bench.run(script)
    started = ran.of(EventType.SKILL_INVOCATION_STARTED)
    assert [(each["from"], each["skill"]) for each in started][:2] == [("", "greeter"), ("greeter", "farewell")]
    assert started[1]["reason"] == "greeted, now part"
    assert ran.of(EventType.SKILL_INVOCATION_FINISHED)[0]["reason"] == "handoff: greeted, now part"
    assert "# Overview of farewell" in script.told


async def test_handoff_after_steps_is_executed_too(bench: Bench) -> None:
    script = Heard(decided(command("echo hi"), call("farewell"), skill="greeter", why="done here"), GOOD)
    ran = await bench.run(script)
    assert [e["skill"] for e in ran.of(EventType.SKILL_INVOCATION_STARTED) if e["from"] == "greeter"] == ["farewell"]
    assert "# Overview of farewell" in script.told
    assert "hi" in script.told


async def test_second_handover_of_a_skill_to_itself_ends_the_run(bench: Bench) -> None:
    script = Heard(decided(call("greeter"), skill="greeter"))
    ran = await bench.run(script)
    assert ran.conclusion.reason == "no_progress"
    assert "greeter handed over to itself twice" in ran.conclusion.answer
    assert len(script.requests) == 2
    assert "You are already using greeter" in script.told


async def test_handovers_back_and_forth_end_the_run(bench: Bench) -> None:
    script = Heard(*[decided(call("farewell" if n % 2 else "greeter"), why="you do it") for n in range(8)])
    ran = await bench.run(script)
    assert ran.conclusion.reason == "no_progress"
    assert "handed over to" in ran.conclusion.answer
    assert len(script.requests) < 6


async def test_handoff_to_a_skill_not_shown_is_rejected(bench: Bench) -> None:
    bench.set(skills__prefilter_top_k=1)
    script = Heard(decided(call("farewell"), skill="greeter"), GOOD)
    ran = await bench.run(script)
    assert ran.conclusion.status is ConclusionStatus.FINISHED
    assert "Skill 'farewell' is not among the skills you were shown" in script.told


async def test_same_action_with_the_same_result_ends_the_run(bench: Bench) -> None:
    script = Heard(decided(command("echo same"), skill="greeter"))
    ran = await bench.run(script)
    assert ran.conclusion.reason == "no_progress"
    assert "run_command 'echo same' returned the same result twice" in ran.conclusion.answer
    assert len(script.requests) == 2


async def test_repeated_action_with_another_result_continues(bench: Bench) -> None:
    line = command("echo x >> log; wc -l < log")
    ran = await bench.run(Heard(decided(line), decided(line), decided(line), GOOD))
    assert ran.conclusion.status is ConclusionStatus.FINISHED


async def test_second_decision_without_a_plan_ends_the_run(bench: Bench) -> None:
    script = Heard(decided(skill="greeter"), decided(skill="greeter"))
    ran = await bench.run(script)
    assert ran.conclusion.reason == "no_progress"
    assert "You planned no action" in script.told
    ran = await bench.run(Heard(decided(), decided(command("echo 1")), decided(), GOOD))
    assert ran.conclusion.status is ConclusionStatus.FINISHED


async def test_repeated_request_for_shown_material_ends_the_run(bench: Bench) -> None:
    script = Heard(decided(skill="greeter", paths=["references/manners.md"]))
    ran = await bench.run(script)
    assert ran.conclusion.reason == "no_progress"
    assert len(script.requests) == 3
    assert "You have already been shown what you requested" in script.told


async def test_requested_reference_is_disclosed_unless_it_is_outside(bench: Bench) -> None:
    script = Heard(decided(skill="greeter", paths=["references/manners.md", "../farewell/SKILL.md"]), GOOD)
    ran = await bench.run(script)
    assert "Be kind." in script.told
    assert "Refused: ../farewell/SKILL.md: it is outside the skill's folder" in script.told
    stages = [each["stage"] for each in ran.of(EventType.SKILL_DISCLOSURE_LOADED)]
    assert stages == [0, 1, 2]


async def test_reference_that_a_summary_replaced_can_be_requested_again(bench: Bench) -> None:
    bench.skill(
        "greeter", (bench.skills / "greeter" / "SKILL.md").read_text(), {"references/long.md": "manners\n" * 300}
    )
    bench.set(
        model__max_context_tokens=2_600, model__response_headroom_tokens=300, runtime__max_turns=12,
        skills__prefilter_min_score=1,
    )  # fmt: skip
    asks = decided(skill="greeter", paths=["references/long.md"])
    fill = [decided(command(f"seq {number} {number + 900}"), skill="greeter") for number in range(2)]
    turns = iter((asks, *fill, asks, GOOD))
    requests: list[ChatRequest] = []

    def script(request: ChatRequest) -> str:
        requests.append(request)
        return "Numbers were counted." if request.for_summary else next(turns)

    ran = await bench.run(script)
    assert ran.conclusion.status is ConclusionStatus.FINISHED, ran.conclusion
    removed = [name for each in ran.of(EventType.PROMPT_BUDGET_COMPUTED) for name in each["trimmed"]]
    assert "references of greeter" in removed
    first, last = requests[-1].messages[0].text, requests[-1].messages[-1].text
    assert "Numbers were counted." in first and "Say hello, and nothing else." in first
    assert "manners" in last


# ── questions and results ───────────────────────────────────────────────────────────────────────────────


async def test_question_waits_unless_it_is_answered_now_or_was_before(bench: Bench) -> None:
    plan = decided(ask("Who is it?", "the name!"), skill="greeter")
    ran = await bench.run([plan])
    assert (ran.conclusion.status, ran.conclusion.answer) == (ConclusionStatus.WAITING, "Who is it?")
    assert [(each.name, each.description) for each in ran.conclusion.questions] == [("the_name_", "Who is it?")]

    async def somebody(question: Question) -> str:
        return f"Ada, asked for {question.name}"

    script = Heard(plan, GOOD)
    assert (await bench.run(script, ask=somebody)).conclusion.status is ConclusionStatus.FINISHED
    assert "Ada, asked for the_name_" in script.told

    async def nobody(_question: Question) -> None: ...

    assert (await bench.run([plan], ask=nobody)).conclusion.status is ConclusionStatus.WAITING
    [question] = ran.conclusion.questions
    script = Heard(plan, GOOD)
    answered = {question.step: {"the_name_": "Grace"}}
    assert (await bench.run(script, answered=answered)).conclusion.status is ConclusionStatus.FINISHED
    assert "Grace" in script.told
    assert (await bench.run([plan], answers={"the_name_": "Eve"})).conclusion.status is ConclusionStatus.WAITING


def wants_a_number(result: Mapping[str, Any]) -> str:
    return "" if isinstance(result.get("n"), int) else "n must be a number"


async def test_invalid_result_is_sent_back_and_corrected(bench: Bench) -> None:
    script = Heard(
        decided(finish(result="{broken")), decided(finish(result='{"n": "x"}')), decided(finish(result='{"n": 5}'))
    )
    ran = await bench.run(script, check_result=wants_a_number)
    assert ran.conclusion.result == {"n": 5}
    told = [request.messages[-1].text for request in script.requests[1:]]
    assert "The result was rejected: params.result: not JSON" in told[0]
    assert "The result was rejected: n must be a number" in told[1]


async def test_repeatedly_invalid_result_ends_the_run(bench: Bench) -> None:
    script = Heard(decided(finish(result="{}")))
    ran = await bench.run(script, check_result=wants_a_number)
    assert ran.conclusion.reason == "result_invalid"
    assert len(script.requests) == MAX_RESULT_FAULTS + 1


# ── the machine ─────────────────────────────────────────────────────────────────────────────────────────


async def test_runs_take_every_transition_of_the_table(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    moves: set[tuple[State, State]] = set()
    move = Machine.move

    def noted(self: Machine, target: State) -> None:
        moves.add((self.state, target))
        move(self, target)

    monkeypatch.setattr(Machine, "move", noted)
    bench.set(skills__prefilter_min_score=1, runtime__on_step_failure=SEEDS_POLICY)
    await bench.run([GOOD], dry_run=True)
    await bench.run(Heard("?", decided(FAILING, skill="greeter"), decided(call("farewell")), GOOD))
    await bench.run(Heard(decided(command("echo 1"), skill="greeter", paths=["references/manners.md"]), GOOD))
    await bench.run(Heard(decided(command("echo 2"), finish())))
    await bench.run(
        Heard(decided(finish(result="{}")), decided(finish(result='{"n": 1}'))), check_result=wants_a_number
    )
    await bench.run([decided(ask("Who?"))])
    await bench.run(Heard(decided(command("echo 3")), {"error": 401}))
    # a repeated call stays in CALL_LLM: the model client does the retries
    assert moves - {pair for pair in moves if pair[1] is State.ERROR} == ALLOWED - {(State.CALL_LLM, State.CALL_LLM)}
