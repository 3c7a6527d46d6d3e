"""Find texts in the format of a credential: by our own formats, the published rules, and options of commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from fireswarm.redaction.rules import published_rules
from fireswarm.redaction.shapes import ADDRESS, SHAPES, Shape

MIN_CHARS = 15
"""Shorter words have no credential; most texts have few longer ones, so only these are searched for hints."""

MIN_DISCORD_CHARS = 58
"""Length of the shortest token of Discord. It has no sign but two full stops."""

_STOPS = re.compile(r"\.[\w-]{6}\.[\w-]{27}")
_SPACED = frozenset({"PRIVATE", "Private-Lines:"})
"""Hints of formats with white space inside."""

_VALUE = re.compile(r"(?<![\w=/+.:%-])(?=[A-Za-z_=/+.:%-]*+[0-9])[\w=/+.:%-]{15}")
"""At least as long as the shortest value after the name of a provider, with a digit."""


FEW_HINTS = 10
"""So many are found one by one in less time."""


class Hints:
    """Shapes by their hints, with an expression that finds out in one pass that a text has none of them."""

    def __init__(self, shapes: Iterable[Shape]) -> None:
        """Collect the hints of *shapes*."""
        self._shapes: dict[str, tuple[Shape, ...]] = {}
        self._always: tuple[Shape, ...] = ()
        for shape in shapes:
            self._always += () if shape.hints else (shape,)
            for hint in shape.hints:
                self._shapes[hint] = (*self._shapes.get(hint, ()), shape)
        self._any = re.compile(prefix_tree(self._shapes)) if len(self._shapes) > FEW_HINTS else None

    def shapes_in(self, text: str) -> Iterator[Shape]:
        """Yield the shapes that have a hint in *text*, or no hint; one with two hints may come twice."""
        yield from self._always
        if self._any is None or self._any.search(text):
            for hint, shapes in self._shapes.items():
                if hint in text:
                    yield from shapes


def prefix_tree(words: Iterable[str]) -> str:
    """Return a pattern for any of *words* that looks at each character once."""
    by_first: dict[str, list[str]] = {}
    for word in words:
        if not word:
            return ""  # a shorter word has ended here
        by_first.setdefault(word[0], []).append(word[1:])
    return "(?:" + "|".join(re.escape(first) + prefix_tree(rest) for first, rest in sorted(by_first.items())) + ")"


@cache
def _hints() -> tuple[Hints, Hints, Hints, Hints]:
    """Return the shapes whose hints are in words as they are, in words and texts in lower case, and names."""
    rules = published_rules()
    own = [shape for shape in SHAPES if shape not in _OF_TEXTS and shape not in _DISCORD]
    return Hints([*own, *rules.words]), Hints(rules.words_in_any_case), Hints(rules.texts), Hints(rules.named)


_OF_TEXTS = tuple(shape for shape in SHAPES if not _SPACED.isdisjoint(shape.hints))
_DISCORD = tuple(shape for shape in SHAPES if shape.hints == (".",))


def shapes_in(text: str) -> list[Shape]:
    """Return the shapes that may occur in *text*. Those whose secret is in one word are matched once."""
    found = [shape for shape in _OF_TEXTS if any(hint in text for hint in shape.hints)]
    if "://" in text and "@" in text:
        found.append(ADDRESS)
    listed = [word for word in text.split() if word[MIN_CHARS - 1 :]]
    if not listed:
        return found
    in_words, in_lower_words, in_texts, names = _hints()
    words, lower = "\n".join(listed), text.lower()
    likely = [*in_words.shapes_in(words), *in_lower_words.shapes_in(words.lower())]
    if any(word[MIN_DISCORD_CHARS - 1 :] and _STOPS.search(word) for word in listed):
        likely += _DISCORD
    found += [shape for shape in dict.fromkeys(likely) if shape.pattern.search(words)]
    found += dict.fromkeys(in_texts.shapes_in(lower))
    return [*found, *dict.fromkeys(names.shapes_in(lower))] if _VALUE.search(words) else found


def find_shapes(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield every text in the format of a credential: start of the match, start and end of the secret.

    They are in no order and may overlap.
    """
    for shape in shapes_in(text):
        part = "secret" if "secret" in shape.pattern.groupindex else 0
        for match in shape.pattern.finditer(text):
            if shape.counts is None or shape.counts(match):
                start, end = match.span(part)
                yield match.start(), start + max(0, match[part].find(shape.begins)), end
