"""Read a source into a schema with a trace map: by code if the source is clear, otherwise by advice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from fireswarm import (
    MAX_DETAIL_CHARS,
    MAX_MATERIAL_CHARS,
    AdviceKind,
    AdviceRequest,
    Material,
    SkillRequest,
    SkillResult,
    SkillState,
    count_noun,
    errors,
    format_counts,
    install_command,
    pipelines,
    truncate,
)

from . import recorded
from .alone import begin, is_alone, with_outputs
from .reading import Reading, Source

MAX_NOTES = 10
"""So many operations that were not read are named in the result; the file names all."""

COUNTS = {"openapi": pipelines.measure, "markdown": pipelines.measure_markdown}
"""What counts the document of each reader, apart from the reader."""

QUESTION = Path(__file__).parents[1] / "references" / "question.md"


def run(request: SkillRequest) -> SkillResult:
    """Write ``inferred_schema.json`` and ``trace_map.json``; asks for advice if the source is ambiguous.

    Outside of a pipeline run, it reads the sections that the caller gives, and asks for them.
    """
    carried = pipelines.Carried.of(request)
    if not is_alone(carried):
        return _infer(carried, request)
    try:
        asked = begin(carried, request)
    except errors.InvalidInput as error:
        return SkillResult.failure(str(error))
    return asked or with_outputs(_infer(carried, request), carried)


def _infer(carried: pipelines.Carried, request: SkillRequest) -> SkillResult:
    name = str(carried.json("request_snapshot.json")["node_name"])
    found = carried.json("classification.json")
    if request.advice:
        content = request.advice[-1].content
        carried.write_json("inferred_schema.json", content["inferred"])
        carried.write_json("trace_map.json", content["trace"])
        told = (
            f"{count_noun(len(content['inferred']['operations']), 'operation')}, by advice of {request.advice[-1].by}"
        )
        return SkillResult(summary=told, artifacts=carried.artifacts(), confidence=0.7)
    try:
        reading = _read(found, carried, name)
        schema = reading.schema()
        if found["reader"] in COUNTS:
            measured = COUNTS[found["reader"]](schema, carried.tree(pipelines.SOURCES), found["main"])
            if measured.lost:
                return SkillResult.failure(f"lost of {found['main']}: {_some(measured.lost)}")
            operations = measured.parts.get("operations", pipelines.PartCount())
            counts = {"present": operations.present, "found": operations.found, "parts": measured.parts}
            schema = schema.model_copy(update=counts)
        trace = reading.trace_map(schema)
        faults = pipelines.trace_faults(trace, schema.fields(), carried.tree(pipelines.SOURCES))
    except (ValidationError, ValueError, LookupError) as error:
        if found["reader"] == "openapi":
            return SkillResult.failure(f"{found['main']} cannot be read: {truncate(str(error), MAX_DETAIL_CHARS)}")
        if found["reader"] == "recorded":
            return SkillResult.failure(f"the recording cannot be read: {truncate(str(error), MAX_DETAIL_CHARS)}")
        return _ask(
            carried, name, found["source_type"], f"reading it by code failed: {truncate(str(error), MAX_DETAIL_CHARS)}"
        )
    if faults:
        return _ask(
            carried,
            name,
            found["source_type"],
            f"the part that code could read is not enough: {truncate('; '.join(faults), MAX_DETAIL_CHARS)}",
        )
    carried.write_json("inferred_schema.json", schema.model_dump(mode="json"))
    carried.write_json("trace_map.json", trace.model_dump(mode="json"))
    unknown = [operation.key for operation in schema.operations if not operation.path]
    counts = format_counts([(len(schema.operations), "operation"), (len(schema.parameters), "parameter")])
    told = f"{counts}, read by code"
    if schema.present:
        told += f"; {schema.found:,} of {count_noun(schema.present, 'operation')} in the source"
    notes = (f"no method and path found for {', '.join(unknown)}",) if unknown else ()
    notes += tuple(_note(each) for each in schema.unread[:MAX_NOTES])
    if len(schema.unread) > MAX_NOTES:
        notes += (f"not read: {len(schema.unread) - MAX_NOTES:,} more, in inferred_schema.json",)
    return SkillResult(summary=told, artifacts=carried.artifacts(), insights=notes, confidence=0.9)


def _note(unread: pipelines.Unread) -> str:
    return f"not read: {unread.name}{f' ({unread.position})' if unread.position else ''}: {unread.reason}"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - MAX_NOTES:,} more" if len(names) > MAX_NOTES else ""
    return f"{', '.join(names[:MAX_NOTES])}{more}"


def _read(found: Mapping[str, str], carried: pipelines.Carried, name: str) -> Reading:
    if found["reader"] == "recorded":
        node = pipelines.recorded_node(carried.json(pipelines.RECORDING))
        return recorded.read(node, carried.tree(pipelines.SOURCES), name)
    match found["reader"]:
        case "typescript":
            try:
                from . import typescript
            except ImportError as error:
                raise RuntimeError(f"TypeScript is read with tree-sitter: {install_command('pipeline')}") from error
            source = Source(found["main"], carried.text(f"{pipelines.SOURCES}{found['main']}"))
            return typescript.read(source, name)
        case "openapi":
            try:
                from . import openapi
            except ImportError as error:
                raise RuntimeError(
                    f"OpenAPI is read with referencing and openapi-spec-validator: {install_command('pipeline')}"
                ) from error
            return openapi.read(carried.tree(pipelines.SOURCES), found["main"], name)
        case _:
            try:
                from . import markdown
            except ImportError as error:
                told = f"Markdown is read with markdown-it-py: {install_command('pipeline')}"
                raise RuntimeError(told) from error
            return markdown.read(carried.tree(pipelines.SOURCES), name)


def _ask(carried: pipelines.Carried, name: str, source_type: str, why: str) -> SkillResult:
    material: list[Material] = []
    left = MAX_MATERIAL_CHARS
    for path in carried.names(pipelines.SOURCES):
        text = carried.text(path)[:left]
        left -= len(text)
        if text:
            material.append(Material(name=path, text=text))
    question = QUESTION.read_text(encoding="utf-8").replace("{name}", name).replace("{source_type}", source_type)
    asks = AdviceRequest(kind=AdviceKind.SCHEMA, question=question, material=tuple(material))
    return SkillResult(state=SkillState.ADVICE_REQUIRED, summary=why, asks=asks)
