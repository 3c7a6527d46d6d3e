"""Redaction for conversations: known secrets, and values whose names mark them as secret."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from fireswarm.redaction import REDACTED, Redactor, environment_redactor

_NAMES = (
    r"api[_-]?keys?|apikey|passw(?:or)?d|passphrase|(?:client[_-]?)?secrets?|secret[_-]?key|private[_-]?key"
    r"|(?:access|refresh|auth|bearer|id|session)[_-]?tokens?|authorization|credentials?"
)
_SECRET_NAME = re.compile(rf"(?i)(?:^|[._-])(?:{_NAMES})$")
_SAID = re.compile(rf"(?i)\b({_NAMES})(\s*[=:]\s*)(?:(?:bearer|basic)\s+)?([^\s,;&\"']{{3,}})")
_MARKS = re.compile("(?i)key|pass|secret|token|authorization|credential")


@dataclass(frozen=True, slots=True)
class Cleaner:
    """Removes secrets from data before it is stored."""

    redactor: Redactor = field(default_factory=environment_redactor)

    def text(self, text: str) -> str:
        """Return *text* without secrets, and without ``password=...`` in prose."""
        text = self.redactor.clean(text)
        return _SAID.sub(rf"\g<1>\g<2>{REDACTED}", text) if _MARKS.search(text) else text

    def value(self, value: Any) -> Any:
        """Return a JSON value with every text cleaned; a value with a secret's name is redacted in any format."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            pairs = cast("Mapping[Any, Any]", value)
            return {self.text(str(key)): self.clean_named(str(key), item) for key, item in pairs.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in cast("Iterable[Any]", value)]
        return value

    def clean_named(self, name: str, value: Any) -> Any:
        """Return the cleaned value of a field called *name*."""
        if isinstance(value, str) and value and _SECRET_NAME.search(name):
            return REDACTED
        return self.value(value)
