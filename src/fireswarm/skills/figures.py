"""Figures for people: the one place that formats the numbers of reports. Pure.

A figure never shows more than its data support: no percentage of a few, no range with equal ends, no scientific
notation, no certainty by rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import Decimal

from fireswarm.contracts.base import count_noun

LEAST_FOR_PERCENT = 100
"""Minimum total of a percentage: below it, one more or less moves the figure by more than one percent."""

SIGNIFICANT_DIGITS = 4
_WHOLE_FROM = 1_000
"""Numbers from here on have no decimals."""

_UNITS = ("bytes", "KB", "MB", "GB", "TB")
_STEP = 1_000


def format_number(value: float) -> str:
    """Return a number with separated thousands and at most four significant digits after the point: ``1,180``."""
    if not math.isfinite(value):
        return "not a number"
    if isinstance(value, int) or float(value).is_integer() or abs(value) >= _WHOLE_FROM:
        return f"{round(value):,}"
    return format(Decimal(f"{value:.{SIGNIFICANT_DIGITS}g}"), "f")


def format_score(value: float) -> str:
    """Return a score from 0 to 1 with two decimals; 0.00 and 1.00 stand only for exactly 0 and 1."""
    if 0 < value < 0.005:
        return "<0.01"
    return ">0.99" if 0.995 <= value < 1 else f"{value:.2f}"


def format_percent(share: float) -> str:
    """Return a share from 0 to 1 in percent; 0% and 100% stand only for exactly none and all."""
    if 0 < share < 0.005:
        return "<1%"
    return ">99%" if 0.995 <= share < 1 else f"{share:.0%}"


def format_share(part: int, whole: int) -> str:
    """Return a part of a total: as counts for a total below 100, ``3 of 12``, otherwise in percent."""
    if whole < LEAST_FOR_PERCENT:
        return f"{part:,} of {whole:,}"
    return format_percent(part / whole)


def format_measured_share(share: float, whole: int) -> str:
    """Return a share that was measured on *whole* cases, as :func:`format_share` does."""
    return format_share(round(share * whole), whole)


def format_change(before: float, now: float) -> str:
    """Return a signed difference, with its share in percent if the earlier value is large enough for one."""
    difference = now - before
    counted = isinstance(before, int) and isinstance(now, int)
    enough = abs(before) >= LEAST_FOR_PERCENT if counted else before != 0
    share = f" ({difference / abs(before):+.0%})" if enough and abs(difference / before) >= 0.005 else ""
    return f"{'+' if difference > 0 else '-'}{format_number(abs(difference))}{share}"


def format_range(low: float, high: float, form: Callable[[float], str] = format_score) -> str:
    """Return ``low to high``, or one value if both ends look the same."""
    first, last = form(low), form(high)
    return first if first == last else f"{first} to {last}"


def format_rank(place: int, total: int, equal: int = 0) -> str:
    """Return the place of a value among *total*, highest first: ``2nd highest of 12``. *equal* others share it."""
    order = "highest" if place == 1 else f"{place:,}{_ordinal_ending(place)} highest"
    shared = f", as {equal:,} other{'' if equal == 1 else 's'}" if equal else ""
    return f"{order} of {total:,}{shared}"


def format_size(size: int) -> str:
    """Return a number of bytes in the unit that suits it: ``512 bytes``, ``1.2 MB``."""
    if size < _STEP:
        return count_noun(size, "byte")
    value, unit = float(size), 0
    while value >= _STEP - 0.5 and unit < len(_UNITS) - 1:
        value, unit = value / _STEP, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if value < 10 else f"{round(value):,} {_UNITS[unit]}"


def format_counts(counts: Iterable[tuple[int, str]]) -> str:
    """Return the counts above zero with their nouns: ``12 files, 1 broken link``; "" without any."""
    return ", ".join(count_noun(count, noun) for count, noun in counts if count)


def format_extent(shown: int, total: int) -> str:
    """Return how much of a list is shown: ``10 of 25``, or the total if all of it is."""
    return f"{shown:,} of {total:,}" if shown < total else f"{total:,}"


def _ordinal_ending(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
