"""Steps of a run: commands, skills with code and tools, and the handling of failed and refused steps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import PlannedTask, Question, SkillResult, SkillState
from fireswarm.contracts.swarm.constraints import Constraints
from fireswarm.contracts.swarm.event import EventType
from fireswarm.errors import LeaseLost, SkillFailed
from fireswarm.mind import ConclusionStatus, Tool
from fireswarm.mind.calls.results import describe_skill_result
from fireswarm.skills.packs.catalog import Skill
from tests.support.minds import Bench, Heard, command, decided, use

pytestmark = pytest.mark.anyio

CODED = """---
name: counter
description: Counts the letters of a name that was greeted.
metadata:
  entry: scripts/count.py
---
# Counter
"""
GOOD = decided(text="hello Ada")
FAILING = command("echo oops >&2; echo x >> tried; exit 7")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path).set(skills__prefilter_min_score=1)


# ── steps that fail ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("policy", "tries", "led", "reason"),
    [
        ("retry_once_then_fallback_then_abort", 4, ["greeter", "farewell"], "step_failed"),
        ("fallback_then_abort", 2, ["greeter", "farewell"], "step_failed"),
        ("retry_once_then_report", 2, ["greeter"], "finished"),
        ("report", 1, ["greeter"], "finished"),
        ("abort", 1, ["greeter"], "step_failed"),
    ],
)
async def test_failed_step_is_handled_by_the_policy(
    policy: str, tries: int, led: list[str], reason: str, bench: Bench
) -> None:
    bench.set(runtime__on_step_failure=policy, skills__prefilter_min_score=1)
    reports = policy.endswith("report")
    script = Heard(decided(use("greeter"), FAILING), GOOD if reports else decided(FAILING))
    ran = await bench.run(script)
    assert ran.conclusion.reason == reason
    assert (bench.cwd / "tried").read_text().count("x") == tries
    assert [each["skill"] for each in ran.of(EventType.SKILL_INVOCATION_STARTED)] == led
    assert ran.kinds.count("step_retry_scheduled") == (tries // 2 if policy.startswith("retry") else 0)
    if not reports:
        assert "exit code 7" in ran.conclusion.answer or "oops" in ran.conclusion.answer
    else:
        assert ran.conclusion.turns == 2  # the model was told, and could finish at once
        assert "[exit code 7]" in script.told


async def test_successful_retry_is_not_a_failure(bench: Bench) -> None:
    bench.set(skills__prefilter_min_score=1, runtime__on_step_failure="retry_once_then_fallback_then_abort")
    line = command("if [ -e again ]; then echo fine; else touch again; exit 1; fi")
    ran = await bench.run(Heard(decided(line), GOOD))
    assert ran.conclusion.status is ConclusionStatus.FINISHED
    steps = ran.of(EventType.SKILL_STEP_EXECUTED)
    assert [(step["step_id"], step["status"], step["retry_count"]) for step in steps] == [
        ("1.1", "failed", 0),
        ("1.1.r1", "ok", 1),
    ]


async def test_fallback_is_the_best_candidate_not_used_before(bench: Bench) -> None:
    bench.set(skills__prefilter_min_score=1, runtime__on_step_failure="fallback_then_abort")
    script = Heard(decided(use("farewell"), FAILING), GOOD)
    ran = await bench.run(script)
    assert [each["skill"] for each in ran.of(EventType.SKILL_INVOCATION_STARTED)] == ["farewell", "greeter"]
    assert ran.conclusion.status is ConclusionStatus.FINISHED


async def test_failed_call_drops_no_other_call_of_the_answer(bench: Bench) -> None:
    bench.set(runtime__on_step_failure="report")
    await bench.run(Heard(decided(FAILING, command("touch second")), GOOD))
    assert (bench.cwd / "second").exists()


async def test_command_over_its_time_limit_is_a_timeout(bench: Bench) -> None:
    bench.set(runtime__on_step_failure="report", runtime__timeout_seconds=0.2)
    ran = await bench.run(Heard(decided(command("sleep 60")), GOOD))
    [step] = ran.of(EventType.SKILL_STEP_EXECUTED)
    assert (step["status"], step["exit_code"]) == ("timeout", 124)
    assert "killed after 0.2 s" in step["stderr_summary"]


async def test_finish_after_a_call_that_could_not_be_made_is_rejected(bench: Bench) -> None:
    done = {"name": "finish", "input": {"answer": "I wrote it", "result": {}}}
    bad = {"name": "read_output", "input": {"output": "9.9", "page": 1}}
    script = Heard(decided(bad, done), GOOD)
    ran = await bench.run(script, result_schema={"type": "object"})
    assert "an earlier call of this answer failed" in script.told
    assert ran.conclusion.answer == "hello Ada"


async def test_command_of_a_read_only_task_cannot_write(bench: Bench) -> None:
    script = Heard(decided(command("touch x")), GOOD)
    ran = await bench.run(script, constraints=Constraints(read_only=True))
    assert not (bench.cwd / "x").exists()
    assert {step["status"] for step in ran.of(EventType.SKILL_STEP_EXECUTED)} == {"failed"}
    assert "Read-only file system" in script.told
    assert ran.conclusion.answer == "hello Ada"


async def test_command_of_a_read_only_task_is_refused_where_nothing_confines_it(bench: Bench) -> None:
    bench.set(runtime__confinement="none")
    script = Heard(decided(command("ls")), GOOD)
    ran = await bench.run(script, constraints=Constraints(read_only=True))
    [step] = ran.of(EventType.SKILL_STEP_EXECUTED)
    assert (step["status"], step["exit_code"]) == ("refused", 126)
    assert "the task is read_only" in script.told
    assert ran.conclusion.answer == "hello Ada"


async def test_allowed_tools_of_the_active_skill_are_enforced(bench: Bench) -> None:
    text = (bench.skills / "greeter" / "SKILL.md").read_text().replace("---\n#", "allowed-tools: Bash(echo:*)\n---\n#")
    bench.skill("greeter", text)
    plan = decided(use("greeter"), command("echo fine"), command("touch x"))
    ran = await bench.run(Heard(plan, GOOD))
    assert [step["status"] for step in ran.of(EventType.SKILL_STEP_EXECUTED)] == ["ok", "ok", "refused"]


# ── skills with code, and tools ─────────────────────────────────────────────────────────────────────────


async def test_code_skill_is_run_and_its_result_is_shown(bench: Bench) -> None:
    bench.skill("counter", CODED, {"scripts/count.py": ""})
    given_to: list[Mapping[str, Any]] = []

    async def run_skill(skill: Skill, given: Mapping[str, Any], answers: Mapping[str, Any]) -> SkillResult:
        given_to.append(given)
        return SkillResult(summary=f"{skill.name}: 3 letters", insights=("short",))

    script = Heard(decided(use("counter", name="Ada")), GOOD)
    ran = await bench.run(script, run_skill=run_skill)
    assert given_to == [{"name": "Ada"}]
    assert "3 letters" in script.told
    assert ran.conclusion.outputs[0].insights == ("short",)


def test_value_of_an_artifact_that_is_cut_says_so() -> None:
    shown = describe_skill_result(
        SkillResult(summary="s", artifacts=(Artifact(type="data", name="all", value="x" * 9_000),))
    )
    assert "[cut: the value has 9,002 characters]" in shown
    assert "[cut" not in describe_skill_result(
        SkillResult(summary="s", artifacts=(Artifact(type="data", name="all", value="x" * 900),))
    )


async def test_failing_or_unknown_skill_becomes_a_step_result(bench: Bench) -> None:
    bench.set(runtime__on_step_failure="report")
    bench.skill("counter", CODED, {"scripts/count.py": ""})

    async def raises(_skill: Skill, _given: Mapping[str, Any], _answers: Mapping[str, Any]) -> SkillResult:
        raise SkillFailed("skill 'counter' raised ValueError: no name")

    async def fails(_skill: Skill, _given: Mapping[str, Any], _answers: Mapping[str, Any]) -> SkillResult:
        return SkillResult(state=SkillState.FAILED, summary="no name given")

    for run_skill, told in ((raises, "raised ValueError"), (fails, "no name given")):
        script = Heard(decided(use("counter")), GOOD)
        ran = await bench.run(script, run_skill=run_skill)
        assert ran.of(EventType.SKILL_STEP_EXECUTED)[0]["status"] == "failed"
        assert told in script.told
    for name, given, status, told in (
        ("nobody", {}, "failed", "unknown skill 'nobody'"),
        ("counter", "{not json", "refused", "input of counter: not JSON"),
    ):
        script = Heard(decided({"name": "use_skill", "input": {"name": name, "reason": "", "input": given}}), GOOD)
        ran = await bench.run(script)
        assert ran.of(EventType.SKILL_STEP_EXECUTED)[0]["status"] == status
        assert told in script.told


async def test_skill_that_asks_or_delegates_pauses_the_run(bench: Bench) -> None:
    bench.skill("counter", CODED, {"scripts/count.py": ""})

    async def asks(_skill: Skill, _given: Mapping[str, Any], _answers: Mapping[str, Any]) -> SkillResult:
        questions = (Question(name="who", description="Who?"),)
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary="who?", questions=questions)

    ran = await bench.run([decided(use("counter"))], run_skill=asks)
    assert (ran.conclusion.status, ran.conclusion.questions[0].name) == (ConclusionStatus.WAITING, "who")
    assert ran.of(EventType.RUN_FINISHED)[0]["mode"] == "input_required"

    async def delegates(_skill: Skill, _given: Mapping[str, Any], _answers: Mapping[str, Any]) -> SkillResult:
        tasks = (PlannedTask(key="a", assigned_to="scout", objective="look"),)
        return SkillResult(state=SkillState.DELEGATING, summary="handed out", tasks=tasks)

    ran = await bench.run([decided(use("counter"))], run_skill=delegates)
    assert (ran.conclusion.status, ran.conclusion.tasks[0].key) == (ConclusionStatus.DELEGATING, "a")


class Odd(Exception):
    """An exception type that no code handles specifically."""


@pytest.mark.parametrize("error", [ValueError("bad"), Odd("odd"), RecursionError("deep"), AttributeError("none")])
async def test_tool_exception_becomes_a_result(error: Exception, bench: Bench) -> None:
    async def broken(_given: Mapping[str, Any]) -> Any:
        raise error

    script = Heard(decided({"name": "broken", "input": {}}), GOOD)
    ran = await bench.run(script, tools={"broken": Tool("broken", "", {}, broken)})
    assert ran.conclusion.status is ConclusionStatus.FINISHED
    assert f"{type(error).__name__}: {error}" in script.told


async def test_lease_lost_in_a_tool_propagates(bench: Bench) -> None:
    async def lost(_given: Mapping[str, Any]) -> Any:
        raise LeaseLost("another one has it")

    with pytest.raises(LeaseLost):
        await bench.run([decided({"name": "lost", "input": {}})], tools={"lost": Tool("lost", "", {}, lost)})


async def test_unknown_tool_and_malformed_input_are_explained(bench: Bench) -> None:
    async def fine(_given: Mapping[str, Any]) -> str:
        return "fine"

    tools = {"fine": Tool("fine", "", {}, fine)}
    for call, told in (
        ({"name": "none", "input": {}}, "calls.1: unknown tool 'none'; known: ask_user, command_output, fine"),
        ({"name": "fine", "input": "[1]"}, "the input cannot be used: must be a JSON object"),
    ):
        script = Heard(decided(call), GOOD)
        await bench.run(script, tools=tools)
        assert told in script.told
