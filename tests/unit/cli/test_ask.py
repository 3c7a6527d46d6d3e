"""Questions at the terminal: an answer that is not among the options is asked for again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fireswarm.cli.agent.ask import ask_by
from fireswarm.cli.swarm.answer import fit_choices
from fireswarm.contracts.skills.permissions import Approval
from fireswarm.contracts.skills.skill import Question, choice_of

pytestmark = pytest.mark.anyio


def question(*options: str) -> Question:
    return Question(name="city", description="Which city?", allowed={"enum": list(options)} if options else {})


@pytest.mark.parametrize(
    ("options", "lines", "answer"),
    [
        (("Bern", "Rome"), ["Berlin", "Rome"], "Rome"),
        (("Bern", "Rome"), ["2"], "Rome"),
        (("Bern", "Rome"), ["3", "0", "1"], "Bern"),
        (("Bern", "Rome"), ["Rom"], "Rome"),
        (("keep it", "delete it"), ["it", "delete"], "delete it"),
        (("the red one", "the blue one"), ["RED"], "the red one"),
        (("10", "20"), ["2", None], None),
        (("10", "1"), ["1"], "1"),
        (("Bern", "Rome"), ["bern"], "Bern"),
        (("a", "A"), ["a"], "a"),
        (("Bern", "Rome"), ["Berlin", None], None),
        (("Bern", "Rome"), ["Berlin", " "], None),
        ((), ["Berlin"], "Berlin"),
    ],
)
async def test_only_an_option_is_taken(options: tuple[str, ...], lines: list[str | None], answer: str | None) -> None:
    typed = iter(lines)

    async def read(prompt: str) -> str | None:
        assert prompt == "city> "
        return next(typed)

    assert await ask_by(read, question(*options)) == answer
    assert list(typed) == []


async def test_options_are_shown_with_each_prompt(capsys: pytest.CaptureFixture[str]) -> None:
    typed = iter(["Berlin", "Bern"])

    async def read(prompt: str) -> str | None:
        return next(typed)

    await ask_by(read, question("Bern", "Rome"))
    assert capsys.readouterr().err.count("  1  Bern\n  2  Rome\n") == 2


@pytest.mark.parametrize(
    ("choices", "given", "answer"),
    [
        (["Grün", "Rot"], "grün", "Grün"),
        (["Grün", "Rot"], "blau", "blau"),
        (["a", "A"], "a", "a"),
        (["Ab", "AB"], "ab", "ab"),
        ([1, 2], 1, 1),
        ([1, 2], "2", 2),
        (["1", "2"], 2, "2"),
        (["true", "false"], True, "true"),
        ([], "grün", "grün"),
    ],
)
def test_swarm_answer_takes_a_choice_whatever_its_case(choices: list[Any], given: Any, answer: Any) -> None:
    asked = Question(id="1-1", name="colour", description="Which?", allowed={"enum": choices} if choices else {})
    for key in ("colour", "1-1"):
        assert fit_choices([asked], {key: given, "other": "x"}) == {key: answer, "other": "x"}


async def test_a_change_that_is_cut_is_shown_whole_before_the_decision(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "x.diff").write_text("@@ -1 +1 @@\n+the last line")
    asked = Question(
        name="approval",
        description="Allow Edit",
        approval=Approval(tool="Edit", shown="edit_file {}", diff="cut", whole_diff=str(tmp_path / "x.diff")),
    )
    typed = iter(["d", "y"])

    async def read(prompt: str) -> str | None:
        assert "d: show all of it" in prompt
        return next(typed)

    assert await ask_by(read, asked) == "yes"
    assert "+the last line" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "answer"), [("1", "Bern"), ("rome", "Rome"), ("neither, Oslo", "neither, Oslo"), ("Be", "Be")]
)
def test_question_with_suggestions_takes_other_words(said: str, answer: str) -> None:
    suggesting = Question(name="city", description="Which city?", allowed={"examples": ["Bern", "Rome"]})
    assert (choice_of(suggesting, said), suggesting.choices) == (answer, ())
