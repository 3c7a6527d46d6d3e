"""Nothing secret is kept of a conversation: what the redactor knows, and values that their names give away."""

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
    """Takes secrets out of what is about to be stored."""

    redactor: Redactor = field(default_factory=environment_redactor)

    def text(self, text: str) -> str:
        """*text* without secrets, and without ``password=...`` in words."""
        text = self.redactor.clean(text)
        return _SAID.sub(rf"\g<1>\g<2>{REDACTED}", text) if _MARKS.search(text) else text

    def value(self, value: Any) -> Any:
        """A JSON value with every text cleaned; what is named like a secret is one, whatever it looks like."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            pairs = cast("Mapping[Any, Any]", value)
            return {self.text(str(key)): self.clean_named(str(key), item) for key, item in pairs.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in cast("Iterable[Any]", value)]
        return value

    def clean_named(self, name: str, value: Any) -> Any:
        """A value that is called *name*."""
        if isinstance(value, str) and value and _SECRET_NAME.search(name):
            return REDACTED
        return self.value(value)
