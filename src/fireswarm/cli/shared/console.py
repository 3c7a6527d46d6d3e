"""Consoles whose output holds no control characters but our own: texts come from strangers, and terminals obey them."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from fireswarm.redaction import sanitize


class CleanConsole(Console):
    """Prints every text without escape sequences, control characters and changes of direction."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of *renderable*; a table or text of any depth passes here."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else sanitize(text), style, control)


def make_console(*, stderr: bool = False) -> CleanConsole:
    """Return a console for standard output, or for standard error.

    It parses no markup and no names of emoji: ``[bold]`` in a task's text is text. Styles are given by ``Text``.
    """
    return CleanConsole(stderr=stderr, highlight=False, markup=False, emoji=False)
