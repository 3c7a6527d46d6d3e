"""Classify a source as TypeScript of a node (TYPE1) or documents of an API (TYPE2), by a table without guessing."""

from __future__ import annotations

import re
from pathlib import Path

from fireswarm import Question, SkillRequest, SkillResult, SkillState, pipelines, read_regular_file

RULES: tuple[tuple[str, str, str, str], ...] = (
    (r"\.node\.js$", r"\bexports\b", "TYPE1", "recorded"),
    (r"\.(ts|js)$", r"\bINodeType(Description)?\b", "TYPE1", "typescript"),
    (r"\.(ya?ml|json)$", r"(?m)^[ \t]*+[\"']?(openapi|swagger)[\"']?\s*:", "TYPE2", "openapi"),
    (r"\.(md|markdown|txt)$", r"(?m)\b(GET|POST|PUT|PATCH|DELETE)\s+/\S*", "TYPE2", "markdown"),
    (r"\.(md|markdown|txt)$", r"(?i)\b(api|endpoint|http)\b", "TYPE2", "document"),
)
"""File name, content, type and reader. The first rule that matches any file decides."""

MAX_BYTES = 1_000_000
"""node-normalize accepts no larger source."""

TYPES = {"TYPE1": "typescript", "TYPE2": "document"}


def run(request: SkillRequest) -> SkillResult:
    """Return the classification, with the file and the rule that decided."""
    carried = pipelines.Carried.of(request)
    snapshot = carried.json("request_snapshot.json")
    root = Path(snapshot["source"]["path"])
    asked = request.answers.get("source_type") or snapshot["source_type"]
    if (node := snapshot["source"].get("node")) and asked in (None, "", "TYPE1"):
        return _classified(carried, "TYPE1", "recorded", str(node), f"a package lists {node}")
    for pattern, content, kind, reader in RULES:
        for file in snapshot["source"]["files"]:
            path = root if root.is_file() else root / file["name"]
            text = read_regular_file(path, MAX_BYTES).decode("utf-8", "replace")
            if re.search(pattern, file["name"], re.IGNORECASE) and re.search(content, text):
                if asked and asked != kind:
                    continue
                why = f"{file['name']} fits {content}"
                return _classified(carried, kind, reader, file["name"], why)
    if asked in TYPES:
        first = snapshot["source"]["files"][0]["name"]
        return _classified(carried, str(asked), TYPES[str(asked)], first, "the request says so")
    question = Question(
        name="source_type",
        description="TYPE1 (the TypeScript source of a node) or TYPE2 (documents of an API)?",
        allowed={"enum": sorted(TYPES)},
    )
    told = "no rule matches this source"
    return SkillResult(state=SkillState.INPUT_REQUIRED, summary=told, questions=(question,))


def _classified(carried: pipelines.Carried, kind: str, reader: str, main: str, why: str) -> SkillResult:
    carried.write_json("classification.json", {"source_type": kind, "reader": reader, "main": main, "why": why})
    return SkillResult(summary=f"{kind}, read as {reader}: {why}", artifacts=carried.artifacts(), confidence=1.0)
