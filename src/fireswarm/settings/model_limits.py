"""Context window, maximum answer and prices of models, in one table by name. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

Price = dict[str, float]

MAX_NAMES = 256
"""Maximum number of cached names: each model call looks them up several times."""


USUAL_ANSWER_TOKENS = 16_000
"""Longest answer of a model in the table, if nothing else is set."""


class ModelLimits(NamedTuple):
    """``window``: tokens of prompt and answer together; ``answer``: tokens of one answer, the maximum and the default.

    ``price``: USD per million tokens, or None if no price is known.
    """

    window: int
    max_answer: int
    answer: int = USUAL_ANSWER_TOKENS
    price: Price | None = None


UNKNOWN = ModelLimits(32_000, 4_096, 4_096)
"""For a model that is not in the table: small enough for any model."""


def _claude(input: float, output: float, cached: float, cache_write: float) -> ModelLimits:
    price = {"input": input, "output": output, "cached": cached, "cache_write": cache_write}
    return ModelLimits(200_000, 64_000, price=price)


def _gemini(input: float, output: float, cached: float) -> ModelLimits:
    return ModelLimits(1_000_000, 64_000, price={"input": input, "output": output, "cached": cached})


MODEL_LIMITS = {
    "claude-sonnet-5-5": _claude(2.0, 10.0, 0.10, 2.5),
    "claude-sonnet-5": _claude(2.0, 10.0, 0.20, 2.5),
    "claude-sonnet-4-6": _claude(3.0, 15.0, 0.30, 3.75),
    "claude-sonnet-4-5": _claude(3.0, 15.0, 0.30, 3.75),
    "claude-opus-5-5": _claude(4.0, 20.0, 0.20, 5.0),
    "claude-opus-5": _claude(5.0, 25.0, 0.50, 6.25),
    "claude-opus-4-8": _claude(5.0, 25.0, 0.50, 6.25),
    "claude-haiku-4-5": _claude(1.0, 5.0, 0.10, 1.25),
    "claude-*": ModelLimits(200_000, 64_000),
    "gemini-2.5-pro": _gemini(1.25, 10.0, 0.125),
    "gemini-2.5-flash": _gemini(0.30, 2.50, 0.03),
    "gemini-2.5-flash-lite": _gemini(0.10, 0.40, 0.01),
    "gemini-embedding-2": ModelLimits(8_192, 1, 1, price={"input": 0.20, "output": 0.0}),
    "gemini-*": ModelLimits(1_000_000, 64_000),
    "text-embedding-3-small": ModelLimits(8_192, 1, 1, price={"input": 0.02, "output": 0.0}),
    "scripted": UNKNOWN._replace(price={"input": 0.0, "output": 0.0}),
}
"""From the providers' pages in autumn 2026, with prices for short prompts and 5-minute caches.

A row that ends with ``*`` applies to all other names with this beginning. ``model.max_context_tokens``,
``model.max_tokens`` and ``budget.prices`` override the table.
"""

_HOME = re.compile(r"^(?:~?anthropic|google|vertex_ai|models|publishers/(?:google|anthropic)/models)/")
"""Path before the name, at OpenRouter and Vertex AI."""

_REGION = re.compile(r"^(?:[a-z-]{1,20}\.)?anthropic\.(?=claude-)")
"""Prefix of Amazon Bedrock's ids, such as ``us.anthropic.claude-opus-4-8-20260301-v1:0``."""

_REVISION = re.compile(r"-v\d{1,3}(?::[\w:]{1,20})?$")

_VERSION = re.compile(r"@(?:\d{8}|default|latest)$")
"""Version on Vertex AI."""

_DATE = re.compile(r"-(?:20\d{6}|latest)$")
"""Date suffix of a name, which has the price of the plain name; ``-lite`` is a different model."""

_DOTTED = re.compile(r"(?<=\d)\.(?=\d)")


@lru_cache(MAX_NAMES)
def plain_name(model: str) -> str:
    """Return the model's original name, without a platform's path, region, version and date."""
    name = model.rpartition("/")[2] if model.startswith("arn:aws") else _HOME.sub("", model)
    if _REGION.match(name):
        name = _REVISION.sub("", _REGION.sub("", name))
    name = _DATE.sub("", _VERSION.sub("", name))
    return _DOTTED.sub("-", name) if name.startswith("claude-") else name


@lru_cache(MAX_NAMES)
def limits_of(model: str) -> ModelLimits:
    """Return the table row of a model by its name, on any platform."""
    name = plain_name(model)
    if name in MODEL_LIMITS:
        return MODEL_LIMITS[name]
    families = ((row[:-1], limits) for row, limits in MODEL_LIMITS.items() if row.endswith("*"))
    return next((limits for family, limits in families if name.startswith(family)), UNKNOWN)


def price_of(model: str, own: Mapping[str, Price]) -> Price | None:
    """Return the USD per million tokens of a model: from *own* prices first; None if unknown."""
    for name in (model, plain_name(model)):
        if name in own:
            return own[name]
    return limits_of(model).price
