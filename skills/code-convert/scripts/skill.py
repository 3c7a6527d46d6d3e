"""Translate a node's code into Python: the advisor writes one file, or one function at a time of a recorded node."""

from __future__ import annotations

from pathlib import Path

from fireswarm import SkillRequest, SkillResult, pipelines

REFERENCES = Path(__file__).parents[1] / "references"


def run(request: SkillRequest) -> SkillResult:
    """Return ``operations.py`` from the advisor, and the run's diff."""
    is_recorded = pipelines.RECORDING in pipelines.Carried.of(request)
    question = REFERENCES / ("recorded.md" if is_recorded else "question.md")
    return pipelines.write_operations(request, question.read_text(encoding="utf-8"))
