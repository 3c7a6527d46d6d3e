"""Gates and conditions of the node pipeline, which `pipelines/node.yaml` names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.skills.advice import AdviceKind, AdviceRequest, TraceMap
from fireswarm.pipelines.allowed_code import fixed_faults
from fireswarm.pipelines.documents.counting import measure, measure_markdown
from fireswarm.pipelines.files import SOURCES, Carried
from fireswarm.pipelines.gates import ADVICE_CHECKS, StepFiles, condition, gate
from fireswarm.pipelines.node.schema import NodeSchema
from fireswarm.pipelines.node.writing import load_schema
from fireswarm.pipelines.trace import trace_faults, unquoted_values

INFERRED, TRACE, CLASSIFICATION = "inferred_schema.json", "trace_map.json", "classification.json"

LOSSES = {"openapi": measure, "markdown": measure_markdown}
"""What counts the document of each reader, apart from the reader."""

MAX_NAMED = 10
"""So many lost parts are named in a fault."""


@condition("operations-to-write")
def has_operations_to_write(files: Carried) -> bool:
    """Return True if a node has operations that no template can write."""
    return bool(load_schema(files).to_write())


@gate("fixed-files")
def check_fixed_files(files: StepFiles) -> list[str]:
    """Return a fault for each changed file that only a template writes."""
    return fixed_faults(files.changed)


@gate("same-tests")
def check_same_tests(files: StepFiles) -> list[str]:
    """Return a fault if tests were changed."""
    changed = any(path.startswith("tests/") for path in files.changed)
    return ["tests were changed: a fix must change the code, not the tests"] if changed else []


@gate("node-schema")
def check_schema(files: StepFiles) -> list[str]:
    """Return the faults of a new schema: fields without evidence, and parts of the document that it has lost."""
    after = files.after
    if TRACE not in after.made and INFERRED not in after.made:
        return []
    if TRACE not in after or INFERRED not in after:
        return [f"{INFERRED} and {TRACE} must be written together; one is missing"]
    try:
        schema, trace = NodeSchema.model_validate(after.json(INFERRED)), TraceMap.model_validate(after.json(TRACE))
    except ValidationError as error:
        return [explain_validation(error)]
    sources = after.tree(SOURCES)
    return trace_faults(trace, schema.fields(), sources) + _loss_faults(schema, after, sources)


def _loss_faults(schema: NodeSchema, files: Carried, sources: Mapping[str, str]) -> list[str]:
    """Compare a schema with a count of its document: what is lost, and a count that the schema tells differently."""
    classified = files.json(CLASSIFICATION) if CLASSIFICATION in files else {}
    if classified.get("reader") not in LOSSES:
        return []
    measured = LOSSES[classified["reader"]](schema, sources, classified["main"])
    lost = ", ".join(measured.lost[:MAX_NAMED])
    more = f" and {len(measured.lost) - MAX_NAMED:,} more" if len(measured.lost) > MAX_NAMED else ""
    faults = [f"the schema neither has nor lists {lost}{more}"] if lost else []
    if schema.parts and schema.parts != measured.parts:
        faults.append("the schema counts other parts than the document has")
    return faults


def _advised_schema(request: AdviceRequest, content: dict[str, Any]) -> list[str]:
    schema = NodeSchema.model_validate(content["inferred"])
    sources = {
        piece.name.removeprefix(SOURCES): piece.text for piece in request.material if piece.name.startswith(SOURCES)
    }
    trace = TraceMap.model_validate(content["trace"])
    faults = trace_faults(trace, schema.fields(), sources) + unquoted_values(trace, schema.values())
    lost = measure_markdown(schema, sources, "").lost[:MAX_NAMED]
    return faults + [f"the source has {name}: add the operation, or list it in unread with the reason" for name in lost]


ADVICE_CHECKS[AdviceKind.SCHEMA] = _advised_schema
