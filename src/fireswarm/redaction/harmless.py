"""Remember short texts that are known to be harmless, so that they are not searched again."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

MAX_REMEMBERED_CHARS, MAX_REMEMBERED = 256, 4_096
"""Length and number of texts without a secret that a redactor remembers, since most texts are checked several times."""


def remember[T: (str, bytes)](known: set[T], texts: Iterable[T]) -> None:
    """Add the short ones of *texts* to *known*, which is cleared when it is full."""
    if len(known) > MAX_REMEMBERED:
        known.clear()
    short = (text for text in texts if len(text) <= MAX_REMEMBERED_CHARS)
    known.update(islice(short, MAX_REMEMBERED))
