"""Entity tags, and the conditions on them that requests carry (RFC 9110, sections 8.8.3 and 13.1)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

TAG_DIGITS = 32
"""Hexadecimal digits of a tag: 128 bits of a SHA-256, so no two contents have one by chance."""

_TAG = re.compile(r'(W/)?("[\x21\x23-\x7e\x80-\xff]*")')
_LIST = re.compile(rf"[ \t,]*(?:{_TAG.pattern}[ \t]*(?:,[ \t,]*|$))+")


def make_entity_tag(digest: str) -> str:
    """Return the strong entity tag of a content, given its SHA-256 in hexadecimal digits."""
    return f'"{digest[:TAG_DIGITS]}"'


def hash_content(content: bytes) -> str:
    """Return the strong entity tag of a content."""
    return make_entity_tag(hashlib.sha256(content).hexdigest())


@dataclass(frozen=True, slots=True)
class TagCondition:
    """The tags of an If-Match or If-None-Match header; ``any_version`` stands for ``*``. No tags match nothing.

    If-Match compares strongly, so only its ``strong`` tags count.
    """

    strong: frozenset[str] = frozenset()
    weak: frozenset[str] = frozenset()
    any_version: bool = False

    @classmethod
    def parse(cls, values: Sequence[str]) -> TagCondition:
        """Parse the values of all headers of the name. A malformed list matches nothing."""
        text = ", ".join(values).strip(" \t")
        if text == "*":
            return cls(any_version=True)
        if not _LIST.fullmatch(text):
            return cls()
        tags = _TAG.findall(text)
        return cls(
            frozenset(tag for weak, tag in tags if not weak),
            frozenset(tag for weak, tag in tags if weak),
        )

    def matches_weakly(self, tag: str) -> bool:
        """Return True if *tag* is named, whatever is weak: the comparison of If-None-Match."""
        return self.any_version or tag.removeprefix("W/") in self.strong | self.weak
