"""Placeholders of the secrets of one file, and the way back: what is written to that file gets its own values again.

A model reads ``[redacted:k3f9]`` in place of a secret. The tag depends on the value and on a key that only this process
has, so it says nothing about the value to others, and no table of values is needed: the values are in the file.
"""

from __future__ import annotations

import base64
import hmac
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from fireswarm.errors import InvalidInput
from fireswarm.redaction.redactor import PLACEHOLDER, REDACTED, TAG_CHARS, Redactor, sanitize

_KEY = os.urandom(32)
_LINE_END = re.compile(r"(\r\n?|\n)")


def tag_secret(secret: str) -> str:
    """Return the placeholder of a secret of a file. It is the same for the same value, within this process."""
    digest = hmac.digest(_KEY, secret.encode("utf-8", "surrogatepass"), "sha256")
    return f"{REDACTED[:-1]}:{base64.b32encode(digest).decode().lower()[:TAG_CHARS]}]"


def count_placeholders(text: str) -> int:
    """Return the number of placeholders in *text*, with or without a tag."""
    return sum(1 for _ in PLACEHOLDER.finditer(text))


@dataclass(frozen=True, slots=True)
class FileSecrets:
    """The secrets of a file's present text.

    ``values`` are the secrets by their placeholders. ``lines`` maps each line, with placeholders without tags, to what
    they stand for; None if several lines differ in that only.
    """

    values: Mapping[str, str]
    lines: Mapping[str, tuple[str, ...] | None]

    @classmethod
    def find(cls, text: str, redact: Redactor) -> Self:
        """Return the secrets of the text of a file."""
        parts: list[str] = []
        held: list[str] = []  # all that the placeholders of the masked text stand for, in order
        after = 0
        spans = redact.spans(text, by_line=True)
        secrets = [text[start:end] for start, end in spans]
        for start, end in sorted([*spans, *(match.span() for match in PLACEHOLDER.finditer(text))]):
            if start >= after:
                parts += [text[after:start], REDACTED]
                held.append(text[start:end])
                after = end
        lines: dict[str, tuple[str, ...] | None] = {}
        for line in _LINE_END.split(sanitize("".join([*parts, text[after:]]))):
            if number := line.count(REDACTED):
                stands_for, held = tuple(held[:number]), held[number:]
                lines[line] = stands_for if lines.get(line, stands_for) == stands_for else None
        return cls({tag_secret(each): each for each in secrets}, lines)

    def put_back(self, text: str) -> str:
        """Return *text* with the values of the placeholders that are known: by their tags, or else by their lines."""
        return "".join(self._put_into_line(line) for line in _LINE_END.split(text))

    def _put_into_line(self, line: str) -> str:
        stands_for = iter(self.lines.get(PLACEHOLDER.sub(REDACTED, line)) or ())

        def value(match: re.Match[str]) -> str:
            by_line = next(stands_for, match[0])
            return self.values.get(match[0], by_line)

        return PLACEHOLDER.sub(value, line)

    def check_kept(self, before: str, after: str) -> None:
        """Raise InvalidInput if a placeholder would take the place of a secret that *before* has and *after* lacks."""
        lost = any(after.count(secret) < before.count(secret) for secret in self.values.values())
        if lost and count_placeholders(after) > count_placeholders(before):
            raise InvalidInput(
                f"nothing was written: {REDACTED} stands for a secret of this file, which would be lost. Read the file "
                "again and copy its placeholders exactly, or leave these lines out of the change"
            )
