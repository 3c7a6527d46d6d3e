"""Interpretation of an HTTP response: text or binary, charset, file name, conversion of HTML. Pure."""

from __future__ import annotations

import codecs
import re
import zlib
from dataclasses import dataclass, field
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from fireswarm.errors import ToolFailed
from fireswarm.processes.child_pool import in_own_process

CONVERT_SECONDS = 10.0
CONVERT_MEMORY_BYTES = 1_500_000_000
"""Address space for the whole process: a table of a few kilobytes can expand to gigabytes."""

SNIFFED_BYTES = 2_048
MAX_NAME_CHARS = 200
HTML_SNIFF_CHARS = 200

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
TEXT_TYPES = frozenset({
    "application/json", "application/xml", "application/javascript", "application/ecmascript", "application/yaml",
    "application/x-yaml", "application/toml", "application/graphql", "application/sql", "application/x-sh",
    "application/x-www-form-urlencoded", "application/rtf", "message/rfc822", "image/svg+xml",
})  # fmt: skip
BINARY_KINDS = frozenset({"image", "audio", "video", "font", "model"})
UNSURE_TYPES = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/unknown"})
"""Types without information: the body decides."""

_NOT_CHARSETS = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "utf-7"})
"""Python codecs that no page uses; some take quadratic time."""

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?([\w.:-]{1,40})""", re.IGNORECASE)
_PARAMETER = re.compile(r""";\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^;]*)""")
_DATA_URI = re.compile(r"\(data:[^()\s]{40,}+\)")


def type_of(content_type: str) -> str:
    """Return the media type alone: ``text/html``."""
    return content_type.partition(";")[0].strip().lower()


def parameters_of(header: str) -> dict[str, str]:
    """Return the parameters of a header such as Content-Type, with names in lower case and without quotes."""
    parameters: dict[str, str] = {}
    for name, value in _PARAMETER.findall(";" + header.partition(";")[2]):
        quoted = value.startswith('"')
        parameters.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", value[1:-1]) if quoted else value.strip())
    return parameters


def is_binary(media_type: str, start: bytes) -> bool:
    """Return True if the content is binary, by its type, or by its first bytes if the type is unspecific."""
    if media_type in TEXT_TYPES or media_type.startswith("text/") or media_type.endswith(("+json", "+xml", "+yaml")):
        return False
    if media_type.partition("/")[0] in BINARY_KINDS:
        return True
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and media_type in UNSURE_TYPES:
        return False
    if b"\0" in start[:SNIFFED_BYTES]:
        return True
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start[:SNIFFED_BYTES])
    except UnicodeDecodeError:
        return True
    return False


def known_binary(media_type: str) -> bool:
    """Return True if the type alone shows that the content is binary, so that the body need not be read."""
    return media_type.partition("/")[0] in BINARY_KINDS and media_type not in TEXT_TYPES


def decode_body(body: bytes, content_type: str) -> str:
    """Decode the text by its byte order mark, or the header's charset, or the page's declaration, or as UTF-8."""
    for mark, charset in _MARKS:
        if body.startswith(mark):
            return body.decode(charset, "replace")
    named = [parameters_of(content_type).get("charset", "")]
    if named == [""] and (match := _META_CHARSET.search(body[:SNIFFED_BYTES])):
        named.append(match.group(1).decode("ascii", "replace"))
    for charset in named:
        try:
            if charset and codecs.lookup(charset).name not in _NOT_CHARSETS:
                return body.decode(charset, "replace")
        except (LookupError, ValueError):
            continue
    return body.decode("utf-8", "replace")


def filename(disposition: str, url: str) -> str | None:
    """Return the file's name from Content-Disposition (RFC 6266, ``filename*`` first), or from the URL's path."""
    parameters = parameters_of(disposition)
    found = ""
    extended = parameters.get("filename*", "")
    if extended.count("'") >= 2:
        charset, _, text = extended.split("'", 2)
        try:
            found = unquote_to_bytes(text).decode(charset or "utf-8")
        except (LookupError, UnicodeDecodeError):
            found = ""
    found = found or parameters.get("filename", "") or unquote(urlsplit(url).path.rpartition("/")[2])
    name = re.split(r"[/\\]", found)[-1]
    name = "".join(char for char in name if char.isprintable()).strip(" .")[:MAX_NAME_CHARS]
    return name or None


def is_html(media_type: str, text: str) -> bool:
    """Return True for an HTML page, even without a type."""
    if media_type in HTML_TYPES:
        return True
    return media_type in UNSURE_TYPES and text[:HTML_SNIFF_CHARS].lstrip().lower().startswith(
        ("<!doctype html", "<html")
    )


async def convert_page(page: str, *, markdown: bool, most: int) -> str:
    """Convert a page to Markdown or plain text, at most *most* characters. Raises ToolFailed at a resource limit."""
    try:
        return await in_own_process(
            _convert, page, markdown, most, seconds=CONVERT_SECONDS, memory_bytes=CONVERT_MEMORY_BYTES
        )
    except (TimeoutError, MemoryError) as error:
        raise ToolFailed(
            "converting the page took too long or too much memory: fetch it without as_markdown and as_text"
        ) from error


def _convert(page: str, markdown: bool, most: int) -> str:
    """Convert a page; runs in a child process with limits."""
    import html_to_markdown as library

    options = library.ConversionOptions(
        output_format="markdown" if markdown else "plain",
        extract_metadata=False,
        compact_tables=True,
        exclude_selectors=["svg", "iframe"],
    )
    text = library.convert(page.encode("utf-8", "replace").decode(), options).content or ""
    return _DATA_URI.sub("(data:)", text).strip()[:most]


@dataclass(slots=True)
class Unpacker:
    """Decodes Content-Encoding up to a requested size: a kilobyte can expand to a megabyte."""

    encoding: str
    _stream: zlib._Decompress | None = None  # pyright: ignore[reportPrivateUsage] - zlib names the type only there
    _started: bool = field(default=False)

    def __post_init__(self) -> None:
        """Raise ToolFailed for an encoding that was not requested."""
        self.encoding = self.encoding.strip().lower()
        if self.encoding in ("", "identity"):
            return
        if self.encoding not in ("gzip", "x-gzip", "deflate"):
            raise ToolFailed(f"the server used the content encoding {self.encoding!r}, which was not requested")
        self._stream = zlib.decompressobj(zlib.MAX_WBITS | 32)

    def decompress(self, data: bytes, most: int) -> bytes:
        """Decode *data*, up to *most* bytes."""
        if self._stream is None:
            return data[:most]
        try:
            inflated = self._stream.decompress(data, most)
        except zlib.error as error:
            if self._started or self.encoding != "deflate":
                raise ToolFailed(f"the content is not valid {self.encoding}: {error}") from error
            self._stream = zlib.decompressobj(-zlib.MAX_WBITS)  # some servers send it without a header
            inflated = self._stream.decompress(data, most)
        self._started = True
        while self._stream.eof and self._stream.unused_data and len(inflated) < most:
            rest, self._stream = self._stream.unused_data, zlib.decompressobj(zlib.MAX_WBITS | 32)
            inflated += self._stream.decompress(rest, most - len(inflated))
        return inflated
