"""Build the schema for all later steps: the inferred schema in normal form, checked against its trace map."""

from __future__ import annotations

from typing import Any

from fireswarm import (
    SkillRequest,
    SkillResult,
    TraceMap,
    count_noun,
    pipelines,
)

JSON_TYPES = {"options": "string"}
"""Names of parameter types in JSON Schema, where they differ."""


def run(request: SkillRequest) -> SkillResult:
    """Return ``node_schema.json``: operations and parameters sorted, and a JSON Schema of each operation's input."""
    carried = pipelines.Carried.of(request)
    inferred = pipelines.NodeSchema.model_validate(carried.json("inferred_schema.json"))
    trace = TraceMap.model_validate(carried.json("trace_map.json"))
    if faults := pipelines.trace_faults(trace, inferred.fields(), carried.tree(pipelines.SOURCES)):
        return SkillResult.failure(f"the trace map is invalid: {'; '.join(faults)}")
    schema = inferred.model_copy(
        update={
            "operations": tuple(sorted(inferred.operations, key=lambda operation: operation.key)),
            "parameters": tuple(sorted(inferred.parameters, key=lambda item: (item.operations, item.name))),
        }
    )
    inputs = {operation.key: _input_schema(schema, operation) for operation in schema.operations}
    carried.write_json("node_schema.json", schema.model_dump(mode="json") | {"inputs": inputs})
    assumed = sum(entry.kind == "ASSUMPTION" for entry in trace.fields.values())
    fields = count_noun(len(trace.fields), "field")
    assumptions = f"{assumed:,} of {fields} assumed" if assumed else f"no assumption in {fields}"
    told = f"{count_noun(len(schema.operations), 'operation')}; {assumptions}"
    return SkillResult(summary=told, artifacts=carried.artifacts(), confidence=1.0)


def _input_schema(schema: pipelines.NodeSchema, operation: pipelines.Operation) -> dict[str, Any]:
    parameters = schema.parameters_of(operation.key)
    is_document = schema.source_type == "TYPE2"
    return {
        "type": "object",
        "properties": {
            parameter.given_as: _property(parameter, operation, is_document=is_document) for parameter in parameters
        },
        "required": [parameter.given_as for parameter in parameters if parameter.required],
        "additionalProperties": False,
    }


def _property(parameter: pipelines.Parameter, operation: pipelines.Operation, *, is_document: bool) -> dict[str, Any]:
    """Return the JSON Schema of a parameter. The code of a published node takes null for nothing; documents say so."""
    found: dict[str, Any] = {}
    is_nullable = parameter.nullable or not is_document
    if parameter.kind == "binary":
        found["format"] = "binary"
    elif parameter.kind != "any":
        kind = JSON_TYPES.get(parameter.kind, parameter.kind)
        found["type"] = [kind, "null"] if is_nullable else kind
    if parameter.options:
        found["enum"] = list(parameter.options)
    if parameter.required and (not is_document or parameter.place == "path"):
        found["minLength"] = 1
    if parameter.description:
        found["description"] = parameter.description
    # A change sends only what is to be changed.
    is_change = is_document and operation.method == "PATCH" and parameter.place == "body"
    if parameter.default not in (None, "") and not is_change:
        found["default"] = parameter.default
    return found
