"""The artifacts that a report cites: numbered, loaded, and listed at its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fireswarm import Artifact, SkillRequest, read_artifact_object

from .markdown import code, inline, table

_ORDER = ("recalled_facts", "inventory", "risk_scores", "csv_forecast", "checklist", "session_summary")


@dataclass(frozen=True)
class Source:
    """An artifact with its id in the report and its content."""

    id: str
    artifact: Artifact
    content: dict[str, Any]
    task: str

    @property
    def cite(self) -> str:
        """The mark behind a statement that this source supports."""
        return f"[{self.id}]"


def collect(request: SkillRequest) -> list[Source]:
    """Number the artifacts of dependencies and children, each once, in a stable order."""
    found: dict[tuple[str, str, str | None], tuple[Artifact, str]] = {}
    for artifact in request.artifacts:
        found.setdefault(_key(artifact), (artifact, artifact.source_task_id or ""))
    for child in request.children:
        for artifact in child.artifacts:
            found.setdefault(_key(artifact), (artifact, artifact.source_task_id or child.task_id))
    ordered = sorted(found.values(), key=lambda pair: (_rank(pair[0].type), pair[0].type, pair[0].name, pair[1]))
    return [
        Source(f"A{number}", artifact, read_artifact_object(artifact), task)
        for number, (artifact, task) in enumerate(ordered, start=1)
    ]


def of_type(sources: list[Source], kind: str) -> Source | None:
    """The first source of a type."""
    return next((source for source in sources if source.artifact.type == kind), None)


def sources_table(sources: list[Source]) -> str:
    """Return the table of all cited artifacts."""
    rows = [
        [
            source.id,
            inline(source.artifact.type),
            inline(source.artifact.name or "without a name"),
            code((source.artifact.sha256 or "")[:16]) or "in the task's result",
            code(source.task) or "unknown",
        ]
        for source in sources
    ]
    return table(["Id", "Type", "Name", "sha256 (first 16)", "Task"], rows)


def _key(artifact: Artifact) -> tuple[str, str, str | None]:
    return artifact.type, artifact.name, artifact.sha256 or artifact.source_task_id


def _rank(kind: str) -> int:
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER)
