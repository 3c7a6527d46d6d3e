"""web_fetch: fetch a page or file of the web as is, as Markdown, or as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import anyio
from pydantic import BaseModel, ConfigDict, Field

from fireswarm.capabilities.capability import Capability, CapabilityContext, tool
from fireswarm.capabilities.web.content import (
    SNIFFED_BYTES,
    Unpacker,
    convert_page,
    decode_body,
    filename,
    is_binary,
    is_html,
    known_binary,
    type_of,
)
from fireswarm.contracts.skills.tool import Tool
from fireswarm.errors import InvalidInput, ToolFailed
from fireswarm.settings.packaged import __version__

if TYPE_CHECKING:  # the client takes longer to import than everything else here
    import httpx2

TIMED_OUT = "[..more content timed out...]"
CUT = "[..more content omitted...]"
BINARY = "binary content is not supported: only its metadata is available"
USER_AGENT = f"fireswarm/{__version__}"


class WebFetchConfig(BaseModel):
    """Limits of a fetch, and private hosts that may be reached."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    first_byte_seconds: float = Field(
        default=1.0, gt=0, le=300, description="seconds to wait for the start of a response, per redirect"
    )
    body_seconds: float = Field(
        default=30.0, gt=0, le=3_600, description="seconds to read the body; after that the partial body is returned"
    )
    max_bytes: int = Field(
        default=5_000_000, ge=1_000, le=100_000_000, description="maximum bytes of the body after decompression"
    )
    max_redirects: int = Field(default=10, ge=0, le=50)
    allow_hosts: tuple[str, ...] = Field(default=(), description="private hosts that may be reached: name or name:port")


@dataclass(frozen=True, slots=True)
class _PageBody:
    content: bytes = b""
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class WebFetch:
    """Fetches for one agent."""

    config: WebFetchConfig

    async def web_fetch(
        self,
        url: str,
        method: Literal["GET", "HEAD"] = "GET",
        as_markdown: bool = False,
        as_text: bool = False,
    ) -> dict[str, Any]:
        """Fetches a URL of the web. as_markdown or as_text converts an HTML page into an easier form."""
        import httpx2

        from fireswarm.capabilities.web.http_client import Guard, GuardedTransport

        transport = GuardedTransport(Guard.of(self.config.allow_hosts))
        headers = {"User-Agent": USER_AGENT, "Accept": "text/html, text/*, */*;q=0.8", "Accept-Encoding": "gzip"}
        try:
            async with httpx2.AsyncClient(transport=transport, trust_env=False, headers=headers, timeout=None) as http:
                response = await self._answer(http, http.build_request(method, _check_url(url)))
                try:
                    return await self._page_result(
                        url, response, "markdown" if as_markdown else "text" if as_text else "raw"
                    )
                finally:
                    with anyio.CancelScope(shield=True):
                        await response.aclose()
        except httpx2.InvalidURL as error:
            raise InvalidInput(f"invalid URL {url!r}: {error}") from error
        except httpx2.HTTPError as error:
            raise ToolFailed(f"cannot fetch {url}: {error or type(error).__name__}") from error

    async def _answer(self, http: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
        """Return the first response that is not a redirect; its body is not read yet."""
        seconds = self.config.first_byte_seconds
        for _ in range(self.config.max_redirects + 1):
            try:
                with anyio.fail_after(seconds):
                    response = await http.send(request, stream=True, follow_redirects=False)
            except TimeoutError as error:
                unit = "second" if seconds == 1 else "seconds"
                raise ToolFailed(f"server did not respond within {seconds:g} {unit}") from error
            if response.next_request is None:
                return response
            before, request = request, response.next_request
            await response.aclose()
            if request.url.host != before.url.host:  # rules name hosts, and the gate has judged this one only
                raise ToolFailed(f"{before.url} redirects to another host: fetch {request.url} if you need it")
        raise ToolFailed(f"more than {self.config.max_redirects} redirects; the last one to {request.url}")

    async def _page_result(self, url: str, response: httpx2.Response, form: str) -> dict[str, Any]:
        """Return the result for a response: metadata and, for text, the converted content."""
        content_type = response.headers.get("content-type", "")
        media_type = type_of(content_type)
        announced = response.headers.get("content-length", "")
        result: dict[str, Any] = {
            "url": url,
            "status_code": response.status_code,
            "content_type": content_type,
            "size": int(announced) if announced.isdecimal() else 0,
            "last_modified": response.headers.get("last-modified"),
            "filename": filename(response.headers.get("content-disposition", ""), str(response.url)),
        }
        if str(response.url) != url:
            result["final_url"] = str(response.url)
        result = {name: value for name, value in result.items() if value is not None}
        if response.request.method == "HEAD":
            return result
        if known_binary(media_type):
            return result | {"format": "raw", "truncated": False, "error": BINARY}
        body = await self._read(response)
        result |= {"size": len(body.content), "format": "raw", "truncated": bool(body.suffix)}
        if is_binary(media_type, body.content[:SNIFFED_BYTES]):
            return result | {"error": BINARY}
        text, suffix = decode_body(body.content, content_type), body.suffix
        if form != "raw" and is_html(media_type, text):
            text = await convert_page(text, markdown=form == "markdown", most=self.config.max_bytes)
            suffix = CUT if len(text) == self.config.max_bytes else suffix
            result |= {"format": form, "truncated": bool(suffix)}
        return result | {"content": f"{text}\n\n{suffix}" if suffix else text}

    async def _read(self, response: httpx2.Response) -> _PageBody:
        """Read the body up to the limits of time and size."""
        unpacker = Unpacker(response.headers.get("content-encoding", ""))
        content = bytearray()
        most = self.config.max_bytes
        with anyio.move_on_after(self.config.body_seconds):
            async for data in response.aiter_raw():
                content += unpacker.decompress(data, most + 1 - len(content))
                if len(content) > most:
                    return _PageBody(bytes(content[:most]), CUT)
            return _PageBody(bytes(content))
        return _PageBody(bytes(content), TIMED_OUT)


def _check_url(url: str) -> str:
    """Raise InvalidInput if *url* is not a web address."""
    text = url.strip()
    if not text.lower().startswith(("http://", "https://")):
        raise InvalidInput(f"{url!r} must start with http:// or https://")
    authority = text.partition("//")[2].partition("/")[0]
    if not authority:
        raise InvalidInput(f"{url!r} has no host")
    if "@" in authority:
        raise InvalidInput("the URL contains a user or password: remove them, since URLs are logged")
    return text


def _tools(config: WebFetchConfig, context: CapabilityContext) -> Sequence[Tool]:
    return [replace(tool(WebFetch(config).web_fetch), spec_name="WebFetch")]


WEB_FETCH = Capability(
    "web_fetch",
    "Web Fetch",
    "Fetches content from URLs, and converts HTML to Markdown or plain text.",
    tools=_tools,
    config=WebFetchConfig,
    operator_keys=("allow_hosts",),
    icon="globe",
    category="Network",
)
