"""Actions that run side by side and need an approval: a person is asked one question at a time."""

from __future__ import annotations

from pathlib import Path

import anyio.lowlevel
import pytest

from fireswarm.contracts.grant import Grant, Verdict
from fireswarm.contracts.skills.permissions import ALWAYS, NO, YES
from fireswarm.contracts.skills.skill import Question
from fireswarm.mind import ConclusionStatus
from tests.support.experts import Expert, calls, run
from tests.support.minds import Bench

pytestmark = pytest.mark.anyio


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path).set(skills__prefilter_min_score=1)
    for name in "abc":
        (bench.cwd / f"{name}.txt").write_text(f"this is {name}")
    return bench


def grant(bench: Bench) -> Grant:
    return Grant(bench.cwd, ask=("Read",), default=Verdict.ASK)


def reads(*names: str) -> Expert:
    return Expert(calls(*(("read_file", {"path": f"{name}.txt"}) for name in names)), "Done.")


class Person:
    """Answers after a while, and remembers how many questions were open at once."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.open = self.most = 0

    async def ask(self, question: Question) -> str | None:
        self.asked.append(question.description)
        self.open += 1
        self.most = max(self.most, self.open)
        for _ in range(50):
            await anyio.lowlevel.checkpoint()
        self.open -= 1
        return self.answers.pop(0)


async def test_approvals_of_one_answer_are_asked_for_one_after_the_other(bench: Bench) -> None:
    person, expert = Person(YES, NO, YES), reads("a", "b", "c")
    await run(bench, expert, ask=person.ask, grant=grant(bench))
    assert (len(person.asked), person.most) == (3, 1)
    assert ["this is" in told for told in expert.told] == [True, False, True]


async def test_an_approval_for_always_counts_for_the_same_call_in_the_same_answer(bench: Bench) -> None:
    person, expert = Person(ALWAYS), reads("a", "a")
    await run(bench, expert, ask=person.ask, grant=grant(bench))
    assert len(person.asked) == 1
    assert all("this is a" in told for told in expert.told)


async def test_run_without_an_answer_waits_for_all_of_its_questions_in_turn(bench: Bench) -> None:
    person = Person(None, None)
    ran = await run(bench, reads("a", "b"), ask=person.ask, grant=grant(bench))
    assert ran.conclusion.status is ConclusionStatus.WAITING
    assert person.most == 1


async def test_file_that_changes_while_a_person_decides_is_asked_about_again(bench: Bench) -> None:
    asked: list[tuple[str, ...]] = []

    async def change_and_allow(question: Question) -> str:
        assert question.approval is not None
        asked.append(question.approval.files)
        (bench.cwd / "a.txt").write_text("exchanged")
        return YES

    expert = reads("a")
    await run(bench, expert, ask=change_and_allow, grant=grant(bench))
    assert len(asked) == len(set(asked)) == 2
    assert "exchanged" in expert.told[0], "the person saw the hash of this content"


async def test_file_that_changes_all_the_time_is_not_used(bench: Bench) -> None:
    asked: list[str] = []

    async def change_and_allow(question: Question) -> str:
        asked.append(question.description)
        (bench.cwd / "a.txt").write_text(f"this is change {len(asked)}")
        return YES

    expert = reads("a")
    await run(bench, expert, ask=change_and_allow, grant=grant(bench))
    assert "not executed" in expert.told[0]


async def test_always_is_asked_again_in_another_folder(bench: Bench) -> None:
    (bench.cwd / "sub").mkdir()
    person = Person(YES, ALWAYS, YES)
    remove = ("run_command", {"command": "touch made"})
    expert = Expert(calls(remove), calls(remove), calls(("run_command", {"command": "cd sub"})), calls(remove), "Done.")
    rules = Grant(bench.cwd, ask=("Bash(touch:*)",), default=Verdict.ALLOW)
    await run(bench, expert, ask=person.ask, grant=rules)
    assert len(person.asked) == 3
    assert (bench.cwd / "sub" / "made").exists()
