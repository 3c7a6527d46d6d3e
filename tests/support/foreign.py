"""Requests of a made node, judged by a validator of OpenAPI documents that is not ours.

The inputs are drawn from the document's own schemas, without the schema that the pipeline infers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple
from unittest.mock import patch

import httpx2
from hypothesis import strategies
from jsonschema.validators import Draft202012Validator
from openapi_core.contrib.werkzeug import WerkzeugOpenAPIRequest
from openapi_core.protocols import Request
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request as WerkzeugRequest

from tests.support.documents import MadeNode

Values = strategies.SearchStrategy[Any]
MAX_DEPTH = 12
BODIES = ("application/json", "application/x-www-form-urlencoded")
NOT_DESCRIBED = ("Accept", "Content-Type", "Authorization")
"""OpenAPI ignores parameters with these names of headers."""

METHODS = ("get", "put", "post", "delete", "options", "head", "patch")


class Call(NamedTuple):
    """An operation of a document: its parameters by place and name, and its body, as JSON Schemas."""

    method: str
    path: str
    parameters: dict[tuple[str, str], dict[str, Any]]
    required: frozenset[tuple[str, str]]
    body: dict[str, Any] | None


def calls_of(document: Mapping[str, Any]) -> Iterator[Call]:
    """Yield the operations of an OpenAPI 3 document that has no references to other files."""
    for path, item in document["paths"].items():
        for method in METHODS:
            if method not in item:
                continue
            operation = item[method]
            described = [
                _resolved(document, each) for each in (*item.get("parameters", ()), *operation.get("parameters", ()))
            ]
            by_place = {
                (each["in"], each["name"]): each
                for each in described
                if "schema" in each and not (each["in"] == "header" and each["name"].title() in NOT_DESCRIBED)
            }
            body = None
            content = _resolved(document, operation.get("requestBody", {})).get("content", {})
            kind = next((each for each in BODIES if each in content), None)
            if kind is not None:
                body = as_json_schema(document, content[kind].get("schema", {}))
            yield Call(
                method.upper(),
                path,
                {key: as_json_schema(document, each["schema"]) for key, each in by_place.items()},
                frozenset(key for key, each in by_place.items() if each.get("required")),
                body,
            )


def _resolved(document: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    found: Any = dict(given)
    while "$ref" in found:
        place: Any = document
        for step in found["$ref"].removeprefix("#/").split("/"):
            place = place[step.replace("~1", "/").replace("~0", "~")]
        found = place
    return dict(found)


def as_json_schema(document: Mapping[str, Any], given: Any, depth: int = 0) -> dict[str, Any]:
    """Return a schema of a request as one of JSON Schema, without references and without what only answers have."""
    if depth > MAX_DEPTH:
        raise RecursionError(f"a schema of more than {MAX_DEPTH} levels")
    schema = _resolved(document, given)
    if schema.pop("nullable", False):
        schema["type"] = [schema["type"], "null"]
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive):
            schema[exclusive] = schema.pop(bound)
    for name in ("allOf", "anyOf", "oneOf"):
        if name in schema:
            schema[name] = [as_json_schema(document, each, depth + 1) for each in schema[name]]
    if "items" in schema:
        schema["items"] = as_json_schema(document, schema["items"], depth + 1)
    if "properties" in schema:
        written = {name: as_json_schema(document, each, depth + 1) for name, each in schema["properties"].items()}
        schema["properties"] = {name: each for name, each in written.items() if not each.get("readOnly")}
        schema["required"] = [name for name in schema.get("required", ()) if name in schema["properties"]]
    return {name: value for name, value in schema.items() if name not in ("format", "example", "xml", "discriminator")}


def inputs_of(call: Call) -> Values:
    """Return what draws the inputs of a call by place and name; the body is ("body", "")."""
    parts = {(place, name): values_of(each, *LETTERS[place]) for (place, name), each in call.parameters.items()}
    needed = {key: parts[key] for key in parts if key in call.required or key[0] == "path"}
    others = {key: each for key, each in parts.items() if key not in needed}
    if call.body is not None:
        needed["body", ""] = values_of(call.body, strategies.characters(exclude_categories=["Cs"]), 0)
    return strategies.fixed_dictionaries(needed, optional=others)


def values_of(schema: Mapping[str, Any], letters: Values, least: int) -> Values:
    """Return what draws the values of a schema: texts of *letters*; texts and lists of at least *least* entries."""
    for name in ("anyOf", "oneOf"):
        if name in schema:
            rest = {key: value for key, value in schema.items() if key != name}
            drawn = strategies.one_of([values_of(_joined([rest, each]), letters, least) for each in schema[name]])
            return drawn.filter(Draft202012Validator(schema).is_valid)
    if "allOf" in schema:
        rest = {key: value for key, value in schema.items() if key != "allOf"}
        drawn = values_of(_joined([rest, *schema["allOf"]]), letters, least)
        return drawn.filter(Draft202012Validator(schema).is_valid)
    if "enum" in schema:
        return strategies.sampled_from(schema["enum"])
    kind = schema.get("type") or ("object" if "properties" in schema else "string")
    kinds = kind if isinstance(kind, list) else [kind]
    return strategies.one_of([_of_kind(each, schema, letters, least) for each in kinds]).filter(
        Draft202012Validator(schema).is_valid
    )


def _of_kind(kind: str, schema: Mapping[str, Any], letters: Values, least: int) -> Values:
    low, high = schema.get("minimum"), schema.get("maximum")
    size: dict[str, Any] = {"max_size": schema.get("maxItems", 4)}
    match kind:
        case "null":
            return strategies.none()
        case "boolean":
            return strategies.booleans()
        case "integer":
            return strategies.integers(low, high)
        case "number":
            return strategies.floats(low, high, allow_nan=False, allow_infinity=False, width=32)
        case "array":
            size["min_size"] = max(schema.get("minItems", 0), least)
            return strategies.lists(values_of(schema.get("items", {}), letters, least), **size)
        case "object":
            fields = {name: values_of(each, letters, least) for name, each in schema.get("properties", {}).items()}
            needed = {name: each for name, each in fields.items() if name in schema.get("required", ())}
            others = {name: each for name, each in fields.items() if name not in needed}
            return strategies.fixed_dictionaries(needed, optional=others).filter(lambda value: len(value) >= least)
        case _:
            shortest = max(schema.get("minLength", 0), least)
            return strategies.text(letters, min_size=shortest, max_size=schema.get("maxLength", shortest + 20))


def _joined(schemas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one schema of several that hold together."""
    whole: dict[str, Any] = {}
    for each in schemas:
        found = _joined([{k: v for k, v in each.items() if k != "allOf"}, *each["allOf"]]) if "allOf" in each else each
        properties = {**whole.get("properties", {}), **found.get("properties", {})}
        required = [*whole.get("required", ()), *found.get("required", ())]
        whole |= found
        whole |= {"properties": properties} if properties else {}
        whole |= {"required": required} if required else {}
    return whole


