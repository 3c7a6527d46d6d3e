"""``/docs``: the page, and the styles of the console that it uses."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from anyio import to_thread
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import FileResponse

from fireswarm.api.console.application import HEADERS, STATIC
from fireswarm.api.console.rendering import make_environment
from fireswarm.api.reference.schema_text import (
    FieldRow,
    TypePart,
    describe_type,
    make_example,
    make_fields,
    make_parameters,
)
from fireswarm.api.session import CurrentSession
from fireswarm.contracts.base import JsonObject
from fireswarm.errors import NotFound
from fireswarm.redaction import Redactor

FILES = frozenset({"console.css", "icon.svg"})
PREFIX = "docs"
"""Of the addresses in the page, which are relative to it: the application may be mounted below a path."""

router = APIRouter(prefix="/docs", include_in_schema=False)


@dataclass(frozen=True, slots=True)
class ShownResponse:
    """A response of an operation; ``kinds`` are its media types, which no error has: all have the same."""

    status: str
    description: str
    kinds: str
    type: tuple[TypePart, ...]


@dataclass(frozen=True, slots=True)
class ShownOperation:
    """An operation as the page shows it. Its ``body`` is the type of what is sent, ``fields`` are those of the body."""

    name: str
    method: str
    path: str
    description: str
    parameters: list[FieldRow]
    body: tuple[TypePart, ...]
    body_is_required: bool
    fields: list[FieldRow]
    responses: list[ShownResponse]
    curl: str


@router.get("")
async def show_reference(given: CurrentSession, request: Request) -> Response:
    """Return the page. It is made once, in a thread: other requests go on meanwhile."""
    app: FastAPI = request.app
    if not hasattr(app.state, "reference"):
        app.state.reference = await to_thread.run_sync(render_reference, app.openapi(), given.redactor)
    return Response(app.state.reference, 200, HEADERS, "text/html; charset=utf-8")


@router.get("/static/{name}")
async def get_style(name: str) -> Response:
    """Return a file that the page uses."""
    if name not in FILES:
        raise NotFound(f"there is no file {name}")
    return FileResponse(STATIC[name], headers=HEADERS)


def render_reference(document: JsonObject, redactor: Redactor) -> str:
    """Return the page of an OpenAPI document: operations by tag, then the named schemas."""
    schemas: JsonObject = document["components"]["schemas"]
    tags: dict[str, list[ShownOperation]] = defaultdict(list)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tags[operation["tags"][0]].append(_make_operation(method, path, operation, schemas))
    values: Mapping[str, Any] = {
        "prefix": PREFIX,
        "visitor": None,
        "waiting": "",
        "sent": False,
        "settles": "0",
        "done": "",
        "api": document["info"],
        "tags": tags,
        "schemas": {name: (schema, make_fields(schema), describe_type(schema)) for name, schema in schemas.items()},
    }
    return make_environment(redactor).get_template("reference.html").render(values)


def _make_operation(method: str, path: str, operation: JsonObject, schemas: JsonObject) -> ShownOperation:
    body = operation.get("requestBody", {})
    sent: JsonObject = body.get("content", {}).get("application/json", {}).get("schema", {})
    type_of_body = describe_type(sent) if sent else ()
    named = next((part.schema for part in type_of_body if part.schema), "")
    return ShownOperation(
        name=operation["operationId"],
        method=method.upper(),
        path=path,
        description=operation["description"],
        parameters=make_parameters(operation),
        body=type_of_body,
        body_is_required=bool(body.get("required")),
        fields=make_fields(schemas[named]) if named else [],
        responses=[_make_response(status, each) for status, each in sorted(operation["responses"].items())],
        curl=make_curl(method, path, operation, schemas),
    )


def _make_response(status: str, response: JsonObject) -> ShownResponse:
    content: JsonObject = response.get("content", {})
    shown = describe_type(next(iter(content.values()))["schema"]) if content else ()
    title = "any other" if status == "default" else f"{status} {HTTPStatus(int(status)).phrase}"
    return ShownResponse(title, response["description"], ", ".join(content), shown)


def make_curl(method: str, path: str, operation: JsonObject, schemas: JsonObject) -> str:
    """Return a command that sends an example of a request, for a shell with API and TOKEN."""
    query: dict[str, Any] = {}
    for each in operation.get("parameters", ()):
        example = make_example({**each["schema"], **({"examples": [each["example"]]} if "example" in each else {})}, {})
        if each["in"] == "path":
            path = path.replace(f"{{{each['name']}}}", quote(str(example), safe=""))
        elif each["in"] == "query" and each.get("required"):
            query[each["name"]] = example
    address = f"$API{path}{f'?{urlencode(query)}' if query else ''}"
    words = ["curl", *([] if method == "get" else ["-X", method.upper()])]
    if "text/event-stream" in operation["responses"].get("200", {}).get("content", {}):
        words.append("-N")
    words += [f'"{address}"', '-H "Authorization: Bearer $TOKEN"']
    if content := operation.get("requestBody", {}).get("content", {}):
        example = json.dumps(make_example(content["application/json"]["schema"], schemas), ensure_ascii=False)
        words += ["-H 'Content-Type: application/json'", f"-d {shlex.quote(example)}"]
    return " ".join(words)
