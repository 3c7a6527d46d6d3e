"""The change of a file as a unified diff, for a person who has to approve it and for the model that made it. Pure.

A diff contains every changed character. Long lines are shown around their changes; ``cut_diff`` alone leaves changes
out, and says so.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from rapidfuzz.distance import LCSseq

MAX_CELLS = 25_000_000
"""Two passages are compared if the product of their lengths is at most this; larger ones replace each other whole.

The comparison takes some tenths of a second, and a bit of memory for each cell.
"""

MAX_ANCHORED = 500_000
"""Longer passages are not searched for common lines."""

MAX_LINE_CHARS = 500
"""Longer lines are shown around their changes."""

MAX_COMPARED_CHARS = 500_000
"""A longer changed passage of a line is shown whole."""

CONTEXT_LINES = 3
CONTEXT_CHARS = 60
NO_NEWLINE = "\\ No newline at end of file"

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_WORD = re.compile(r"\w{1,32}|\W", re.DOTALL)


class Change(NamedTuple):
    """A changed passage: positions in the old sequence, and in the new one."""

    old: int
    old_end: int
    new: int
    new_end: int


def text_diff(path: str, before: str | bytes | None, after: str | bytes | None) -> str:
    r"""Return the change from *before* to *after* (None: no file) as a unified diff, or as sizes for binary content.

    Shows \r at the ends of lines, unless all lines of both texts end with \r\n.
    """
    if before == after:
        return f"{path} does not change"
    if isinstance(before, bytes) or isinstance(after, bytes):
        return f"{path}: {_size(before)} -> {_size(after)}"
    if all(text is None or "\n" not in text.replace("\r\n", "") for text in (before, after)):
        before, after = (text and text.replace("\r\n", "\n") for text in (before, after))
    names = ("/dev/null" if before is None else path, "/dev/null" if after is None else path)
    old, new = _LINE.findall(before or ""), _LINE.findall(after or "")
    hunks = (line for hunk in _hunks(_changes(old, new), CONTEXT_LINES) for line in _shown_hunk(hunk, old, new))
    return "\n".join([f"--- {names[0]}", f"+++ {names[1]}", *hunks])


def cut_diff(diff: str, limit: int, rest: str) -> str:
    """Return a diff of at most *limit* characters, and a last line that says how to see the *rest* if it is cut."""
    if len(diff) <= limit:
        return diff
    end = diff.rfind("\n", 0, limit + 1)
    shown = diff[: end if end > 0 else limit]
    lines, all_lines = shown.count("\n") + 1, diff.count("\n") + 1
    return f"{shown}\n[{lines:,} of {all_lines:,} line{'' if all_lines == 1 else 's'} are shown: {rest}]"


def _changes(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """Return the changed passages in order.

    In sequences that are too long to be compared whole, elements that occur once in both are matched first.
    """
    start = _common_start(old, new)
    same_end = _common_start(old[start:][::-1], new[start:][::-1])
    end = (len(old) - same_end, len(new) - same_end)
    sizes = (end[0] - start, end[1] - start)
    anchors = _anchors(old, new, start, end) if sizes[0] * sizes[1] > MAX_CELLS and sum(sizes) <= MAX_ANCHORED else ()
    found: list[Change] = []
    last = (start, start)
    for place in [*anchors, end]:
        for change in _compare(Change(last[0], place[0], last[1], place[1]), old, new):
            if found and (found[-1].old_end, found[-1].new_end) == (change.old, change.new):
                change = Change(found[-1].old, change.old_end, found.pop().new, change.new_end)
            found.append(change)
        last = place
    return found


def _common_start(old: Sequence[str], new: Sequence[str]) -> int:
    """Return the length of the common beginning, by halving: slices are compared at the speed of memory."""
    same, end = 0, min(len(old), len(new))
    while same < end:
        middle = (same + end + 1) // 2
        if old[same:middle] == new[same:middle]:
            same = middle
        else:
            end = middle - 1
    return same


def _anchors(old: Sequence[str], new: Sequence[str], start: int, end: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the positions of elements that occur once in both passages and are in the same order in both."""
    counts = (Counter(old[start : end[0]]), Counter(new[start : end[1]]))
    places = {new[at]: at for at in range(start, end[1])}
    pairs = [
        (at, places[old[at]]) for at in range(start, end[0]) if counts[0][old[at]] == 1 and counts[1][old[at]] == 1
    ]
    lowest: list[int] = []  # of each length, the lowest end of a rising sequence of new positions
    ends: list[int] = []
    before: list[int] = []
    for number, (_, at) in enumerate(pairs):
        length = bisect_left(lowest, at)
        if length == len(lowest):
            lowest.append(at)
            ends.append(number)
        lowest[length], ends[length] = at, number
        before.append(ends[length - 1] if length else -1)
    number = ends[-1] if ends else -1
    found: list[tuple[int, int]] = []
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]


