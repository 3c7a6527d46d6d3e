"""Consoles whose output has no foreign control characters: texts may come from strangers, and terminals obey them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from fireswarm.cli.streams import is_unicode
from fireswarm.redaction import sanitize


class CleanConsole(Console):
    """Prints every text without escape sequences, control characters and changes of direction."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of *renderable*, including nested tables and texts."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else sanitize(text), style, control)

    def print(self, *objects: Any, **how: Any) -> None:
        """Print as rich does, but wrap texts on a terminal only."""
        if not self.is_terminal and all(isinstance(item, (str, Text)) for item in objects):
            how = {"soft_wrap": True, **how}
        super().print(*objects, **how)

    def prose(self, text: str, style: str = "") -> None:
        """Print sentences: a terminal wraps them between words, a file gets each on one line."""
        self.print(text, style=style, soft_wrap=not self.is_terminal)


def make_console(*, stderr: bool = False) -> CleanConsole:
    """Return a console for standard output, or for standard error.

    It parses no markup and no names of emoji: ``[bold]`` in a task is plain text. Styles are given by ``Text``.
    """
    return CleanConsole(stderr=stderr, highlight=False, markup=False, emoji=False)


_UNSAFE_IN_JSON = re.compile(r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that are valid in JSON but that a terminal obeys or cannot print."""


def json_text(value: Any, default: Callable[[Any], Any] | None = None) -> str:
    """Return *value* as indented JSON in which control characters and marks of direction are escaped.

    Where standard output cannot show every character, all that is not ASCII is escaped.
    """
    text = json.dumps(value, default=default, indent=2, ensure_ascii=not is_unicode(sys.stdout))
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
