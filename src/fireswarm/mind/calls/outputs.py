"""The output of a call as the model sees it. A long output is stored; it is shown in pages, or with both its ends."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from fireswarm.contracts.text_page import split_pages
from fireswarm.errors import InvalidInput
from fireswarm.redaction import REDACTED

MAX_ALL_CHARS = 20_000_000
"""Maximum number of characters of all stored outputs of a run; the oldest outputs are dropped first."""

LEAST_PAGE_CHARS = 256
"""Minimum length of a page; an answer has too many calls if its outputs cannot each have a page of this length."""

FOOTER_CHARS = 120
"""Space for the last line of a page, so that a page read later also fits."""

NOTE_CHARS = 90
"""Space for the note between the two ends of an output."""

REPLACED = (
    f"[A part of this call's input was replaced by {REDACTED} before the call, because it looks like a secret."
    " To use a secret, let a command read it from a variable of the environment or from a file; ask the user to put it"
    " there if it is in neither.]"
)


@dataclass(slots=True)
class Outputs:
    """The long outputs of a run by the names of their steps. A page has at most ``page_chars`` characters.

    ``most_page_chars`` is the maximum length of a page, used when the prompt has space.
    """

    most_page_chars: int
    max_all_chars: int = MAX_ALL_CHARS
    page_chars: int = field(init=False)
    _pages: dict[str, list[str]] = field(default_factory=dict)
    _dropped: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Start with pages of the maximum length."""
        self.page_chars = self.most_page_chars

    def share(self, calls: int, room: int) -> int:
        """Set the page length so that the outputs of *calls* fit into *room*; returns how many of them fit."""
        self.page_chars = max(LEAST_PAGE_CHARS, min(self.most_page_chars, room // max(1, calls)))
        return max(1, room // LEAST_PAGE_CHARS)

    @property
    def names(self) -> list[str]:
        """The steps whose outputs have several pages, the newest last."""
        return list(self._pages)

    def show(self, step: str, text: str) -> str:
        """Return *text*, or its first page and how to read the next one."""
        if len(text) <= self.page_chars:
            return text
        self._pages[step] = split_pages(text, max(self.page_chars - FOOTER_CHARS, self.page_chars // 2))
        shown = self.page(step, 1)
        self._drop_oldest()
        return shown

    def show_ends(self, step: str, text: str, parts: Sequence[str]) -> str:
        """Return *text*; a long one with both ends of each of its *parts*, and how to read the pages between them."""
        if len(text) <= self.page_chars:
            return text
        self.show(step, text)
        lengths = sorted(map(len, parts))
        cut = sum(length > self.page_chars // len(parts) for length in lengths)
        room, share = self.page_chars - NOTE_CHARS * cut - len(parts), 1
        for left in range(len(lengths), 0, -1):  # what a short part does not need is left to the longer ones
            share = max(1, room // left)
            room -= min(lengths.pop(0), share)
        return "\n".join(self._ends_of(step, text, part, share) for part in parts)

    def _ends_of(self, step: str, text: str, part: str, room: int) -> str:
        """Return a part, or its beginning and its end, which take *room* characters, and where the rest is."""
        if len(part) <= room:
            return part
        start = text.find(part)
        end = part.rfind("\n", room // 4, room // 2) + 1 or room // 2
        again = len(part) - room // 2
        again = part.find("\n", again, len(part) - room // 4) + 1 or again
        first, last = self._page_at(step, start + end), self._page_at(step, start + again - 1)
        pages = f"page {first}" if first == last else f"pages {first} to {last}"
        total = len(self._pages.get(step, ()))
        note = f"[{again - end:,} characters left out: read_output, output {step}, {pages} of {total}]"
        return f"{part[:end].removesuffix(chr(10))}\n{note}\n{part[again:]}"

    def _page_at(self, step: str, position: int) -> int:
        """Return the number of the page that has the character at a position of an output."""
        ends = [*accumulate(map(len, self._pages.get(step, ())))]
        return min(bisect_right(ends, position) + 1, len(ends))

    def page(self, step: str, number: int) -> str:
        """Return a page of an output. Raises InvalidInput if there is none."""
        pages = self._pages.get(step)
        if pages is None:
            known = ", ".join(self._pages) or "none"
            problem = f"output {step} is no longer stored" if step in self._dropped else f"unknown output {step!r}"
            raise InvalidInput(f"{problem}; outputs with several pages: {known}")
        if not 1 <= number <= len(pages):
            raise InvalidInput(f"output {step} has the pages 1 to {len(pages)}")
        more = f"; read on with read_output, output {step}, page {number + 1}" if number < len(pages) else ""
        return f"{pages[number - 1]}\n[page {number} of {len(pages)} of output {step}{more}]"

    def _drop_oldest(self) -> None:
        """Drop the oldest outputs until all together fit the limit; the newest always stays."""
        size = sum(len(page) for pages in self._pages.values() for page in pages)
        while size > self.max_all_chars and len(self._pages) > 1:
            oldest = next(iter(self._pages))
            size -= sum(map(len, self._pages.pop(oldest)))
            self._dropped.add(oldest)
