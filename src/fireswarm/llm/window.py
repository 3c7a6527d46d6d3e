"""Tokens of a prompt and of an answer, which share the model's window. Pure."""

from __future__ import annotations

from fireswarm.settings.agent import ModelSettings

LEAST_ANSWER_TOKENS = 256

SHARE_FOR_ANSWER = 8
"""An eighth of the window, at most, is kept free for an answer and its thoughts."""


def prompt_limit(settings: ModelSettings) -> int:
    """Return the maximum tokens of a prompt: what it leaves is enough for a usual answer, or for a summary."""
    usual = min(settings.answer_tokens, settings.context_tokens // SHARE_FOR_ANSWER)
    return settings.context_tokens - max(settings.response_headroom_tokens, usual)


def longest_answer(settings: ModelSettings, prompt_tokens: int) -> int:
    """Return the maximum tokens of an answer: the configured number, limited by what the prompt leaves."""
    room = settings.context_tokens - prompt_tokens
    return min(settings.answer_tokens, max(room, settings.response_headroom_tokens, LEAST_ANSWER_TOKENS))
