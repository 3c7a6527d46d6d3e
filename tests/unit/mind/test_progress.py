"""Repeated calls: a run ends when they lead to nothing, is warned in an answer before, and goes on when they may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.swarm.constraints import Constraints
from fireswarm.mind import ConclusionStatus
from fireswarm.mind.progress import WARNING
from tests.support.experts import Expert, bash, calls, run
from tests.support.minds import Bench, Ran

pytestmark = pytest.mark.anyio

READ = ("list_files", {})
SEARCH = ("search_files", {"pattern": "x"})
TEST = bash("echo 1 failed; exit 1")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path).set(skills__prefilter_min_score=1)


def write(content: str) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": "f", "content": content}


def answers(*each: tuple[str, Any] | list[tuple[str, Any]]) -> list[Any]:
    return [calls(*(one if isinstance(one, list) else [one])) for one in each]


def warned(expert: Expert) -> list[bool]:
    return [WARNING in text for text in expert.told]


def is_stuck(ran: Ran) -> bool:
    return (ran.conclusion.status, ran.conclusion.reason) == (ConclusionStatus.FAILED, "no_progress")


async def test_same_calls_of_one_answer_count_once(bench: Bench) -> None:
    expert = Expert(*answers([READ, READ, READ]), "Done.")
    assert (await run(bench, expert)).conclusion.answer == "Done."
    assert warned(expert) == [False] * 3
    expert = Expert(*answers([TEST, TEST, TEST]), "Done.")
    assert (await run(bench, expert)).conclusion.answer == "Done."


async def test_warning_comes_in_an_answer_before_the_end(bench: Bench) -> None:
    expert = Expert(*answers([READ, READ, READ], [READ, SEARCH, READ], READ), "Done.")
    ran = await run(bench, expert)
    assert is_stuck(ran) and ran.conclusion.turns == 3
    assert warned(expert) == [False, False, False, True, False, True]


@pytest.mark.parametrize("same", [READ, TEST, bash("echo x >> log; exit 1"), write("a"), bash("true")])
async def test_same_call_alone_ends_the_run_after_a_warning(bench: Bench, same: tuple[str, Any]) -> None:
    expert = Expert(*answers(same), *answers(*[same] * 5))
    ran = await run(bench, expert)
    assert is_stuck(ran)
    assert warned(expert)[-1] and not any(warned(expert)[:-1])


async def test_edits_between_tests_with_the_same_result_are_progress(bench: Bench) -> None:
    loop = [each for number in range(5) for each in (write(str(number)), TEST, READ)]
    expert = Expert(*answers(*loop), "Done.")
    assert (await run(bench, expert)).conclusion.answer == "Done."
    assert not any(warned(expert))


@pytest.mark.parametrize("read", [READ, bash("wc -c f")])
async def test_writing_the_same_in_turn_is_progress(bench: Bench, read: tuple[str, Any]) -> None:
    loop = [each for _ in range(4) for each in (write("1"), read, write("2"), read)]
    expert = Expert(*answers(*loop), "Done.")
    assert (await run(bench, expert)).conclusion.answer == "Done."
    assert not any(warned(expert))


async def test_failing_command_that_changes_something_is_progress(bench: Bench) -> None:
    loop = [each for number in range(4) for each in (bash(f"echo {number} > f; exit 1"), READ, SEARCH)]
    expert = Expert(*answers(*loop), "Done.")
    assert (await run(bench, expert)).conclusion.answer == "Done."


async def test_reading_something_new_between_the_same_commands_is_progress_and_the_same_again_is_not(
    bench: Bench,
) -> None:
    for number in range(5):
        (bench.cwd / f"{number}.txt").write_text(str(number))
    loop = [each for number in range(5) for each in (TEST, ("read_file", {"path": f"{number}.txt"}))]
    assert (await run(bench, Expert(*answers(*loop), "Done."))).conclusion.answer == "Done."
    expert = Expert(*answers(*[TEST, READ] * 5), "Done.")
    ran = await run(bench, expert)
    assert is_stuck(ran)
    assert warned(expert)[-2] and not any(warned(expert)[:-2])


async def test_same_command_in_another_folder_is_another_one(bench: Bench) -> None:
    (bench.cwd / "a/b/c/d").mkdir(parents=True)
    expert = Expert(*answers(bash("cd a/b/c/d"), *[bash("cd ..")] * 4), "Done.")
    assert (await run(bench, expert)).conclusion.answer == "Done."


async def test_commands_that_can_only_read_are_no_progress_in_turn(bench: Bench) -> None:
    expert = Expert(*answers(*[bash("echo a"), bash("echo b")] * 3), "Done.")
    assert is_stuck(await run(bench, expert, constraints=Constraints(read_only=True)))
    expert = Expert(*answers(*[bash("echo a"), bash("echo b")] * 3), "Done.")
    assert (await run(bench, expert)).conclusion.answer == "Done.", "commands that may write are not judged so"


async def test_refused_calls_are_no_progress(bench: Bench) -> None:
    expert = Expert(*answers(*[READ, write("1")] * 3), "Done.")
    assert is_stuck(await run(bench, expert, constraints=Constraints(read_only=True)))


async def test_same_delegation_ends_the_run_the_third_time_in_a_row(bench: Bench) -> None:
    given = ("delegate", {"role": "scout", "objective": "look"})
    children = {f"call.0.{turn}.1": "nothing" for turn in range(1, 7)}
    for loop, stuck in (([given, given, READ], False), ([given] * 3, True), ([given, write("1")] * 3, False)):
        expert = Expert(*answers(*loop), "Done.")
        ran = await run(bench, expert, roles={"scout": "It looks."}, children=children)
        assert is_stuck(ran) == stuck


@pytest.mark.parametrize(
    "poll",
    [
        bash("sleep 0.01; echo pending"),
        bash("for i in 1 2; do sleep 0; done; cat state || true"),
        bash("echo gh run watch >/dev/null"),
    ],
)
async def test_equal_polls_are_no_reason_to_end_a_run(bench: Bench, poll: tuple[str, Any]) -> None:
    expert = Expert(*answers(*[poll] * 6), "Done.")
    assert (await run(bench, expert)).conclusion.answer == "Done."
    assert not any(warned(expert))
    expert = Expert(*answers(*[poll, READ] * 4), "Done.")
    assert (await run(bench, expert)).conclusion.answer == "Done."


async def test_a_command_that_only_names_such_a_word_does_not_wait(bench: Bench) -> None:
    assert is_stuck(await run(bench, Expert(*answers(*[bash("cat watch.py sleep/x")] * 6), "Done.")))


async def test_equal_polls_that_are_refused_are_no_progress(bench: Bench) -> None:
    bench.set(permissions={"deny": ["Bash(sleep:*)"]})
    assert is_stuck(await run(bench, Expert(*answers(*[bash("sleep 1")] * 6), "Done.")))
