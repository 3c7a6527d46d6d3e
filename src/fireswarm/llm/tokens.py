"""Tokens, estimated: what counts until a provider has counted. Pure."""

from __future__ import annotations

CHARS_PER_TOKEN = 4
"""The providers' own rule of thumb for English text."""

SAFETY = 1.1
"""Code, tables and other languages take more tokens a character; the estimate errs to the high side."""


def estimate_tokens(text: str) -> int:
    """Tokens of *text*, rounded up: characters by four."""
    return -(-len(text) // CHARS_PER_TOKEN)


def with_safety(tokens: int) -> int:
    """An estimate that is compared with a limit."""
    return int(tokens * SAFETY) + 1
