"""Results of server tools as a model gets them: text or JSON, and images and PDFs that providers accept."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types

from fireswarm.capabilities.workspace.images import MAX_PDF_BYTES, check_media, kind_of_content
from fireswarm.contracts.skills.artifact import MediaBlock
from fireswarm.contracts.skills.tool import ToolAnswer
from fireswarm.errors import InvalidInput, ToolFailed

MAX_RESULT_BYTES = MAX_PDF_BYTES
"""Maximum size of all images and PDFs of one result together; the limit is the same as for an image of `read_file`."""


def value_of_result(result: types.CallToolResult, tool: str) -> Any:
    """Return a result for the model: the structured content or the text, in a ToolAnswer if there are images or PDFs.

    Raises ToolFailed if the server marks the call as failed.
    """
    gathered = _Parts()
    for block in result.content:
        gathered.take(block)
    text = "\n".join(gathered.texts)
    if result.is_error:
        raise ToolFailed(text or f"{tool} failed without an error message")
    value: Any = text if result.structured_content is None else result.structured_content
    if not gathered.media:
        return value
    return ToolAnswer(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), tuple(gathered.media))


@dataclass(slots=True)
class _Parts:
    """The texts of a result, and the images and PDFs that are shown."""

    texts: list[str] = field(default_factory=list[str])
    media: list[MediaBlock] = field(default_factory=list[MediaBlock])
    free_bytes: int = MAX_RESULT_BYTES

    def take(self, block: types.ContentBlock) -> None:
        """Add one block of the result; a block that cannot be shown is described."""
        match block:
            case types.TextContent():
                self.texts.append(block.text)
            case types.ImageContent():
                self._show("image", block.mime_type, block.data)
            case types.AudioContent():
                self.texts.append(_describe("audio", block.mime_type, block.data))
            case types.ResourceLink():
                self.texts.append(f"[{block.name}: {block.uri}]")
            case types.EmbeddedResource(resource=resource):
                if isinstance(resource, types.TextResourceContents):
                    self.texts.append(resource.text)
                else:
                    self._show(str(resource.uri), resource.mime_type or "", resource.blob)

    def _show(self, name: str, media_type: str, data: str) -> None:
        """Add an image or a PDF, or the reason why it is not shown."""
        try:
            content = base64.b64decode(data)
        except (binascii.Error, ValueError):
            content = b""
        kind = kind_of_content(content)
        if not kind:
            self.texts.append(_describe(name, media_type, data))
            return
        try:
            check_media(name, kind, content)
        except InvalidInput as error:
            self.texts.append(_describe(name, media_type, data, f": {error}"))
            return
        if len(content) > self.free_bytes:
            shown = f": the images and PDFs of one result are limited to {MAX_RESULT_BYTES:,} bytes"
            self.texts.append(_describe(name, media_type, data, shown))
            return
        self.free_bytes -= len(content)
        self.media.append(MediaBlock(media_type=kind, data=base64.b64encode(content).decode()))
        self.texts.append(f"[{name} {kind}, {len(content):,} bytes]")


def _describe(name: str, media_type: str, data: str, reason: str = "") -> str:
    return f"[{' '.join(filter(None, (name, media_type)))}, {len(data):,} characters of base64{reason}]"
