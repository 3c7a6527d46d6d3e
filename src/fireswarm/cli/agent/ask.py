"""Ask the person at the terminal: questions of the model, and approvals of actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio

from fireswarm.cli.agent.line_reader import LineReader, StoppedByPerson
from fireswarm.contracts.skills.permissions import ALWAYS, NO, YES, Approval
from fireswarm.contracts.skills.skill import MAX_SHOWN_CHOICES, Question, choice_of

if TYPE_CHECKING:
    from fireswarm.cli.shared.console import CleanConsole

SHOW_ALL = "The change is too long to be shown at once. d: show all of it. "
ALLOW = "Allow it? y: yes, a: always in this run, n: no, or n and a reason> "


async def ask_person(question: Question) -> str | None:
    """Return the person's answer; None at the end of the input, or for an empty answer to a question."""

    async def read(prompt: str) -> str | None:
        try:
            reader = LineReader()
            reader.take_typed(unfinished=True)  # what was typed before a question does not answer it
            return await reader.read(prompt, keeps=False)
        except StoppedByPerson:
            return None

    return await ask_by(read, question)


Read = Callable[[str], Awaitable[str | None]]
"""Reads a line after a prompt; None at the end of the input."""


async def ask_by(read: Read, question: Question) -> str | None:
    """Show a question or an action, and *read* the answer after a prompt; None without an answer."""
    from fireswarm.cli.shared.console import make_console

    console = make_console(stderr=True)
    console.print()
    if question.approval is not None:
        return await _ask_approval(read, question, question.approval, console)
    console.prose(question.description)
    while True:
        _print_options(question, console)
        if not (said := (await read(f"{question.name}> ") or "").strip()):
            return None
        if (answer := choice_of(question, said)) is not None:
            if answer != said:
                console.prose(f"answered: {answer}", style="dim")
            return answer
        console.prose(f"{said} names no option, or several", style="yellow")


async def _ask_approval(read: Read, question: Question, approval: Approval, console: CleanConsole) -> str | None:
    from fireswarm.cli.watch.approval_view import draw_approval, draw_diff

    draw_approval(question, console, always="a")
    whole = approval.whole_diff
    while (line := await read(f"{SHOW_ALL}{ALLOW}" if whole else ALLOW)) is not None:
        if whole and line.strip().lower() == "d":
            draw_diff(await anyio.Path(whole).read_text("utf-8"), console)
        elif decision := decision_of(line):
            return decision
    return None


def _print_options(question: Question, console: CleanConsole) -> None:
    options = question.options
    for number, option in enumerate(options[:MAX_SHOWN_CHOICES], 1):
        console.prose(f"  {number}  {option}", style="dim")
    if options:
        more = f"{len(options) - MAX_SHOWN_CHOICES:,} more; " if len(options) > MAX_SHOWN_CHOICES else ""
        other = "" if question.choices else ", or an answer in your words"
        console.prose(f"{more}answer with a number, an option or a part of it{other}", style="dim")


def decision_of(line: str) -> str:
    """Return the decision in a typed line: yes, always, no with the reason after a colon, or "" for other text.

    A yes with more words may have a condition, so it is not a decision.
    """
    word, _, rest = line.strip().partition(" ")
    match word.lower().rstrip(":,.!"):
        case "y" | "yes" if not rest.strip():
            return YES
        case "a" | "always" if not rest.strip():
            return ALWAYS
        case "n" | "no":
            return f"{NO}:{rest.strip()}"
        case _:
            return ""
