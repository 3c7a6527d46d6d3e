"""Images and PDFs that a model can be shown: their kinds, and the limits of the providers. Pure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from fireswarm.errors import InvalidInput

MAX_IMAGE_BYTES = 3_750_000
"""5,000,000 in base64, which is what Anthropic takes for one image."""

MAX_IMAGE_SIDE = 8_000
"""Pixels of a side that Anthropic takes."""

MAX_PDF_BYTES = 5_000_000
"""6,700,000 in base64: several have room in a request, which may have 20 MB on Bedrock and 32 MB at Anthropic."""

PDF = "application/pdf"
_KINDS = {
    **{".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"},
    ".pdf": PDF,
}
_FIRST_BYTES = {
    "image/png": b"\x89PNG",
    "image/jpeg": b"\xff\xd8",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
    PDF: b"%PDF",
}
_SMALLER = (
    f"make a smaller one with a command, such as `convert {{}} -resize {MAX_IMAGE_SIDE // 4}x{MAX_IMAGE_SIDE // 4} "
    "smaller.jpg` or Pillow, and read that"
)
_PARTS = "take its text or some of its pages with a command, such as `pdftotext` or pypdf, and read that"

_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of a JPEG before the size of the image."""

_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD8)})
_SCAN, _END = 0xDA, 0xD9


def kind_of_media(path: PurePath, content: bytes) -> str:
    """Return the media type of an image or PDF, by its name and its first bytes; "" for anything else."""
    kind = _KINDS.get(path.suffix.lower(), "")
    return kind if kind and content.startswith(_FIRST_BYTES[kind]) else ""


def kind_of_content(content: bytes) -> str:
    """Return the media type of an image or PDF by its first bytes alone; "" for anything else."""
    return next((kind for kind, first in _FIRST_BYTES.items() if content.startswith(first)), "")


def check_media(named: str, kind: str, content: bytes) -> None:
    """Raise InvalidInput for an image or a PDF that a provider would refuse, with the way to one that it takes."""
    limit, advice = (MAX_PDF_BYTES, _PARTS) if kind == PDF else (MAX_IMAGE_BYTES, _SMALLER.format(named))
    if len(content) > limit:
        raise InvalidInput(f"{named} has {len(content):,} bytes, of which {limit:,} can be shown: {advice}")
    if kind == PDF:
        return
    size = image_size(kind, content)
    if size is None:
        raise InvalidInput(f"{named} is damaged: {kind} gives its width and height where this file has none")
    if max(size) > MAX_IMAGE_SIDE:
        shown = f"{MAX_IMAGE_SIDE:,} a side can be shown"
        raise InvalidInput(f"{named} has {size[0]:,} x {size[1]:,} pixels, and {shown}: {advice}")


def image_size(kind: str, content: bytes) -> tuple[int, int] | None:
    """Return the width and height in pixels that an image gives, or None if it gives none."""
    size = _SIZES[kind](content)
    return size if size is not None and min(size) > 0 else None


def _png_size(content: bytes) -> tuple[int, int] | None:
    if content[12:16] != b"IHDR" or len(content) < 24:
        return None
    return int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")


def _gif_size(content: bytes) -> tuple[int, int] | None:
    if len(content) < 10:
        return None
    return int.from_bytes(content[6:8], "little"), int.from_bytes(content[8:10], "little")


def _jpeg_size(content: bytes) -> tuple[int, int] | None:
    """Return the size in the first frame, which comes before the first scan."""
    place = 2
    while place + 9 <= len(content) and content[place] == 0xFF:
        marker = content[place + 1]
        if marker == 0xFF:  # a byte that only fills
            place += 1
        elif marker in _WITHOUT_LENGTH:
            place += 2
        elif marker in _FRAMES:
            height, width = content[place + 5 : place + 7], content[place + 7 : place + 9]
            return int.from_bytes(width, "big"), int.from_bytes(height, "big")
        elif marker in (_SCAN, _END):
            return None
        else:
            place += 2 + max(2, int.from_bytes(content[place + 2 : place + 4], "big"))
    return None


def _webp_size(content: bytes) -> tuple[int, int] | None:
    """Return the size in the first chunk: of a lossy, a lossless or an extended image."""
    if content[8:12] != b"WEBP" or len(content) < 30:
        return None
    match content[12:16]:
        case b"VP8 " if content[23:26] == b"\x9d\x01\x2a":
            width, height = content[26:28], content[28:30]
            return int.from_bytes(width, "little") & 0x3FFF, int.from_bytes(height, "little") & 0x3FFF
        case b"VP8L" if content[20] == 0x2F:
            bits = int.from_bytes(content[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            return int.from_bytes(content[24:27], "little") + 1, int.from_bytes(content[27:30], "little") + 1
        case _:
            return None


_SIZES: dict[str, Callable[[bytes], tuple[int, int] | None]] = {
    "image/png": _png_size,
    "image/jpeg": _jpeg_size,
    "image/gif": _gif_size,
    "image/webp": _webp_size,
}
