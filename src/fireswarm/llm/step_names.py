"""Names of the steps in which a run keeps what its model returned."""

from __future__ import annotations

ANSWER = "llm"


def answer_step(turn: int, attempt: int = 0) -> str:
    """Return the name of the step of a turn's answer; *attempt* 1 is the repair."""
    return f"{ANSWER}:{turn}.{attempt}"


def summary_step(turn: int, attempt: int) -> str:
    """Return the name of the step of the summary before a turn."""
    return f"summary:{turn}.{attempt}"


def count_step(turn: int) -> str:
    """Return the name of the step in which the provider counts the prompt of a turn."""
    return f"count:{turn}"


def answer_steps(turn: int) -> tuple[str, str]:
    """Return the names of the steps of a turn's answer and its repair."""
    return answer_step(turn), answer_step(turn, 1)
