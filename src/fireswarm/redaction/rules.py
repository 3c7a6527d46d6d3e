"""Read gitleaks' published rules, which are in the package as ``rules.json``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fireswarm.redaction.shapes import Shape

_FILE = Path(__file__).with_name("rules.json")

BETWEEN = r"""[ \t\w.-]{0,20}[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[`'"\s=]{0,5}"""
"""Text that gitleaks accepts between the name of a provider and its value."""

_END = r"(?!\.?[\w+/=(\[-])"
_SECRET_NAME = re.compile(r"(?i)key|token(?!iz)|secret|passw|pwd|auth(?!or)|cred|login|bearer")
_LONGEST_NAME = 50


@dataclass(frozen=True, slots=True)
class Rules:
    """The published rules, grouped by the part of a text that they need."""

    version: str
    words: tuple[Shape, ...]
    """Hints that occur within the same word as the secret, in the rule's spelling."""
    words_in_any_case: tuple[Shape, ...]
    texts: tuple[Shape, ...]
    """Hints that occur anywhere, ignoring case."""
    named: tuple[Shape, ...]
    """Values after the name of a provider, which is the hint, ignoring case."""

    def __iter__(self) -> Iterator[Shape]:
        """Yield every rule."""
        yield from (*self.words, *self.words_in_any_case, *self.texts, *self.named)


@cache
def published_rules() -> Rules:
    """Return the rules of the data file. The file is read once, at the first call."""
    data = json.loads(_FILE.read_text(encoding="utf-8"))
    groups: dict[str, list[Shape]] = {"words": [], "any_case": [], "spaced": [], "named": []}
    for rule in data["rules"]:
        kind = next((mark for mark in ("named", "spaced", "any_case") if mark in rule), "words")
        groups[kind].append(_shape(rule))
    words, any_case, spaced, named = (tuple(groups[kind]) for kind in ("words", "any_case", "spaced", "named"))
    return Rules(data["version"], words, any_case, spaced, named)


def _shape(rule: dict[str, Any]) -> Shape:
    if "named" not in rule:
        return Shape(rule["id"], tuple(rule["hints"]), rule["pattern"])
    source = rf"(?i){rule['named']}{BETWEEN}(?P<secret>{rule['value']}){_END}"
    return Shape(rule["id"], tuple(rule["hints"]), source, _names_secret if rule.get("plain") else None)


def _names_secret(match: re.Match[str]) -> bool:
    """Return False if a value may be a hash, an id or a word: letters and digits after the name of a secret."""
    value = match["secret"]
    if value.isalpha() or value.isdigit():
        return False
    name = match.string[max(0, match.start() - _LONGEST_NAME) : match.start("secret")].rsplit("\n", 1)[-1]
    return _SECRET_NAME.search(name) is not None
