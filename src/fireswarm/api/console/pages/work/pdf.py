"""The text of a PDF, page by page. A process with limits reads it: a small file can expand to gigabytes."""

from __future__ import annotations

import io
import time
from dataclasses import dataclass

import anyio

from fireswarm.processes.child_pool import in_own_process

MARK = b"%PDF-"
"""Beginning of a PDF."""

MAX_PAGES, MAX_CHARS = 100, 250_000
"""Of a PDF, so many of the first pages are read, with so many characters together."""

READ_SECONDS, CPU_SECONDS, MAX_SECONDS = 3.0, 4.0, 6.0
"""After the first, no further page is begun; after the second of its processor, or the last, the process is killed."""

MEMORY_BYTES = 1_500_000_000
"""Address space of the whole process."""


@dataclass(frozen=True, slots=True)
class PdfText:
    """The text of the first pages of a PDF; ``fault`` says why there is none. ``count`` is that of all pages."""

    pages: tuple[str, ...] = ()
    count: int = 0
    is_cut: bool = False
    fault: str = ""


async def read_pdf(data: bytes) -> PdfText:
    """Return the text of a PDF. What cannot be read has a fault and raises nothing."""
    try:
        with anyio.fail_after(MAX_SECONDS):
            return await in_own_process(extract_text, data, seconds=CPU_SECONDS, memory_bytes=MEMORY_BYTES)
    except (TimeoutError, MemoryError):
        return PdfText(fault="to read its text took too long or too much memory")


def extract_text(data: bytes) -> PdfText:
    """Read the text of the first pages; runs in a child process with limits. A page that is broken has no text."""
    from pypdf import PdfReader
    from pypdf.errors import FileNotDecryptedError

    until = time.monotonic() + READ_SECONDS
    pages: list[str] = []
    chars = 0
    try:
        found = PdfReader(io.BytesIO(data)).pages
        count = len(found)
        for number in range(min(count, MAX_PAGES)):
            if chars >= MAX_CHARS or time.monotonic() > until:
                break
            try:
                text = found[number].extract_text().strip()
            except FileNotDecryptedError:
                raise
            except Exception:  # broken in any way, and the next pages may not be
                text = ""
            pages.append(text[: MAX_CHARS - chars])
            chars += len(text)
    except FileNotDecryptedError:
        return PdfText(fault="it is encrypted with a password")
    except Exception as error:  # pypdf raises errors of any kind for what is no PDF
        return PdfText(fault=f"its text cannot be read: {type(error).__name__}")
    if not any(pages):
        return PdfText(count=count, fault="its pages hold no text; they may be scanned")
    return PdfText(tuple(pages), count, is_cut=chars > MAX_CHARS or len(pages) < count)
