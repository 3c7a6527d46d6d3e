"""Redaction for conversations: known secrets, and values whose names mark them as secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from fireswarm.redaction import Redactor, environment_redactor


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Removes secrets from data before it is stored."""

    redactor: Redactor = field(default_factory=environment_redactor)

    def text(self, text: str) -> str:
        """Return *text* without secrets, and without ``password=...`` in prose."""
        return self.redactor.clean(text)

    def value(self, value: Any) -> Any:
        """Return a JSON value with every text cleaned; a value with a secret's name is redacted in any format."""
        if isinstance(value, Mapping):
            pairs = cast("Mapping[Any, Any]", value)
            return {self.text(str(key)): self.clean_named(str(key), item) for key, item in pairs.items()}
        return self.redactor.value(value)

    def clean_named(self, name: str, value: Any) -> Any:
        """Return the cleaned value of a field called *name*."""
        return self.redactor.named_value(name, value)
