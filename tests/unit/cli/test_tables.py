"""Tables: readable on a narrow terminal, and one line for each row in a pipe."""

from __future__ import annotations

import io
import re

import pytest
from rich.text import Text

from fireswarm.cli.shared import options, tables
from fireswarm.cli.shared.console import CleanConsole

COLUMNS = ("message", "from", "to", "status", "hop", "artifacts/signals", "sent", "notes")
ROW = (
    "0a1b2c3d",
    "architect",
    "predictor",
    Text("claimed", "cyan"),
    "12",
    "12/34",
    "21 min",
    "step risk of the plan " * 8,
)
EMPTY = ("4e8db31b", "", "memory", Text("read"), "1", "1/0", "2 s", "two\tlines\nof text")
FRAME = re.compile("[\u2500-\u257f]")


def printed(monkeypatch: pytest.MonkeyPatch, width: int, *, terminal: bool, rows: int = 2) -> list[str]:
    out = io.StringIO()
    console = CleanConsole(file=out, width=width, force_terminal=terminal, highlight=False, color_system=None)
    monkeypatch.setattr(tables, "console", console)
    monkeypatch.setattr(options, "console", console)
    tables.table("mail", COLUMNS, (ROW, EMPTY)[:rows], none="no messages")
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [20, 80, 200])
def test_each_row_is_one_line_of_values_in_a_pipe(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(monkeypatch, width, terminal=False)
    assert [line.split("\t") for line in lines] == [
        list(COLUMNS),
        [*map(str, ROW[:-1]), str(ROW[-1]).strip()],
        ["4e8db31b", "-", "memory", "read", "1", "1/0", "2 s", "two lines of text"],
    ]


@pytest.mark.parametrize("width", [30, 60, 80, 100, 120, 200])
def test_no_value_is_cut_or_squeezed_on_a_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(monkeypatch, width, terminal=True)
    text = " ".join(FRAME.sub(" ", line) for line in lines)
    assert all(len(line) <= width for line in lines)
    assert "\u2026" not in text
    words = {word for value in (*ROW, *EMPTY) for word in str(value).split()}
    assert words <= set(text.split())


def test_wide_terminal_has_a_frame_and_a_narrow_one_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert FRAME.search("".join(printed(monkeypatch, 140, terminal=True)))
    narrow = printed(monkeypatch, 80, terminal=True, rows=1)
    assert not FRAME.search("".join(narrow))
    assert narrow[1].startswith("0a1b2c3d  from architect  to predictor  status claimed  hop 12")
    assert narrow[-1].startswith("    ")


@pytest.mark.parametrize("terminal", [True, False])
def test_values_are_clipped_on_a_terminal_only(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    printed(monkeypatch, 80, terminal=terminal)
    assert (tables.cell("word " * 50, 20) == "word " * 50) is not terminal
