"""The source of a call outside of a pipeline run: the sections that its caller gives."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from fireswarm import Artifact, Question, SkillRequest, SkillResult, SkillState, errors, pipelines

ASKED = (
    Question(
        name="parsed_sections",
        type="object",
        description='The texts of the source by name, such as {"links.md": "GET /links"}.',
        allowed={"minProperties": 1},
    ),
    Question(
        name="source_type",
        description="TYPE1 (the TypeScript source of a node) or TYPE2 (documents of an API)?",
        allowed={"enum": sorted(pipelines.READERS)},
    ),
)
MAX_OUTPUT_BYTES = 150_000
"""Less than the largest response that a conversation keeps."""

SUFFIXES = {"TYPE1": ".ts", "TYPE2": ".md"}
"""Suffix of a section whose name has none."""


def is_alone(carried: pipelines.Carried) -> bool:
    """Return True if no step of a pipeline ran before."""
    return not carried.names()


def begin(carried: pipelines.Carried, request: SkillRequest) -> SkillResult | None:
    """Write the files of the earlier steps from the caller's inputs. Returns a result if inputs are missing.

    Raises InvalidInput for sections that cannot be files of a bundle.
    """
    inputs = {**request.context, **request.answers}
    missing = tuple(question for question in ASKED if not inputs.get(question.name))
    if missing:
        told = f"needs {' and '.join(question.name for question in missing)}"
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary=told, questions=missing)
    kind = str(inputs["source_type"])
    files = _files(inputs["parsed_sections"], kind)
    for name, text in files.items():
        carried.write(f"{pipelines.SOURCES}{name}", text)
    found = pipelines.classify(files, lambda name: files[name], kind, recorded=False)
    if found is None:
        raise errors.InvalidInput(f"source_type is {kind}: use one of {', '.join(pipelines.READERS)}")
    listed = [{"name": name, "bytes": len(text.encode()), "sha256": _digest(text)} for name, text in files.items()]
    name = str(inputs.get("node_name") or PurePosixPath(found.files[0]).name.split(".")[0])
    carried.write_json(
        "request_snapshot.json",
        {
            "correlation_id": str(inputs.get("correlation_id") or request.task_id),
            "objective": request.objective,
            "requested_at": request.now.isoformat(timespec="seconds"),
            "node_name": pipelines.identifier(name),
            "source": {"files": listed},
            "source_type": kind,
            "limits": request.limits.model_dump(),
        },
    )
    why = f"{found.files[0]} fits {found.content}" if found.content else "the caller says so"
    classification = {"source_type": kind, "reader": found.reader, "main": found.files[0], "why": why}
    carried.write_json("classification.json", classification)
    return None


def with_outputs(result: SkillResult, carried: pipelines.Carried) -> SkillResult:
    """Return *result* with schema and trace map as outputs, unless they are too large for a response."""
    if result.state is not SkillState.COMPLETED:
        return result
    outputs = {name: carried.json(f"{name}.json") for name in ("inferred_schema", "trace_map")}
    size = len(json.dumps(outputs, ensure_ascii=False).encode())
    if size > MAX_OUTPUT_BYTES:
        told = f"schema and trace map have {size:,} bytes, too many for a response: they are only in the files"
        return result.model_copy(update={"summary": f"{result.summary}; {told}"})
    summary = "inferred_schema, trace_map"
    artifact = Artifact(type="outputs", name="outputs", summary=summary, value=outputs)
    return result.model_copy(update={"artifacts": (*result.artifacts, artifact)})


def _files(sections: Any, kind: str) -> dict[str, str]:
    """Return the texts of the sections by file name. Raises InvalidInput for a section that is not text."""
    if not isinstance(sections, Mapping):
        raise errors.InvalidInput("parsed_sections is not an object of texts by name")
    files: dict[str, str] = {}
    for section, content in sections.items():
        if not isinstance(content, (str, dict)):
            raise errors.InvalidInput(f"parsed_sections: {section} is not a text")
        is_text = isinstance(content, str)
        name = str(section).strip()
        if not PurePosixPath(name).suffix:
            name += SUFFIXES[kind] if is_text else ".json"
        files[name] = content if is_text else f"{json.dumps(content, indent=2, ensure_ascii=False)}\n"
    return files


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
