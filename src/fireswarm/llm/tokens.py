"""Token estimates, used until a provider has counted. Pure."""

from __future__ import annotations

import base64
import re

from fireswarm.contracts.media import MediaBlock

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


IMAGE_TOKENS = 1_600
PAGE_TOKENS = 2_500
"""What a large image and a page of a PDF take: the page is read as text and as an image."""

PAGE_BYTES = 50_000
"""A PDF that hides its pages in compressed streams is taken for one page for so many bytes."""

_PAGE = re.compile(rb"/Type\s{0,9}/Page\b")


def estimate_media(media: MediaBlock) -> int:
    """Estimate the tokens of an image or a PDF."""
    if media.media_type != "application/pdf":
        return IMAGE_TOKENS
    content = base64.b64decode(media.data)
    return PAGE_TOKENS * max(1, len(_PAGE.findall(content)), len(content) // PAGE_BYTES)
