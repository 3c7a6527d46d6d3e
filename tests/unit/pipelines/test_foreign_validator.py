"""A validator that is not ours reads in each request of a made node what the node was given."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from jsonschema_path import SchemaPath
from openapi_core import V30RequestUnmarshaller

from fireswarm.pipelines import load_document
from tests.packs.test_wrong_code import DOCUMENT as CRATES
from tests.support import foreign
from tests.support.documents import MadeNode, made_node
from tests.unit.pipelines.test_openapi import CASES, HEAD
from tests.unit.pipelines.test_reported_faults import REPORTS

NOT_JUDGED = {
    "deep object": "the validator fails if an object of this style is left out",
    "matrix and label": "it does not read the styles of paths",
    "defaults that are equal to a boolean": "the document's own default is invalid",
    "parameter that only the path names": "the document does not describe its parameter",
    "oneOf": "its alternatives hold together, so none holds alone",
    "bytes": "no values are drawn for its body",
}
CALLS = """paths:
  /calls/{id}:
    put:
      operationId: change
      tags: [call]
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      requestBody: {required: true, content: {application/json: {schema: {$ref: "#/components/schemas/Change"}}}}
      responses: {"200": {description: ok}}
components:
  schemas:
    Change:
      oneOf:
        - {$ref: "#/components/schemas/Pass"}
        - {$ref: "#/components/schemas/End"}
        - {$ref: "#/components/schemas/Wait"}
    Pass: {type: object, required: [action], properties: {action: {type: string, enum: [pass]}, to: {type: string}}}
    End: {type: object, required: [action], properties: {action: {type: string, enum: [end]}}}
    Wait: {type: object, required: [action], properties: {action: {type: string, enum: [wait]}, to: {type: integer}}}
"""
DOCUMENTS = {
    **{
        name: case.document for name, case in CASES.items() if name not in NOT_JUDGED and "swagger" not in case.document
    },
    **{name: report.document for name, report in REPORTS.items() if "files" not in name},
    "alternatives of a body with a name in common": HEAD + CALLS,
    "crates": CRATES,
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_validator_reads_what_the_node_was_given(name: str) -> None:
    document = load_document(DOCUMENTS[name]).value
    validator = V30RequestUnmarshaller(SchemaPath.from_dict(foreign.without_formats(document)))
    with made_node({"api.yaml": DOCUMENTS[name]}) as node:
        for call in foreign.calls_of(document):
            _judge(validator, node, call)


def _judge(validator: V30RequestUnmarshaller, node: MadeNode, call: foreign.Call) -> None:
    @settings(
        max_examples=20,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
    )
    @given(foreign.inputs_of(call))
    def check(inputs: dict[tuple[str, str], Any]) -> None:
        request = foreign.sent_for(node, call, inputs)
        read = validator.unmarshal(foreign.as_read_by_a_server(request))
        assert not read.errors, (str(request.url), request.content, [each.__cause__ or each for each in read.errors])
        for (place, field), value in inputs.items():
            if place != "body":
                assert getattr(read.parameters, place)[field] == value, str(request.url)
            elif "json" in request.headers.get("Content-Type", "") and value is not None:
                assert json.loads(request.content) == value

    check()
