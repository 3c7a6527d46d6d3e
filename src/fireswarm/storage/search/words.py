"""Split texts into words of any language, and normalize them. Pure.

A word is a run of letters, marks and numbers by their Unicode categories, after NFKC and case folding. Scripts that are
written without blanks (Chinese, Japanese, Korean, Thai, Lao, Burmese, Khmer) give pairs of adjacent characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby

_WORD = re.compile(r"[^\W_]+(?:\+\+|#)?")
_EXTENSION = re.compile(r"(?<![\w-])(?:(?<!/)[\w-]*+|\w*+-[\w-]*+)\.([a-z][a-z0-9]{1,4})(?![\w/-]|\.\w)", re.IGNORECASE)
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Letters of scripts without blanks between words. Korean has blanks, but joins particles to its words."""

_VOWEL = re.compile("[aeiouy]")

_STOP_WORDS = """
a able about above actually after again all also am an and any anyone anything are aren as at basically be because
been before being below between bit both but by can cannot cant could couldn currently d did didn do does doesn
doesnt doing don dont down during e each eg either else etc even ever every everything for from further g gonna got
had hadn has hasn have haven having he hello her here hers herself hey hi him himself his how however i id ie if im
in into is isn isnt it its itself ive just kind kindly let lets ll lot lots m many may maybe me might more most must
my myself neither no nor not nothing now o of off ok okay on once only or other others ought our ours ourselves out
over own per please quite rather re really s same shall shan she should shouldn since so some someone something sort
still stuff such t than thank thanks that thats the their theirs them themselves then there theres these they thing
things this those though through thus to too under unless until up upon us ve very via vs wanna was wasn way ways we
were weren what whatever whats when whenever where wherever whether which whichever while who whoever whom whose why
will with within without won wondering wont would wouldn y yet you your youre yours yourself yourselves
"""
STOP = frozenset(_STOP_WORDS.split())
"""Function words and polite phrases, which do not describe the request."""

_SOFT_WORDS = """
add allow ask available best better bring call case change check come common complete create current day different
do easily easy edit enable ensure example existing fast file files find fix follow full general get give go good
great guide handle help include involve keep know like look made main make manage mean mention month multiple need
new nice number one open part people perform place point possible prepare produce project proper properly provide
put quick quickly ready relate request require right run save see set share show simple single skill specific start
step support sure take task team tell time today tomorrow tool tools trigger try turn two understand update use used
useful user using various want week whole work working write year yesterday
"""
SOFT = frozenset(_SOFT_WORDS.split())
"""Words of almost every request and description, which have a lower weight."""

_IRREGULAR = {
    "wrote": "writ", "written": "writ", "built": "build", "ran": "run", "made": "mak", "sent": "send", "drawn": "draw",
    "drew": "draw", "indices": "index", "indexes": "index", "matrices": "matrix", "vertices": "vertex", "data": "data",
    "people": "person", "children": "child", "men": "man", "women": "woman", "media": "media", "news": "news",
    "css": "css", "js": "js", "aws": "aws", "dns": "dns", "ios": "ios", "kubernetes": "kubernetes",
    "postgres": "postgres", "redis": "redis", "series": "series", "lens": "lens", "bus": "bus", "status": "status",
    "process": "process", "access": "access", "business": "business", "address": "address", "pandas": "pandas",
    "string": "string", "spring": "spring", "thing": "thing", "bring": "bring", "ping": "ping", "pricing": "pric",
    "need": "need", "seed": "seed", "feed": "feed", "speed": "speed", "embed": "embed", "bed": "bed", "video": "video",
    "css3": "css", "html5": "html", "canvas": "canvas", "numbers": "number", "ideas": "idea", "gases": "gas",
}  # fmt: skip
_FAMILIES = ("analy", "diagnos", "synthes", "visuali", "summar", "optimi", "organi", "present", "automat", "calculat")
"""Word families whose endings the rules below would separate (analysis, analyze, analyst)."""

