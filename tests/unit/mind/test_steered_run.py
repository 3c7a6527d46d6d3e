"""A person's message to work in progress is told before the next answer, once, whatever is killed."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.skills.skill import Question
from fireswarm.contracts.swarm.event import EventType
from fireswarm.errors import ModelRejected
from fireswarm.mind import ConclusionStatus, Steering
from fireswarm.mind.calls.steering import LEFT
from fireswarm.runs.sinks.step_file import INTERRUPTED, StepFile
from fireswarm.runs.steps import step_name
from tests.support.crashes import choose_moments
from tests.support.experts import bash, calls
from tests.support.minds import Bench
from tests.unit.mind.test_resumed_run import WORK, Agent, Killed, agent, anthropic

__all__ = ["anthropic"]

pytestmark = pytest.mark.anyio

MESSAGE = "no: leave x alone"


def stopped() -> Steering:
    return Steering(MESSAGE, stopped=True)


def heard(run: Agent) -> int:
    """How often the newest request has the message."""
    return sum(message.text.count(MESSAGE) for message in run.expert.requests[-1].messages)


async def start_killed(run: Agent, at: int) -> None:
    run.writes, run.kill_at = 0, at
    with pytest.raises((Killed, BaseExceptionGroup)):
        await run.start()


async def test_message_to_a_run_killed_at_any_write_is_told_once(tmp_path: Path, anthropic: dict[str, Any]) -> None:
    whole = agent(Bench(tmp_path / "whole"), *WORK, **anthropic)
    await whole.start()
    for number in choose_moments(whole.writes - 1):
        run = agent(bench := Bench(tmp_path / str(number)), *WORK, **anthropic)
        await start_killed(run, number)
        run.steering, run.kill_at, known = stopped(), 0, len(run.expert.requests)
        conclusion = await run.start()
        assert conclusion.status is ConclusionStatus.FINISHED, number
        is_told = len(run.expert.requests) > known  # killed after the last answer, the run has none to tell it before
        assert heard(run) == is_told or run.steering.text, number
        sent = run.expert.requests[-1]
        run.steering = Steering()
        assert (await run.start()).answer == conclusion.answer, "the message is a part of the run"
        assert run.expert.requests[-1] is sent
        log = (bench.cwd / "log").read_text().split() if (bench.cwd / "log").exists() else []
        assert len(log) == len(set(log)), number


@pytest.mark.parametrize("again", range(1, 12, 2))
async def test_start_that_is_killed_while_it_tells_the_message_tells_it_once(again: int, tmp_path: Path) -> None:
    for number in range(3, 30, 3):
        run = agent(bench := Bench(tmp_path / str(number)), *WORK)
        await start_killed(run, number)
        run.steering, run.writes, run.kill_at = stopped(), 0, again
        with contextlib.suppress(Killed, BaseExceptionGroup):  # a late start has fewer writes
            await run.start()
        is_told, run.kill_at, run.steering = not run.steering.text, 0, Steering()
        assert (await run.start()).status is ConclusionStatus.FINISHED, number
        assert heard(run) == is_told, number
        log = (bench.cwd / "log").read_text().split() if (bench.cwd / "log").exists() else []
        assert len(log) == len(set(log)), number


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path).set(skills__prefilter_min_score=1)


async def test_actions_that_had_not_ended_are_left(
    bench: Bench, anthropic: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = calls(bash("echo a >> log"), bash("echo b >> log"), ("write_file", {"path": "x", "content": "1"}))
    run = agent(bench, plan, "As you say.", **anthropic)
    write = StepFile._write  # pyright: ignore[reportPrivateUsage]

    def die(self: StepFile, step: dict[str, Any]) -> None:
        write(self, step)
        if step_name(step["step"]) == "act:1.1":
            raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(StepFile, "_write", die)
        await run.start()
    run.steering = stopped()
    assert (await run.start()).answer == "As you say."
    assert run.expert.told == [INTERRUPTED, LEFT, LEFT]
    run.steering = Steering()
    assert (await run.start()).answer == "As you say."
    assert list(bench.cwd.glob("[logx]")) == [], "what was left out is not made up for later"


async def test_question_is_left_for_a_message(bench: Bench, anthropic: dict[str, Any]) -> None:
    run = agent(bench, calls(("ask_user", {"question": "Red or blue?"})), "Green it is.", **anthropic)
    assert (await run.start()).status is ConclusionStatus.WAITING

    async def never(question: Question) -> str:
        raise AssertionError("asked again")

    run.steering, run.asks = Steering("Green, please", stopped=True), never
    assert (await run.start()).answer == "Green it is."
    assert run.expert.told == [LEFT]
    run.steering = Steering()
    assert (await run.start()).answer == "Green it is."


async def test_message_without_a_stop_leaves_nothing_out(bench: Bench, anthropic: dict[str, Any]) -> None:
    run = agent(bench, calls(bash("echo a >> log")), "Both done.", **anthropic)
    lines = iter(["", "also greet Ada", ""])
    run.steering = Steering(typed=lambda: next(lines, ""))
    assert (await run.start()).answer == "Both done."
    assert (bench.cwd / "log").read_text() == "a\n"
    assert run.expert.requests[-1].messages[-1].text == "also greet Ada"


async def test_message_gives_new_turns(bench: Bench) -> None:
    bench.set(skills__prefilter_min_score=1, runtime__max_turns=2)
    looks = [calls(bash(f"echo {number}")) for number in range(2)]
    run = agent(bench, *looks, "Done.")
    lines = iter(["", "go on a little"])
    run.steering = Steering(typed=lambda: next(lines, ""))
    assert (await run.start()).status is ConclusionStatus.FINISHED
    assert "[2 answers left.]" in run.expert.requests[1].messages[-1].text


async def test_message_is_told_after_a_failure_of_the_model(bench: Bench) -> None:
    def failing(_request: Any) -> Any:
        raise ModelRejected("no", status=400)

    run = agent(bench, calls(bash("echo a >> log")), "Fine.")
    answer = run.expert.answer
    run.expert.answer = lambda number: failing(None) if number else answer(number)  # type: ignore[method-assign]
    assert (await run.start()).failed
    run.expert.answer, run.steering = answer, stopped()  # type: ignore[method-assign]
    assert (await run.start()).answer == "Fine."
    assert (heard(run), run.expert.told) == (1, ["[exit code 0]"])


async def test_message_with_fewer_turns_than_the_run_has_taken_is_told(bench: Bench) -> None:
    looks = [calls(bash(f"echo {number}")) for number in range(3)]
    run = agent(bench, *looks, "The first answer.", "The second answer.")
    assert (await run.start()).answer == "The first answer."
    bench.set(skills__prefilter_min_score=1, runtime__max_turns=2)
    assert (await run.start()).answer == "The first answer.", "what was done stays done"
    run.steering = Steering("and now?", stopped=True)

    async def say(answer: str) -> str | None:
        return run.steering.take() or None

    run.says = say
    assert (await run.start()).answer == "The second answer."
    assert run.expert.requests[-1].messages[-1].text == "and now?"


async def test_call_that_the_last_turn_left_out_is_not_made_by_a_start_with_other_turns(bench: Bench) -> None:
    bench.set(skills__prefilter_min_score=1, runtime__max_turns=2)
    last = calls(("write_file", {"path": "x", "content": "1"}), text="I had no turn left.")
    run = agent(bench, calls(bash("echo 0")), last)
    assert (await run.start()).answer == "I had no turn left."
    for turns in (1, 3, 40):
        bench.set(skills__prefilter_min_score=1, runtime__max_turns=turns)
        assert (await run.start()).answer == "I had no turn left.", turns
    assert not (bench.cwd / "x").exists()
    assert len(run.expert.requests) == 2


async def test_message_before_the_first_answer_has_a_heading(bench: Bench) -> None:
    run = agent(bench, "Fine.")
    run.steering = stopped()
    assert (await run.start()).answer == "Fine."
    assert run.expert.requests[0].messages[0].text.endswith(f"\n# Message from the user\n{MESSAGE}")


async def test_message_is_in_the_events(bench: Bench) -> None:
    run = agent(bench, calls(bash("echo a")), "Both done.", "Bye.")
    lines = iter(["", "also greet Ada", ""])
    run.steering = Steering(typed=lambda: next(lines, ""))
    assert (await run.start()).answer == "Both done."
    sent = [event.payload for event in run.events if event.event_type is EventType.LLM_REQUEST_SENT]
    assert [payload.get("said") for payload in sent] == [None, "also greet Ada"]
    run.steering = Steering()
    answers = iter(["thanks", None])

    async def say(answer: str) -> str | None:
        return next(answers)

    run.says = say
    await run.start()
    sent = [event.payload for event in run.events if event.event_type is EventType.LLM_REQUEST_SENT]
    assert [payload.get("said") for payload in sent] == [None, "also greet Ada", "thanks"]
