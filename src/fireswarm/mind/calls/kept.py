"""Text that compaction must keep verbatim."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fireswarm.llm.prompt import Component, Part
from fireswarm.llm.tokens import CHARS_PER_TOKEN

SHARE_OF_PROMPT = 5
"""Messages and answers of the person take at most this part of the prompt's limit: a fifth."""


@dataclass(slots=True)
class KeptWords:
    """The person's messages and answers, and the list of what is to be done."""

    said: list[str] = field(default_factory=list)
    todo: str = ""

    def hear(self, message: str) -> None:
        """Store a message of the person."""
        self.said.append(f"Message: {message}")

    def hear_answer(self, question: str, answer: str) -> None:
        """Store a question and its answer."""
        self.said.append(f"You asked: {question}\nAnswer: {answer}")

    def part(self, limit: int, outputs: Iterable[str]) -> Part:
        """Return the stored text as one part.

        *limit* is the prompt's limit in tokens, *outputs* are the steps with outputs of several pages.

        The newest messages are included first; older ones are only in the summary.
        """
        room, shown = limit * CHARS_PER_TOKEN // SHARE_OF_PROMPT, list[str]()
        for words in reversed(self.said):
            if len(words) > room:
                shown.append("[earlier messages are only in the summary]")
                break
            room -= len(words)
            shown.append(words)
        lines = ["# The person's messages, word for word", *reversed(shown)] if shown else []
        lines += ["# To-do list", self.todo] if self.todo else []
        if pages := ", ".join(outputs):
            lines.append(f"[read_output can still show these outputs: {pages}]")
        return Part(Component.STATE, "\n".join(lines), "what was kept")
