"""No text of a stranger controls the terminal."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from fireswarm.cli.shared.console import CleanConsole

HOSTILE = (
    "a\x1b[2Jb",  # clears the screen
    "a\x1b]52;c;ZXZpbA==\x07b",  # writes the clipboard
    "a\x1b]8;;http://evil\x1b\\b\x1b]8;;\x1b\\",  # a link that shows another text
    "a\x1bP1$r0m\x1b\\b",  # asks the terminal to type
    "a\x9b31mb",  # C1 spelling of an escape sequence
    "safe\rEVIL",  # overwrites the line
    "a\x08\x08b",
    "user\u202egnp.exe",  # shows the end first
    "a\x00b\x07",
    "\x1b" * 3 + "[" * 50 + "\x1b",
)
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def table(text: str) -> Table:
    drawn = Table("name", text)
    drawn.add_row(text, Text(text, style="red"))
    return drawn


def tree(text: str) -> Tree:
    drawn = Tree(text)
    drawn.add(text).add(Panel(text, title=text))
    return drawn


def group(text: str) -> Group:
    return Group(table(text), text)


BUILDERS: dict[str, Callable[[str], RenderableType]] = {"text": Text, "table": table, "tree": tree, "group": group}


@pytest.mark.parametrize("kind", BUILDERS)
@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("width", [20, 120])
def test_texts_of_strangers_hold_no_control_characters(kind: str, text: str, width: int) -> None:
    out = io.StringIO()
    CleanConsole(file=out, width=width, highlight=False).print(BUILDERS[kind](text))
    assert not CONTROL.search(out.getvalue())


def test_own_styles_reach_a_terminal() -> None:
    out = io.StringIO()
    CleanConsole(file=out, force_terminal=True, color_system="standard", highlight=False).print("[red]x\x1b[2J[/red]")
    assert out.getvalue() == "\x1b[31mx\x1b[0m\n"


def test_every_command_prints_through_a_clean_console() -> None:
    source = Path(__file__).resolve().parents[3] / "src" / "fireswarm"
    makers = [path.name for path in source.rglob("*.py") if re.search(r"(?<!\w)Console\(", path.read_text())]
    assert makers == []
