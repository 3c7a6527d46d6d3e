"""Classify a source as TypeScript of a node (TYPE1) or documents of an API (TYPE2), by a table without guessing."""

from __future__ import annotations

from fireswarm import Question, SkillRequest, SkillResult, SkillState, pipelines, read_regular_file

MAX_BYTES = 20_000_000
"""node-normalize accepts no larger source."""


def run(request: SkillRequest) -> SkillResult:
    """Return the classification, with the file and the rule that decided."""
    carried = pipelines.Carried.of(request)
    snapshot = carried.json("request_snapshot.json")
    root = carried.source(request)
    asked = request.answers.get("source_type") or snapshot["source_type"]
    if (node := snapshot["source"].get("node")) and asked in (None, "", "TYPE1"):
        return _classified(carried, "TYPE1", "recorded", str(node), f"a package lists {node}")

    def read(name: str) -> str:
        return read_regular_file(root if root.is_file() else root / name, MAX_BYTES).decode("utf-8", "replace")

    found = pipelines.classify([file["name"] for file in snapshot["source"]["files"]], read, asked)
    if found is None:
        question = Question(
            name="source_type",
            description="TYPE1 (the TypeScript source of a node) or TYPE2 (documents of an API)?",
            allowed={"enum": sorted(pipelines.READERS)},
        )
        told = "no rule matches this source"
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary=told, questions=(question,))
    document = request.answers.get("document") or request.context.get("document")
    main = str(document) if document in found.files else found.files[0]
    if found.reader == "openapi" and len(found.files) > 1 and document not in found.files:
        told = f"the source has {len(found.files):,} OpenAPI documents"
        allowed = {"enum": list(found.files)}
        question = Question(name="document", description="Which document of the source?", allowed=allowed)
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary=told, questions=(question,))
    why = f"{main} fits {found.content}" if found.content else "the request says so"
    return _classified(carried, found.source_type, found.reader, main, why)


def _classified(carried: pipelines.Carried, kind: str, reader: str, main: str, why: str) -> SkillResult:
    carried.write_json("classification.json", {"source_type": kind, "reader": reader, "main": main, "why": why})
    return SkillResult(summary=f"{kind}, read as {reader}: {why}", artifacts=carried.artifacts(), confidence=1.0)
