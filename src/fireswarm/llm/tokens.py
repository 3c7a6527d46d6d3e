"""Token estimates, used until a provider has counted. Pure."""

from __future__ import annotations

CHARS_PER_TOKEN = 4
"""The providers' rule of thumb for English text."""

SAFETY = 1.1
"""Code, tables and other languages have more tokens per character, so the estimate is deliberately high."""


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of *text*: a quarter of its characters, rounded up."""
    return -(-len(text) // CHARS_PER_TOKEN)


def with_safety(tokens: int) -> int:
    """Return an estimate with a safety margin, for comparison with a limit."""
    return int(tokens * SAFETY) + 1
