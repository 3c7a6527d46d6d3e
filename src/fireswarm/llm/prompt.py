"""The prompt: an append-only conversation, so that the prefix cached by a provider stays identical byte for byte.

A prompt consists of parts, each of one component: the system text, the task, the run's state, the candidates' metadata,
and disclosed content. If they exceed the budget, a summary replaces all but the first message and the last exchange
(`llm.compaction`). If that is not enough, disclosed references are removed, oldest first, then whole results; the
system text and the task never change.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from fireswarm.contracts.llm.chat import ChatMessage, ChatRequest, ToolCall, ToolOutput, ToolSpec
from fireswarm.contracts.llm.decision import TokenBudget
from fireswarm.errors import BudgetExceeded
from fireswarm.llm.calls import for_another_model
from fireswarm.llm.tokens import estimate_media, estimate_tokens, estimate_tool, with_safety
from fireswarm.redaction import sanitize

TRIM_TO = 0.7
"""Trim a prompt over its budget to this fraction: trimming breaks the provider's cache, so it should be rare."""

TRIMMED = "[trimmed"

NO_ANSWER = "(no answer)"
"""Replaces an empty answer: providers reject a conversation that contains an empty message."""

SHORT_CHARS = 200
"""Maximum length of a result that is never removed: the note in its place would hardly be shorter."""

KEPT_EXCHANGE = 2
"""Number of last messages that a summary does not replace: the last answer and the reply to it."""

MAX_CORRECTION = 4.0
"""Upper bound of the correction of a token estimate (about 1 token per character).

Anything above it comes from media.
"""

MAX_MEDIA_CHARS = 15_000_000
"""Maximum size of all images and documents of a request in base64.

Gemini accepts requests up to 20 MB, Anthropic up to 32 MB.
"""

MEDIA_DROPPED = "[It was removed: read it again if you need it.]"

COUNT_FROM = 0.8
"""Above this fraction of the budget, the provider counts the tokens, if it can; below it, they are estimated."""


class Component(StrEnum):
    """Kind of a part of the prompt, in the order of the budget's components."""

    SYSTEM = "system_prompt"
    TASK = "user_task"
    STATE = "run_state_summary"
    CANDIDATES = "candidate_skill_metadata"
    DISCLOSED = "disclosed_content"


@dataclass(slots=True)
class Part:
    """One piece of a message. ``name`` identifies it in the note that replaces it when it is trimmed.

    ``folded`` marks the replacement of summarized messages; the next summary replaces it.
    """

    component: Component
    text: str
    name: str = ""
    tokens: int = 0
    folded: bool = False

    def __post_init__(self) -> None:
        """Remove control characters and lone surrogates, which a request cannot contain, and estimate the tokens."""
        self.text = sanitize(self.text)
        self.tokens = estimate_tokens(self.text)

    def replace(self, text: str) -> None:
        """Replace the text and re-estimate its tokens."""
        self.text = text
        self.tokens = estimate_tokens(text)


@dataclass(slots=True)
class _Entry:
    """A message, its parts, and those parts that are outputs of its calls, in the same order."""

    message: ChatMessage
    parts: list[Part]
    results: list[Part] = field(default_factory=list[Part])

    def rebuild(self) -> None:
        """Rebuild the message from its parts."""
        shown = zip(self.message.outputs, self.results, strict=True)
        outputs = tuple(output.model_copy(update={"text": part.text, "media": ()}) for output, part in shown)
        self.message = ChatMessage(self.message.role, _join(self.parts), outputs=outputs)


