"""Redaction of secrets, and removal of control characters, in everything that leaves the program. Pure.

Two kinds of secret are removed from every text: values of environment variables with names of credentials (or named in
the configuration), and strings in the format of credentials.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, cast

from fireswarm.redaction.assignments import find_assignments, find_names, has_assignments, open_assignment, secret_field
from fireswarm.redaction.commands import find_commands, open_command
from fireswarm.redaction.fold import fold
from fireswarm.redaction.harmless import remember
from fireswarm.redaction.search import find_addresses, find_shapes, open_value, shapes_in

REDACTED = "[redacted]"

TAG_CHARS = 4
PLACEHOLDER = re.compile(rf"\[redacted(?::[a-z2-7]{{{TAG_CHARS}}})?\]")
"""A removed secret; with the tag that a file tool gives it."""

MIN_SECRET_CHARS = 8
"""Minimum length of a secret value: removing every ``1`` or ``true`` would destroy the text."""

MIN_LINE_CHARS = 16
"""Minimum length of a line of a multi-line secret that is searched for separately."""

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:KEY|TOKENS?|SECRETS?|PASS|PASSPHRASE|CREDENTIALS?|PAT|AUTH)(?:_|$)"
    r"|OTLP_(?:[A-Z]+_)?HEADERS$|APIKEY|API_KEY|PASSW(?:OR)?D|SECRET(?:_|$)|_PWD(?:_|$)|SSHPASS"
)
_NOT_SECRET = re.compile(r"_(?:FILE|PATH|DIR|URL|ENV|ID|NAME)$|^(?:SSH_AUTH_SOCK|GPG_KEY)$")

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\r\n]*(?:\x07|\x1b\\)?|[@-Z\\-_]|[ -/]+[0-~])")
"""A sequence without an end stops at the end of its line, so that the rest of a text is preserved."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Includes lone surrogates, which cannot be encoded in a file."""

