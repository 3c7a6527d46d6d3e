"""Output of a command that is longer than what is kept: one note says exactly what is missing."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fireswarm.processes.output import TO_A_FILE, OutputTail

NOTE = re.compile(
    r"\n?\[([\d,]+) bytes omitted, (?:lines ([\d,]+) to ([\d,]+)|from byte ([\d,]+) on): " + TO_A_FILE + r"\]\n"
)


def kept(limit: int, *pieces: bytes) -> str:
    output = OutputTail(limit)
    for piece in pieces:
        output.add(piece)
    return output.text()


def number(text: str) -> int:
    return int(text.replace(",", ""))


def test_output_within_the_limit_is_whole() -> None:
    assert kept(9, b"a\nb\n", b"c\nd\n\xff") == "a\nb\nc\nd\n\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_lines_that_the_note_names_are_those_that_are_missing(size: int) -> None:
    lines = [str(each) for each in range(1, 2_001)]
    whole = "".join(f"{line}\n" for line in lines).encode()
    text = kept(3_000, *(whole[start : start + size] for start in range(0, len(whole), size)))
    note = NOTE.search(text)
    assert note is not None and len(NOTE.findall(text)) == 1
    first, last = number(note[2]), number(note[3])
    head, tail = text[: note.start()].split("\n"), text[note.end() :].splitlines()
    assert [*head, *lines[first - 1 : last], *tail] == lines
    assert number(note[1]) == len("".join(f"{line}\n" for line in lines[first - 1 : last]))


@given(st.lists(st.text(alphabet="ab\n", max_size=200)), st.integers(30, 200))
@example(["a" * 37], 37)
def test_note_and_what_is_kept_make_up_the_whole_output(pieces: list[str], limit: int) -> None:
    whole = "".join(pieces)
    text = kept(limit, *(piece.encode() for piece in pieces))
    note = NOTE.search(text)
    if len(whole) <= limit:
        assert text == whole
        return
    assert note is not None
    lines = whole.splitlines(keepends=True)
    head = sum(map(len, lines[: number(note[2]) - 1])) if note[2] else number(note[4]) - 1
    end = head + number(note[1])
    assert text == whole[:head].removesuffix("\n") + note[0] + whole[end:]
    assert note[3] is None or end == sum(map(len, lines[: number(note[3])]))


def test_long_line_is_cut_at_a_byte_that_the_note_names() -> None:
    text = kept(300, b"x" * 500, b"y" * 500)
    assert text == f"{'x' * 200}\n[700 bytes omitted, from byte 201 on: {TO_A_FILE}]\n{'y' * 100}"


def test_endless_output_takes_little_memory() -> None:
    output = OutputTail(3_000)
    for _ in range(2_000):
        output.add(b"0123456789\n" * 1_000)
    assert len(output.head) + len(output.tail) == 3_000
    assert "[21,997,0" in output.text()
