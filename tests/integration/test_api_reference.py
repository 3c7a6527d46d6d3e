"""The page of the API's reference: who may read it, what it loads, and that its examples are requests that fit."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import AsyncGenerator, Iterator
from html import unescape
from typing import Any

import pytest

from fireswarm.api.application import make_application
from fireswarm.api.console.application import HEADERS as CONSOLE_HEADERS
from fireswarm.api.reference.page import make_curl
from tests.support.api import Api, open_api
from tests.support.swarm import open_test_swarm

pytestmark = pytest.mark.anyio

SECRET = "Research Assistant"
"""An example of the document, as if it were a secret."""


@pytest.fixture
async def api() -> AsyncGenerator[Api]:
    async with open_test_swarm(session="s1") as swarm, open_api(swarm) as opened:
        yield opened


def operations(api: Api) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """Yield path, method and entry of each operation, and the named schemas."""
    document = make_application(api.service).openapi()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation, document["components"]["schemas"]


async def test_page_shows_every_operation_and_schema_and_its_links_lead_somewhere(api: Api) -> None:
    answer = await api.call("GET", "/docs")
    assert answer.status_code == 200 and answer.headers["content-type"] == "text/html; charset=utf-8"
    anchors = re.findall(r' id="([^"]+)"', answer.text)
    assert len(anchors) == len({*anchors})
    for path, method, operation, schemas in operations(api):
        assert operation["operationId"] in anchors and f"<code>{path}</code>" in answer.text
        assert unescape(answer.text).count(make_curl(method, path, operation, schemas)) >= 1
        assert {f"schema-{name}" for name in schemas} <= {*anchors}
    links = {unescape(link) for link in re.findall(r'(?:href|src)="([^"]*)"', answer.text)}
    for link in links:
        if link.startswith("#"):
            assert link[1:] in anchors, link
        else:  # relative to the page, so it works below any path
            assert (await api.call("GET", f"/{link}")).status_code == 200, link
    assert {"docs/static/console.css", "openapi.json"} <= links


async def test_page_runs_no_script_and_has_the_headers_of_the_console(api: Api) -> None:
    for path in ("/docs", "/docs/static/console.css"):
        answer = await api.call("GET", path)
        assert {name: answer.headers[name] for name in CONSOLE_HEADERS} == CONSOLE_HEADERS
        assert answer.headers["cache-control"] == "private, no-cache"
    text = (await api.call("GET", "/docs")).text
    assert not re.search(r"<script|<style|\sstyle=|\son[a-z]+=|https?://(?!127\.0\.0\.1:8090)", text)


@pytest.mark.parametrize("path", ["/docs", "/docs/static/console.css", "/docs/static/icon.svg"])
async def test_page_and_its_files_need_the_token(api: Api, path: str) -> None:
    assert await api.problem("GET", path, authorization="Bearer wrong") == (401, "unauthorized")
    assert await api.problem("GET", f"{path}?x=1") == (422, "invalid_request")


async def test_page_serves_no_other_file(api: Api) -> None:
    for name in ("console.js", "base.html", "..%2Fpage.py", ""):
        assert (await api.problem("GET", f"/docs/static/{name}"))[0] == 404
    assert await api.problem("POST", "/docs") == (405, "method_not_allowed")


async def test_page_is_redacted() -> None:
    async with open_test_swarm(session="s1") as swarm, open_api(swarm, secrets=(SECRET,)) as api:
        text = (await api.call("GET", "/docs")).text
        assert SECRET not in text and "[redacted]" in text


async def test_examples_are_requests_that_fit_their_operation(api: Api) -> None:
    for path, method, operation, schemas in operations(api):
        if path == "/v1/events":
            continue
        words = shlex.split(make_curl(method, path, operation, schemas))
        given = dict(zip(words, words[1:], strict=False))
        address = next(word for word in words if word.startswith("$API/")).removeprefix("$API")
        assert given.get("-X", "GET") == method.upper() and "Authorization: Bearer $TOKEN" in words
        body = json.loads(given["-d"]) if "-d" in given else None
        answer = await api.call(given.get("-X", "GET"), address, body)
        fits = answer.is_success or answer.json()["code"] in ("not_found",)
        assert fits, (address, answer.text)
        assert answer.is_success or "{" in path, (address, answer.text)
