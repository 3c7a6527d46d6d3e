"""Redaction of secrets, and removal of control characters, in everything that leaves the program. Pure.

Two kinds of secret are removed from every text: the values of environment variables that look like
credentials (or that the configuration names), and strings in the format of credentials.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, cast

REDACTED = "[redacted]"

MIN_SECRET_CHARS = 8
"""Shorter values are not treated as secret: blanking out every ``1`` or ``true`` would destroy the text."""

MIN_LINE_CHARS = 16
"""Lines of a multi-line secret that are shorter than this are not searched for separately."""

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:KEY|TOKENS?|SECRETS?|PASS|PASSPHRASE|CREDENTIALS?|PAT|AUTH)(?:_|$)"
    r"|APIKEY|API_KEY|PASSW(?:OR)?D|SECRET(?:_|$)|_PWD(?:_|$)|SSHPASS"
)
_NOT_SECRET = re.compile(r"_(?:FILE|PATH|DIR|URL|ENV|ID|NAME)$|^(?:SSH_AUTH_SOCK|GPG_KEY)$")

_SHAPES = re.compile(
    r"""
      (?<![A-Za-z0-9])sk-ant-[A-Za-z0-9_-]{16,}      # Anthropic
    | (?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{20,}          # other model providers, if it has a digit
    | AIza[0-9A-Za-z_-]{30,}                         # Google API keys
    | ya29\.[0-9A-Za-z_-]{20,}                       # Google OAuth access tokens
    | gh[pousr]_[A-Za-z0-9]{30,}                     # GitHub
    | github_pat_[A-Za-z0-9_]{30,}
    | glpat-[A-Za-z0-9_-]{18,}                       # GitLab
    | xox[abeprs]-[A-Za-z0-9-]{10,}                  # Slack
    | (?:AKIA|ASIA)[0-9A-Z]{16}                      # AWS access key ids
    | (?P<token>(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{11,}+\.eyJ[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]{8,}+){1,2})  # JSON web
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----[\s\S]*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    """,
    re.VERBOSE,
)
"""Matched in linear time: no part is scanned again from a later start. `_hide` leaves what a match has too much."""

_KEY_END = re.compile(r"-----END[^-\n]*-----")
_HINTS = (
    "sk-", "AIza", "ya29.", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "AKIA", "ASIA",
    "eyJ", "PRIVATE KEY",
)  # fmt: skip
"""Each format contains one of these. Searching for them first is a hundred times faster than the pattern."""

_HINT_BYTES = tuple(hint.encode() for hint in _HINTS)

_IS = r"\\*[\"']?\s*[:=]\s*\\*[\"']?"
_BEARER = re.compile(rf"(?i)\b(authorization{_IS}(?:bearer|basic|token)\s+|x-(?:goog-)?api-key{_IS})[^\s\"',;\\]{{8,}}")
_HEADER = re.compile(r"(?i)\b(?:authorization|x-(?:goog-)?api-key)")
_HEADER_VALUE = re.compile(r"(?i)[\\\"'\s:=]*+(?:bearer|basic|token)?+\s*+[^\s\"',;]*+")

_IN_URL = re.compile(r"(?i)(?<![^a-z0-9+.-])(://[^\s/:@]+:)[^\s/@]{3,}+(?=@)")

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_]|[ -/]+[0-~])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Includes lone surrogates, which cannot be encoded in a file."""


def sanitize(text: str) -> str:
    """Remove terminal escape sequences and control characters; tabs and line feeds stay."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    return _CONTROLS.sub("", text.replace("\r\n", "\n"))


def secret_name(name: str) -> bool:
    """True for the name of an environment variable whose value is secret."""
    return bool(_SECRET_NAME.search(name.upper()) and not _NOT_SECRET.search(name.upper()))


def secret_values(environment: Mapping[str, str], names: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the values in *environment* that must not be shown: of variables named like secrets, or in *names*."""
    listed = set(names)
    secrets = {
        value
        for name, value in environment.items()
        if len(value) >= MIN_SECRET_CHARS and (name in listed or secret_name(name))
    }
    return tuple(sorted(secrets, key=len, reverse=True))


_SUSPECT = re.compile(
    "|".join(map(re.escape, _HINTS))
    + r"|://|(?i:authorization|api-key)|\\u00|\\[rbf]|[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Matches the JSON of values that may need redaction. JSON escapes control characters with a backslash."""


class Redactor:
    """Removes secrets from texts and from JSON values."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        """Add *values* as exactly known secrets, in addition to those recognized by their format."""
        # A line break or a quote inside a secret is written differently in JSON: look for that spelling too.
        spelled = {form for value in values for part in _parts(value) for form in (part, _json_spelling(part))}
        ordered = sorted((form for form in spelled if len(form) >= MIN_SECRET_CHARS), key=len, reverse=True)
        pattern = "|".join(map(re.escape, ordered))
        self._known = re.compile(pattern) if ordered else None
        self._known_bytes = re.compile(pattern.encode()) if ordered else None
        self._spaced = tuple(form for form in ordered if any(char.isspace() for char in form))
        self.longest = max(map(len, ordered), default=0)

    def text(self, text: str) -> str:
        """Return *text* without secrets."""
        if self._known is not None:
            text = self._known.sub(REDACTED, text)
        if any(hint in text for hint in _HINTS):
            text = _SHAPES.sub(_hide, text)
        if "://" in text:
            text = _IN_URL.sub(rf"\g<1>{REDACTED}", text)
        lowered = text.lower()
        if "authorization" in lowered or "api-key" in lowered:
            text = _BEARER.sub(rf"\g<1>{REDACTED}", text)
        return text

    def safe_end(self, text: str, end: int) -> int:
        """Return the last position up to *end* where an unfinished text can be cut without splitting a secret."""
        end = _open_header(text, end)
        for form in self._spaced:
            for length in range(min(len(form) - 1, end), 0, -1):
                if text.startswith(form[:length], end - length) and form.startswith(text[end - length :][: len(form)]):
                    end -= length
                    break
        return end

    def start_of_secret(self, text: str, end: int) -> int:
        """Return the position up to *end* where the secret begins that spans *end*, or *end* if none does."""
        patterns = [_SHAPES, _IN_URL, _BEARER] if self._known is None else [self._known, _SHAPES, _IN_URL, _BEARER]
        before = -1
        while before != end:  # secrets of two formats may overlap
            before = end
            for pattern in patterns:
                for match in pattern.finditer(text):
                    if match.start() >= end:
                        break
                    if match.end() > end:
                        end = match.start()
        return end

    def clean(self, text: str) -> str:
        """Return *text* without control characters and without secrets."""
        return self.text(sanitize(text))

    def suspects(self, data: bytes) -> bool:
        """Return True if serialized *data* may contain a secret. Works on bytes, to avoid a conversion."""
        if self._known_bytes is not None and self._known_bytes.search(data):
            return True
        return any(hint in data for hint in _HINT_BYTES) and _SHAPES.search(data.decode("utf-8", "replace")) is not None

    def value(self, value: Any) -> Any:
        """Return a JSON-like value with every string in it cleaned; other objects pass unchanged.

        Most values contain nothing to clean. A check of their JSON detects that, and they are returned as they are.
        """
        try:
            text = json.dumps(value, ensure_ascii=False, default=str)
        except (TypeError, ValueError):
            return self._clean_value(value)
        if _SUSPECT.search(text) or (self._known is not None and self._known.search(text)):
            return self._clean_value(value)
        return value

    def _clean_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, Mapping):
            pairs = cast("Mapping[Any, Any]", value)
            return {self._clean_value(key): self._clean_value(item) for key, item in pairs.items()}
        if isinstance(value, (list, tuple)):
            return [self._clean_value(item) for item in cast("Iterable[Any]", value)]
        return value


@cache
def environment_redactor() -> Redactor:
    """Return a redactor for the values in this process's environment at the first call."""
    return Redactor(secret_values(os.environ))


class StreamRedactor:
    """Redacts a text that arrives in pieces: a secret may span two of them.

    The returned text ends at white space; the rest is held until more text arrives or ``rest`` is called.
    """

    LONGEST_HELD = 4_096
    LONGEST_KEY = 65_536
    """Maximum length of a private key, in characters, for which text is held back."""

    def __init__(self, redactor: Redactor) -> None:
        """Clean with *redactor*."""
        self._redactor = redactor
        self._pieces: list[str] = []
        self._length = 0
        self._next_look = self.LONGEST_HELD

    def feed(self, piece: str) -> str:
        """Add a piece and return the text that can be shown now."""
        self._pieces.append(piece)
        self._length += len(piece)
        if self._length < self._next_look and " " not in piece and "\n" not in piece:
            return ""  # a look takes as long as the held text, so not at each piece
        held = "".join(self._pieces)
        end = self._safe_end(held)
        self._pieces = [held[end:]]
        self._length -= end
        self._next_look = max(self.LONGEST_HELD, 2 * self._length)
        return self._redactor.clean(held[:end]) if end else ""

    def _safe_end(self, held: str) -> int:
        """Return where *held* can be cut: no secret begins before and ends after."""
        end = max(held.rfind(" "), held.rfind("\n")) + 1
        key = held.rfind("-----BEGIN")
        open_key = 0 <= key > len(held) - self.LONGEST_KEY and not _KEY_END.search(held, key)
        end = self._redactor.safe_end(held, min(end, key) if open_key else end)
        if end or open_key or len(held) < self.LONGEST_HELD:
            return end
        # No white space to cut at: hold as much as may be the beginning of a secret, and a secret that goes on.
        end = max(0, len(held) - max(self._redactor.longest, self.LONGEST_HELD // 2))
        return self._redactor.start_of_secret(held, end) if len(held) < self.LONGEST_KEY else end

    def rest(self) -> str:
        """Return the held text; the input has ended."""
        held = "".join(self._pieces)
        self._pieces, self._length = [], 0
        return self._redactor.clean(held)


def _hide(match: re.Match[str]) -> str:
    """Return the replacement of a string in the format of a credential."""
    found = match[0]
    if found.startswith("sk-") and not any(char.isdigit() for char in found):
        return found
    return (found[: found.index("eyJ")] if match["token"] else "") + REDACTED


def _open_header(text: str, end: int) -> int:
    """Return the start of a header name whose value may go on after *end*, or *end*."""
    judged = 0
    for name in _HEADER.finditer(text, 0, end):
        if name.start() >= judged:  # otherwise it is within a value that ends before *end*
            value = _HEADER_VALUE.match(text, name.end(), end)
            judged = name.end() if value is None else value.end()
            if judged == end:
                return name.start()
    return end


def _parts(value: str) -> Iterable[str]:
    """Return a secret stripped of white space, and each of its long lines: any of them may appear alone."""
    lines = value.splitlines()
    return (value, value.strip(), *(line.strip() for line in lines if len(lines) > 1 and len(line) >= MIN_LINE_CHARS))


def _json_spelling(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
