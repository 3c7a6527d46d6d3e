"""Count the words of the text that the step before has left."""

from __future__ import annotations

import re
from collections import Counter

from fireswarm import SkillRequest, SkillResult, count_noun, pipelines

WORD = re.compile(r"[^\W\d_]+")


def run(request: SkillRequest) -> SkillResult:
    """Return ``counts.json``."""
    carried = pipelines.Carried.of(request)
    counts = Counter(WORD.findall(carried.text("text.txt").casefold()))
    ordered = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
    carried.write_json("counts.json", {"has_words": bool(ordered), "words": ordered})
    return SkillResult(summary=count_noun(counts.total(), "word"), artifacts=carried.artifacts())
