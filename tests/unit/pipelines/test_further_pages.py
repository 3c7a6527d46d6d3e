"""Nodes of OpenAPI documents ask for further pages as the document says, and list what they cannot follow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fireswarm import pipelines
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.running.in_child import load_entry
from tests.support.documents import made_node, run_steps, validated
from tests.unit.pipelines.test_openapi import HEAD, get
from tests.unit.pipelines.test_transport import Answer, Server, serving

CURSOR = "{name: cursor, in: query, schema: {type: string}}"
PAGE = "{name: page, in: query, schema: {type: integer, default: 1}}"


def answering(schema: str, parameters: str = CURSOR, more: str = "") -> str:
    """A document with one operation, whose answer has this schema and these further keys."""
    told = f"{{description: d, content: {{application/json: {{schema: {schema}}}}}{more}}}"
    return get("/a", parameters).replace("responses: {}", f'responses: {{"200": {told}}}')


def with_extension(extension: str, parameters: str = CURSOR) -> str:
    return get("/a", parameters, f", {extension}")


def speakeasy(kind: str, name: str, outputs: str) -> str:
    inputs = f"[{{name: {name}, in: parameters, type: {kind}}}]"
    return f"x-speakeasy-pagination: {{type: cursor, inputs: {inputs}, outputs: {{{outputs}}}}}"


def linked(value: str, name: str = "cursor", target: str = "get") -> str:
    links = f", links: {{more: {{operationId: {target}, parameters: {{{name}: {value!r}}}}}}}"
    return answering("{type: object}", more=links)


TOKEN = "{name: page_token, in: query, schema: {type: string}}"
HINTS = {
    "names that agree": (answering("{properties: {next_cursor: {type: string}}}"), ("cursor", "cursor", "next_cursor")),
    "names in another spelling": (
        answering("{properties: {nextPageToken: {type: string}}}", TOKEN), ("cursor", "page_token", "nextPageToken")
    ),
    "names in a wrapper that only answers have": (
        answering("{properties: {meta: {properties: {next_cursor: {type: string, readOnly: true}}}}}"),
        ("cursor", "cursor", "meta.next_cursor"),
    ),
    "address by its format": (
        answering("{properties: {next: {type: string, format: uri, nullable: true}}}"), ("address", "", "next")
    ),
    "link of OpenAPI": (linked("$response.body#/paging/next"), ("cursor", "cursor", "paging.next")),
    "link with a place": (linked("$response.body#/a~1b", "query.cursor"), ("cursor", "cursor", "a/b")),
    "header": (answering("{type: array}", more=", headers: {link: {schema: {type: string}}}"), ("link", "", "")),
    "header of another answer": (
        get("/a", CURSOR).replace(
            "responses: {}",
            "responses: {'200': {description: d}, '206': {description: d, headers: {Link: {schema: {type: string}}}}}",
        ),
        ("link", "", ""),
    ),
    "Azure": (with_extension("x-ms-pageable: {nextLinkName: '@odata.nextLink'}"), ("address", "", "@odata.nextLink")),
    "cursor of Speakeasy": (
        with_extension(speakeasy("cursor", "cursor", "nextCursor: $.next")), ("cursor", "cursor", "next")
    ),
    "page of Speakeasy": (with_extension(speakeasy("page", "page", "results: $.data"), PAGE), ("page", "page", "")),
    "cursor of Fern": (
        with_extension("x-fern-pagination: {cursor: $request.cursor, next_cursor: $response.meta.next, results: $.d}"),
        ("cursor", "cursor", "meta.next"),
    ),
    "Fern at the top": (
        with_extension("x-fern-pagination: true") + "x-fern-pagination: {next_uri: $response.next, results: $.data}\n",
        ("address", "", "next"),
    ),
}  # fmt: skip

NO_PAGES = {
    "Azure says that there is one": with_extension("x-ms-pageable: {nextLinkName: null, itemName: value}"),
    "an echo of the page": answering("{properties: {page: {type: integer}}}", PAGE),
    "whether there is a next page": answering("{properties: {next_page: {type: boolean}}}", PAGE),
    "a parameter of another kind": answering(
        "{properties: {next_cursor: {type: string}}}", "{name: cursor, in: query, schema: {type: array, items: {}}}"
    ),
    "a pointer to nothing": linked("$response.body#/"),
    "an address of something else": answering("{properties: {next: {type: string}}}", "", ""),
    "a link to another operation": linked("$response.body#/id", target="other"),
    "a link of a thing to itself": linked("$response.body#/id", "path.id"),
    "a link of a thing to itself, by a name alone": linked("$response.body#/id", "id").replace("/a'", "/a/{id}'"),
    "names in a list": answering("{type: array, items: {properties: {next_cursor: {type: string}}}}"),
}

CANNOT = {
    "a path with a number": with_extension(speakeasy("cursor", "cursor", "nextCursor: '$.data[-1].id'")),
    "a parameter that is not there": with_extension(speakeasy("cursor", "after", "nextCursor: $.next")),
    "an extension that names nothing": with_extension("x-fern-pagination: {type: custom, results: $.data}"),
    "Azure without a name": with_extension("x-ms-pageable: {itemName: value}"),
    "Azure with nonsense": with_extension("x-ms-pageable: 7"),
    "Fern at the top, where nothing stands": with_extension("x-fern-pagination: true"),
    "a page that is no number": with_extension(
        speakeasy("page", "cursor", "results: $.data"), CURSOR.replace("string", "boolean")
    ),
    "a link to a parameter that is not there": linked("$response.body#/next", "after"),
}


@pytest.mark.parametrize("name", HINTS)
def test_hint_is_read_and_the_node_follows_it(name: str, tmp_path: Path) -> None:
    document, (kind, given, cursor) = HINTS[name]
    outcome, files = validated({"api.yaml": document}, tmp_path)
    assert outcome["passed"], files.text("validation_logs.txt")
    paging = pipelines.load_schema(files).operations[0].paging
    assert paging is not None
    assert (paging.kind, paging.input, paging.cursor) == (kind, given, cursor)
    assert "both_pages" in files.text("project/tests/test_made_pages.py")


@pytest.mark.parametrize("name", NO_PAGES)
def test_what_says_no_further_page_gives_the_node_none(name: str) -> None:
    with made_node({"api.yaml": NO_PAGES[name]}) as node:
        assert node.schema["operations"][0]["paging"] is None
        assert [each for each in node.schema["unread"] if each["part"] == "pages"] == []
        assert not hasattr(node.module, "pages"), "a node without further pages has no code for them"


@pytest.mark.parametrize("name", CANNOT)
def test_hint_that_a_node_cannot_follow_is_listed(name: str) -> None:
    with made_node({"api.yaml": CANNOT[name]}) as node:
        assert node.schema["parts"]["pages"] == {"present": 1, "found": 0}
        (listed,) = [each for each in node.schema["unread"] if each["part"] == "pages"]
        assert listed["name"] == "GET /a pages" and "the node returns one page: " in listed["reason"]
        assert listed["position"].startswith("api.yaml:")


@pytest.mark.parametrize("name", [name for name in HINTS if not name.startswith(("names", "address"))])
def test_hint_that_a_reader_loses_is_counted_as_lost(name: str, tmp_path: Path) -> None:
    (tmp_path / "api.yaml").write_text(HINTS[name][0])
    _, files = run_steps(tmp_path / "api.yaml", tmp_path / "work", name="made")
    schema = pipelines.load_schema(files)
    assert schema.parts["pages"] == pipelines.PartCount(present=1, found=1)
    losing = schema.model_copy(update={"operations": (schema.operations[0].model_copy(update={"paging": None}),)})
    assert pipelines.measure(losing, files.tree(pipelines.SOURCES), "api.yaml").lost == ["GET /a pages"]


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serving() as server:
        monkeypatch.setenv("MADE_BASE_URL", f"{server.address}/v1")
        monkeypatch.setenv("MADE_K", "secret")
        yield server


SCHEME = "{type: apiKey, in: query, name: key}"
SECURED = f"security: [{{k: []}}]\ncomponents: {{securitySchemes: {{k: {SCHEME}}}}}\n"


def page(content: Any, link: str = "") -> Answer:
    headers = {"Content-Type": "application/json"} | ({"Link": link} if link else {})
    return 200, headers, json.dumps(content).encode()


def test_header_leads_through_all_pages_and_the_key_is_sent_to_each(api: Server) -> None:
    api.answers = [
        page([1], f'<{api.address}/v1/a?page=2>; rel="next", <{api.address}/v1/a?page=9>; rel="last"'),
        page([2], '</v1/a?page=3&key=other>; rel="next"'),
        page([3], f'<{api.address}/v1/a?page=1>; rel="first"'),
    ]
    with made_node({"api.yaml": HINTS["header"][0] + SECURED}) as node:
        assert [*node.module.Client().a_get_pages(cursor="x")] == [[1], [2], [3]]
    assert [path for _, path, _, _ in api.sent] == [
        "/v1/a?cursor=x&key=secret", "/v1/a?page=2&key=secret", "/v1/a?page=3&key=other",
    ]  # fmt: skip


def test_pages_by_number_end_with_one_that_has_no_items(api: Server) -> None:
    api.answers = [page({"data": ["a", "b"]}), page({"data": ["c"]}), page({"data": []})]
    document = with_extension(speakeasy("offset", "page", "results: $.data"), PAGE.replace("1}", "0}"))
    with made_node({"api.yaml": document}) as node:
        assert len([*node.module.pages("a.get", {})]) == 3
    assert [path for _, path, _, _ in api.sent] == ["/v1/a?page=0", "/v1/a?page=2", "/v1/a?page=3"]


def test_no_key_is_sent_to_the_host_that_an_answer_names(api: Server) -> None:
    with made_node({"api.yaml": HINTS["Azure"][0] + SECURED}) as node, serving() as other:
        api.answers = [page({"@odata.nextLink": f"{other.address}/v1/a"})]
        asked = node.module.pages("a.get", {})
        next(asked)
        with pytest.raises(node.module.PagingError, match="another host"):
            next(asked)
        assert other.sent == []


@pytest.mark.parametrize("name", ["names that agree", "address by its format", "header"])
def test_api_that_names_one_page_again_and_again_is_not_asked_without_end(name: str, api: Server) -> None:
    api.answers = [page({"next_cursor": "x", "next": "/v1/a?page=2"}, '</v1/a?page=2>; rel="next"')]
    with made_node({"api.yaml": HINTS[name][0]}) as node, pytest.raises(node.module.PagingError, match="again"):
        list(node.module.pages("a.get", {}))
    assert len(api.sent) == 2


def test_pages_are_limited(api: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with made_node({"api.yaml": HINTS["names that agree"][0]}) as node:
        count = 0

        def send(method: str, path: str, **more: Any) -> Any:
            nonlocal count
            count += 1
            return {"next_cursor": f"page {count}"}

        monkeypatch.setattr("nodes.made.paging.MAX_PAGES", 5)
        with pytest.raises(node.module.PagingError):
            list(node.module.pages("a.get", {}, send))
        assert count == 5


def test_names_of_the_client_are_those_of_no_other_operation() -> None:
    hinted = "x-ms-pageable: {nextLinkName: n}, responses: {}"
    document = (
        f"{HEAD}paths:\n"
        f"  /a: {{get: {{operationId: all, tags: [a], {hinted}}}}}\n"
        f"  /b: {{get: {{operationId: all_pages, tags: [a], {hinted}}}}}\n"
    )
    with made_node({"api.yaml": document}) as node:
        names = {name for name in vars(node.module.Client) if name.startswith("a_")}
        assert names == {"a_all", "a_all_pages_", "a_all_pages", "a_all_pages_pages"}
        assert "`client.a_all_pages_(...)` yields" in node.files.text("project/nodes/made/README.md")


VALUES = st.sampled_from(
    [None, True, False, 0, 7, "", "next", [], [1], {}, {"nextLinkName": None}, {"nextLinkName": "n"},
     {"nextLinkName": ""},
     {"itemName": "v"}, {"type": "cursor"}, {"type": "cursor", "inputs": [{"type": "cursor", "name": "cursor"}],
     "outputs": {"nextCursor": "$.a"}}, {"type": "offsetLimit", "inputs": [{"type": "page", "name": "cursor"}]},
     {"cursor": "$request.cursor", "next_cursor": "$response.a"}, {"offset": "$request.gone"}, {"next_uri": "$x[0]"}]
)  # fmt: skip
NAMES = st.sampled_from(["cursor", "query.cursor", "id", "path.id", "gone", "header.x"])
TAKEN = st.sampled_from(["$response.body#/", "$response.body#/a/b", "$request.path.id", 7, None, "$response.body#/a\n"])
LINKS = st.dictionaries(
    st.sampled_from(["next", "self"]),
    st.fixed_dictionaries(
        {
            "operationId": st.sampled_from(["get", "other", "", 7]),
            "parameters": st.dictionaries(NAMES, TAKEN, max_size=2),
        }
    ),
    max_size=2,
)
ANSWERS = st.fixed_dictionaries(
    {},
    optional={
        "description": st.just("d"),
        "links": LINKS | VALUES,
        "headers": st.dictionaries(st.sampled_from(["Link", "link", "X"]), VALUES, max_size=2) | VALUES,
        "content": st.just({"application/json": {"schema": {"properties": {"next_cursor": {"type": "string"}}}}}),
        "$ref": st.sampled_from(["#/gone", "#/components/responses/r"]),
    },
)
OPERATIONS = st.fixed_dictionaries(
    {
        "responses": st.dictionaries(
            st.sampled_from(["200", "206", "2XX", "404", "default"]), ANSWERS | VALUES, max_size=3
        )
    },
    optional={
        "operationId": st.sampled_from(["get", "", 7]),
        **{name: VALUES for name in pipelines.PAGING_EXTENSIONS},
    },
)
INFER = load_entry(packaged_path("skills") / "schema-infer", Path("scripts/skill.py"))
OPENAPI: Any = import_module(f"{INFER.__package__}.openapi")


@settings(deadline=None, max_examples=300)
@given(operation=OPERATIONS, verb=st.sampled_from(["get", "post"]), top=VALUES, has_id=st.booleans())
def test_no_hint_is_lost_whatever_stands_in_its_place(operation: Any, verb: str, top: Any, *, has_id: bool) -> None:
    """A hint that the count sees and the reader does not would refuse the whole document."""
    parameters = [{"name": "cursor", "in": "query", "schema": {"type": "string"}}]
    path = "/a/{id}" if has_id else "/a"
    document = {"openapi": "3.0.3", "paths": {path: {verb: {**operation, "parameters": parameters}}}}
    document |= {"x-fern-pagination": top, "components": {"responses": {"r": {"headers": {"Link": {}}}}}}
    files = {"api.json": json.dumps(document)}
    schema = OPENAPI.read(files, "api.json", "made").schema()
    assert pipelines.measure(schema, files, "api.json").lost == []
