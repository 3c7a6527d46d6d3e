"""The context window and the longest answer of models, by the beginnings of their names."""

from __future__ import annotations

from typing import NamedTuple


class ModelLimits(NamedTuple):
    """``window``: tokens of prompt and answer together; ``answer``: tokens of one answer, at most and as usual."""

    window: int
    max_answer: int
    answer: int = 16_000


UNKNOWN = ModelLimits(32_000, 4_096, 4_096)
"""For a model in no row: small enough for any."""

MODEL_LIMITS = {
    "claude-": ModelLimits(200_000, 64_000),
    "gemini-": ModelLimits(1_000_000, 64_000),
}
"""From the providers' pages in autumn 2026. ``model.max_context_tokens`` and ``model.max_tokens`` override them."""


def limits_of(model: str) -> ModelLimits:
    """Return the limits of a model by its name."""
    return next((limits for name, limits in MODEL_LIMITS.items() if model.startswith(name)), UNKNOWN)
