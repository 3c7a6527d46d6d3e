"""What users of other generators reported: the node that is made here sends what the document says, or refuses."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from tests.support.documents import made_node
from tests.unit.pipelines.test_openapi import HEAD, get, json_body, post


class Report(NamedTuple):
    """A document; calls as operation, input and what is sent without method and path, or the reason of a refusal."""

    document: str
    calls: list[tuple[str, dict[str, Any], dict[str, Any] | str]]


BUG = (
    "{Bug: {type: object, required: [id, name], properties: "
    "{id: {type: integer, readOnly: true}, name: {type: string}}}}"
)
PET = "{New: {type: object, required: [name], properties: {name: {type: string}}}}"
LONG = "getThe" + "VeryLongResource" * 5
SERVER = HEAD.replace(
    "[{url: https://t.example/v1}]",
    '[{url: "https://{region}.t.example/{v}", variables: {region: {default: eu}, v: {default: v2}}}]',
)
OVERRIDDEN = """paths:
  /foo/{bar}:
    parameters:
      - {name: bar, in: path, required: true, schema: {type: string}}
      - {name: n, in: query, required: true, schema: {type: string}}
    post: {operationId: post, tags: [a], responses: {}, parameters: [{name: n, in: query, schema: {type: integer}}]}
"""
RENAMED = """paths:
  /users/{id}:
    put:
      operationId: rename
      tags: [a]
      parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
      requestBody:
        content: {application/json: {schema: {type: object, required: [id], properties: {id: {type: string}}}}}
      responses: {}
"""
SIZES = "{name: size, in: query, schema: {type: integer, enum: [512, 4096], default: 4096}}"


def several(**operations: str) -> str:
    """A document with a GET operation for each path, by its id and tag."""
    paths = {f"/{path}": {"get": {"operationId": each, "tags": ["用户"]}} for path, each in operations.items()}
    return f"{HEAD}paths: {json.dumps(paths, ensure_ascii=False)}\n"


REPORTS = {
    "openapi-python-client 1204: readOnly and required": Report(
        post(json_body('{$ref: "#/components/schemas/Bug"}'), components=f"{{schemas: {BUG}}}"),
        [("a.add", {"name": "x"}, {"body": {"name": "x"}}), ("a.add", {}, "needs name")],
    ),
    "openapi-python-client 305: one name in path and query": Report(
        get("/pets/{name}/", "{name: name, in: path, required: true, schema: {type: string}}, "
            "{name: name, in: query, schema: {type: integer}}"),
        [
            ("a.get", {"name": "rex"}, {"path": "/pets/rex/"}),
            ("a.get", {"name": "rex", "name_query": 3}, {"path": "/pets/rex/", "query": {"name": 3}}),
        ],
    ),
    "openapi-python-client 457: a parameter that the operation overrides": Report(
        HEAD + OVERRIDDEN,
        [
            ("a.post", {"bar": "b"}, {"path": "/foo/b"}),
            ("a.post", {"bar": "b", "n": 1}, {"query": {"n": 1}}),
            ("a.post", {"bar": "b", "n": "x"}, "integer"),
        ],
    ),
    "openapi-python-client 197: explode is false": Report(
        get("/x", "{name: ids, in: query, explode: false, schema: {type: array, items: {type: string}}}"),
        [("a.get", {"ids": ["a", "b"]}, {"query": {"ids": "a,b"}})],
    ),
    "openapi-python-client 692 and 1255: several files in a form": Report(
        post("{content: {multipart/form-data: {schema: {type: object, properties: {hash_: {type: string}, files: "
             "{type: array, items: {type: string, format: binary}}}}}}}"),
        [("a.add", {"hash_": "h", "files": [b"x", b"y"]}, {"multipart": {"hash_": "h", "files": [b"x", b"y"]}})],
    ),
    "openapi-generator 17429: allOf in a body": Report(
        post(json_body('{allOf: [{$ref: "#/components/schemas/New"}, {type: object, required: [owner], properties: '
                       "{owner: {type: string}}}]}"), components=f"{{schemas: {PET}}}"),
        [("a.add", {"name": "x", "owner": "y"}, {"body": {"name": "x", "owner": "y"}}),
         ("a.add", {"name": "x"}, "needs owner")],
    ),
    "datamodel-code-generator 440 and 2353: an enumeration of integers": Report(
        get("/q", SIZES),
        [("a.get", {}, {"query": {"size": 4096}}), ("a.get", {"size": 512}, {"query": {"size": 512}}),
         ("a.get", {"size": "512"}, "integer"), ("a.get", {"size": 1}, "one of 512, 4096")],
    ),
    "datamodel-code-generator 424: an enumeration with null": Report(
        post(json_body("{type: object, properties: {bar: {type: string, nullable: true, enum: [fizz, null]}}}")),
        [("a.add", {"bar": None}, {"body": {"bar": None}}), ("a.add", {"bar": "fizz"}, {"body": {"bar": "fizz"}}),
         ("a.add", {"bar": "None"}, "fizz")],
    ),
    "fastmcp 1100 and 1107: the id of the path, and that of the body": Report(
        HEAD + RENAMED,
        [("a.rename", {"id": 3, "id_body": "new"}, {"path": "/users/3", "body": {"id": "new"}})],
    ),
    "fastmcp 5112: a list as the body": Report(
        post(json_body("{type: array, items: {type: integer}}", ", required: true")),
        [("a.add", {"body": [1, 2]}, {"body": [1, 2]}), ("a.add", {}, "needs body"), ("a.add", {"body": 1}, "array")],
    ),
    "openapi3 119: variables of a server": Report(get("/v", "").replace(HEAD, SERVER), [("a.get", {}, {"path": "/v"})]),
    "a required header and a required cookie": Report(
        get("/v", "{name: X-Api-Version, in: header, required: true, schema: {type: string}}, {name: sid, in: cookie, "
            "required: true, schema: {type: string}}"),
        [("a.get", {"X-Api-Version": "3", "sid": "s"}, {"headers": {"X-Api-Version": "3", "Cookie": "sid=s"}}),
         ("a.get", {"sid": "s"}, "needs X-Api-Version"), ("a.get", {"X-Api-Version": "3"}, "needs sid")],
    ),
    "ids of more than 64 characters": Report(several(a=f"{LONG}0", b=f"{LONG}1", c=f"{LONG}2"), []),
    "ids that differ in case and lines only": Report(several(a="getX", b="get_x"), []),
    "ids without a Latin letter": Report(several(a="获取", b="删除"), []),
    "one operation without parameters": Report(several(a="get"), []),
}  # fmt: skip


@pytest.mark.parametrize("report", REPORTS)
def test_reported_fault_of_other_generators_is_none_here(report: str) -> None:
    document, calls = REPORTS[report]
    with made_node({"api.yaml": document}) as node:
        assert node.schema["found"] == node.schema["present"] == len(node.schema["operations"])
        for operation in node.schema["operations"]:
            assert calls or node.sent_by(operation["key"], {})["path"] == operation["path"]
        for operation, given, expected in calls:
            if isinstance(expected, str):
                with pytest.raises(node.module.InputError, match=expected):
                    node.sent_by(operation, given)
            else:
                sent = node.sent_by(operation, given)
                assert {name: sent.get(name) for name in expected} == expected


def test_address_of_a_server_has_the_defaults_of_its_variables() -> None:
    with made_node({"api.yaml": REPORTS["openapi3 119: variables of a server"].document}) as node:
        assert node.schema["base_url"] == "https://eu.t.example/v2"
