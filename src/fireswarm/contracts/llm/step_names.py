"""Names of the steps in which a run records the model's answers."""

from __future__ import annotations

ANSWER = "llm"


def answer_step(decision: int, attempt: int = 0) -> str:
    """Return the name of the step of a decision's answer; *attempt* 1 is the repair."""
    return f"{ANSWER}:{decision}.{attempt}"


def summary_step(decision: int, attempt: int) -> str:
    """Return the name of the step of the summary before a decision."""
    return f"summary:{decision}.{attempt}"


def count_step(decision: int) -> str:
    """Return the name of the step in which the provider counts the prompt of a decision."""
    return f"count:{decision}"


def answer_steps(decision: int) -> tuple[str, str]:
    """Return the names of a decision's two answer steps: the answer, and its repair."""
    return answer_step(decision), answer_step(decision, 1)
