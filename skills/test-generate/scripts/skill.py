"""Write the node's tests: by template from the schema; by advice only where the schema does not say what is sent."""

from __future__ import annotations

import json
import re
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import quote

from fireswarm import (
    AdviceKind,
    AdviceRequest,
    CodeAdvice,
    SkillRequest,
    SkillResult,
    SkillState,
    count_noun,
    pipelines,
)

from . import documented

REFERENCES = Path(__file__).parents[1] / "references"

SAMPLES: dict[str, Any] = {
    "integer": 3,
    "number": 3,
    "boolean": True,
    "array": ["one", "two"],
    "object": {"a": 1},
}


def run(request: SkillRequest) -> SkillResult:
    """Return ``tests/test_<name>.py``, and with advice ``tests/test_<name>_advised.py``."""
    carried = pipelines.Carried.of(request)
    schema = pipelines.load_schema(carried)
    inputs = carried.json("node_schema.json")["inputs"]
    replayed: set[str] = set()
    if pipelines.RECORDING in carried:
        replayed = _replay(carried, schema)
    elif schema.source_type == "TYPE2":
        replayed = _documented(carried, schema, inputs)
    unclear = [
        operation.key
        for operation in schema.operations
        if operation.key not in replayed and not (operation.method and operation.path)
    ]
    if unclear and not request.advice:
        told = f"the schema does not say what {', '.join(unclear)} send"
        asks = _asks(carried, schema.name, unclear)
        return SkillResult(state=SkillState.ADVICE_REQUIRED, summary=told, asks=asks)
    carried.write_project({f"tests/test_{schema.name}.py": _tests(schema, inputs, replayed)})
    told = [each for each in schema.operations if each.method and each.path and each.key not in replayed]
    if told:
        cases = {"cases": [_told(schema, each) for each in told]}
        carried.write_project(
            {f"tests/{schema.name}_told.json": json.dumps(cases, indent=1, ensure_ascii=False) + "\n"}
        )
    for advice in request.advice:
        drafts = CodeAdvice.model_validate(advice.content).files
        carried.write_project({draft.path: draft.content for draft in drafts})
    pipelines.write_diff(carried)
    operations = count_noun(len(schema.operations), "operation")
    summary = f"tests for {operations}, {len(schema.operations) - len(unclear):,} by template"
    return SkillResult(summary=summary, artifacts=carried.artifacts(), confidence=0.6 if unclear else 0.9)


def _replay(carried: pipelines.Carried, schema: pipelines.NodeSchema) -> set[str]:
    """Write the tests that replay the recordings. Returns the operations that they cover."""
    node = pipelines.recorded_node(carried.json(pipelines.RECORDING))
    urls = [request.url for operation in node.operations for case in operation.cases for request in case.requests]
    base = pipelines.common_base(urls)
    cases = pipelines.replay_cases(node, schema, base)
    credential = {field: value for value, field in node.secrets.items()}
    recorded = {"base_url": schema.base_url, "base": base, "credential": credential, "cases": cases}
    template = Template((REFERENCES / "replay.py.tmpl").read_text(encoding="utf-8"))
    carried.write_project(
        {
            f"tests/test_{schema.name}_replay.py": template.substitute(name=schema.name),
            f"tests/{schema.name}_recorded.json": json.dumps(recorded, indent=1, ensure_ascii=False) + "\n",
        }
    )
    return {case["operation"] for case in cases}


