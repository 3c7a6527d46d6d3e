"""Report the most frequent words."""

from __future__ import annotations

from fireswarm import SkillRequest, SkillResult, pipelines

MOST = 10


def run(request: SkillRequest) -> SkillResult:
    """Return ``report.md``."""
    carried = pipelines.Carried.of(request)
    words = carried.json("counts.json")["words"]
    first = [*words.items()][:MOST]
    rows = [f"| {word} | {count:,} |" for word, count in first]
    report = "\n".join(["# Most frequent words", "", "| word | count |", "| --- | --- |", *rows, ""])
    carried.write("report.md", report)
    named = ", ".join(f"{word} ({count:,})" for word, count in first)
    return SkillResult(summary=f"most frequent: {named}", artifacts=carried.artifacts())
