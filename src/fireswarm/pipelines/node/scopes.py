"""All that the values of one recorded case can be made of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from fireswarm.pipelines.node import shaping
from fireswarm.pipelines.node.recording import CREDENTIALS
from fireswarm.pipelines.node.shaping import MISSING
from fireswarm.pipelines.node.values import EACH, PAGES

ANSWERS = "$answers"
"""Name below which the answers to the earlier requests of an operation are, by their numbers."""

GROUPS = (ANSWERS, CREDENTIALS)
"""Names of which only what is below them is used."""

MIN_NAMED_CHARS = 3
"""Shorter made-up values, such as 7, stand in texts by chance."""

FAULTS = (ValueError, TypeError, KeyError, AttributeError, OverflowError)
"""What a step raises for a value that it does not fit."""


class Scope:
    """All that the values of one case can be made of; ``title`` names the case."""

    def __init__(self, title: str, given: Mapping[str, Any], named: Mapping[str, str]) -> None:
        self.title = title
        self.given = given
        self.named = named

    @cached_property
    def paths(self) -> list[tuple[str, Any]]:
        """Return all values with their dotted paths."""
        return list(paths_in(self.given))

    @cached_property
    def made(self) -> dict[str, list[tuple[str, str]]]:
        """Return the paths, with a step or "", from which a value can be made, by its JSON."""
        found: dict[str, list[tuple[str, str]]] = {}
        for path, value in self.paths:
            found.setdefault(key_of(value), []).append((path, ""))
            if value in (None, "", [], {}) or isinstance(value, bool):
                continue
            for step in shaping.STEPS:
                try:
                    made = shaping.through(step, value)
                except FAULTS:
                    continue
                if type(made) is not type(value) or made != value:
                    found.setdefault(key_of(made), []).append((path, step))
        return found

    @cached_property
    def texts(self) -> list[tuple[str, str]]:
        """Return made-up texts with their paths, the longest first."""
        own = [(each, path) for each, path in self.named.items() if len(each) >= MIN_NAMED_CHARS]
        return sorted(own, key=lambda item: -len(item[0]))

    def inner(self, entry: Any) -> Scope:
        """Return the scope within a list whose entry this is."""
        texts = {each: path for path, each in paths_in({EACH: entry}) if isinstance(each, str) and each}
        return Scope(self.title, {**self.given, EACH: entry}, {**self.named, **texts})


def paths_in(content: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all values within *content*, each with its dotted path. Of lists, only those in answers have numbers."""
    listed: Any = ()
    if isinstance(content, Mapping):
        listed = ((name, value) for name, value in content.items() if name != PAGES)
    elif isinstance(content, list) and before.startswith(f"{ANSWERS}."):
        listed = ((str(number), value) for number, value in enumerate(content))
    for name, value in listed:
        if name not in GROUPS:
            yield f"{before}{name}", value
        yield from paths_in(value, f"{before}{name}.")


def is_numbered(name: str) -> bool:
    """Return whether a dotted name leads through an entry of a list; what is true of one may not be true of all."""
    return any(part.isdecimal() for part in name.removeprefix(f"{ANSWERS}.").split(".")[name.startswith(ANSWERS) :])


def key_of(value: Any) -> str:
    """Return a JSON text that is the same for equal values."""
    return json.dumps(value, sort_keys=True, default=str)


def is_same(one: Any, other: Any) -> bool:
    """Return whether two values are equal as JSON: True is not 1."""
    if one is MISSING or other is MISSING:
        return one is other
    return one == other and key_of(one) == key_of(other)
