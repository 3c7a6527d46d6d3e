"""Write a node's operations from the documents of an API: the advisor writes one file, within its scope."""

from __future__ import annotations

from pathlib import Path

from fireswarm import SkillRequest, SkillResult, pipelines

QUESTION = Path(__file__).parents[1] / "references" / "question.md"


def run(request: SkillRequest) -> SkillResult:
    """Return ``operations.py`` from the advisor, and the run's diff."""
    return pipelines.write_operations(request, QUESTION.read_text(encoding="utf-8"))
