"""The prompt: a conversation that only grows, so that what a provider has cached stays byte for byte the same.

A prompt is made of parts, each of one component: the system text, the task, the run's state, the candidates'
metadata, and disclosed content. When they no longer fit the budget, disclosed references are taken out,
the oldest first, then old results are shortened; the system text and the task never are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from fireswarm.contracts.llm.chat import ChatMessage, ChatRequest
from fireswarm.contracts.llm.decision import TokenBudget
from fireswarm.errors import BudgetExceeded
from fireswarm.llm.tokens import estimate_tokens, with_safety
from fireswarm.redaction import sanitize

TRIM_TO = 0.7
"""A prompt over its budget is cut to this part of it: cutting breaks the provider's cache, so it happens rarely."""

TRIMMED = "[trimmed"

NO_ANSWER = "(no answer)"
"""Stands for an empty answer: providers refuse a conversation with an empty message in it."""

SHORTENED_CHARS = 200
"""What is left of an old result."""

COUNT_FROM = 0.8
"""From this part of the budget on the provider is asked to count, where it can; below, an estimate will do."""


class Component(StrEnum):
    """What a part of the prompt is, in the order in which the budget is shared out."""

    SYSTEM = "system_prompt"
    TASK = "user_task"
    STATE = "run_state_summary"
    CANDIDATES = "candidate_skill_metadata"
    DISCLOSED = "disclosed_content"


@dataclass(slots=True)
class Part:
    """One piece of one message. ``name`` says what it is where it had to be cut."""

    component: Component
    text: str
    name: str = ""
    tokens: int = 0

    def __post_init__(self) -> None:
        """Take out control and half characters, which a request cannot carry, and estimate the tokens."""
        self.text = sanitize(self.text)
        self.tokens = estimate_tokens(self.text)

    def replace(self, text: str) -> None:
        """Say less."""
        self.text = text
        self.tokens = estimate_tokens(text)


@dataclass(slots=True)
class _Turn:
    message: ChatMessage
    parts: list[Part]


@dataclass(slots=True)
class Transcript:
    """System text and messages. ``known_tokens`` is what the provider counted for the last prompt and its answer."""

    system: str
    turns: list[_Turn] = field(default_factory=list)
    known_tokens: int = 0
    counted_by: str = "estimate"
    _sums: dict[Component, int] = field(default_factory=dict)
    _since: int = 0
    _scale: float = 1.0

    def __post_init__(self) -> None:
        """Count the system text."""
        self._sums = dict.fromkeys(Component, 0)
        self._sums[Component.SYSTEM] = estimate_tokens(self.system)

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """The messages as they would be sent."""
        return tuple(turn.message for turn in self.turns)

    def say(self, *parts: Part) -> None:
        """Add what the model is told next. Follows an answer, or begins the conversation."""
        self._add("user", list(parts))

    def add_answer(self, text: str) -> None:
        """Add what the model answered."""
        self._add("assistant", [Part(Component.STATE, text if text.strip() else NO_ANSWER, "an earlier decision")])

    def set_counts(self, prompt_tokens: int, output_tokens: int) -> None:
        """Take over what the provider counted for the last call; called after its answer was added."""
        if prompt_tokens:
            self.known_tokens, self._since, self.counted_by = prompt_tokens + output_tokens, 0, "usage"
            self._scale = 1.0

    @property
    def tokens(self) -> int:
        """Tokens of the whole prompt: what was counted, and an estimate of what came since."""
        if self.known_tokens:
            return self.known_tokens + with_safety(self._since)
        return int(with_safety(sum(self._sums.values())) * self._scale)

    def request(self, max_tokens: int, schema: dict[str, Any] | None, *, native: bool) -> ChatRequest:
        """The call as it stands."""
        return ChatRequest(self.system, self.messages, max_tokens, schema, native)

    def budget(self, max_context: int, headroom: int, trimmed: tuple[str, ...] = ()) -> TokenBudget:
        """How the prompt's tokens are shared out, by component."""
        return TokenBudget(
            max_context_tokens=max_context,
            response_headroom_tokens=headroom,
            allocated_prompt_tokens=self.tokens,
            allocated_disclosure_tokens=self._sums[Component.DISCLOSED],
            components={component.value: tokens for component, tokens in self._sums.items()},
            trimmed=trimmed,
            counted_by=self.counted_by,
        )

    def fit(self, limit: int) -> tuple[str, ...]:
        """Cut until the prompt fits *limit* tokens; returns what was cut, in order.

        BudgetExceeded when the system text and the task alone do not fit.
        """
        if self.tokens <= limit:
            return ()
        self._scale = max(1.0, self.tokens / with_safety(sum(self._sums.values())))  # what was counted weighs more
        self.known_tokens, self.counted_by = 0, "estimate"
        cut: list[str] = []
        for turn, part, rest in self._cuttable():
            if self.tokens <= limit * TRIM_TO:
                break
            before = part.tokens
            part.replace(rest)
            self._sums[part.component] += part.tokens - before
            turn.message = ChatMessage(turn.message.role, _join(turn.parts))
            cut.append(part.name)
        if self.tokens > limit:
            raise BudgetExceeded(
                f"the prompt needs {self.tokens:,} tokens even after trimming; {limit:,} are allowed: raise "
                "model.max_context_tokens, or give the task a smaller context"
            )
        return tuple(cut)

    def _cuttable(self) -> Iterator[tuple[_Turn, Part, str]]:
        """Parts that may be cut, the least needed first, with what is left of them. The last results are kept."""
        for turn in self.turns:
            for part in turn.parts:
                if part.component is Component.DISCLOSED and not part.text.startswith(TRIMMED):
                    yield turn, part, f"{TRIMMED}: {part.name}; ask for it again if you need it]"
        for turn in self.turns[:-1]:
            for part in turn.parts:
                if part.component is Component.STATE and len(part.text) > SHORTENED_CHARS + len(TRIMMED) + 2:
                    yield turn, part, f"{TRIMMED}] {part.text[:SHORTENED_CHARS]}"

    def _add(self, role: Literal["user", "assistant"], parts: list[Part]) -> None:
        self.turns.append(_Turn(ChatMessage(role, _join(parts)), parts))
        for part in parts:
            self._sums[part.component] += part.tokens
            self._since += part.tokens


def _join(parts: list[Part]) -> str:
    return "\n\n".join(part.text for part in parts)
