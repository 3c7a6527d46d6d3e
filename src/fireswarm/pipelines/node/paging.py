"""Requests for the pages of one answer, found among the requests of a recorded case."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from fireswarm.pipelines.node import shaping
from fireswarm.pipelines.node.recording import Case, RecordedRequest
from fireswarm.pipelines.node.scopes import paths_in
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
