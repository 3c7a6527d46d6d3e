"""Text that a summary of older messages must keep verbatim."""

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
        """Keep a message of the person."""
        self.said.append(f"Message: {message}")

    def hear_answer(self, question: str, answer: str) -> None:
        """Keep a question and its answer."""
        self.said.append(f"You asked: {question}\nAnswer: {answer}")

    def part(self, limit: int, outputs: Iterable[str]) -> Part:
        """Return what is kept as one part; *limit* is that of the prompt in tokens, *outputs* those of many pages.

        The newest messages come first into the limit; older ones are only in the summary.
        """
        room, shown = limit * CHARS_PER_TOKEN // SHARE_OF_PROMPT, list[str]()
        for words in reversed(self.said):
            if len(words) > room:
                shown.append("[earlier messages are only in the summary]")
                break
            room -= len(words)
            shown.append(words)
        lines = ["# What the person said, word for word", *reversed(shown)] if shown else []
        lines += ["# What is to be done", self.todo] if self.todo else []
        if pages := ", ".join(outputs):
            lines.append(f"[read_output still shows the outputs {pages}]")
        return Part(Component.STATE, "\n".join(lines), "what was kept")
