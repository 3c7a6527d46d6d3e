"""Name the characters that look like others: the reason why a passage that looks right is not in a file. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

MAX_NAMED = 5

_ALIKE = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4`", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u00ad", "-"),
    **dict(zip("\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455", "aeopcyxijs", strict=True)),
    **dict(zip("\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425", "ABEKMHOPCTX", strict=True)),
    **dict(
        zip(
            "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a7",
            "ABEZHIKMNOPTX",
            strict=True,
        )
    ),
    **dict(zip("\u03bf\u0131\u2026\u037e\u2044\u2223", "oi.;/|", strict=True)),
}
_INVISIBLE = frozenset("\u200b\u200c\u200d\u2060\ufeff\u00ad\ufe0f")


def describe_look_alikes(text: str, passage: str) -> str:
    """Return which characters of *text* differ from those of *passage* that look like them, by line, or "".

    Returns "" if the passage would not be in the text with them either.
    """
    plain, places = _plain(text)
    wanted, wanted_places = _plain(passage)
    start = plain.find(wanted) if wanted else -1
    if start < 0:
        return ""
    named: list[str] = []
    after = places[start]
    for number, place in enumerate(places[start : start + len(wanted)]):
        given = passage[wanted_places[number]]
        skipped = [at for at in range(after, place) if text[at] in _INVISIBLE]
        named += [f"line {_line(text, at)} has {_name(text[at])}, which is invisible" for at in skipped]
        if text[place] != given:
            named.append(f"line {_line(text, place)} has {_name(text[place])} where old_text has {_name(given)}")
        after = place + 1
    named += [f"old_text has {_name(char)}, which is invisible" for char in passage if char in _INVISIBLE]
    more = f" and {len(named) - MAX_NAMED:,} more" if len(named) > MAX_NAMED else ""
    return f"{'; '.join(named[:MAX_NAMED])}{more}" if named else ""


def _plain(text: str) -> tuple[str, Sequence[int]]:
    """Return the text with a usual character for each that looks like one, and where each was in *text*."""
    if text.isascii():
        return text.replace("`", "'"), range(len(text))
    chars: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        if char in _INVISIBLE:
            continue
        usual = char
        if not char.isascii():
            usual = " " if unicodedata.category(char) == "Zs" else _ALIKE.get(char, char)
            folded = unicodedata.normalize("NFKC", usual)
            usual = folded if len(folded) == 1 else usual
        chars.append("'" if char == "`" else usual)
        places.append(place)
    return "".join(chars), places


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _name(char: str) -> str:
    if char.isascii() and char.isprintable():
        return "a space" if char == " " else char
    return f"U+{ord(char):04X} ({unicodedata.name(char, 'without a name')})"
