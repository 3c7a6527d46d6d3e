"""Ask the person at the terminal: questions of the model, and approvals of actions."""

from __future__ import annotations

import sys

import anyio
import anyio.to_thread

from fireswarm.contracts.skills.permissions import ALWAYS, NO, YES
from fireswarm.contracts.skills.skill import Question


async def ask_person(question: Question) -> str | None:
    """Return the person's answer; None if the input has ended, or for an empty answer to a question."""
    if question.approval is not None:
        return await _ask_approval(question)
    sys.stderr.write(f"\n{question.description}\n{question.name}> ")
    sys.stderr.flush()
    line = await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
    return line.strip() or None


async def _ask_approval(question: Question) -> str | None:
    """Show the action and ask for a decision; None at the end of the input."""
    from fireswarm.cli.shared.console import make_console
    from fireswarm.cli.watch.approval_view import draw_approval

    console = make_console(stderr=True)
    console.print()
    draw_approval(question, console)
    sys.stderr.write("Allow it? y: yes, a: always in this run, n: no, or n and a reason> ")
    sys.stderr.flush()
    line = await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
    return decision_of(line) if line else None


def decision_of(line: str) -> str:
    """Return the decision in a line that was typed: yes, always, or no with the reason after a colon."""
    word, _, rest = line.strip().partition(" ")
    match word.lower():
        case "y" | "yes":
            return YES
        case "a" | "always":
            return ALWAYS
        case "n" | "no":
            return f"{NO}:{rest}"
        case _:
            return f"{NO}:{line.strip()}"