_ENDINGS: tuple[tuple[str, str, int], ...] = (
    ("izations", "", 4), ("ization", "", 4), ("isation", "", 4), ("izing", "", 4), ("ising", "", 4), ("izer", "", 4),
    ("ize", "", 4), ("ise", "", 5), ("ations", "", 5), ("ation", "", 5), ("ators", "", 5), ("ator", "", 5),
    ("ating", "", 5), ("ated", "", 5), ("ates", "", 5), ("ate", "", 5), ("tions", "t", 3), ("tion", "t", 3),
    ("sions", "s", 3), ("sion", "s", 3), ("ments", "", 5), ("ment", "", 5), ("ities", "", 5), ("ity", "", 5),
    ("ness", "", 4), ("fully", "", 4), ("ful", "", 4), ("ically", "ic", 3), ("ally", "al", 4), ("ly", "", 4),
)  # fmt: skip
"""(ending, replacement, minimum remaining letters) for derived forms used in requests and descriptions."""


def words(text: str) -> list[str]:
    """Return the words of *text* in order, case-folded; text without blanks between words as pairs of characters."""
    if text.isascii():
        return _WORD.findall(text.lower())
    return [part for word in _runs(normalize(text)) for part in pairs(word)]


def normalize(text: str) -> str:
    """Return *text* case-folded in its compatibility form: full-width, composed and decomposed letters are equal."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def is_unspaced(word: str) -> bool:
    """Return True for a word of a script that is written without blanks between words."""
    return _UNSPACED.match(word) is not None


def without_marks(word: str) -> str:
    """Return a word without diacritics: ``ol`` for ``öl``."""
    apart = unicodedata.normalize("NFD", word)
    return "".join(char for char in apart if unicodedata.category(char) != "Mn")


def pairs(word: str) -> list[str]:
    """Return the pairs of adjacent characters of a word without blanks, or the word itself."""
    if not is_unspaced(word):
        return [word]
    return [word[place : place + 2] for place in range(max(1, len(word) - 1))]


def _runs(text: str) -> Iterator[str]:
    """Yield runs of letters, marks and numbers, each of one kind of script; ``c++`` and ``c#`` keep their signs."""
    letters = "".join(char for char in text if unicodedata.category(char) != "Cf")  # such as soft hyphens
    word = ""
    for kind, group in groupby(letters, _kind):
        run = "".join(group)
        if word:
            yield word + ("++" if run.startswith("++") else "#" if run.startswith("#") else "")
        word = run if kind else ""
    if word:
        yield word


@lru_cache(maxsize=20_000)
def _kind(char: str) -> str:
    """Return ``unspaced`` or ``word`` for a character of a word, "" for a separator."""
    if _UNSPACED.match(char) and unicodedata.category(char)[0] in "LMN":
        return "unspaced"
    return "word" if unicodedata.category(char)[0] in "LMN" else ""


def extensions(text: str) -> list[str]:
    """Return file name extensions in *text* (``report.pdf``, ``.xlsx``), lowercase, without the dot."""
    return [found.lower() for found in _EXTENSION.findall(text)]


@lru_cache(maxsize=20_000)
def is_soft(word: str) -> bool:
    """Return True if a word, in any form, occurs in almost every request."""
    return word in SOFT or stem(word) in _SOFT_STEMS


@lru_cache(maxsize=200_000)
def stem(word: str) -> str:
    """Return a word without its endings: the common part of ``migrate``, ``migrating`` and ``migration``."""
    if len(word) <= 3:
        return word
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    for family in _FAMILIES:
        if word.startswith(family):
            return family
    word = _singular(word)
    for ending, put, rest in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= rest:
            return _last_letter(word[: len(word) - len(ending)] + put)
    return _last_letter(_base(word))


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _base(word: str) -> str:
    """Remove ``-ing`` and ``-ed``, and a doubled consonant before them."""
    for ending in ("ing", "ed"):
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) >= 3 and _VOWEL.search(rest):
            if len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "lsz":
                return rest[:-1]
            return rest
    return word


def _last_letter(word: str) -> str:
    """Remove a final e or y: ``create`` and ``creating``, ``summary`` and ``summarize`` become equal."""
    if word.endswith("e") and len(word) > 4:
        return word[:-1]
    if word.endswith("y") and len(word) > 5 and word[-2] not in "aeiou":
        return word[:-1]
    return word


_SOFT_STEMS = frozenset(map(stem, SOFT))
