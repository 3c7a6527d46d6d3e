"""Questions at the terminal: an answer that is not among the options is asked for again."""

from __future__ import annotations

import pytest

from fireswarm.cli.agent.ask import ask_by
from fireswarm.contracts.skills.skill import Question

pytestmark = pytest.mark.anyio


def question(*options: str) -> Question:
    return Question(name="city", description="Which city?", allowed={"enum": list(options)} if options else {})


@pytest.mark.parametrize(
    ("options", "lines", "answer"),
    [
        (("Bern", "Rome"), ["Berlin", "Rom", "Rome"], "Rome"),
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
    assert capsys.readouterr().err.count("one of: Bern, Rome") == 2