def _documented(carried: pipelines.Carried, schema: pipelines.NodeSchema, inputs: dict[str, Any]) -> set[str]:
    """Write the tests of what the document asks for. Returns the operations that they cover."""
    cases = documented.cases_of(schema, inputs)
    asked = {"base_url": schema.base_url, "credential": documented.credential_fields(schema), "cases": cases}
    template = Template((REFERENCES / "documented.py.tmpl").read_text(encoding="utf-8"))
    if cases:
        carried.write_project(
            {
                f"tests/test_{schema.name}_documented.py": template.substitute(name=schema.name),
                f"tests/{schema.name}_documented.json": json.dumps(asked, indent=1, ensure_ascii=False) + "\n",
            }
        )
    if paged := documented.pages_of(schema, inputs):
        told = {"origin": documented.ORIGIN, "credential": asked["credential"], "cases": paged}
        template = Template((REFERENCES / "pages.py.tmpl").read_text(encoding="utf-8"))
        server = f"{schema.name.upper()}_BASE_URL"
        carried.write_project(
            {
                f"tests/test_{schema.name}_pages.py": template.substitute(name=schema.name, server=server),
                f"tests/{schema.name}_pages.json": json.dumps(told, indent=1, ensure_ascii=False) + "\n",
            }
        )
    return {case["operation"] for case in cases}


def _tests(schema: pipelines.NodeSchema, inputs: dict[str, Any], replayed: set[str]) -> str:
    head = (REFERENCES / "tests.py.tmpl").read_text(encoding="utf-8").replace("$name", schema.name)
    told = [operation for operation in schema.operations if operation.method and operation.path]
    cases = [_case(schema, operation) for operation in told if operation.key not in replayed]
    refusals = [_refusal(operation, inputs[operation.key]) for operation in schema.operations]
    return "\n\n\n".join(text.strip("\n") for text in [head, *cases, *refusals] if text) + "\n"


def _told(schema: pipelines.NodeSchema, operation: pipelines.Operation) -> dict[str, Any]:
    """Return what the schema says about one call, as it is compared outside of the tests too."""
    parameters = schema.parameters_of(operation.key)
    given = {parameter.given_as: _sample(parameter) for parameter in parameters}
    path = operation.path
    for name in operation.placeholders:
        path = path.replace(f"{{{name}}}", quote(str(given.get(name, "")), safe=""))
    places = {
        place: sorted(parameter.name for parameter in parameters if parameter.place == place)
        for place in ("query", "body")
    }
    case = {"operation": operation.key, "case": "all", "parameters": given}
    return case | {"method": operation.method, "path": path, **places}


def _case(schema: pipelines.NodeSchema, operation: pipelines.Operation) -> str:
    case = _told(schema, operation)
    lines = [
        f"def test_{operation.function}_sends_what_the_schema_says() -> None:",
        "    sent: list[Sent] = []",
        f"    run({operation.key!r}, {case['parameters']!r}, recording(sent))",
        "    assert len(sent) == 1",
        f"    assert (sent[0].method, sent[0].path) == {(case['method'], case['path'])!r}",
    ]
    for place in ("query", "body"):
        if names := case[place]:
            lines.append(f"    assert set({names!r}) <= set(sent[0].{place})")
    return "\n".join(lines)


def _refusal(operation: pipelines.Operation, wanted: dict[str, Any]) -> str:
    required = [name for name in wanted["required"] if "default" not in wanted["properties"][name]]
    if not required:
        return ""
    return (
        f"def test_{operation.function}_is_refused_without_{_word(required[0])}() -> None:\n"
        "    sent: list[Sent] = []\n"
        f"    with pytest.raises(InputError, match={re.escape(required[0])!r}):\n"
        f"        run({operation.key!r}, {{}}, recording(sent))\n"
        "    assert sent == []\n"
    )


def _word(name: str) -> str:
    return "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in name)


def _sample(parameter: pipelines.Parameter) -> Any:
    if parameter.options:
        return parameter.options[-1]
    return SAMPLES.get(parameter.kind, f"sample-{parameter.name}")


def _asks(carried: pipelines.Carried, name: str, unclear: list[str]) -> AdviceRequest:
    target = f"tests/test_{name}_advised.py"
    paths = [*carried.names(pipelines.SOURCES), "node_schema.json", *carried.names(f"{pipelines.PROJECT}nodes/")]
    question = (REFERENCES / "question.md").read_text(encoding="utf-8")
    question = question.replace("{name}", name).replace("{target}", target).replace("{unclear}", ", ".join(unclear))
    return AdviceRequest(
        kind=AdviceKind.CODE, question=question, material=pipelines.material_of(carried, paths), scope=(target,)
    )
