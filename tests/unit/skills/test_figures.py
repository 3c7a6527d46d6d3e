"""Figures for people never show more than their data support."""

from __future__ import annotations

import math

import pytest

from fireswarm.contracts.base import count_noun
from fireswarm.skills.figures import (
    format_change,
    format_counts,
    format_extent,
    format_measured_share,
    format_number,
    format_percent,
    format_range,
    format_rank,
    format_score,
    format_share,
    format_size,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (1180, "1,180"), (1180.0, "1,180"), (1476.4, "1,476"), (19.99, "19.99"), (0.123456, "0.1235"),
        (0.00001234, "0.00001234"), (1e21, "1,000,000,000,000,000,000,000"), (-1234.5, "-1,234"), (10.0, "10"),
        (185441612.3, "185,441,612"), (math.nan, "not a number"), (math.inf, "not a number"),
    ],
)  # fmt: skip
def test_numbers_have_separated_thousands_and_never_an_exponent(value: float, text: str) -> None:
    assert format_number(value) == text


def test_certainty_is_never_the_result_of_rounding() -> None:
    assert [format_score(value) for value in (0, 0.0026, 0.5, 0.996, 1)] == ["0.00", "<0.01", "0.50", ">0.99", "1.00"]
    assert [format_percent(value) for value in (0, 0.001, 0.5, 0.999, 1)] == ["0%", "<1%", "50%", ">99%", "100%"]


def test_range_with_equal_ends_is_one_value() -> None:
    assert format_range(1.0, 1.0) == "1.00"
    assert format_range(0.331, 0.334) == "0.33"
    assert format_range(0.2, 0.4) == "0.20 to 0.40"
    assert format_range(1000, 2500, format_number) == "1,000 to 2,500"


def test_share_of_a_few_is_a_count_and_of_many_a_percentage() -> None:
    assert format_share(3, 12) == "3 of 12"
    assert format_share(1, 1) == "1 of 1"
    assert format_share(0, 0) == "0 of 0"
    assert format_share(270, 1000) == "27%"
    assert format_measured_share(0.85, 20) == "17 of 20"
    assert format_measured_share(0.85, 200) == "85%"


def test_place_among_files_is_a_rank() -> None:
    assert format_rank(1, 12) == "highest of 12"
    assert [format_rank(place, 30) for place in (2, 3, 4, 11, 21)] == [
        "2nd highest of 30", "3rd highest of 30", "4th highest of 30", "11th highest of 30", "21st highest of 30",
    ]  # fmt: skip
    assert format_rank(2, 1200, 1) == "2nd highest of 1,200, as 1 other"
    assert format_rank(2, 12, 3) == "2nd highest of 12, as 3 others"


def test_change_of_a_small_count_has_no_percentage() -> None:
    assert format_change(2, 4) == "+2"
    assert format_change(1, 0) == "-1"
    assert format_change(200, 300) == "+100 (+50%)"
    assert format_change(0.4, 0.2) == "-0.2 (-50%)"


def test_counts_of_zero_are_left_out_and_nouns_agree() -> None:
    assert format_counts([(12, "file"), (0, "test"), (1, "broken link")]) == "12 files, 1 broken link"
    assert format_counts([(0, "file")]) == ""
    assert [count_noun(2, noun) for noun in ("entry", "day", "class", "branch", "box")] == [
        "2 entries", "2 days", "2 classes", "2 branches", "2 boxes",
    ]  # fmt: skip


def test_extent_is_named_only_if_something_is_left_out() -> None:
    assert format_extent(3, 3) == "3"
    assert format_extent(10, 1234) == "10 of 1,234"


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1000, "1.0 KB"), (9010, "9.0 KB"), (174395, "174 KB"),
     (999_900, "1.0 MB"), (1_218_165, "1.2 MB"), (5 * 10**15, "5,000 TB")],
)  # fmt: skip
def test_sizes_have_a_unit_that_suits_them(size: int, text: str) -> None:
    assert format_size(size) == text
