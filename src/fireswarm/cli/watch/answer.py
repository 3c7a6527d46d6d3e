"""Print the full answer of a task: as Markdown on a terminal, as plain text elsewhere."""

from __future__ import annotations

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, TableElement
from rich.table import Table

from fireswarm.cli.shared.options import console as standard_output


class _PlainTable(TableElement):
    """A table without the empty lines that rich draws as its edges."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for drawn in super().__rich_console__(console, options):
            if isinstance(drawn, Table):
                drawn.show_edge = False
            yield drawn


class AnswerMarkdown(Markdown):
    """Markdown of a model."""

    elements = {**Markdown.elements, "table_open": _PlainTable}


def print_answer(text: str, console: Console | None = None) -> None:
    """Print the full *text*. Links show their address, so that a text cannot hide the target."""
    console = console or standard_output
    if not text:
        return
    if console.is_terminal:
        console.print(markdown_of(text))
    else:
        console.print(text, markup=False, emoji=False, soft_wrap=True)


def markdown_of(text: str) -> Markdown:
    """Return *text* as Markdown with visible link addresses and with HTML as text, which rich would drop."""
    drawn = AnswerMarkdown("", hyperlinks=False)
    drawn.parsed = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).parse(text)
    return drawn
