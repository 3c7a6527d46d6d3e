"""Forms of the same characters: a secret stays one between no-break spaces, wide signs and curved quotes. Pure."""

from __future__ import annotations

import unicodedata

_RANGES = (
    *((0xA0, 0xFF), (0x1680, 0x1680), (0x2000, 0x214F), (0x2460, 0x24FF), (0x3000, 0x3000), (0xFE10, 0xFE19)),
    *((0xFE50, 0xFE6F), (0xFF01, 0xFF5E), (0x1D400, 0x1D7FF)),
)
"""Where Unicode has further forms of ASCII characters: spaces, wide, small, raised and styled ones."""

_ALIKE = {
    " ": "\u1680\u2028\u2029",
    ":": "\u02d0\u02f8\u0589\u05c3\u2236\ua4fd\ua789\ufe13\ufe30",
    "=": "\u1400\u2e40\u30a0\ua4ff\ua78a",
    '"': "\u201c\u201d\u201e\u201f\u2033\u301d\u301e\u301f",
    "'": "\u2018\u2019\u201a\u201b\u2032\u02b9\u02bc",
}
"""Characters that look like the signs around values, but have no form in ASCII."""

_FORMS = {
    code: plain
    for first, last in _RANGES
    for code in range(first, last + 1)
    if len(plain := unicodedata.normalize("NFKC", chr(code))) == 1 and plain.isascii()
} | {ord(char): plain for plain, alike in _ALIKE.items() for char in alike}
_CHARS = frozenset(map(chr, _FORMS))


def fold(text: str) -> str:
    """Return *text*, in the same length, with ASCII for the characters that are other forms of it, or look like it."""
    return text if text.isascii() or _CHARS.isdisjoint(text) else text.translate(_FORMS)
