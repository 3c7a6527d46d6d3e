"""Requests within the limits of a model. A summary by the model replaces the older messages that no longer fit.

The request for the summary begins with the messages of the previous request, so that the provider's cache applies.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fireswarm.contracts.limits import truncate
from fireswarm.contracts.llm.chat import ChatMessage, ChatRequest, ChatResponse, StopReason
from fireswarm.contracts.ports import Recorder
from fireswarm.contracts.swarm.event import EventType
from fireswarm.llm.prompt import NO_ANSWER, Component, Part, Transcript
from fireswarm.llm.tokens import CHARS_PER_TOKEN, longest_answer, prompt_limit
from fireswarm.settings.agent import ModelSettings

MAX_SUMMARY_WORDS = 1_500

LIMIT_PER_WORD = 20
"""Tokens of the prompt's limit per word of a summary; a summary takes about a fifteenth of the limit."""

ASK = """\
[The conversation is about to exceed the model's context. Write a summary of it for yourself, as plain text; call no \
tool. Use at most {words} words. After it you will see only the task, this summary and the last exchange. State:
1. what was done: files, commands and their results, with exact names, numbers and paths;
2. what was found and decided, with the reasons;
3. what the person asked for or ruled out;
4. every open question, word for word;
5. what is left to do, and the next step.]"""

NO_SUMMARY = "The model gave no summary. These are its answers and calls so far, with the beginnings of the results:"
NOT_GIVEN = "a list of calls instead of a summary"

SHOWN_CHARS = 200
"""Maximum characters of a text, an input and a result in the list that replaces a missing summary."""


def summary_request(talk: Transcript, limit: int, max_tokens: int, *, may_call: bool) -> ChatRequest:
    """Build the request for a summary of all but the last exchange of *talk*; *limit* is the prompt's limit in tokens.

    With *may_call*, the tools are the same as in every other request, which keeps the provider's cache valid.
    """
    return ChatRequest(
        talk.system,
        talk.messages_to_fold(ASK.format(words=min(MAX_SUMMARY_WORDS, limit // LIMIT_PER_WORD))),
        max_tokens,
        tools=talk.tools,
        may_call=may_call,
        answers=talk.answers,
        for_summary=True,
    )


def summary_of(answer: ChatResponse) -> str:
    """Return the text of a summary, or "" if the answer is not a summary."""
    if answer.stop is StopReason.REFUSAL:
        return ""
    cut = "\n[the summary was cut off here]" if answer.stop is StopReason.MAX_TOKENS else ""
    return f"{text}{cut}" if (text := answer.text.strip()) else ""


def summary_part(summary: str) -> Part:
    """Return the part that replaces the older messages."""
    return Part(Component.STATE, f"# Summary of the conversation so far\n{summary}", "the summary")


def list_calls(messages: Sequence[ChatMessage], max_tokens: int) -> str:
    """Return the replacement for a missing summary: the model's texts, its calls and the beginnings of their results.

    If they exceed *max_tokens*, only the newest are included.
    """
    results = {output.call_id: output.text for message in messages for output in message.outputs}
    lines: list[str] = []
    for message in messages:
        if message.role == "assistant" and message.text != NO_ANSWER:
            lines.append(f"- {_beginning(message.text)}")
        for call in message.calls:
            given = _beginning(json.dumps(call.input, ensure_ascii=False))
            lines.append(f"- {call.name} {given}: {_beginning(results.get(call.id, ''))}")
    room, kept = max_tokens * CHARS_PER_TOKEN, list[str]()
    for line in reversed(lines):
        room -= len(line)
        if room < 0:
            break
        kept.insert(0, line)
    left_out = [f"[{len(lines) - len(kept)} earlier lines are left out]"] if len(kept) < len(lines) else []
    return "\n".join([NO_SUMMARY, *left_out, *kept])


def _beginning(text: str) -> str:
    return truncate(" ".join(text.split()), SHOWN_CHARS)


def request_of(
    talk: Transcript, settings: ModelSettings, *, native: bool, schema: dict[str, Any] | None = None
) -> ChatRequest:
    """Build the request. If the provider does not enforce the schema, the system text contains it."""
    request = talk.request(longest_answer(settings, talk.tokens), schema, native=native)
    if native or request.tools or schema is None:
        return request
    written = json.dumps(schema, separators=(",", ":"))
    system = f"{request.system}\n\nThe JSON Schema of an answer:\n{written}"
    return replace(request, system=system, native=False)


def announce(
    talk: Transcript, settings: ModelSettings, recorder: Recorder, decision: int, removed: tuple[str, ...] = ()
) -> None:
    """Trim the prompt to its budget; record the allocation, and *removed* as the parts removed earlier.

    Raises BudgetExceeded if it cannot be made to fit.
    """
    trimmed = (*removed, *talk.fit(prompt_limit(settings)))
    budget = talk.budget(settings.context_tokens, settings.response_headroom_tokens, trimmed)
    recorder.event(EventType.PROMPT_BUDGET_COMPUTED, {"turn": decision, **budget.model_dump(mode="json")})
    recorder.event(EventType.PROMPT_COMPOSED, {"turn": decision, "messages": len(talk.entries), "tokens": talk.tokens})