def _compare(passage: Change, old: Sequence[str], new: Sequence[str]) -> Iterator[Change]:
    """Yield the changes within a passage."""
    one, other = old[passage.old : passage.old_end], new[passage.new : passage.new_end]
    if one == other:
        return
    if not one or not other or len(one) * len(other) > MAX_CELLS:
        yield passage
        return
    numbers: dict[str, int] = {}  # rapidfuzz compares hashes, and those of small numbers are unique
    ids = [[numbers.setdefault(item, len(numbers)) for item in items] for items in (one, other)]
    for code in LCSseq.opcodes(*ids):
        if code.tag != "equal":
            yield Change(
                passage.old + code.src_start,
                passage.old + code.src_end,
                passage.new + code.dest_start,
                passage.new + code.dest_end,
            )


def _hunks(changes: Sequence[Change], context: int) -> Iterator[list[Change]]:
    """Yield the changes in groups that are at most twice the *context* apart."""
    group: list[Change] = []
    for change in changes:
        if group and change.old - group[-1].old_end > 2 * context:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _shown_hunk(hunk: list[Change], old: list[str], new: list[str]) -> Iterator[str]:
    """Yield the lines of a hunk: its positions, then the changed lines between unchanged ones."""
    first, last = max(0, hunk[0].old - CONTEXT_LINES), min(len(old), hunk[-1].old_end + CONTEXT_LINES)
    new_first, new_last = hunk[0].new - hunk[0].old + first, hunk[-1].new_end + last - hunk[-1].old_end
    yield f"@@ -{_range(first, last)} +{_range(new_first, new_last)} @@"
    at = first
    for change in hunk:
        yield from _context_lines(old[at : change.old])
        one, other = old[change.old : change.old_end], new[change.new : change.new_end]
        for number, pair in enumerate(zip(one, other, strict=False)):
            if max(map(len, pair)) > MAX_LINE_CHARS:
                one[number], other[number] = _around_changes(*pair)
        yield from _sign_lines("-", one)
        yield from _sign_lines("+", other)
        at = change.old_end
    yield from _context_lines(old[at:last])


def _range(start: int, end: int) -> str:
    length = end - start
    return str(start + 1) if length == 1 else f"{start + bool(length)},{length}"


def _context_lines(lines: Sequence[str]) -> list[str]:
    shown: list[str] = []
    for line in lines:
        text = line.removesuffix("\n")
        if len(text) > MAX_LINE_CHARS:
            line = f"{text[:MAX_LINE_CHARS]}{_left_out(len(text) - MAX_LINE_CHARS)}{line[len(text) :]}"
        shown.append(line)
    return _sign_lines(" ", shown)


def _sign_lines(sign: str, lines: Sequence[str]) -> list[str]:
    """Return lines with their sign; only the last line of a file may have no end."""
    signed = [f"{sign}{line[:-1]}" for line in lines]
    if lines and not lines[-1].endswith("\n"):
        signed[-1:] = [f"{sign}{lines[-1]}", NO_NEWLINE]
    return signed


def _around_changes(old: str, new: str) -> tuple[str, str]:
    """Return the passages around the changes of a long line, as it is removed and added."""
    start = _common_start(old, new)
    same_end = _common_start(old[start:][::-1], new[start:][::-1])
    changes = [Change(start, len(old) - same_end, start, len(new) - same_end)]
    if max(changes[0].old_end, changes[0].new_end) - start <= MAX_COMPARED_CHARS:
        words = [_WORD.findall(line[start : len(line) - same_end]) for line in (old, new)]
        starts = [[*accumulate(map(len, each), initial=start)] for each in words]
        changes = [
            Change(starts[0][each.old], starts[0][each.old_end], starts[1][each.new], starts[1][each.new_end])
            for each in _changes(*words)
        ]
    groups = [*_hunks(changes, CONTEXT_CHARS)]
    return (
        _passages(old, [(group[0].old, group[-1].old_end) for group in groups]),
        _passages(new, [(group[0].new, group[-1].new_end) for group in groups]),
    )


def _passages(line: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return the passages of a line with the characters around them, and how many characters are left out between."""
    parts: list[str] = []
    after = 0
    for start, end in spans:
        first, last = max(after, start - CONTEXT_CHARS), min(len(line), end + CONTEXT_CHARS)
        parts += [_left_out(first - after), line[first:last]]
        after = last
    newline = line[after:].endswith("\n")
    return "".join([*parts, _left_out(len(line) - after - newline), "\n" if newline else ""])


def _left_out(chars: int) -> str:
    return f"…({chars:,} characters)…" if chars else ""


def _size(content: str | bytes | None) -> str:
    if content is None:
        return "no file"
    return f"{len(content if isinstance(content, bytes) else content.encode()):,} bytes"
