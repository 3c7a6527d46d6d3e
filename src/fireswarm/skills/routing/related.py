"""Related words: a small thesaurus of the domain, written by hand in ``related.txt``.

The code loads ``related.json``, which contains the stems and is written by ``make generate``: stemming at each start
would take 20 ms.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources

from fireswarm.storage.search.words import stem, words

FILE, STEMMED = "related.txt", "related.json"


@cache
def related_stems() -> Mapping[str, tuple[str, ...]]:
    """Stems of a word or phrase (joined by spaces), each with the stems of related terms."""
    text = (resources.files("fireswarm.skills.routing") / STEMMED).read_text(encoding="utf-8")
    return {source: tuple(meant) for source, meant in json.loads(text).items()}


def stem_thesaurus() -> str:
    """Return the content of ``related.json`` for ``related.txt``."""
    text = (resources.files("fireswarm.skills.routing") / FILE).read_text(encoding="utf-8")
    lines = (f"{json.dumps(source)}: {json.dumps(meant)}" for source, meant in sorted(read_groups(text).items()))
    return "{\n" + ",\n".join(lines) + "\n}\n"


@cache
def known_words() -> frozenset[str]:
    """Every single word of the thesaurus as spelled, for the correction of typos."""
    text = (resources.files("fireswarm.skills.routing") / FILE).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return frozenset(word for line in lines for word in words(line))


def read_groups(text: str) -> dict[str, tuple[str, ...]]:
    """Parse lines of ``a, b`` (both ways) and ``a > b`` (one way); ``#`` begins a comment line."""
    related: dict[str, list[str]] = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        left, arrow, right = line.partition(">")
        sources = [key_of(phrase) for phrase in left.split(",")]
        meant = [key_of(phrase) for phrase in right.split(",")] if arrow else sources
        for source in sources:
            related.setdefault(source, []).extend(key for key in meant if key != source)
    return {source: tuple(dict.fromkeys(keys)) for source, keys in related.items()}


def key_of(phrase: str) -> str:
    """Return the stems of a phrase, joined by spaces."""
    return " ".join(stem(word) for word in words(phrase))
