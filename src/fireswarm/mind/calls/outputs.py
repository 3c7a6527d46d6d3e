"""The output of a call as the model sees it. A long one is kept and shown in pages."""

from __future__ import annotations

from dataclasses import dataclass, field

from fireswarm.contracts.text_page import split_pages
from fireswarm.errors import InvalidInput
from fireswarm.redaction import REDACTED

MAX_ALL_CHARS = 20_000_000
"""Characters of all outputs of a run that are kept; the oldest outputs are dropped first."""

LEAST_PAGE_CHARS = 256
"""The shortest page of an output; an answer whose calls could not all show one has too many calls."""

FOOTER_CHARS = 120
"""Room for the last line of a page, so that a page that is read later fits into one."""

REPLACED = (
    f"[A part of this call's input was replaced by {REDACTED} before the call, because it looks like a secret."
    " To use a secret, let a command read it from a variable of the environment or from a file; ask the user to put it"
    " there if it is in neither.]"
)


@dataclass(slots=True)
class Outputs:
    """The long outputs of a run by the names of their steps. A page has at most ``page_chars`` characters.

    ``most_page_chars`` is the length of a page that has room enough.
    """

    most_page_chars: int
    max_all_chars: int = MAX_ALL_CHARS
    page_chars: int = field(init=False)
    _pages: dict[str, list[str]] = field(default_factory=dict)
    _dropped: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin with pages of the greatest length."""
        self.page_chars = self.most_page_chars

    def share(self, calls: int, room: int) -> int:
        """Set the length of a page so that the outputs of *calls* take *room*; returns how many have room."""
        self.page_chars = max(LEAST_PAGE_CHARS, min(self.most_page_chars, room // max(1, calls)))
        return max(1, room // LEAST_PAGE_CHARS)

    @property
    def names(self) -> list[str]:
        """The steps whose outputs have several pages, the newest last."""
        return list(self._pages)

    def show(self, step: str, text: str) -> str:
        """Return *text*, or its first page and how to read on."""
        if len(text) <= self.page_chars:
            return text
        self._pages[step] = split_pages(text, max(self.page_chars - FOOTER_CHARS, self.page_chars // 2))
        shown = self.page(step, 1)
        self._drop_oldest()
        return shown

    def page(self, step: str, number: int) -> str:
        """Return a page of an output. Raises InvalidInput if there is none."""
        pages = self._pages.get(step)
        if pages is None:
            known = ", ".join(self._pages) or "none"
            problem = f"output {step} is kept no longer" if step in self._dropped else f"unknown output {step!r}"
            raise InvalidInput(f"{problem}; those of several pages: {known}")
        if not 1 <= number <= len(pages):
            raise InvalidInput(f"output {step} has the pages 1 to {len(pages)}")
        more = f"; read on with read_output, output {step}, page {number + 1}" if number < len(pages) else ""
        return f"{pages[number - 1]}\n[page {number} of {len(pages)} of output {step}{more}]"

    def _drop_oldest(self) -> None:
        """Drop outputs while all together are longer than the limit, but the newest."""
        size = sum(len(page) for pages in self._pages.values() for page in pages)
        while size > self.max_all_chars and len(self._pages) > 1:
            oldest = next(iter(self._pages))
            size -= sum(map(len, self._pages.pop(oldest)))
            self._dropped.add(oldest)
