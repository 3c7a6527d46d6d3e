"""The diff of a file: it contains every change, however long the file and its lines are."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fireswarm.capabilities.text_diff import cut_diff, text_diff

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@$")


def applied(diff: str, before: str) -> str:
    """Apply a unified diff as `patch` does, and return the new text."""
    old, new, position = before.split("\n"), list[str](), 0
    lines = diff.split("\n")[2:]
    for line in lines:
        if head := HUNK.match(line):
            start = int(head[1]) - (head[2] != "0")
            new += old[position:start]
            position = start
        elif line.startswith("\\"):
            continue
        elif line.startswith("+"):
            new.append(line[1:])
        else:
            assert old[position] == line[1:]
            position += 1
            new += [line[1:]] if line.startswith(" ") else []
    return "\n".join([*new, *old[position:]])


def numbered(count: int) -> list[str]:
    return [f"x{number} = {number}" for number in range(count)]


@pytest.mark.parametrize("lines", [2_500, 60_000])
def test_the_diff_of_a_long_file_has_its_changes_with_some_lines_around_them(lines: int) -> None:
    old = numbered(lines)
    new = [*old]
    new[7], new[lines - 100] = "first", "second"
    new.insert(1_000, "between")
    diff = text_diff("data.py", "\n".join(old) + "\n", "\n".join(new) + "\n").split("\n")
    assert [line for line in diff if line[0] in "+-"][2:] == [
        "-x7 = 7",
        "+first",
        "+between",
        f"-x{lines - 100} = {lines - 100}",
        "+second",
    ]
    assert [line for line in diff if line.startswith("@@")] == [
        "@@ -5,7 +5,7 @@",
        "@@ -998,6 +998,7 @@",
        f"@@ -{lines - 102},7 +{lines - 101},7 @@",
    ]


def test_a_long_file_of_equal_lines_is_compared() -> None:
    diff = text_diff("a", "same\n" * 30_000, "same\n" * 12_000 + "other\n" + "same\n" * 18_000)
    assert [line for line in diff.split("\n") if line[0] in "+-"][2:] == ["+other"]


def test_a_file_that_is_replaced_by_another_is_shown_whole() -> None:
    diff = text_diff("a", "".join(f"old {n}\n" for n in range(9_000)), "".join(f"new {n}\n" for n in range(9_000)))
    assert len(diff.split("\n")) == 2 + 1 + 18_000


LINES = st.lists(st.sampled_from(["a", "b", "", "c\r", "}", "k" * 600, "k" * 300 + "m" * 300]), max_size=40)


@given(LINES, LINES)
def test_a_diff_gives_the_new_text_when_it_is_applied(old: list[str], new: list[str]) -> None:
    before, after = ("".join(f"{line}|\n" for line in lines) + "end" for lines in (old, new))
    diff = text_diff("a", before, after)
    if before != after and "k" not in before + after:
        assert applied(diff, before) == after
    assert (diff == "a does not change") is (before == after)


@pytest.mark.parametrize("old, new", [("a", "a\n"), ("a\n", "a"), ("a\nb", "a\nb\n"), ("a\n", "a\n\n"), ("", "\n")])
def test_a_change_of_the_last_line_end_is_shown(old: str, new: str) -> None:
    diff = text_diff("f", old, new)
    assert re.search(r"(?m)^[+-](?![+-]{2})", diff), diff
    assert ("\\ No newline at end of file" in diff) is (not (old or "\n").endswith("\n") or not new.endswith("\n"))


def test_long_lines_are_shown_around_their_changed_characters() -> None:
    words = [f"w{number}" for number in range(5_000)]
    changed = [*words]
    changed[700], changed[4_000] = "here", "there"
    old, new = (" ".join(each) for each in (words, changed))
    diff = text_diff("wide.py", f"a\n{old}\nz\n", f"a\n{new}\nz\n").split("\n")
    removed, added = (next(line for line in diff[3:] if line.startswith(sign)) for sign in "-+")
    for line, wanted in ((removed, ("w700", "w4000")), (added, ("here", "there"))):
        assert all(word in line for word in wanted) and len(line) < 500
        hidden = [int(number.replace(",", "")) for number in re.findall(r"…\(([\d,]+) characters\)…", line)]
        assert len(hidden) == 3
        whole = len(removed := old) if line.startswith("-") else len(new)
        assert sum(hidden) + len(re.sub(r"…\([\d,]+ characters\)…", "", line)) - 1 == whole
    assert (diff[3], diff[-1]) == (" a", " z")


def test_a_change_at_the_end_of_one_long_line_is_shown() -> None:
    diff = text_diff("wide.py", "x" * 900 + "# end", "x" * 900 + "# END")
    assert "# end" in diff and "# END" in diff


def test_a_long_line_that_does_not_change_is_shortened_and_a_new_one_is_not() -> None:
    diff = text_diff("a", "k" * 3_000 + "\nold\n", "k" * 3_000 + "\n" + "n" * 3_000 + "\n")
    assert "n" * 3_000 in diff and "k" * 501 not in diff and "…(2,500 characters)…" in diff


def test_a_diff_that_is_cut_says_so_and_where_the_rest_is() -> None:
    diff = text_diff("a", None, "".join(f"line {number}\n" for number in range(100)))
    cut = cut_diff(diff, 400, "the rest is in x.diff")
    assert len(cut) <= 400 + 100
    last = cut.split("\n")[-1]
    assert last == f"[{len(cut.split(chr(10))) - 1:,} of {103:,} lines are shown: the rest is in x.diff]"
    assert cut_diff(diff, 40_000, "") == diff
    assert "of 1 line" in cut_diff("+" + "x" * 500, 100, "see it") and "x" * 50 in cut_diff("+" + "x" * 500, 100, "s")
