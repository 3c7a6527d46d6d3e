"""Images and PDFs that a model is shown: within what the providers take, and what to do about the others."""

from __future__ import annotations

import base64
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fireswarm.capabilities.workspace.images import MAX_IMAGE_BYTES, MAX_IMAGE_SIDE, MAX_PDF_BYTES, image_size
from fireswarm.capabilities.workspace.writing import workspace_tools
from fireswarm.contracts.skills.tool import ToolAnswer
from fireswarm.errors import InvalidInput
from tests.support.experts import PIXEL, Expert, calls, run
from tests.support.minds import Bench

pytestmark = pytest.mark.anyio

EXIF = b"\xff\xe1" + struct.pack(">H", 40) + b"Exif\0\0" + b"\xff\xc0" * 16


def png(width: int, height: int) -> bytes:
    return PIXEL[:16] + struct.pack(">II", width, height) + PIXEL[24:]


def jpeg(width: int, height: int) -> bytes:
    frame = b"\xff\xff\xc2" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\0"
    return b"\xff\xd8" + EXIF + b"\xff\xdb" + struct.pack(">H", 5) + b"\xff\xc0\xff" + frame + b"\xff\xda"


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0;"


def webp(chunk: bytes, content: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 100) + b"WEBP" + chunk + struct.pack("<I", 40) + content.ljust(40, b"\0")


def lossy(width: int, height: int) -> bytes:
    return webp(b"VP8 ", b"\x10\0\0\x9d\x01\x2a" + struct.pack("<HH", width | 0x4000, height))


def lossless(width: int, height: int) -> bytes:
    return webp(b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14 | 1 << 28))


def extended(width: int, height: int) -> bytes:
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return webp(b"VP8X", b"\x10\0\0\0" + sides)


MAKERS = [("png", png), ("jpeg", jpeg), ("gif", gif), ("webp", lossy), ("webp", lossless), ("webp", extended)]


async def read(root: Path, name: str, content: bytes) -> Any:
    (root / name).write_bytes(content)
    return await workspace_tools(root)["read_file"].run({"path": name})


@pytest.mark.parametrize(("kind", "make"), MAKERS)
async def test_image_with_a_side_that_no_provider_takes_is_refused_with_the_way_out(
    kind: str, make: Any, tmp_path: Path
) -> None:
    most = MAX_IMAGE_SIDE
    shown = await read(tmp_path, f"a.{kind}", make(most, 3))
    assert isinstance(shown, ToolAnswer) and shown.media[0].media_type == f"image/{kind}"
    for width, height in ((most + 1, 3), (3, most + 1)):
        with pytest.raises(InvalidInput, match=rf"{width:,} x {height:,} pixels, .*`convert a\.{kind} -resize"):
            await read(tmp_path, f"a.{kind}", make(width, height))


@pytest.mark.parametrize(("kind", "make"), MAKERS)
def test_size_of_an_image_is_read_from_its_header(kind: str, make: Any) -> None:
    assert image_size(f"image/{kind}", make(640, 480)) == (640, 480)
    for length in range(len(make(640, 480))):
        assert image_size(f"image/{kind}", make(640, 480)[:length]) in (None, (640, 480))


@given(st.sampled_from(["png", "jpeg", "gif", "webp"]), st.binary(max_size=60), st.integers(0, 40))
def test_size_of_any_bytes_is_nothing_worse_than_missing(kind: str, noise: bytes, start: int) -> None:
    for _, make in MAKERS:
        size = image_size(f"image/{kind}", make(9, 9)[:start] + noise)
        assert size is None or min(size) > 0


async def test_encoded_image_has_at_most_five_million_bytes(tmp_path: Path) -> None:
    shown = await read(tmp_path, "a.png", png(10, 10).ljust(MAX_IMAGE_BYTES, b"\0"))
    assert len(shown.media[0].data) == 5_000_000
    with pytest.raises(InvalidInput, match=r"a\.png has 3,750,001 bytes, .* command, such as `convert a\.png"):
        await read(tmp_path, "a.png", png(10, 10).ljust(MAX_IMAGE_BYTES + 1, b"\0"))


async def test_pdf_that_is_too_large_is_refused_with_the_way_to_its_text(tmp_path: Path) -> None:
    shown = await read(tmp_path, "a.pdf", b"%PDF-1.7".ljust(MAX_PDF_BYTES))
    assert shown.media[0].media_type == "application/pdf"
    with pytest.raises(InvalidInput, match="pdftotext"):
        await read(tmp_path, "a.pdf", b"%PDF-1.7".ljust(MAX_PDF_BYTES + 1))


async def test_file_that_is_not_the_image_of_its_name_is_not_sent(tmp_path: Path) -> None:
    assert await read(tmp_path, "a.webp", b"text\n") == "     1\ttext"
    with pytest.raises(InvalidInput, match="not text"):
        await read(tmp_path, "a.jpg", PIXEL)
    for name, content in (("a.png", PIXEL[:20]), ("a.webp", b"RIFF" + b"WAVE" * 20), ("a.gif", gif(0, 4))):
        with pytest.raises(InvalidInput, match="is damaged"):
            await read(tmp_path, name, content)


async def test_model_is_told_and_goes_on_when_an_image_is_too_large(tmp_path: Path) -> None:
    bench = Bench(tmp_path).set(skills__prefilter_min_score=1)
    (bench.cwd / "wide.png").write_bytes(png(20_000, 1))
    (bench.cwd / "dot.png").write_bytes(PIXEL)
    expert = Expert(calls(("read_file", {"path": "wide.png"}), ("read_file", {"path": "dot.png"})), "Done.")
    assert (await run(bench, expert)).conclusion.answer == "Done."
    wide, dot = expert.outputs
    assert wide.failed and not wide.media and "20,000 x 1 pixels" in wide.text
    assert base64.b64decode(dot.media[0].data) == PIXEL
