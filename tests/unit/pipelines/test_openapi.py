"""OpenAPI documents become nodes that send what the document says, without an advisor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fireswarm.pipelines.files import PROJECT
from tests.support.documents import made_node, validated

HEAD = 'openapi: 3.0.3\ninfo: {title: T, version: "1"}\nservers: [{url: https://t.example/v1}]\n'


class Case(NamedTuple):
    """A document, an operation with its parameters, and the request that it has to send."""

    document: str
    operation: str
    given: dict[str, Any]
    sent: dict[str, Any]


def get(path: str, parameters: str, more: str = "") -> str:
    """A document with one GET operation."""
    operation = f"{{operationId: get, tags: [a], parameters: [{parameters}]{more}, responses: {{}}}}"
    return f"{HEAD}paths: {{{path!r}: {{get: {operation}}}}}\n"


def post(body: str, more: str = "", components: str = "{}") -> str:
    """A document with one POST operation."""
    operation = f"{{operationId: add, tags: [a], requestBody: {body}{more}, responses: {{}}}}"
    return f"{HEAD}paths: {{/a: {{post: {operation}}}}}\ncomponents: {components}\n"


def json_body(schema: str, more: str = "") -> str:
    return f"{{content: {{application/json: {{schema: {schema}}}}}{more}}}"


LIST = "schema: {type: array, items: {type: string}}"
OBJECT = "schema: {type: object}"
SWAGGER = """swagger: "2.0"
info: {title: T, version: "1"}
host: t.example
basePath: /v2
schemes: [http, https]
paths:
  /pets/{id}:
    post:
      operationId: up
      tags: [pet]
      consumes: [CONSUMES]
      parameters:
        - {name: id, in: path, type: integer, required: true}
        - {name: tags, in: query, type: array, items: {type: string}, collectionFormat: pipes}
        - {name: note, in: formData, type: string}
        - {name: kinds, in: formData, type: array, items: {type: string}}
      responses: {}
