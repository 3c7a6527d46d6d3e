"""Files of a task in the console: shown as what they are, never as a page of their own."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader, PdfWriter
from pypdf.generic import NameObject, StreamObject

from fireswarm.api.console.pages.work.files import MAX_SHOWN_CHARS
from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.swarm.task import Task
from tests.support.console import CONSOLE_SECRET, Browser, open_browser
from tests.support.swarm import done, open_test_swarm

pytestmark = pytest.mark.anyio

PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000000020001e221bc330000"
    "000049454e44ae426082"
)


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    async with open_test_swarm(session="s1") as swarm, open_browser(swarm) as opened:
        yield opened


async def with_file(browser: Browser, name: str, content: Any, mime: str | None = None) -> Task:
    swarm = browser.swarm
    task = await swarm.submit(f"makes {name}", role="scout")
    held = await swarm.claim_one()
    if isinstance(content, bytes):
        uri = await swarm.client.parts.blobs.put(f"{task.session_hash}/{task.task_id}/{name}", content)
        artifact = Artifact(type="file", name=name, uri=uri, mime=mime)
    else:
        artifact = Artifact(type="file", name=name, value=content)
    await swarm.settle(held, done("short", artifacts=(artifact,)))
    return task


SHOWN = {
    "a table": ("prices.csv", b"\xef\xbb\xbfname;price\nb\xc3\xbccher;3,5\n", '>price</a></th>'),
    "tabs": ("prices.csv", b"name\tprice\nb,c\t3,5\n", '>price</a></th>'),
    "one column": ("names.csv", b"name\nx\n", '>name</a></th>'),
    "lines that the standard library searches for seconds": ("odd.csv", b'\n"' * 5_000, "<table"),
    "long Markdown": ("long.md", b"**a** " * 20_000, "<pre>**a** **a**"),
    "a wide table": ("wide.md", b"|" * 70 + b"\n" + b"|-" * 69 + b"|\n", "<pre>||||"),
    "a cell": ("prices.csv", b"name,price\n<b>x</b>,1\n", "<td>&lt;b&gt;x&lt;/b&gt;</td>"),
    "Markdown": ("notes.md", b"# Title\n\n<script>alert(1)</script> **bold**\n", "<strong>bold</strong>"),
    "a diff": ("work.diff", b"--- a\n+++ b\n@@ -1 +1 @@\n-<i>\n+new\n", '<span class="removed">-&lt;i&gt;</span>'),
    "fields": ("data.json", b'{"first": {"x": "<p>"}, "second": [1]}', "<summary>first</summary>"),
    "broken JSON": ("data.json", b'{"first": ', "{&#34;first&#34;: "),
    "a page": ("page.html", b"<script>alert(1)</script>", "&lt;script&gt;alert(1)"),
    "a drawing": ("x.svg", b"<svg onload=alert(1)></svg>", "&lt;svg onload=alert(1)&gt;"),
    "a picture": ("x.png", PICTURE, '<img src="/ui/tasks/'),
    "bytes": ("x.bin", b"\x00\x01\x02", "neither text nor a picture"),
    "other letters": ("x.txt", b"\xff\xfe\xfa", "neither text nor a picture"),
    "nothing": ("x.txt", b"", "0 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("kind", SHOWN)
async def test_file_is_shown_as_what_it_is(kind: str, browser: Browser) -> None:
    name, content, expected = SHOWN[kind]
    task = await with_file(browser, name, content)
    page = await browser.page(f"/tasks/{task.task_id}/files/0/shown")
    assert expected in page
    for bad in ("<script>alert", "<svg", "<b>x", "<i>", '<p>"', "onload=alert(1)>"):
        assert bad not in page
    saved = await browser.client.get(f"/ui/tasks/{task.task_id}/files/0")
    assert saved.content == content and saved.headers["content-disposition"].startswith("attachment")


async def test_value_without_a_file_is_shown_with_its_fields(browser: Browser) -> None:
    task = await with_file(browser, "found", {"count": 3, "names": ["a"], "password": "hunter2-hunter2"})
    page = await browser.page(f"/tasks/{task.task_id}/files/0/shown")
    assert "<summary>count</summary>" in page and "hunter2" not in page


async def test_only_the_beginning_of_a_large_file_is_shown(browser: Browser) -> None:
    rows = "".join(f"{n},{'x' * 50}\n" for n in range(5_000))
    for name, content in (("long.csv", rows), ("long.txt", rows), ("long.json", json.dumps(rows.split()))):
        task = await with_file(browser, name, content.encode())
        page = await browser.page(f"/tasks/{task.task_id}/files/0/shown")
        assert "Only the first part is shown" in page and len(page) < 400_000, name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.txt", f"key {CONSOLE_SECRET}\n"),
        ("x.csv", f"name,password\nada,{CONSOLE_SECRET}\n"),
        ("y.csv", "name,password\nada,correct-horse-7,more\n"),
        ("x.json", '{"users": [{"password": "correct-horse-7"}]}'),
        ("y.json", '{"api_key": "correct-horse-7"}'),
        ("x.md", f"the key is {CONSOLE_SECRET}"),
        ("x.diff", f"+key {CONSOLE_SECRET}\n"),
    ],
)
async def test_secret_in_a_file_is_not_shown(name: str, text: str, browser: Browser) -> None:
    task = await with_file(browser, name, text.encode())
    page = await browser.page(f"/tasks/{task.task_id}/files/0/shown")
    assert "redacted" in page and CONSOLE_SECRET not in page and "correct-horse" not in page


async def test_file_that_is_not_there_is_a_page(browser: Browser) -> None:
    task = await with_file(browser, "x.txt", b"x")
    for number in ("1", "-1", "x", "9" * 30):
        assert "has no file" in await browser.page(f"/tasks/{task.task_id}/files/{number}/shown", 404)


async def test_a_file_is_sent_piece_by_piece(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    task = await with_file(browser, "big.bin", b"x" * 3_000_000)

    async def read_whole(*_: object, **__: object) -> bytes:
        raise AssertionError("the whole file was read into memory")

    monkeypatch.setattr(type(browser.swarm.client.parts.blobs), "get", read_whole)
    saved = await browser.client.get(f"/ui/tasks/{task.task_id}/files/0")
    assert saved.content == b"x" * 3_000_000 and saved.headers["content-type"] == "application/octet-stream"


REPORT = Path(__file__).parents[2] / "benchmarks/agent_tasks/tasks/summarise-pdf/project/water-report-2025.pdf"


def with_content(writer: PdfWriter, packed: bytes) -> None:
    """Add a page whose content unpacks from these bytes."""
    stream = StreamObject()
    stream._data = packed  # pyright: ignore[reportPrivateUsage]
    stream[NameObject("/Filter")] = NameObject("/FlateDecode")
    page = writer.add_blank_page(200, 200)
    page[NameObject("/Contents")] = writer._add_object(stream)  # pyright: ignore[reportPrivateUsage]


def written(change: Callable[[PdfWriter], object], report: bool = True) -> bytes:
    writer, file = PdfWriter(clone_from=REPORT) if report else PdfWriter(), io.BytesIO()
    change(writer)
    writer.write(file)
    return file.getvalue()


PDFS: dict[str, tuple[Callable[[], bytes], str]] = {
    "a report": (REPORT.read_bytes, "They sold 1.31 million cubic metres"),
    "a large page after others": (
        lambda: written(lambda writer: with_content(writer, zlib.compress(b"\0" * 200_000_000))),
        "They sold 1.31 million cubic metres",
    ),
    "a scan": (lambda: written(lambda writer: writer.add_blank_page(200, 200), report=False), "its pages hold no text"),
    "a password": (lambda: written(lambda writer: writer.encrypt("x")), "it is encrypted with a password"),
    "half of it": (lambda: REPORT.read_bytes()[:900], "It is a PDF, and its"),
    "nothing but its beginning": (lambda: b"%PDF-1.7", "its text cannot be read"),
}


@pytest.mark.parametrize("kind", PDFS)
async def test_text_of_a_pdf_is_shown(kind: str, browser: Browser) -> None:
    make, expected = PDFS[kind]
    content = make()
    task = await with_file(browser, "report.pdf", content)
    page = await browser.page(f"/tasks/{task.task_id}/files/0/shown")
    assert expected in page
    saved = await browser.client.get(f"/ui/tasks/{task.task_id}/files/0")
    assert saved.content == content and saved.headers["content-disposition"].startswith("attachment")


async def test_pages_of_a_pdf_are_escaped_and_hold_no_secrets(browser: Browser) -> None:
    words = f"<script>alert(1)</script> {CONSOLE_SECRET}".encode()
    content = zlib.compress(b"BT /F1 9 Tf 10 100 Td (" + words.replace(b"(", b"\\(").replace(b")", b"\\)") + b") Tj ET")

    def change(writer: PdfWriter) -> None:
        with_content(writer, content)
        writer.pages[-1][NameObject("/Resources")] = writer.pages[0]["/Resources"]

    pdf = written(change)
    assert CONSOLE_SECRET in PdfReader(io.BytesIO(pdf)).pages[-1].extract_text()
    task = await with_file(browser, "report.pdf", pdf)
    page = await browser.page(f"/tasks/{task.task_id}/files/0/shown")
    assert "5 pages, as text" in page and "<h2>Page 5</h2>" in page and "&lt;script&gt;alert(1)" in page
    assert CONSOLE_SECRET not in page


async def test_pdf_that_takes_too_long_is_given_up(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fireswarm.api.console.pages.work.pdf.CPU_SECONDS", 0.001)
    task = await with_file(browser, "report.pdf", REPORT.read_bytes())
    assert "took too long" in await browser.page(f"/tasks/{task.task_id}/files/0/shown")


async def test_table_is_sorted_on_a_narrow_screen_too(browser: Browser) -> None:
    task = await with_file(browser, "prices.csv", b"name,price\na,10\nb,9\n")
    page = await browser.page(f"/tasks/{task.task_id}/files/0/shown?sort=1")
    assert '<p class="narrow">Sort by <a href="?sort=0">name</a>, <a href="?sort=-1">price</a></p>' in page
    assert '<th scope="col" aria-sort="ascending"><a href="?sort=-1"' in page


@pytest.mark.parametrize("name", ["long.txt", "long.pdf"])
async def test_cut_of_a_long_file_reveals_no_part_of_a_secret(name: str, browser: Browser) -> None:
    text = "x" * (MAX_SHOWN_CHARS - 20) + CONSOLE_SECRET + " end"
    content = text.encode()
    if name == "long.pdf":
        stream = zlib.compress(b"BT /F1 9 Tf 10 100 Td (" + content + b") Tj ET")

        def change(writer: PdfWriter) -> None:
            with_content(writer, stream)
            writer.pages[0][NameObject("/Contents")] = writer.pages[-1]["/Contents"]

        content = written(change)
    task = await with_file(browser, name, content)
    page = await browser.page(f"/tasks/{task.task_id}/files/0/shown")
    assert "xxxxxxxx" in page and CONSOLE_SECRET[:6] not in page
    assert "Only the first part is shown" in page
