"""Classify a source as TypeScript of a node (TYPE1) or documents of an API (TYPE2), by a table without guessing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fireswarm import Question, SkillRequest, SkillResult, SkillState, pipelines, read_regular_file

RULES: tuple[tuple[str, str, str, str], ...] = (
    (r"\.node\.js$", r"\bexports\b", "TYPE1", "recorded"),
    (r"\.(ts|js)$", r"\bINodeType(Description)?\b", "TYPE1", "typescript"),
    (
        r"\.(ya?ml|json)$",
        r"""(?m)(?:^[ \t]*+|[{,][ \t]*+)["']?(?:openapi|swagger)["']?[ \t]*+:[ \t]*+["']?[23]""",
        "TYPE2",
        "openapi",
    ),
    (
        r"\.(md|markdown|txt|html?)$",
        r"""(?m)\b(GET|POST|PUT|PATCH|DELETE)\b[`*]*+(\s++|(</?\w++[^<>]*+>)++\s*+)[`*]*+(/|https?://)""",
        "TYPE2",
        "markdown",
    ),
    (r"\.(md|markdown|txt|html?)$", r"(?i)\b(api|endpoint|http)\b", "TYPE2", "document"),
)
"""File name, content, type and reader. The first rule that matches any file decides."""

MAX_BYTES = 20_000_000
"""node-normalize accepts no larger source."""

TYPES = {"TYPE1": "typescript", "TYPE2": "document"}


def run(request: SkillRequest) -> SkillResult:
    """Return the classification, with the file and the rule that decided."""
    carried = pipelines.Carried.of(request)
    snapshot = carried.json("request_snapshot.json")
    root = carried.source(request)
    asked = request.answers.get("source_type") or snapshot["source_type"]
    if (node := snapshot["source"].get("node")) and asked in (None, "", "TYPE1"):
        return _classified(carried, "TYPE1", "recorded", str(node), f"a package lists {node}")
    texts = _Texts(root, snapshot["source"])
    for pattern, content, kind, reader in RULES:
        if asked and asked != kind:
            continue
        fitting = [name for name, text in texts.named(pattern) if re.search(content, text)]
        document = request.answers.get("document") or request.context.get("document")
        if document in fitting:
            fitting = [str(document)]
        if reader == "openapi" and len(fitting) > 1:
            told = f"the source has {len(fitting):,} OpenAPI documents"
            question = Question(name="document", description="Which document of the source?", allowed={"enum": fitting})
            return SkillResult(state=SkillState.INPUT_REQUIRED, summary=told, questions=(question,))
        if fitting:
            return _classified(carried, kind, reader, fitting[0], f"{fitting[0]} fits {content}")
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


class _Texts:
    """The files of a source, each read once."""

    def __init__(self, root: Path, source: dict[str, Any]) -> None:
        self._paths = {file["name"]: root if root.is_file() else root / file["name"] for file in source["files"]}
        self._texts: dict[str, str] = {}

    def named(self, pattern: str) -> Iterator[tuple[str, str]]:
        """Yield name and text of the files whose names fit."""
        for name, path in self._paths.items():
            if re.search(pattern, name, re.IGNORECASE):
                if name not in self._texts:
                    self._texts[name] = read_regular_file(path, MAX_BYTES).decode("utf-8", "replace")
                yield name, self._texts[name]