_INVISIBLE = (
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\u3164"
    r"\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb\U00013430-\U0001345f\U00016fe4\U0001bca0-\U0001bca3\U0001d159"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Further characters that no screen shows: tags, fillers, widths of zero, ends of lines, variants of a character."""

_SCRIPTS = (
    r"\xa1-\xac\xae-\u034e\u0350-\u061b\u061d-\u1fff\u2100-\u3163\u3165-\ufdff\ufe30-\ufefe\uff00-\uff9f"
    r"\U0001f000-\U0001faff"
)
_UNSEEN = re.compile(
    rf"[{_INVISIBLE}]|(?<![{_SCRIPTS}\ufe0f])[\u200c\u200d]|[\u200c\u200d](?![{_SCRIPTS}])|(?<![{_SCRIPTS}])\ufe0f"
)
"""Joiners stay where emoji and some scripts need them: single ones between characters that are not ASCII."""

_NOT_SHOWN = re.compile(rf"[{_INVISIBLE}\u200c\u200d\u2800\ufe0f\ufffc]")
"""Blanks of scripts count too: texts keep them, but a person who approves sees that they are there."""

HIDDEN = re.compile(f"{_ESCAPES.pattern}|{_CONTROLS.pattern}")
"""Matches the characters that an edit takes for absent; ``sanitize`` also removes other invisible ones, and a \\r."""

_SURROGATES = re.compile(r"[\ud800-\udfff]")

_LINE = re.compile(r"[^\s](?:[^\r\n]*[^\s])?")
"""A line of a secret, without the white space around it."""


def sanitize(text: str) -> str:
    """Remove escape sequences of terminals, and all characters that no screen shows, except tabs and line feeds."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    text = _CONTROLS.sub("", text.replace("\r\n", "\n"))
    return text if text.isascii() else _UNSEEN.sub("", text)


def spell(text: str) -> str:
    """Return *text* with JSON escapes for all characters that a screen does not show, except tabs and line feeds."""
    return text if shows(text) else "".join(char if shows(char) else json.dumps(char)[1:-1] for char in text)


def shows(text: str) -> bool:
    """Return True if a screen shows all characters of *text*."""
    return text.replace("\n", "").replace("\t", "").isprintable() and _NOT_SHOWN.search(text) is None


def secret_name(name: str) -> bool:
    """True for the name of an environment variable whose value is secret."""
    return bool(_SECRET_NAME.search(name.upper()) and not _NOT_SECRET.search(name.upper()))


def secret_values(environment: Mapping[str, str], names: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the secret values in *environment*: of variables with names of secrets, or in *names*."""
    listed = set(names)
    secrets = {
        value
        for name, value in environment.items()
        if len(value) >= MIN_SECRET_CHARS and (name in listed or secret_name(name))
    }
    return tuple(sorted(secrets, key=len, reverse=True))


_CONTROL_IN_JSON = re.compile(
    rf"\\u00|\\[rbf]|[\x7f-\x9f\u200c-\u200f\u202a-\u202e\u2066-\u2069\ufe0f\ud800-\udfff{_INVISIBLE}]"
)
"""Matches the JSON of values with control characters. JSON escapes most of them with a backslash."""


class Redactor:
    """Removes secrets from texts and from JSON values."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        """Add *values* as known secrets, in addition to those recognized by their format."""
        # A line break or a quote inside a secret has another form in JSON, so that form is searched for as well.
        spelled = {form for value in values for part in _parts(value) for form in (part, _json_spelling(part))}
        ordered = sorted((form for form in spelled if len(form) >= MIN_SECRET_CHARS), key=len, reverse=True)
        pattern = "|".join(map(re.escape, ordered))
        self._known = re.compile(pattern) if ordered else None
        self._known_bytes = re.compile(pattern.encode()) if ordered else None
        self._spaced = tuple(form for form in ordered if any(char.isspace() for char in form))
        self.longest = max(map(len, ordered), default=0)
        self._harmless: set[str] = set()
        self._harmless_bytes: set[bytes] = set()
        self._harmless_names: set[str] = set()

    def text(self, text: str, *, by_line: bool = False, mark: Callable[[str], str] = lambda secret: REDACTED) -> str:
        """Return *text* with *mark* of each secret in its place; with *by_line*, of each of its lines."""
        parts: list[str] = []
        after = 0
        for start, end in self.spans(text, by_line=by_line):
            parts += [text[after:start], mark(text[start:end])]
            after = end
        return "".join([*parts, text[after:]]) if parts else text

    def spans(self, text: str, *, by_line: bool = False) -> list[tuple[int, int]]:
        """Return where the secrets of *text* are, in order; with *by_line*, each line of one, without its margins."""
        spans = [(start, end) for _, start, end in _find(text)]
        if self._known is not None:
            spans += [match.span() for match in self._known.finditer(text)]
        whole = list(_merge(span for span in spans if not _is_redacted(text, *span)))
        if not by_line:
            return whole
        return [line.span() for start, end in whole for line in _LINE.finditer(text, start, end)]

    def safe_end(self, text: str, end: int) -> int:
        """Return the last position up to *end* where an unfinished text can be split without splitting a secret."""
        folded = fold(text)
        end = open_command(folded, open_value(folded, open_assignment(folded, end)))
        for form in self._spaced:
            for length in range(min(len(form) - 1, end), 0, -1):
                if text.startswith(form[:length], end - length) and form.startswith(text[end - length :][: len(form)]):
                    end -= length
                    break
        return end

    def start_of_secret(self, text: str, end: int) -> int:
        """Return the start of the secret that spans *end*, or *end* if there is none."""
        spans = [(begin, stop) for begin, _, stop in _find(text)]
        if self._known is not None:
            spans += [match.span() for match in self._known.finditer(text)]
        return next((start for start, stop in _merge(spans) if start < end < stop), end)

    def clean(self, text: str) -> str:
        """Return *text* without control characters and without secrets."""
        if text in self._harmless:
            return text
        cleaned = self.text(sanitize(text))
        if cleaned == text:
            remember(self._harmless, (text,))
        return cleaned

    def _without_secrets(self, text: str) -> str:
        """Return *text* without secrets; control characters are preserved, unless they hide a secret."""
        text = _SURROGATES.sub("\ufffd", text)
        cleaned, kept = self.clean(text), self.text(text)
        return kept if sanitize(kept) == cleaned else cleaned

    def has_secret(self, data: bytes) -> bool:
        """Return True if the content of a file contains a secret."""
        text = data.decode("utf-8", "replace")
        return self.text(text) != text

    def suspects(self, parts: Iterable[bytes]) -> bool:
        """Return True if one of several serialized values may contain a secret.

        It works on bytes, to avoid a conversion, and remembers short values without a secret.
        """
        new = [part for part in parts if part not in self._harmless_bytes]
        if not new:
            return False
        data = b"\n".join(new)
        if self._known_bytes is not None and self._known_bytes.search(data):
            return True
        text = fold(data.decode("utf-8", "replace"))
        if _has_format(text) or any(find_names(text)):
            return True
        remember(self._harmless_bytes, new)
        return False

    def step_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a step without secrets.

        Images are not changed, and neither are ``content`` and ``calls`` of a model's answer: their signed parts must
        not change, and the others have no secrets any more.
        """
        kept = {name: result[name] for name in ("content", "calls", "media") if isinstance(result.get(name), list)}
        cleaned: dict[str, Any] = self.value({name: value for name, value in result.items() if name not in kept})
        return cleaned | kept

    def value(self, value: Any, *, by_name: bool = True) -> Any:
        """Return a JSON-like value with every string in it cleaned; other objects are not changed.

        *by_name* redacts every value under the name of a secret.

        Most values contain nothing to remove. A check of the JSON of their texts detects that, and they are returned
        unchanged.
        """
        return self._changed_value(value, self.clean, by_name)

    def without_secrets(self, value: Any) -> Any:
        """Return a JSON-like value without secrets, like ``value``, but with control characters.

        Lone surrogates, which requests cannot contain, become replacement characters.
        """
        return self._changed_value(value, self._without_secrets, by_name=True)

    def _changed_value(self, value: Any, clean: Callable[[str], str], by_name: bool) -> Any:
        texts: list[str] = []
        names: list[str] = []
        if self._has_secret_name(value, by_name, texts, names):
            return _clean_value(value, clean, by_name)
        new = texts + names
        if new and self._is_suspicious(json.dumps(new, ensure_ascii=False)):
            remember(self._harmless_names, [name for name in names if self.clean(name) == name])
            return _clean_value(value, clean, by_name)
        remember(self._harmless, new)
        remember(self._harmless_names, names)
        return value

    def _has_secret_name(self, value: Any, by_name: bool, texts: list[str], names: list[str]) -> bool:
        """Collect the texts and field names in *value* that are not known to be harmless.

        Returns True for the name of a secret, which ends the search.
        """
        waiting = [value]
        while waiting:
            item = waiting.pop()
            if isinstance(item, str):
                if item not in self._harmless:
                    texts.append(item)
            elif isinstance(item, (list, tuple)):
                waiting.extend(cast("Iterable[Any]", item))
            elif not isinstance(item, _SCALARS) and isinstance(item, (dict, Mapping)):
                fields = cast("Mapping[Any, Any]", item)
                waiting.extend(fields.values())
                if not by_name:
                    waiting.extend(fields)
                elif self._names_secret(fields, waiting, names):
                    return True
        return False

    def _names_secret(self, fields: Mapping[Any, Any], waiting: list[Any], names: list[str]) -> bool:
        """Return True if a field has the name of a secret. Collects unknown names, and keys that are not names."""
        for name in fields:
            if not isinstance(name, str):
                waiting.append(name)
            elif name not in self._harmless_names:
                if secret_field(name):
                    return True
                names.append(name)
        return False

    def _is_suspicious(self, text: str) -> bool:
        """Return True if the JSON of a value may contain a secret or a control character."""
        if _CONTROL_IN_JSON.search(text) or (self._known is not None and self._known.search(text)):
            return True
        folded = fold(text)
        return _has_format(folded) or has_assignments(folded)

    def named_value(self, name: Any, value: Any) -> Any:
        """Return the cleaned value of a field called *name*: texts and numbers under a secret's name are redacted."""
        return _clean_named(name, value, self.clean)


_SCALARS = (int, float, type(None))
"""Types without text. They are checked before ``Mapping``, whose check is slow for other classes."""


def _clean_value(value: Any, clean: Callable[[str], str], by_name: bool = True) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value)
        return {
            _clean_value(key, clean): _clean_named(key, item, clean) if by_name else _clean_value(item, clean, by_name)
            for key, item in pairs.items()
        }
    if isinstance(value, (list, tuple)):
        return [_clean_value(item, clean, by_name) for item in cast("Iterable[Any]", value)]
    return value


def _clean_named(name: Any, value: Any, clean: Callable[[str], str]) -> Any:
    if not (isinstance(name, str) and secret_field(name)):
        return _clean_value(value, clean)
    if isinstance(value, (list, tuple)):
        return [_clean_named(name, item, clean) for item in cast("Iterable[Any]", value)]
    hidden = value and isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return REDACTED if hidden else _clean_value(value, clean)


def _has_format(text: str) -> bool:
    """Return True if serialized *text* may have a credential in a known format."""
    plain = _without_escapes(text)
    return bool(shapes_in(plain)) or any(find_commands(plain))


def _without_escapes(text: str) -> str:
    """Return *text* in the same length, with spaces for JSON escapes, since the text before a credential matters."""
    if "\\" not in text:
        return text
    for escaped, plain in _ESCAPED:
        text = text.replace(escaped, plain)
    return text


_ESCAPED = (
    ("\\\n", "  "), ("\\\\\\n", "    "),  # a command that continues on the next line, also in JSON
    ("\\n", "\n "), ("\\t", "\t "), ("\\r", "\r "),
    ('\\"', ' "'), ('\\ "', '  "'), ('\\  "', '   "'),  # also in JSON within JSON
)  # fmt: skip


def _find(text: str) -> Iterator[tuple[int, int, int]]:
    text = fold(text)
    plain = _without_escapes(text)
    yield from find_commands(plain)
    yield from find_shapes(plain)
    if plain is not text:
        yield from find_addresses(text)  # a backslash may be part of the user
    yield from find_assignments(text)


def _is_redacted(text: str, start: int, end: int) -> bool:
    """Return True for a part of a placeholder, which follows the name of a secret as its value did."""
    opening = REDACTED[:-1]
    begin = text.rfind(opening, max(0, start - len(opening) - TAG_CHARS - 1), start + len(opening))
    placeholder = PLACEHOLDER.match(text, begin) if begin >= 0 else None
    return placeholder is not None and begin <= start and end <= placeholder.end()


def _merge(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the spans in order; overlapping spans are merged."""
    begun: tuple[int, int] | None = None
    for start, end in sorted(spans):
        if begun is None or start > begun[1]:
            if begun is not None:
                yield begun
            begun = start, end
        else:
            begun = begun[0], max(begun[1], end)
    if begun is not None:
        yield begun


@cache
def environment_redactor() -> Redactor:
    """Return a redactor for the values in this process's environment at the first call."""
    return Redactor(secret_values(os.environ))


def _parts(value: str) -> Iterable[str]:
    """Return a secret without surrounding white space, and each of its long lines: any of them may appear alone."""
    lines = value.splitlines()
    return (value, value.strip(), *(line.strip() for line in lines if len(lines) > 1 and len(line) >= MIN_LINE_CHARS))


def _json_spelling(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