VISIBLE = strategies.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters="/,.;|?#")
"""Between the entries of a list, and in a path, some characters cannot be told from those that separate."""

ASCII = strategies.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters=',";\\=|.')
LETTERS: dict[str, tuple[Values, int]] = {
    "query": (VISIBLE, 1), "path": (VISIBLE, 1), "header": (ASCII, 1), "cookie": (ASCII, 1),
}  # fmt: skip
"""Letters of the texts in each place, and the least number of entries: an empty list is not sent."""


def sent_for(node: MadeNode, call: Call, given: Mapping[tuple[str, str], Any]) -> httpx2.Request:
    """Return the HTTP request that the node sends for inputs."""
    operation = next(
        each for each in node.schema["operations"] if (each["method"], each["path"]) == (call.method, call.path)
    )
    parameters = {
        (each["place"], each["name"]): each
        for each in node.schema["parameters"]
        if not each["operations"] or operation["key"] in each["operations"]
    }
    inputs: dict[str, Any] = {}
    for (place, name), value in given.items():
        whole = next((each for (at, _), each in parameters.items() if at == "body" and each["style"] == "whole"), None)
        if place == "body" and whole is None:
            inputs |= {
                _input(parameters["body", field]): each
                for field, each in value.items()
                if ("body", field) in parameters
            }
        else:
            inputs[_input(parameters[place, name] if place != "body" else whole)] = value
    sent: list[httpx2.Request] = []

    def answer(client: httpx2.Client, request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(200, json={}, request=request)

    modules = (node.module.transport, node.module.operations)
    with ExitStack() as patched:
        patched.enter_context(patch.object(node.module.transport, "_answer_to", answer))
        for module in modules:
            patched.enter_context(patch.object(module, "credential", _made_up, create=True))
        node.module.run(operation["key"], inputs, node.module.transport.send_over_http)
    assert len(sent) == 1
    return sent[0]


def _made_up(field: str, otherwise: object = None) -> str:
    return f"made-up-{field}"


def _input(parameter: Any) -> str:
    return str(parameter.get("input") or parameter["name"])


def without_formats(given: Any) -> Any:
    """Return a document without the formats of its texts and numbers: validators disagree about them."""
    if isinstance(given, list):
        return [without_formats(each) for each in given]
    if isinstance(given, dict):
        return {
            name: without_formats(each)
            for name, each in given.items()
            if not (name == "format" and isinstance(each, str))
        }
    return given


def as_read_by_a_server(request: httpx2.Request) -> Request:
    """Return a request as the validator takes it."""
    url = request.url
    environment = EnvironBuilder(
        method=request.method,
        path=url.raw_path.decode("ascii").partition("?")[0],
        query_string=url.query.decode("ascii"),
        base_url=f"{url.scheme}://{url.host}",
        headers=list(request.headers.items()),
        data=request.content,
    ).get_environ()
    return WerkzeugOpenAPIRequest(WerkzeugRequest(environment))
