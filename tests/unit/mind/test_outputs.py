"""Outputs of several pages that a run keeps."""

from __future__ import annotations

import re

import pytest

from fireswarm.errors import InvalidInput
from fireswarm.mind.calls.outputs import Outputs


def test_oldest_outputs_are_dropped_when_all_are_longer_than_the_limit() -> None:
    outputs = Outputs(1_000, max_all_chars=5_000)
    for step in ("1.1", "2.1", "3.1"):
        assert f"[page 1 of 3 of output {step}" in outputs.show(step, "x" * 2_500)
    assert outputs.names == ["2.1", "3.1"]
    with pytest.raises(InvalidInput, match=r"output 1\.1 is no longer stored; outputs with several pages: 2\.1, 3\.1"):
        outputs.page("1.1", 2)
    assert "[page 1 of 20 of output 4.1" in outputs.show("4.1", "y" * 17_000), "the newest one is always kept"
    assert outputs.names == ["4.1"]


def test_page_with_its_last_line_fits_into_a_page() -> None:
    outputs = Outputs(300)
    first = outputs.show("10.10", "x" * 1_000)
    assert len(first) <= 300
    assert outputs.show("11.1", outputs.page("10.10", 2)) == outputs.page("10.10", 2)
    assert outputs.names == ["10.10"]


LINES = "".join(f"out {number}\n" for number in range(3_000))
ERRORS = "".join(f"err {number}\n" for number in range(3_000))


@pytest.mark.parametrize("room", [256, 2_000, 16_000])
@pytest.mark.parametrize("parts", [("[exit code 3]", LINES), ("[exit code 3]", LINES, ERRORS), (LINES, "[stderr]\nx")])
def test_both_ends_of_each_part_are_shown_and_the_rest_is_in_the_named_pages(room: int, parts: tuple[str, ...]) -> None:
    outputs = Outputs(room)
    parts = tuple(part.rstrip() for part in parts)
    text = "\n".join(parts)
    shown = outputs.show_ends("2.1", text, parts)
    assert len(shown) <= room
    for part in parts:
        short = part if len(part) < 20 else ""
        assert short in shown and part[:5] in shown and part[-5:] in shown
    left_out = re.findall(
        r"characters left out: read_output, output (2.1), pages? (\d+)(?: to (\d+))? of (\d+)\]", shown
    )
    assert len(left_out) == sum(len(part) > 20 for part in parts)
    pages = [outputs.page("2.1", number).rsplit("\n[page ", 1)[0] for number in range(1, int(left_out[0][3]) + 1)]
    assert "".join(pages) == text
    pieces = re.split(r"\n\[[\d,]+ characters left out[^\]]*\]\n", shown)
    for (_, first, last, _), before, after in zip(left_out, pieces, pieces[1:], strict=False):
        middle = "".join(pages[int(first) - 1 : int(last or first)])
        assert text.index(middle) <= text.index(before) + len(before) + 1
        assert text.index(middle) + len(middle) >= text.index(after[:10]) - 1
