"""Redact a text that arrives in pieces."""

from __future__ import annotations

import re

from fireswarm.redaction.redactor import Redactor

_KEY_END = re.compile(r"-----END[^-\n]*-----")


class StreamRedactor:
    """Redacts a text that arrives in pieces, since a secret may span two of them.

    The returned text ends at white space; the rest is held until more text arrives or ``rest`` is called.
    """

    LONGEST_HELD = 4_096
    LONGEST_KEY = 65_536
    """Maximum length of a private key, in characters, for which text is held back."""

    def __init__(self, redactor: Redactor) -> None:
        """Clean with *redactor*."""
        self._redactor = redactor
        self._pieces: list[str] = []
        self._length = 0
        self._next_look = self.LONGEST_HELD

    def feed(self, piece: str) -> str:
        """Add a piece and return the text that can be shown now."""
        self._pieces.append(piece)
        self._length += len(piece)
        if self._length < self._next_look and " " not in piece and "\n" not in piece:
            return ""  # a check takes time in proportion to the held text, so not at each piece
        held = "".join(self._pieces)
        end = self._safe_end(held)
        self._pieces = [held[end:]]
        self._length -= end
        self._next_look = max(self.LONGEST_HELD, 2 * self._length)
        return self._redactor.clean(held[:end]) if end else ""

    def _safe_end(self, held: str) -> int:
        """Return the position where *held* can be split outside of all secrets."""
        end = max(held.rfind(" "), held.rfind("\n")) + 1
        key = held.rfind("-----BEGIN")
        open_key = 0 <= key > len(held) - self.LONGEST_KEY and not _KEY_END.search(held, key)
        end = self._redactor.safe_end(held, min(end, key) if open_key else end)
        if end or open_key or len(held) < self.LONGEST_HELD:
            return end
        # No white space to split at: hold the text that may be the beginning of a secret, or a secret that continues.
        end = max(0, len(held) - max(self._redactor.longest, self.LONGEST_HELD // 2))
        return self._redactor.start_of_secret(held, end) if len(held) < self.LONGEST_KEY else end

    def rest(self) -> str:
        """Return the held text at the end of the input."""
        held = "".join(self._pieces)
        self._pieces, self._length = [], 0
        return self._redactor.clean(held)
