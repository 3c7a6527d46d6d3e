"""The choice of a model, by a role or by a task."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from fireswarm.contracts.base import Contract

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

MAX_FALLBACKS = 5

ModelName = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^\S+$")]
"""Name of a model, or ``PROVIDER:NAME``, or a provider alone for its default model."""


def _as_list(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Fallback = Annotated[tuple[ModelName, ...], BeforeValidator(_as_list), Field(max_length=MAX_FALLBACKS)]
"""Models to ask in this order while the one before cannot be reached; one name stands for a list."""


class ModelChoice(Contract):
    """A model, its effort, and what is asked while it cannot be reached; None takes the next general choice."""

    model: ModelName | None = Field(default=None, description="NAME or PROVIDER:NAME; default: the role's")
    effort: Effort | None = Field(default=None, description="how much the model thinks; default: the role's")
    fallback: Fallback | None = Field(default=None, description="models to ask while it cannot be reached")

    def or_else(self, other: ModelChoice) -> ModelChoice:
        """Return this choice, with what it leaves open from the *other*."""
        return ModelChoice(
            model=self.model or other.model,
            effort=self.effort or other.effort,
            fallback=other.fallback if self.fallback is None else self.fallback,
        )


NO_CHOICE = ModelChoice()
