"""The transport of generated nodes against a server on this machine, the typed client, and the package."""

from __future__ import annotations

import ast
import inspect
import socket
import tomllib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import pytest

from fireswarm.pipelines.files import PROJECT
from tests.support.documents import MadeNode, made_node
from tests.unit.pipelines.test_openapi import get, json_body, post

Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Server:
    """Gives its answers in turn, the last one again and again, and keeps what it was sent."""

    address: str
    answers: list[Answer] = field(default_factory=lambda: [(200, {}, b"[1]")])
    sent: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def serving() -> Generator[Server]:
    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            told.sent.append((self.command, self.path, dict(self.headers), body))
            status, headers, content = told.answers.pop(0) if len(told.answers) > 1 else told.answers[0]
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Answering)
    told = Server(f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serving() as server:
        monkeypatch.setenv("MADE_BASE_URL", f"{server.address}/v1/")
        yield server


@pytest.fixture
def node() -> Iterator[MadeNode]:
    limit = "{name: limit, in: query, schema: {type: integer}}, {name: from, in: query, schema: {type: string}}"
    with made_node({"api.yaml": get("/a", limit)}) as node:
        yield node


def test_relative_server_asks_for_the_address(api: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    document = get("/a", "").replace("https://t.example/v1", "/v1")
    with made_node({"api.yaml": document}) as node:
        assert node.module.run("a.get", {}) == [1]
        assert api.sent[0][:2] == ("GET", "/v1/a") and api.sent[0][2]["Accept"] == "application/json"
        monkeypatch.delenv("MADE_BASE_URL")
        with pytest.raises(LookupError, match="MADE_BASE_URL"):
            node.module.run("a.get", {})


def test_multipart_has_files_json_and_texts(api: Server, node: MadeNode) -> None:
    transport = node.module.transport
    assert transport.written([True, 1.5, {"a": None}]) == ["true", "1.5", '{"a":null}']
    transport.send_over_http("POST", "/up", multipart={'a"b': [b"\x00", "x"], "o": {"c": 1}})
    _, _, headers, body = api.sent[0]
    read = message_from_bytes(f"Content-Type: {headers['Content-Type']}\r\n\r\n".encode() + body)
    parts: Any = read.get_payload()
    told = [(part["Content-Disposition"], part["Content-Type"], part.get_payload(decode=True)) for part in parts]
    assert told == [
        ('form-data; name="a%22b"; filename="a%22b"', "application/octet-stream", b"\x00"),
        ('form-data; name="a%22b"', None, b"x"),
        ('form-data; name="o"', "application/json", b'{"c":1}'),
    ]


def test_answers_are_json_text_bytes_or_nothing(api: Server, node: MadeNode) -> None:
    api.answers = [
        (200, {"Content-Type": "application/json; charset=utf-8"}, b'{"a": 1}'),
        (200, {"Content-Type": "text/csv"}, b"a,b"),
        (200, {"Content-Type": "image/png"}, b"\x89PNG"),
        (204, {}, b""),
    ]
    assert [node.module.run("a.get", {}) for _ in range(4)] == [{"a": 1}, "a,b", b"\x89PNG", None]


@pytest.mark.parametrize("given", ["..", ".", "x/../..", "%2e%2E", "..?a=1"])
def test_part_of_a_path_leads_to_no_other_address(given: str, api: Server, node: MadeNode) -> None:
    with pytest.raises(ValueError, match="would lead to another address"):
        node.module.transport.send_over_http("DELETE", f"/a/{given}")
    assert api.sent == []
    api.answers = [(200, {}, b"1")]
    assert node.module.transport.send_over_http("GET", "/a/...x?b=/../") == 1


def test_request_is_sent_again_where_that_may_help(api: Server, node: MadeNode) -> None:
    api.answers = [(503, {"Retry-After": "0"}, b""), (429, {"Retry-After": "0"}, b""), (200, {}, b"2")]
    assert node.module.run("a.get", {}) == 2
    assert len(api.sent) == 3


def test_pause_that_is_no_number_of_seconds_is_not_taken(
    api: Server, node: MadeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(node.module.transport.time, "sleep", pauses.append)
    api.answers = [(503, {"Retry-After": "\xb2"}, b""), (503, {"Retry-After": "9" * 400}, b""), (200, {}, b"2")]
    assert node.module.run("a.get", {}) == 2
    assert pauses == [0.5, 30.0]


def test_pause_until_a_date_is_kept(api: Server, node: MadeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(node.module.transport.time, "sleep", pauses.append)
    monkeypatch.setattr(node.module.transport.time, "time", lambda: 784_111_770.0)
    dates = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:40:00 GMT", "Sun, 06 Nov 9999999 08:49:37 GMT")
    api.answers = [*((429, {"Retry-After": date}, b"") for date in dates[:2]), (200, {}, b"2")]
    assert node.module.run("a.get", {}) == 2
    api.answers = [(429, {"Retry-After": dates[2]}, b""), (200, {}, b"2")]
    assert node.module.run("a.get", {}) == 2
    assert pauses == [7.0, 0.0, 0.5]


def test_request_that_changes_something_is_sent_again_only_if_it_was_refused(api: Server, node: MadeNode) -> None:
    send, error = node.module.transport.send_over_http, node.module.ApiError
    api.answers = [(503, {"Retry-After": "0"}, b"away")]
    with pytest.raises(error, match="POST /a: HTTP 503: away") as raised:
        send("POST", "/a", body={"b": 1})
    assert (raised.value.status, len(api.sent)) == (503, 1)
    api.answers = [(429, {"Retry-After": "0"}, b"slow down")]
    with pytest.raises(error, match="HTTP 429: slow down"):
        send("POST", "/a", multipart={"b": b"1"})
    assert len(api.sent) == 4 and len({body for *_, body in api.sent[1:]}) == 1, "each time with its whole body"


def test_redirect_to_another_host_gets_no_credential(
    api: Server, node: MadeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MADE_KEY", "s3cret")
    with serving() as other:
        api.answers = [(302, {"Location": "/v2/a"}, b""), (302, {"Location": f"{other.address}/b"}, b"")]
        with pytest.raises(node.module.ApiError, match=f"redirects to {other.address}/b"):
            node.module.run("a.get", {})
        assert [path for _, path, *_ in api.sent] == ["/v1/a", "/v2/a"] and other.sent == []
        assert api.sent[1][2]["Authorization"] == "Bearer s3cret"


def test_api_that_is_not_there_is_an_error(node: MadeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    monkeypatch.setenv("MADE_BASE_URL", f"http://127.0.0.1:{port}")
    pauses: list[float] = []
    monkeypatch.setattr(node.module.transport.time, "sleep", pauses.append)
    with pytest.raises(httpx2.ConnectError):
        node.module.run("a.get", {})
    assert len(pauses) == 2


def test_client_has_a_method_of_each_operation(api: Server, node: MadeNode) -> None:
    client = node.module.Client()
    taken = inspect.signature(client.a_get).parameters
    assert [(each.name, each.annotation) for each in taken.values()] == [
        ("from_", "str | None"),
        ("limit", "int | None"),
    ]
    assert client.a_get(limit=2, from_="x") == [1]
    assert api.sent[0][1] == "/v1/a?from=x&limit=2"
    with pytest.raises(node.module.InputError, match="limit has to be integer"):
        client.a_get(limit="2")


def test_names_of_a_document_stay_apart_in_the_client() -> None:
    schema = "{type: object, required: [class], properties: {class: {}, self: {type: string}, a-b: {}, a_b: {}}}"
    with made_node({"api.yaml": post(json_body(schema))}) as node:
        names = list(inspect.signature(node.module.Client().a_add).parameters)
        assert names[0] == "class_" and len(names) == len(set(names)) == 4 and "self" not in names
        sent: list[Any] = []

        def send(method: str, path: str, *, body: Any, **_: Any) -> None:
            sent.append(body)

        node.module.Client(send).a_add(**dict.fromkeys(names, "x"))
        assert sent == [{"class": "x", "self": "x", "a-b": "x", "a_b": "x"}]


def test_texts_of_a_source_stay_texts_in_client_and_page() -> None:
    hostile = '\'*/ \\"\\"\\" $name `b` | <script>alert(1)</script>'
    document = get("/a`<b>`", "{name: n, in: query, description: T, schema: {type: string, enum: ['|`<i>']}}")
    document = document.replace("operationId: get", f'operationId: get, summary: "{hostile}"').replace(
        "description: T", f'description: "{hostile}"'
    )
    with made_node({"api.yaml": document}) as node:
        ast.parse(node.files.text(f"{PROJECT}nodes/made/client.py"))
        page = node.files.text(f"{PROJECT}nodes/made/README.md")
        assert "<script" not in page and "$name" in page
        assert all(line.count("`") % 2 == 0 for line in page.splitlines() if "sends" in line)


def test_package_names_what_is_in_its_folder(node: MadeNode) -> None:
    told = tomllib.loads(node.files.text(f"{PROJECT}nodes/made/pyproject.toml"))
    assert told["project"]["name"] == "node-made" and told["project"]["dependencies"] == ["httpx2>=2.0"]
    names = told["tool"]["setuptools"]
    assert names["packages"] == ["nodes.made"] and names["package-dir"] == {"nodes.made": "."}
    folder = Path(inspect.getfile(node.module)).parent
    wanted = [told["project"]["readme"], *names["package-data"]["nodes.made"]]
    assert all((folder / name).is_file() for name in wanted)
