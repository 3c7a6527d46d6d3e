"""Outputs of several pages that a run keeps."""

from __future__ import annotations

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
