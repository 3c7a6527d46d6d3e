"""Other words that ask for the same, such as "the number of" for "count". Pure.

They count only for a role with one skill: among several skills, they would blur which one is meant.
"""

from __future__ import annotations

from collections.abc import Iterable

_GROUPS = """
count, counts, counting, number, numbers of, how many, tally, quantity
list, lists, show, enumerate, which, what are, name
find, finds, locate, look for, search, spot, where, which
sort, sorts, order, arrange, alphabetical, alphabetically, alphabetize
sum, sums, total, totals, add up, sum up
mean, average
shrink, shrinks, resize, smaller, reduce, downscale, scale down
summarise, summarize, summary, condense, digest, tl dr, key points, boil down, sum up
check, checks, verify, validate, inspect, examine
compare, compares, difference, differences, differ, diff
extract, extracts, pull out, collect, gather
forecast, forecasts, predict, estimate
measure, measures, size, length, how big, how large, how long
calculate, calculates, compute, work out, figure out
merge, merges, combine, join
split, splits, divide, separate
"""
_ALIKE = tuple(frozenset(word.strip() for word in line.split(",")) for line in _GROUPS.strip().splitlines())


def widen(asking: Iterable[str], described: str) -> frozenset[str]:
    """Return the *asking* words and phrases, the description's first verb, and other words that ask for it."""
    verb = next(iter(described.lower().split()), "").strip(".,;:")
    asked = frozenset(asking)
    begun = frozenset({verb}) if any(verb in group for group in _ALIKE) else frozenset[str]()
    return asked.union(begun, *(group for group in _ALIKE if group & (asked | begun)))
