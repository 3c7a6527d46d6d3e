"""Tokens: estimates, used until a provider has counted, and the limits of a prompt and an answer. Pure."""

from __future__ import annotations

import base64
import json
import re

from fireswarm.contracts.llm.chat import ChatRequest, TokenUsage, ToolSpec
from fireswarm.contracts.skills.artifact import MediaBlock
from fireswarm.settings.agent import ModelSettings

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


def estimate_tool(tool: ToolSpec) -> int:
    """Estimate the tokens of a tool's description."""
    return estimate_tokens(f"{tool.name}{tool.description}{json.dumps(tool.parameters)}")


def estimate_usage(request: ChatRequest, written: str) -> TokenUsage:
    """Estimate the billed usage of a call with the answer *written*, for a provider that sent no counts."""
    asked = sum(
        estimate_tokens(message.text) + sum(estimate_tokens(output.text) for output in message.outputs)
        for message in request.messages
    )
    return TokenUsage(input_tokens=estimate_tokens(request.system) + asked, output_tokens=estimate_tokens(written))


IMAGE_TOKENS = 1_600
PAGE_TOKENS = 2_500
"""Estimates for a large image and for a page of a PDF, which is read as text and as an image."""

PAGE_BYTES = 50_000
"""Bytes of a PDF counted as one page, if its pages are hidden in compressed streams."""

_PAGE = re.compile(rb"/Type\s{0,9}/Page\b")


def estimate_media(media: MediaBlock) -> int:
    """Estimate the tokens of an image or a PDF."""
    if media.media_type != "application/pdf":
        return IMAGE_TOKENS
    content = base64.b64decode(media.data)
    return PAGE_TOKENS * max(1, len(_PAGE.findall(content)), len(content) // PAGE_BYTES)


LEAST_ANSWER_TOKENS = 256

SHARE_FOR_ANSWER = 8
"""Maximum share of the window, an eighth, that is reserved for an answer and its thoughts."""


def prompt_limit(settings: ModelSettings) -> int:
    """Return the maximum tokens of a prompt; the rest is enough for a usual answer or a summary."""
    usual = min(settings.answer_tokens, settings.context_tokens // SHARE_FOR_ANSWER)
    return settings.context_tokens - max(settings.response_headroom_tokens, usual)


def longest_answer(settings: ModelSettings, prompt_tokens: int) -> int:
    """Return the maximum tokens of an answer: the configured number, or what the prompt leaves if that is less."""
    room = settings.context_tokens - prompt_tokens
    return min(settings.answer_tokens, max(room, settings.response_headroom_tokens, LEAST_ANSWER_TOKENS))