"""

CASES = {
    "name in path and query": Case(
        get("/a/{n}", "{name: n, in: path, required: true, schema: {type: string}}, {name: n, in: query, "
            "schema: {type: integer}}"),
        "a.get", {"n": "rex", "n_query": 3}, {"method": "GET", "path": "/a/rex", "query": {"n": 3}},
    ),
    "names of the pipeline's own": Case(
        get("/a", "{name: $credentials.token, in: query, schema: {type: string}}, {name: a.b, in: query, schema: "
            "{type: string}}, {name: a, in: query, schema: {type: object}}"),
        "a.get", {"credentials.token_query": "x", "a": {"b": 1}},
        {"method": "GET", "path": "/a", "query": {"$credentials.token": "x", "b": 1}},
    ),
    "list as one text": Case(
        get("/a", f"{{name: ids, in: query, explode: false, {LIST}}}"), "a.get", {"ids": ["a", "b"]},
        {"method": "GET", "path": "/a", "query": {"ids": "a,b"}},
    ),
    "list as several": Case(
        get("/a", f"{{name: ids, in: query, {LIST}}}"), "a.get", {"ids": ["a", "b"]},
        {"method": "GET", "path": "/a", "query": {"ids": ["a", "b"]}},
    ),
    "list with pipes": Case(
        get("/a", f"{{name: ids, in: query, style: pipeDelimited, explode: false, {LIST}}}"), "a.get",
        {"ids": ["a", "b"]}, {"method": "GET", "path": "/a", "query": {"ids": "a|b"}},
    ),
    "deep object": Case(
        get("/a", f"{{name: f, in: query, style: deepObject, {OBJECT}}}"), "a.get", {"f": {"a": {"b": [1]}}},
        {"method": "GET", "path": "/a", "query": {"f[a][b][0]": 1}},
    ),
    "object that is spread": Case(
        get("/a", f"{{name: f, in: query, {OBJECT}}}"), "a.get", {"f": {"x": 1}},
        {"method": "GET", "path": "/a", "query": {"x": 1}},
    ),
    "json as a text": Case(
        get("/a", "{name: f, in: query, content: {application/json: {schema: {type: object}}}}"), "a.get",
        {"f": {"x": [1]}}, {"method": "GET", "path": "/a", "query": {"f": '{"x":[1]}'}},
    ),
    "matrix and label": Case(
        get("/a/{m}/{l}", f"{{name: m, in: path, required: true, style: matrix, explode: true, {LIST}}}, "
            f"{{name: l, in: path, required: true, style: label, {LIST}}}"),
        "a.get", {"m": ["a/b", "c"], "l": ["x", "y"]}, {"method": "GET", "path": "/a/;m=a%2Fb;m=c/.x,y"},
    ),
    "list in a path": Case(
        get("/a/{l}", f"{{name: l, in: path, required: true, {LIST}}}"), "a.get", {"l": ["a,b", "c"]},
        {"method": "GET", "path": "/a/a%2Cb,c"},
    ),
    "headers and cookies": Case(
        get("/a", f"{{name: X-Ids, in: header, {LIST}}}, {{name: X-On, in: header, schema: {{type: boolean}}}}, "
            "{name: sid, in: cookie, schema: {type: string}}, {name: Accept, in: header, schema: {type: string}}"),
        "a.get", {"X-Ids": ["a", "b"], "X-On": True, "sid": "a; b=c"},
        {"method": "GET", "path": "/a", "headers": {"X-Ids": "a,b", "X-On": "true", "Cookie": "sid=a%3B%20b=c"}},
    ),
    "parameter that the operation overrides": Case(
        HEAD + "paths: {'/a/{b}': {parameters: [{name: b, in: path, required: true, schema: {type: string}}, "
        "{name: n, in: query, required: true, schema: {type: string}}], get: {operationId: get, tags: [a], "
        "parameters: [{name: n, in: query, schema: {type: integer, default: 7}}]}}}",
        "a.get", {"b": "x"}, {"method": "GET", "path": "/a/x", "query": {"n": 7}},
    ),
    "defaults that are equal to a boolean": Case(
        get("/a", "{name: z, in: query, schema: {type: integer, default: 0}}, {name: o, in: query, schema: "
            "{type: number, default: 1}}, {name: b, in: query, schema: {type: integer, default: true}}"),
        "a.get", {}, {"method": "GET", "path": "/a", "query": {"z": 0, "o": 1}},
    ),
    "parameter that only the path names": Case(
        get("/a/{id}", ""), "a.get", {"id": "x y"}, {"method": "GET", "path": "/a/x%20y"},
    ),
    "allOf": Case(
        post(json_body("{allOf: [{$ref: '#/components/schemas/New'}, {required: [b], properties: {b: {type: string}}}"
                       "]}"),
             components="{schemas: {New: {type: object, required: [a], properties: {a: {type: string}}}}}"),
        "a.add", {"a": "x", "b": "y"}, {"method": "POST", "path": "/a", "body": {"a": "x", "b": "y"}},
    ),
    "oneOf": Case(
        post(json_body("{oneOf: [{type: object, properties: {a: {type: string}}}, {type: object, properties: "
                       "{b: {type: string}}}]}")),
        "a.add", {"b": "y"}, {"method": "POST", "path": "/a", "body": {"b": "y"}},
    ),
    "list as a body": Case(
        post(json_body("{type: array, items: {type: integer}}", ", required: true")), "a.add", {"body": []},
        {"method": "POST", "path": "/a", "body": []},
    ),
    "object of any names": Case(
        post(json_body("{type: object, additionalProperties: {type: string}}")), "a.add", {"body": {"any": "x"}},
        {"method": "POST", "path": "/a", "body": {"any": "x"}},
    ),
    "body in a path's place": Case(
        HEAD + "paths: {'/a/{id}': {put: {operationId: set, tags: [a], parameters: [{name: id, in: path, required: "
        "true, schema: {type: integer}}], requestBody: " + json_body("{type: object, properties: {id: {type: string}}}")
        + "}}}",
        "a.set", {"id": 3, "id_body": "new"}, {"method": "PUT", "path": "/a/3", "body": {"id": "new"}},
    ),
    "what only answers have": Case(
        post(json_body("{type: object, required: [id, a], properties: {id: {type: integer, readOnly: true}, a: {type: "
                       "string}, pw: {type: string, writeOnly: true}}}")),
        "a.add", {"a": "x", "pw": "y"}, {"method": "POST", "path": "/a", "body": {"a": "x", "pw": "y"}},
    ),
    "null": Case(
        post(json_body("{type: object, properties: {a: {type: string, nullable: true, enum: [b, null]}}}")), "a.add",
        {"a": None}, {"method": "POST", "path": "/a", "body": {"a": None}},
    ),
    "multipart": Case(
        post("{content: {multipart/form-data: {schema: {type: object, properties: {files: {type: array, items: {type: "
             "string, format: binary}}, a: {type: string}}}}}}"),
        "a.add", {"files": [b"x"], "a": "y"},
        {"method": "POST", "path": "/a", "multipart": {"files": [b"x"], "a": "y"}},
    ),
    "form": Case(
        post("{content: {application/x-www-form-urlencoded: {schema: {type: object, properties: {m: {type: object}, l: "
             "{type: array, items: {type: string}}}}, encoding: {m: {style: deepObject, explode: true}}}}}"),
        "a.add", {"m": {"a": 1}, "l": ["x"]}, {"method": "POST", "path": "/a", "form": {"m[a]": 1, "l": ["x"]}},
    ),
    "bytes": Case(
        post("{content: {application/octet-stream: {schema: {type: string, format: binary}}}, required: true}"),
        "a.add", {"body": b"x"},
        {"method": "POST", "path": "/a", "data": b"x", "headers": {"Content-Type": "application/octet-stream"}},
    ),
    "json of a vendor": Case(
        post("{content: {application/vnd.a+json: {schema: {type: object, properties: {a: {type: string}}}}}}"), "a.add",
        {"a": "x"},
        {"method": "POST", "path": "/a", "body": {"a": "x"}, "headers": {"Content-Type": "application/vnd.a+json"}},
    ),
    "server of an operation": Case(
        get("/a", "", ", servers: [{url: 'https://up.example/{v}', variables: {v: {default: v3}}}]"), "a.get", {},
        {"method": "GET", "path": "https://up.example/v3/a"},
    ),
    "swagger form": Case(
        SWAGGER.replace("CONSUMES", "application/x-www-form-urlencoded"), "pet.up",
        {"id": 3, "tags": ["a", "b"], "note": "n", "kinds": ["x", "y"]},
        {"method": "POST", "path": "/pets/3", "query": {"tags": "a|b"}, "form": {"note": "n", "kinds": "x,y"}},
    ),
    "swagger multipart": Case(
        SWAGGER.replace("CONSUMES", "multipart/form-data"), "pet.up", {"id": 3, "note": "n"},
        {"method": "POST", "path": "/pets/3", "multipart": {"note": "n"}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_request_is_what_the_document_says(name: str) -> None:
    case = CASES[name]
    with made_node({"api.yaml": case.document}) as node:
        assert node.sent_by(case.operation, case.given) == case.sent


@pytest.mark.parametrize(
    ("document", "given", "told"),
    [
        (get("/a", "{name: n, in: query, schema: {type: integer, enum: [1, 2]}}"), {"n": 3}, "one of 1, 2"),
        (get("/a", "{name: n, in: query, schema: {type: integer, enum: [1, 2]}}"), {"n": True}, "integer"),
        (get("/a", "{name: n, in: query, schema: {type: string}}"), {"n": None}, "string"),
        (get("/a", "{name: n, in: header, required: true, schema: {type: string}}"), {}, "needs n"),
        (get("/a/{n}", ""), {"n": ""}, "needs n"),
    ],
)
def test_input_is_refused_where_the_document_refuses(document: str, given: dict[str, Any], told: str) -> None:
    with made_node({"api.yaml": document}) as node, pytest.raises(node.module.InputError, match=told):
        node.sent_by("a.get", given)


@pytest.mark.parametrize(
    ("scheme", "sent"),
    [
        ("{type: apiKey, in: header, name: X-Key}", {"headers": {"X-Key": "<k>"}}),
        ("{type: apiKey, in: query, name: key}", {"query": {"key": "<k>"}}),
        ("{type: apiKey, in: cookie, name: sid}", {"headers": {"Cookie": "sid=<k>"}}),
        ("{type: http, scheme: Bearer}", {"headers": {"Authorization": "Bearer <k>"}}),
        ("{type: oauth2, flows: {}}", {"headers": {"Authorization": "Bearer <k>"}}),
        ("{type: openIdConnect, openIdConnectUrl: x}", {"headers": {"Authorization": "Bearer <k>"}}),
        ("{type: http, scheme: basic}", {"headers": {"Authorization": "Basic PGtfdXNlcm5hbWU+OjxrX3Bhc3N3b3JkPg=="}}),
    ],
)
def test_each_scheme_authenticates_the_request(
    scheme: str, sent: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    document = get("/a", "", ", security: [{k: []}]") + f"components: {{securitySchemes: {{k: {scheme}}}}}\n"
    with made_node({"api.yaml": document}) as node:
        monkeypatch.setattr("nodes.made.operations.credential", "<{}>".format)
        assert node.sent_by("a.get", {}) == {"method": "GET", "path": "/a", **sent}


def test_authentication_that_a_document_leaves_open_is_sent_if_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    scheme = "components: {securitySchemes: {k: {type: http, scheme: bearer}}}\n"
    document = get("/a", "", ", security: [{}, {k: []}]") + scheme
    with made_node({"api.yaml": document}) as node:
        assert node.sent_by("a.get", {}) == {"method": "GET", "path": "/a"}
        monkeypatch.setenv("MADE_K", "x")
        assert node.sent_by("a.get", {})["headers"] == {"Authorization": "Bearer x"}


def test_scheme_that_no_node_can_send_is_listed() -> None:
    scheme = "components: {securitySchemes: {k: {type: mutualTLS}}}\n"
    with made_node({"api.yaml": get("/a", "", ", security: [{k: []}]") + scheme}) as node:
        listed = {each["name"]: each for each in node.schema["unread"]}
        assert listed["GET /a security"]["reason"].startswith("k: the scheme 'mutualTLS'")
        assert listed["security k"]["position"] == "api.yaml:5"


IDS = ["getThe" + "VeryLongResource" * 5, "getThe" + "VeryLongResource" * 5 + "2", "获取", "删除", "getX", "get_x", ""]


def test_no_operation_is_lost_by_its_id() -> None:
    paths = {f"/p{number}": {"get": {"operationId": each, "tags": ["用户"]}} for number, each in enumerate(IDS)}
    paths["/list"] = {"get": {"operationId": "all", "tags": ["list"]}}  # the function list_all is one of the node's own
    text = json.dumps({"openapi": "3.1.0", "paths": paths}, ensure_ascii=False)
    with made_node({"api.json": text}) as node:
        operations = node.schema["operations"]
        assert [each["source_id"] for each in operations] == [*IDS, "all"]
        assert (node.schema["found"], node.schema["present"]) == (len(paths), len(paths))
        for each in operations:
            assert node.sent_by(each["key"], {}) == {"method": "GET", "path": each["path"]}


def test_files_of_the_folder_are_followed() -> None:
    main = HEAD + "paths: {/a: {$ref: 'paths/a.yaml#/item'}}\n"
    item = "item: {post: {operationId: add, tags: [a], requestBody: {content: {application/json: {schema: {$ref: " + (
        "'../schemas.json#/New'}}}}}}\n"
    )
    schema = '{"New": {"type": "object", "properties": {"a": {"type": "string"}}}}'
    with made_node({"api.yaml": main, "paths/a.yaml": item, "schemas.json": schema}) as node:
        assert node.sent_by("a.add", {"a": "x"})["body"] == {"a": "x"}
        trace = node.files.json("trace_map.json")["fields"]
        assert trace["parameters.a@a.add"]["evidence"][0]["file"] == "schemas.json"


def test_document_of_one_line_has_quotes_with_what_they_prove() -> None:
    pad = {f"/pad{number}": {"get": {}} for number in range(100)}
    operation = {"post": {"parameters": [{"name": "wanted", "in": "query", "schema": {"type": "string"}}]}}
    text = json.dumps({"openapi": "3.1.0", "paths": {**pad, "/last": operation}})
    with made_node({"api.json": text}) as node:
        trace = node.files.json("trace_map.json")["fields"]
        last = next(each["key"] for each in node.schema["operations"] if each["path"] == "/last")
        assert [each["quote"][:7] for each in trace[f"operations.{last}"]["evidence"]] == ['"/last"', '"post":']
        assert '"wanted"' in trace[f"parameters.wanted@{last}"]["evidence"][0]["quote"]


ONE_LETTER = """{
  "openapi": "3.0.3",
  "info": {"title": "T", "version": "1"},
  "servers": [{"url": "https://t.example"}],
  "paths": {
    "/p": {
      "put": {"operationId": "move", "tags": ["a"], "responses": {}, "requestBody": {"content": {"application/json":
        {"schema": {"type": "object", "properties": {
          "x":
          {
            "type": "number"
          }
        }}}
      }}}
    }
  }
}"""
YAML_LETTER = f"{HEAD}paths:\n  /q:\n    post:\n      operationId: q\n      responses: {{}}\n"


@pytest.mark.parametrize(("name", "text"), [("api.json", ONE_LETTER), ("api.yaml", YAML_LETTER)])
def test_names_of_one_letter_have_evidence(name: str, text: str) -> None:
    """The line of such a name shows nothing by itself: the lines below are part of its evidence."""
    with made_node({name: text}) as node:
        lines = text.splitlines()
        for field, entry in node.files.json("trace_map.json")["fields"].items():
            for piece in entry["evidence"]:
                cited = " ".join(" ".join(lines[piece["line_start"] - 1 : piece["line_end"]]).split())
                assert " ".join(piece["quote"].split()) in cited and len(piece["quote"]) > 2, (field, piece)


def test_style_of_a_text_is_not_written() -> None:
    """Style and explode say how lists and objects are sent: of a text, they change nothing."""
    listed = "{name: l, in: header, schema: {type: array, items: {type: string}}}"
    with made_node({"api.yaml": get("/a", f"{{name: h, in: header, schema: {{type: string}}}}, {listed}")}) as node:
        code = node.files.text(f"{PROJECT}nodes/made/operations.py")
        assert 'put(parameters, "h")' in code
        assert 'put(parameters, "l", style="simple")' in code
        sent = node.sent_by("a.get", {"h": "a,b", "l": ["c", "d"]})
        assert sent["headers"] == {"h": "a,b", "l": "c,d"}


def test_tests_of_the_node_pass_and_find_each_change_of_its_code(tmp_path: Path) -> None:
    document = SWAGGER.replace("CONSUMES", "application/x-www-form-urlencoded")
    outcome, files = validated({"api.yaml": document}, tmp_path / "node")
    assert outcome["passed"], files.text("validation_logs.txt")
    assert outcome["mutants"]["alive"] == [] and outcome["mutants"]["made"] > 10
