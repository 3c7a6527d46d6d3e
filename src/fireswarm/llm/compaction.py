"""Compaction of a conversation that no longer fits: a summary by the model replaces the older messages.

The request for the summary begins with the messages of the request before, so that the provider's cache serves it.
"""

from __future__ import annotations

from fireswarm.contracts.llm.chat import ChatRequest, ChatResponse, StopReason
from fireswarm.llm.prompt import Component, Part, Transcript

MAX_SUMMARY_WORDS = 1_500

LIMIT_PER_WORD = 20
"""A summary has at most one word for so many tokens of the prompt's limit, which is about a fifteenth of it."""

ASK = """\
[The conversation is about to exceed the model's context. Write a summary of it for yourself, as plain text; call no \
tool. Use at most {words} words. After it you will see only the task, this summary and the last exchange. State:
1. what was done: files, commands and their results, with exact names, numbers and paths;
2. what was found and decided, with the reasons;
3. what the person asked for or ruled out;
4. every open question, word for word;
5. what is left to do, and the next step.]"""

NO_SUMMARY = "The model gave no summary. What was done before is known only from the files and from what follows."


def summary_request(talk: Transcript, limit: int, max_tokens: int, *, may_call: bool) -> ChatRequest:
    """Build the request for a summary of all but the last exchange of *talk*; *limit* is that of a prompt, in tokens.

    With *may_call*, the tools are as in every other request, which keeps the provider's cache valid.
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
    """Return the text of a summary, or "" if the answer is none."""
    if answer.stop is StopReason.REFUSAL:
        return ""
    cut = "\n[the summary was cut off here]" if answer.stop is StopReason.MAX_TOKENS else ""
    return f"{text}{cut}" if (text := answer.text.strip()) else ""


def summary_part(summary: str) -> Part:
    """Return the part that stands for the older messages."""
    return Part(Component.STATE, f"# The conversation so far, in a summary\n{summary or NO_SUMMARY}", "the summary")
