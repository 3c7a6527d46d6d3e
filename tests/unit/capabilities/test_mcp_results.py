"""Images and PDFs in the results of server tools are shown; everything else stays text."""

from __future__ import annotations

import base64
import json

import mcp_types as types
import pytest

from fireswarm.capabilities.mcp.results import MAX_RESULT_BYTES, value_of_result
from fireswarm.contracts.skills.tool import ToolAnswer
from fireswarm.errors import ToolFailed
from tests.support.mcp_odd_server import PDF, PIXEL, blob, image, opened


def shown(*content: types.ContentBlock) -> tuple[str, list[tuple[str, bytes]]]:
    """Return the text and the media of a result."""
    value = value_of_result(types.CallToolResult(content=list(content)), "x")
    if isinstance(value, str):
        return value, []
    assert isinstance(value, ToolAnswer)
    return value.text, [(each.media_type, base64.b64decode(each.data)) for each in value.media]


def test_images_and_pdfs_are_shown_by_their_content() -> None:
    kinds = [("image/png", PIXEL), ("application/pdf", PDF), ("image/png", PIXEL)]
    text, media = shown(image(PIXEL, "image/jpg"), blob("file:///a.pdf", PDF), blob("file:///a", PIXEL))
    assert media == kinds
    assert text.splitlines()[:2] == ["[image image/png, 70 bytes]", "[file:///a.pdf application/pdf, 15 bytes]"]


@pytest.mark.parametrize(
    ("block", "told"),
    [
        (image(b"no image"), "[image image/png, 13 characters of base64]"),
        (image(b"\x89PNG, damaged"), "image is damaged"),
        (image(PIXEL[:16] + (9_000).to_bytes(4, "big") * 2), "9,000 x 9,000 pixels"),
        (blob("file:///a.pdf", PDF + bytes(MAX_RESULT_BYTES)), "5,000,000 can be shown"),
        (types.ImageContent(data="?", mime_type="image/png"), "[image image/png, 1 characters of base64]"),
        (blob("file:///a.zip", b"PK"), "[file:///a.zip, 4 characters of base64]"),
        (types.AudioContent(data="UklGRg==", mime_type="audio/wav"), "[audio audio/wav, 8 characters of base64]"),
        (types.EmbeddedResource(resource=types.TextResourceContents(uri="file:///a", text="a text")), "a text"),
    ],
)
def test_content_that_cannot_be_shown_stays_text(block: types.ContentBlock, told: str) -> None:
    text, media = shown(block)
    assert told in text and media == []


def test_one_result_shows_a_limited_amount() -> None:
    half = PDF + bytes(MAX_RESULT_BYTES // 2)
    text, media = shown(blob("file:///a", half), blob("file:///b", half), image(PIXEL))
    assert [kind for kind, _ in media] == ["application/pdf", "image/png"]
    assert (
        "[file:///b, 3,333,356 characters of base64: the images and PDFs of one result are limited to 5,000,000 bytes"
        in text
    )


def test_structured_content_is_the_text_of_an_image() -> None:
    result = types.CallToolResult(content=[image(PIXEL)], structured_content={"width": 1})
    value = value_of_result(result, "x")
    assert isinstance(value, ToolAnswer) and json.loads(value.text) == {"width": 1} and len(value.media) == 1
    with pytest.raises(ToolFailed, match=r"\[image image/png, 70 bytes\]"):
        value_of_result(types.CallToolResult(content=[image(PIXEL)], is_error=True), "x")


@pytest.mark.anyio
async def test_image_comes_from_a_server() -> None:
    async with opened() as tools:
        value = await tools["mcp_s__look"].run({})
    assert isinstance(value, ToolAnswer) and value.text.startswith("a dot\n")
