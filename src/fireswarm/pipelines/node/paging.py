"""The requests of recorded cases, side by side: those for the pages of one answer are one step."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from fireswarm.pipelines.node import shaping
from fireswarm.pipelines.node.recording import Case, RecordedRequest
from fireswarm.pipelines.node.scopes import MIN_NAMED_CHARS, paths_in
from fireswarm.pipelines.node.shaping import MISSING

MADE = re.compile(r"a\d+[a-z]*_")
"""Beginning of a text of an answer, as the recorder makes it: the number of the answer, and letters of the input."""


class PageRun(NamedTuple):
    """Consecutive requests of a case that ask for the pages of one answer; mostly it is one request."""

    first: int
    last: int
    cursors: tuple[str, ...] = ()


def steps_of(case: Case) -> list[PageRun]:
    """Return the requests of a case, those for the pages of one answer together."""
    steps: list[PageRun] = []
    for number in range(len(case.requests)):
        withheld = case.withheld[number] if number < len(case.withheld) else ()
        first = _first_page(case, number) if withheld else number
        cursors = [each for each in withheld if all(_has(case.answers[page], each) for page in range(first, number))]
        if first == number or not cursors:
            steps.append(PageRun(number, number))
            continue
        steps = [step for step in steps if step.first < first]
        told = [_show(case.requests[page]) for page in range(first + 1, number + 1)]
        cursors.sort(key=lambda each: not all(_has_text(case.answers[first], each, text) for text in told[:1]))
        steps.append(PageRun(first, number, tuple(cursors)))
    return steps


def align_steps(cases: Sequence[Case]) -> list[list[PageRun | None]]:
    """Return the steps of each case, as many for each: None stands for a request that only other cases send.

    Raises ValueError if the requests of a case are no part of those of the longest one, in sequence.
    """
    steps = [steps_of(case) for case in cases]
    if len({len(each) for each in steps}) == 1:
        return [[*each] for each in steps]
    keyed = [[_pattern(case, step) for step in each] for case, each in zip(cases, steps, strict=True)]
    longest = max(keyed, key=len)
    return [_place(each, keys, longest) for each, keys in zip(steps, keyed, strict=True)]


def _place(steps: Sequence[PageRun], keys: Sequence[str], longest: Sequence[str]) -> list[PageRun | None]:
    left = list(zip(steps, keys, strict=True))
    placed = [left.pop(0)[0] if left and left[0][1] == key else None for key in longest]
    if left:
        raise ValueError("the requests depend on parameters")
    return placed


def _pattern(case: Case, step: PageRun) -> str:
    """Return method and address of a request, without the made-up values in it."""
    request = case.requests[step.first]
    address = re.sub(rf"{MADE.pattern}\w*", "{}", request.url)
    for text in sorted(case.named, key=len, reverse=True):
        if len(text) >= MIN_NAMED_CHARS:
            address = address.replace(text, "{}").replace(quote(text, safe=""), "{}")
    return f"{request.method} {address}"


def _first_page(case: Case, last: int) -> int:
    """Return the number of the first request that asks for the same as the last page, or leads to its address."""
    kind = _kind(case.requests[last])
    first = last
    while first and _kind(case.requests[first - 1]) == kind:
        first -= 1
    texts = [text for _, text in paths_in(case.answers[first - 1] if first else None) if isinstance(text, str)]
    leads = first and any(text and text in case.requests[first].url for text in texts)
    return first - 1 if leads and case.requests[first - 1].method == kind[0] else first


def _kind(request: RecordedRequest) -> tuple[str, str]:
    return request.method, MADE.sub("", request.url)


def _show(request: RecordedRequest) -> str:
    return request.model_dump_json()


def _has(answer: Any, dotted: str) -> bool:
    return shaping.nonempty(shaping.take(answer, dotted)) is not MISSING


def _has_text(answer: Any, dotted: str, text: str) -> bool:
    return str(shaping.take(answer, dotted)) in text
