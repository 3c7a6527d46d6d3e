"""web_fetch against a server on loopback, which the operator allows by name."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fireswarm.capabilities import CapabilityContext, registry
from fireswarm.capabilities.web.content import Unpacker, decode_body, filename, is_binary
from fireswarm.clocks import VirtualClock
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.errors import ConfigError, FireswarmError, HostRefused, InvalidInput, ToolFailed
from fireswarm.mind import Tool
from tests.support.http import HttpServer, Request, Response

pytestmark = pytest.mark.anyio

PAGE = b"""<!doctype html><html><head><title>T</title><style>p{}</style><script>evil()</script></head>
<body><h1>Apples</h1><p>They are <b>red</b>, see <a href="/more">more</a>.</p>
<ul><li>one</li><li>two</li></ul><pre><code>x = 1</code></pre></body></html>"""
HTML = {"Content-Type": "text/html; charset=utf-8"}


def web_fetch(**config: Any) -> Tool:
    use = CapabilityUse(id="web_fetch", config={"allow_hosts": ["127.0.0.1"], "first_byte_seconds": 20, **config})
    return registry().resolve([use], CapabilityContext("s", Path(), VirtualClock())).tools["web_fetch"]


async def fetch(answer: Callable[[Request], Response], path: str = "/", given: Any = None, **config: Any) -> Any:
    async with HttpServer(answer).serving() as address:
        return await web_fetch(**config).run({"url": address + path, **(given or {})})


async def test_page_is_returned_raw_as_markdown_or_as_text() -> None:
    raw = await fetch(lambda request: Response(200, PAGE, HTML))
    assert (raw["format"], raw["status_code"], raw["size"]) == ("raw", 200, len(PAGE))
    assert raw["content"] == PAGE.decode() and raw["truncated"] is False
    markdown = await fetch(lambda request: Response(200, PAGE, HTML), given={"as_markdown": True, "as_text": True})
    assert markdown["format"] == "markdown"
    assert "# Apples" in markdown["content"] and "**red**" in markdown["content"]
    assert "[more](/more)" in markdown["content"] and "- one\n- two" in markdown["content"]
    assert "evil" not in markdown["content"] and "p{}" not in markdown["content"]
    text = await fetch(lambda request: Response(200, PAGE, HTML), given={"as_text": True})
    assert text["format"] == "text" and "They are red, see more." in text["content"] and "#" not in text["content"]


async def test_json_response_is_not_converted_to_markdown() -> None:
    found = await fetch(lambda request: Response(200, b'{"a": "<b>"}'), given={"as_markdown": True})
    assert (found["format"], found["content"], found["content_type"]) == ("raw", '{"a": "<b>"}', "application/json")


async def test_binary_content_is_described_but_not_returned() -> None:
    headers = {
        "Content-Type": "image/png",
        "Content-Disposition": "attachment; filename=\"plain.png\"; filename*=UTF-8''%E2%82%AC%20rates.png",
        "Last-Modified": "Wed, 21 Oct 2026 07:28:00 GMT",
    }
    found = await fetch(lambda request: Response(200, b"\x89PNG\r\n\x1a\n\0\0", headers))
    assert found["filename"] == "€ rates.png" and found["last_modified"] == headers["Last-Modified"]
    assert found["size"] == 10 and "not supported" in found["error"] and "content" not in found
    zipped = await fetch(lambda request: Response(200, b"PK\3\4\0\0", {"Content-Type": "application/octet-stream"}))
    assert "not supported" in zipped["error"] and zipped["size"] == 6
    pdf = await fetch(lambda request: Response(200, b"%PDF-1.7\n\xe2\xe3\0", {"Content-Type": "application/pdf"}))
    assert "not supported" in pdf["error"]


async def test_text_with_an_unspecific_type_is_read() -> None:
    found = await fetch(lambda request: Response(200, b"hello", {"Content-Type": "application/octet-stream"}), "/a.log")
    assert (found["content"], found["filename"]) == ("hello", "a.log")


async def test_head_returns_metadata_without_content() -> None:
    methods: list[str] = []

    def answer(request: Request) -> Response:
        methods.append(request.method)
        return Response(200, b"x" * 321, {"Content-Type": "text/plain"})

    found = await fetch(answer, "/docs/notes.txt", {"method": "HEAD"})
    assert methods == ["HEAD"] and "content" not in found
    assert (found["size"], found["filename"], found["content_type"]) == (321, "notes.txt", "text/plain")


async def test_error_status_is_returned_not_raised() -> None:
    found = await fetch(lambda request: Response(404, b"no", {"Content-Type": "text/plain"}))
    assert (found["status_code"], found["content"]) == (404, "no")


async def test_slow_first_byte_times_out() -> None:
    with pytest.raises(ToolFailed, match=r"^server did not respond within 0.2 seconds$"):
        await fetch(lambda request: Response(200, b"", hangs="before"), first_byte_seconds=0.2)


def test_default_limits_match_the_specification() -> None:
    from fireswarm.capabilities.web.fetch import TIMED_OUT, WebFetchConfig

    config = WebFetchConfig()
    assert (config.first_byte_seconds, config.body_seconds) == (1.0, 30.0)
    assert TIMED_OUT == "[..more content timed out...]"


async def test_slow_body_is_returned_partially() -> None:
    found = await fetch(
        lambda request: Response(200, b"the beginning", {"Content-Type": "text/plain"}, "after"), body_seconds=0.3
    )
    assert found["content"] == "the beginning\n\n[..more content timed out...]"
    assert found["truncated"] is True and found["size"] == 13


async def test_body_is_truncated_at_max_bytes_after_decompression() -> None:
    packed = gzip.compress(b"a" * 30_000_000)
    assert len(packed) < 40_000
    headers = {"Content-Type": "text/plain", "Content-Encoding": "gzip"}
    found = await fetch(lambda request: Response(200, packed, headers), max_bytes=2_000)
    assert found["content"] == "a" * 2_000 + "\n\n[..more content omitted...]"
    assert (found["size"], found["truncated"]) == (2_000, True)


async def test_compressed_content_is_decompressed() -> None:
    plain = b"apples " * 1_000
    for packed, encoding in (
        (gzip.compress(plain[:500]) + gzip.compress(plain[500:]), "gzip"),
        (zlib.compress(plain), "deflate"),
        (zlib.compress(plain)[2:-4], "deflate"),
    ):
        headers = {"Content-Type": "text/plain", "Content-Encoding": encoding}
        found = await fetch(lambda request, packed=packed, headers=headers: Response(200, packed, headers))
        assert found["content"].encode() == plain
    with pytest.raises(ToolFailed, match="'br'"):
        Unpacker("br")
    with pytest.raises(ToolFailed, match="is not valid gzip"):
        Unpacker("gzip").decompress(b"plain words", 100)


async def test_redirects_are_followed_up_to_the_limit() -> None:
    def answer(request: Request) -> Response:
        number = int(request.path.strip("/") or 0)
        if number < 3:
            return Response(302, b"", {"Location": f"/{number + 1}"})
        return Response(200, b"there", {"Content-Type": "text/plain"})

    found = await fetch(answer)
    assert found["content"] == "there" and found["final_url"].endswith("/3")
    with pytest.raises(ToolFailed, match="more than 2 redirects"):
        await fetch(answer, max_redirects=2)


async def test_redirect_to_another_host_is_a_call_of_its_own() -> None:
    asked: list[str] = []

    def answer(request: Request) -> Response:
        asked.append(request.headers["host"])
        port = request.headers["host"].rpartition(":")[2]
        return Response(302, b"", {"Location": f"http://localhost:{port}/there"})

    async with HttpServer(answer).serving() as address:
        fetching = web_fetch(allow_hosts=["127.0.0.1", "localhost"])
        with pytest.raises(ToolFailed, match="redirects to another host: fetch http://localhost"):
            await fetching.run({"url": address})
    assert len(asked) == 1


@pytest.mark.parametrize(
    "target",
    ["http://localhost:{port}/", "http://[::ffff:7f00:1]:{port}/", "http://2130706433:{port}/", "file:///etc/"],
)
async def test_redirect_to_a_private_host_or_a_file_is_blocked(target: str) -> None:
    def answer(request: Request) -> Response:
        port = request.headers["host"].rpartition(":")[2]
        return Response(301, b"", {"Location": target.format(port=port)})

    with pytest.raises(FireswarmError) as raised:
        await fetch(answer)
    assert isinstance(raised.value, (HostRefused, ToolFailed))


async def test_private_host_is_blocked_unless_allowed() -> None:
    async with HttpServer(lambda request: Response(200, b"secret")).serving() as address:
        with pytest.raises(HostRefused, match="127.0.0.1 is a loopback address"):
            await web_fetch(allow_hosts=[]).run({"url": address})


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("ftp://example.com/", "must start with http"),
        ("example.com", "must start with http"),
        ("http://user:secret@example.com/", "user or password"),
        ("http://[::1/", "invalid URL"),
        ("http://", "has no host"),
    ],
)
async def test_url_that_is_not_http_is_rejected(url: str, told: str) -> None:
    with pytest.raises((InvalidInput, ToolFailed), match=told) as raised:
        await web_fetch().run({"url": url})
    assert "secret" not in str(raised.value)


async def test_unreachable_server_raises_tool_failed() -> None:
    with pytest.raises(ToolFailed, match="cannot fetch"):
        await web_fetch().run({"url": "http://127.0.0.1:9/"})


async def test_conversion_that_expands_a_page_stays_within_the_limit() -> None:
    wide = b"<table><tr>" + b"<td>x" * 2_000 + b"<tr><td>y" * 2_000
    found = await fetch(lambda request: Response(200, wide, HTML), given={"as_markdown": True}, max_bytes=100_000)
    assert len(found["content"]) < 101_000 and found["truncated"] is True
    assert found["content"].endswith("[..more content omitted...]")


def test_invalid_settings_are_rejected() -> None:
    with pytest.raises(ConfigError, match="first_byte_seconds"):
        web_fetch(first_byte_seconds=0)


@pytest.mark.parametrize(
    ("disposition", "url", "name"),
    [
        ("", "https://a.example/x/report.pdf?y=1", "report.pdf"),
        ("", "https://a.example/%C3%A9t%C3%A9.txt", "été.txt"),
        ("", "https://a.example/", None),
        ("inline", "https://a.example/x", "x"),
        ('attachment; filename="a \\"b\\".txt"', "https://a.example/", 'a "b".txt'),
        ("attachment; filename=plain.txt", "https://a.example/", "plain.txt"),
        ("attachment; filename*=iso-8859-1'en'%A3.txt; filename=x", "https://a.example/", "£.txt"),
        ("attachment; filename*=nonsense; filename=ok.txt", "https://a.example/", "ok.txt"),
        ("attachment; filename*=no-such-charset''%A3; filename=ok.txt", "https://a.example/", "ok.txt"),
        ('attachment; filename="../../etc/passwd"', "https://a.example/", "passwd"),
        ('attachment; filename="C:\\\\temp\\\\a.txt"', "https://a.example/", "a.txt"),
    ],
)
def test_file_name_comes_from_the_header_or_the_url(disposition: str, url: str, name: str | None) -> None:
    assert filename(disposition, url) == name


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("é".encode("latin-1"), "text/plain; charset=ISO-8859-1", "é"),
        ("é".encode("utf-16"), "text/plain", "é"),
        (b"\xef\xbb\xbf\xc3\xa9", "text/plain; charset=latin-1", "é"),
        (b'<meta charset="windows-1251">\xc0', "text/html", '<meta charset="windows-1251">\u0410'),
        (b"\xc3\xa9", 'text/plain; charset="no-such"', "é"),
        (b"\xc3\xa9", "text/plain; charset=punycode", "é"),
        (b"\xff", "text/plain", "\ufffd"),
    ],
)
def test_charset_comes_from_bom_header_page_or_defaults_to_utf_8(body: bytes, content_type: str, text: str) -> None:
    assert decode_body(body, content_type) == text


def test_text_is_detected_by_type_and_first_bytes() -> None:
    assert not is_binary("application/ld+json", b"\0") and not is_binary("text/x-unheard-of", b"\0")
    assert not is_binary("image/svg+xml", b"<svg/>") and is_binary("image/png", b"text")
    assert not is_binary("application/x-unheard-of", "words é".encode()) and is_binary("", b"\xff\xfd\0x")
    assert not is_binary("", ("é" * 1_024).encode()[:2_047])
