"""Find texts in the format of a credential: by our formats, the published rules, and options of commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from fireswarm.redaction.rules import published_rules
from fireswarm.redaction.shapes import ADDRESS, SHAPES, Shape

MIN_CHARS = 15
"""Minimum length of a word with a credential; only such words, which are rare, are searched for hints."""

MIN_DISCORD_CHARS = 58
"""Length of the shortest Discord token. It has no special characters except two full stops."""

_STOPS = re.compile(r"\.[\w-]{6}\.[\w-]{27}")
_SPACED = frozenset({"PRIVATE", "Private-Lines:", "Basic", "Bearer"})
"""Hints of formats with white space in the secret, or before it."""

_VALUE = re.compile(r"(?<![\w=/+.:%-])(?=[A-Za-z_=/+.:%-]*+[0-9])[\w=/+.:%-]{15}")
"""A value with a digit, at least as long as the shortest one after the name of a provider."""


_OPEN_SCHEME = re.compile(r"[Bb](?:asic|earer)[ \t]{0,4}\Z")
LONGEST_SCHEME = 10

LONGEST_BEFORE_VALUE = 240
"""Maximum characters from the name of a provider to the end of its value."""

_OPEN_VALUE = re.compile(
    r"""[ \t\w.-]{0,32}[\s'"]{0,3}(?:(?:=|>|:{1,3}=?|\|{1,2}|\?=?|,)[`'"\s=]{0,5}[^\s'"`;,]{0,150})?"""
)


class Hints:
    """Shapes by their hints."""

    def __init__(self, shapes: Iterable[Shape]) -> None:
        """Collect the hints of *shapes*."""
        self.shapes: dict[str, tuple[Shape, ...]] = {}
        for shape in shapes:
            for hint in shape.hints:
                self.shapes[hint] = (*self.shapes.get(hint, ()), shape)

    def shapes_in(self, text: str) -> Iterator[Shape]:
        """Yield the shapes with a hint in *text*; a shape with two hints may be repeated."""
        for hint, shapes in self.shapes.items():
            if hint in text:
                yield from shapes


def prefix_tree(words: Iterable[str]) -> str:
    """Return a pattern for any of *words* that checks each character once."""
    by_first: dict[str, list[str]] = {}
    for word in words:
        if not word:
            return ""  # a shorter word ends here
        by_first.setdefault(word[0], []).append(word[1:])
    return "(?:" + "|".join(re.escape(first) + prefix_tree(rest) for first, rest in sorted(by_first.items())) + ")"


class Search:
    """The formats, grouped by the part of a text that they need."""

    def __init__(self) -> None:
        """Read the published rules."""
        rules = published_rules()
        own = [shape for shape in SHAPES if shape not in _OF_TEXTS and shape not in _DISCORD]
        self.words, self.lower_words = Hints([*own, *rules.words]), Hints(rules.words_in_any_case)
        self.texts, self.names = Hints(rules.texts), Hints(rules.named)
        self.always = tuple(shape for shape in rules.words if not shape.hints)
        hints = {hint.lower() for hint in (*self.words.shapes, *self.lower_words.shapes)}
        self._any_hint = re.compile(prefix_tree(hints))

    def in_words(self, words: str) -> Iterator[Shape]:
        """Yield the shapes that may occur in one of *words*. Most texts have none, which a single check shows."""
        yield from self.always
        lower = words.lower()
        if self._any_hint.search(lower):
            yield from self.words.shapes_in(words)
            yield from self.lower_words.shapes_in(lower)


@cache
def _search() -> Search:
    return Search()


_OF_TEXTS = tuple(shape for shape in SHAPES if not _SPACED.isdisjoint(shape.hints))
_DISCORD = tuple(shape for shape in SHAPES if shape.hints == (".",))


def shapes_in(text: str) -> list[Shape]:
    """Return the shapes that may occur in *text*. Shapes whose secret is in one word are matched once."""
    found = [shape for shape in _OF_TEXTS if any(hint in text for hint in shape.hints)]
    if "://" in text and "@" in text:
        found.append(ADDRESS)
    listed = [word for word in text.split() if word[MIN_CHARS - 1 :]]
    if not listed:
        return found
    search, words, lower = _search(), "\n".join(listed), text.lower()
    likely = [*search.in_words(words)]
    if any(word[MIN_DISCORD_CHARS - 1 :] and _STOPS.search(word) for word in listed):
        likely += _DISCORD
    found += [shape for shape in dict.fromkeys(likely) if shape.pattern.search(words)]
    found += dict.fromkeys(search.texts.shapes_in(lower))
    return [*found, *dict.fromkeys(search.names.shapes_in(lower))] if _VALUE.search(words) else found


def open_value(text: str, end: int) -> int:
    """Return the start of a provider's name, or of a scheme, whose value may continue after *end*, or *end*."""
    if scheme := _OPEN_SCHEME.search(text, max(0, end - LONGEST_SCHEME), end):
        return scheme.start()
    start = max(0, end - LONGEST_BEFORE_VALUE)
    lower = text[start:end].lower()
    for shape in dict.fromkeys(_search().names.shapes_in(lower)):
        for hint in shape.hints:
            at = lower.rfind(hint)
            if at >= 0 and _OPEN_VALUE.fullmatch(text, start + at + len(hint), end):
                return start + at
    return end


def find_shapes(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield every text in the format of a credential: start of the match, start and end of the secret.

    They are unordered and may overlap.
    """
    for shape in shapes_in(text):
        part = "secret" if "secret" in shape.pattern.groupindex else 0
        for match in shape.pattern.finditer(text):
            if shape.counts is None or shape.counts(match):
                start, end = match.span(part)
                yield match.start(), start + max(0, match[part].find(shape.begins)), end


def find_addresses(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield the passwords in addresses, as `find_shapes` does."""
    if "://" in text and "@" in text:
        for match in ADDRESS.pattern.finditer(text):
            yield match.start(), *match.span("secret")
