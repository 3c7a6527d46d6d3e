"""Valid tool names for all model providers: letters, digits, ``_`` and ``-``, at most 64 characters. Pure."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count

MAX_NAME_CHARS = 64
"""Maximum length of a tool name that all providers accept."""

DIGEST_CHARS = 8

_REFUSED = re.compile(r"[^A-Za-z0-9_-]")
_NOT_PRINTED = re.compile(r"[^A-Za-z0-9_.-]")


def valid_names(names: Iterable[str]) -> Mapping[str, str]:
    """Return a valid name for each of *names*; no two are equal. Names that are valid already do not change.

    Invalid characters become ``_``. A name that is too long or would be a duplicate ends with a digest.
    """
    simple = {name: _REFUSED.sub("_", name) for name in names}
    uses = Counter(simple.values())
    valid = {name: name for name in simple if simple[name] == name and len(name) <= MAX_NAME_CHARS}
    taken = set(valid)
    for name, short in simple.items():
        if name not in valid:
            valid[name] = next(each for each in _candidates(name, short, uses[short]) if each not in taken)
            taken.add(valid[name])
    return {name: valid[name] for name in simple}


def _candidates(name: str, short: str, uses: int) -> Iterator[str]:
    """Yield valid names for *name*, best first."""
    if uses == 1 and len(short) <= MAX_NAME_CHARS:
        yield short
    for number in count():
        digest = hashlib.sha256(f"{name}\0{number}".encode("utf-8", "replace")).hexdigest()[:DIGEST_CHARS]
        yield f"{short[: MAX_NAME_CHARS - DIGEST_CHARS - 1]}_{digest}"


def spellings_of(names: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return how a rule may spell each of *names*: unchanged, or with ``_`` for some or all unusual characters.

    A spelling that fits two names belongs to the name that equals it; if neither does, it is dropped.
    """
    spelled = {
        name: tuple(dict.fromkeys((name, _NOT_PRINTED.sub("_", name), _REFUSED.sub("_", name)))) for name in names
    }
    uses = Counter(chain.from_iterable(spelled.values()))
    return {name: tuple(each for each in own if each == name or uses[each] == 1) for name, own in spelled.items()}