@dataclass(slots=True)
class Transcript:
    """System text and messages. ``known_tokens`` is the provider's count for the last prompt and its answer.

    ``folded`` counts the answers that a summary has replaced.
    """

    system: str
    tools: tuple[ToolSpec, ...] = ()
    entries: list[_Entry] = field(default_factory=list)
    known_tokens: int = 0
    counted_by: str = "estimate"
    may_call: bool = True
    folded: int = 0
    _sums: dict[Component, int] = field(default_factory=dict)
    _since: int = 0
    _scale: float = 1.0

    def __post_init__(self) -> None:
        """Estimate the tokens of the system text and the tools. The text loses its control characters, as parts do."""
        self.system = sanitize(self.system)
        self._sums = dict.fromkeys(Component, 0)
        self._sums[Component.SYSTEM] = estimate_tokens(self.system) + sum(map(estimate_tool, self.tools))

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """The messages as they would be sent."""
        return tuple(entry.message for entry in self.entries)

    def say(self, *parts: Part, outputs: Sequence[ToolOutput] = ()) -> None:
        """Append a message to the model; *outputs* are the outputs of the calls in the answer before it."""
        results = [Part(Component.STATE, output.text, f"result of {output.name}") for output in outputs]
        for output, part in zip(outputs, results, strict=True):
            part.tokens += sum(map(estimate_media, output.media))
        clean = [output.model_copy(update={"text": part.text}) for output, part in zip(outputs, results, strict=True)]
        self._add(ChatMessage("user", _join(list(parts)), outputs=tuple(clean)), list(parts), results)
        self._drop_media()

    def _drop_media(self) -> None:
        """Drop the oldest images and documents that would make the request larger than providers accept."""
        size = sum(
            len(item.data) for entry in self.entries for output in entry.message.outputs for item in output.media
        )
        for entry in self.entries[:-1]:
            if size <= MAX_MEDIA_CHARS:
                return
            kept: list[ToolOutput] = []
            for output in entry.message.outputs:
                if output.media and size > MAX_MEDIA_CHARS:
                    size -= sum(len(item.data) for item in output.media)
                    output = output.model_copy(update={"media": (), "text": f"{output.text}\n{MEDIA_DROPPED}"})
                kept.append(output)
            entry.message = replace(entry.message, outputs=tuple(kept), wire=None)

    def add_to_last(self, *parts: Part) -> None:
        """Add to the last message to the model, which is still unanswered."""
        last = self.entries[-1]
        last.parts += parts
        last.message = replace(last.message, text=_join(last.parts), wire=None)
        for part in parts:
            self._sums[part.component] += part.tokens
            self._since += part.tokens

    def add_answer(self, text: str, content: Sequence[Any] = (), calls: Sequence[ToolCall] = ()) -> None:
        """Append the model's answer; one with *content* or *calls* is never trimmed.

        *content* is the original answer and is sent back unchanged; *calls* belong to an answer without it.
        """
        said = text if text.strip() else NO_ANSWER
        written = json.dumps(content, ensure_ascii=False) if content else said
        if not content:
            written += "".join(json.dumps(call.input, ensure_ascii=False) for call in calls)
        parts = [Part(Component.STATE, written, "an earlier decision")]
        self._add(ChatMessage("assistant", said, content=list(content) or None, calls=tuple(calls)), parts)

    def give_to_another_model(self) -> None:
        """Give the conversation the form that any model accepts: without another one's thoughts and ids."""
        for entry, message in zip(self.entries, for_another_model(self.messages), strict=True):
            entry.message = message

    def set_counts(self, prompt_tokens: int, output_tokens: int) -> None:
        """Set the provider's counts of the last call; call it after ``add_answer``."""
        if prompt_tokens:
            self.known_tokens, self._since, self.counted_by = prompt_tokens + output_tokens, 0, "usage"
            self._scale = 1.0

    @property
    def tokens(self) -> int:
        """Tokens of the whole prompt: the provider's count plus an estimate of later messages."""
        if self.known_tokens:
            return self.known_tokens + with_safety(self._since)
        return int(with_safety(sum(self._sums.values())) * self._scale)

    def request(self, max_tokens: int, schema: dict[str, Any] | None, *, native: bool) -> ChatRequest:
        """Build the request; a request with tools does not ask for JSON."""
        answers = self.answers
        if self.tools:
            return ChatRequest(
                self.system, self.messages, max_tokens, tools=self.tools, may_call=self.may_call, answers=answers
            )
        return ChatRequest(self.system, self.messages, max_tokens, schema, native, answers=answers)

    @property
    def answers(self) -> int:
        """Number of answers in the conversation, including those that a summary has replaced."""
        return self.folded + sum(entry.message.role == "assistant" for entry in self.entries)

    @property
    def can_fold(self) -> bool:
        """True if an exchange between the first message and the last exchange can be summarized."""
        return len(self.entries) > 1 + KEPT_EXCHANGE

    def messages_to_fold(self, ask: str) -> tuple[ChatMessage, ...]:
        """Return the messages before the last exchange unchanged, followed by *ask*."""
        *before, last = (entry.message for entry in self.entries[:-KEPT_EXCHANGE])
        text = f"{last.text}\n\n{ask}" if last.text else ask
        return (*before, replace(last, text=text, wire=None))

    def fold(self, *kept: Part) -> tuple[str, ...]:
        """Replace all but the first message and the last exchange by *kept*; returns the names of removed material."""
        opening, removed, last = self.entries[0], self.entries[1:-KEPT_EXCHANGE], self.entries[-KEPT_EXCHANGE:]
        first = [part for part in opening.parts if not part.folded]
        for part in kept:
            part.folded = True
        scale = self._correction()
        self.folded += sum(entry.message.role == "assistant" for entry in removed)
        gone = [part.name for entry in removed for part in entry.parts if part.component is Component.DISCLOSED]
        self.entries, self._sums = [], {**dict.fromkeys(Component, 0), Component.SYSTEM: self._sums[Component.SYSTEM]}
        self.say(*first, *kept)
        for entry in last:
            self._add(entry.message, entry.parts, entry.results)
        self.known_tokens, self._since, self.counted_by, self._scale = 0, 0, "estimate", scale
        return tuple(gone)

    def budget(self, max_context: int, headroom: int, trimmed: tuple[str, ...] = ()) -> TokenBudget:
        """Return the allocation of the prompt's tokens by component."""
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
        """Trim the prompt to *limit* tokens; returns the names of the trimmed parts, in order.

        Raises BudgetExceeded if the system text and the task alone do not fit.
        """
        if self.tokens <= limit:
            return ()
        self._scale = self._correction()
        self.known_tokens, self.counted_by = 0, "estimate"
        cut: list[str] = []
        for entry, part, rest in self._cuttable():
            if self.tokens <= limit * TRIM_TO:
                break
            before = part.tokens
            part.replace(rest)
            self._sums[part.component] += part.tokens - before
            entry.rebuild()
            cut.append(part.name)
        if self.tokens > limit:
            raise BudgetExceeded(
                f"the prompt needs {self.tokens:,} tokens even after trimming; {limit:,} are allowed: raise "
                "model.max_context_tokens, or give the task a smaller context"
            )
        return tuple(cut)

    def _correction(self) -> float:
        """Return the provider's count divided by the estimate, limited to 1 to 4."""
        return min(MAX_CORRECTION, max(1.0, self.tokens / with_safety(sum(self._sums.values()))))

    def _cuttable(self) -> Iterator[tuple[_Entry, Part, str]]:
        """Yield trimmable parts with their replacements, least needed first. The last results are never trimmed."""
        for entry in self.entries:
            for part in entry.parts:
                if part.component is Component.DISCLOSED and not part.text.startswith(TRIMMED):
                    yield entry, part, f"{TRIMMED}: {part.name}; ask for it again if you need it]"
        for entry in self.entries[:-1]:
            for part in (*entry.parts, *entry.results):
                as_given = entry.message.content is not None or entry.message.calls
                removable = not as_given and part.component is Component.STATE
                if removable and len(part.text) > SHORT_CHARS:
                    yield entry, part, f"{TRIMMED}: {part.name or 'a note'}]"

    def _add(self, message: ChatMessage, parts: list[Part], results: Sequence[Part] = ()) -> None:
        self.entries.append(_Entry(message, parts, list(results)))
        for part in (*parts, *results):
            self._sums[part.component] += part.tokens
            self._since += part.tokens


def _join(parts: list[Part]) -> str:
    return "\n\n".join(part.text for part in parts)
