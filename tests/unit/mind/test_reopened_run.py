"""A run that failed goes on with what a person says to it, in the same start or in a later one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fireswarm.mind import ConclusionStatus
from tests.support.experts import bash, calls
from tests.support.minds import Bench
from tests.unit.mind.test_resumed_run import Agent, agent

pytestmark = pytest.mark.anyio

AGAIN = calls(bash("ls"))
REFUSED = {"text": "", "stop": "refusal"}
FAILURES: dict[str, tuple[tuple[Any, ...], str]] = {
    "the same call again": ((AGAIN, AGAIN, AGAIN), "no_progress"),
    "no answer twice": (("", ""), "no_progress"),
    "a refusal": ((REFUSED,), "decision_invalid"),
    "too many turns": (tuple(calls(bash(f"echo {n} >> log")) for n in range(4)), "max_turns_exceeded"),
    "a rejected request": (({"error": 400, "message": "no"},), "model_rejected"),
}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path).set(skills__prefilter_min_score=1, runtime__max_turns=4)


def messages(*texts: str) -> Any:
    left = list(texts)

    async def say(answer: str) -> str | None:
        return left.pop(0) if left else None

    return say


def texts_sent(run: Agent) -> str:
    return "\n".join(message.text for message in run.expert.requests[-1].messages)


@pytest.mark.parametrize("failure", FAILURES)
async def test_message_to_a_failed_run_is_said_and_the_run_goes_on(failure: str, bench: Bench) -> None:
    answers, reason = FAILURES[failure]
    run = agent(bench, *answers, "Done.")
    failed = await run.start()
    assert (failed.status, failed.reason) == (ConclusionStatus.FAILED, reason)
    asked = len(run.expert.requests)
    again = await run.start()
    assert again.reason == reason, "without a message it fails again"
    if reason == "model_rejected":  # the provider may have changed its mind, so it is asked again
        run.expert.answers = ("Done.",)
    run.says = messages("Try it another way.")
    ended = await run.start()
    assert (ended.status, ended.answer) == (ConclusionStatus.FINISHED, "Done."), ended
    assert "Try it another way." in texts_sent(run) or reason == "model_rejected"
    assert len(run.expert.requests) <= asked + 3

    run.says = messages("Thanks!")
    run.expert.answers = (*run.expert.answers, "You are welcome.")
    further = await run.start()
    assert (further.status, further.answer) == (ConclusionStatus.FINISHED, run.expert.answers[-1]), "it is replayed"
    assert "Thanks!" in texts_sent(run)


@pytest.mark.parametrize("failure", FAILURES)
async def test_person_in_a_chat_is_asked_after_a_failure(failure: str, bench: Bench) -> None:
    answers, reason = FAILURES[failure]
    told: list[str] = []
    run = agent(bench, *answers, "Done.")

    async def say(answer: str) -> str | None:
        told.append(answer)
        if reason == "model_rejected":
            run.expert.answers = ("Done.",)
        return "Go on." if len(told) == 1 else None

    run.says = say
    ended = await run.start()
    assert (ended.status, ended.answer) == (ConclusionStatus.FINISHED, "Done."), ended
    assert told[0].startswith(f"The run stopped ({reason}): ")
    assert "Go on." in texts_sent(run)
    again = agent(bench, *run.expert.answers, says=messages())
    assert (await again.start()).answer == "Done.", "all of it is replayed"
    assert again.expert.requests == []
