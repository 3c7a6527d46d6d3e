"""Parts of the documents: code blocks, spans, tables, headings."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")


def read(page: Path) -> str:
    """Return the text of a page."""
    return page.read_text(encoding="utf-8")


def spans(page: Path) -> list[str]:
    """Return the code spans outside of code blocks, with white space folded."""
    return [" ".join(span.split()) for span in SPAN.findall(FENCE.sub("", read(page)))]


def console_lines(page: Path) -> list[str]:
    """Return the lines of console blocks without comments."""
    shown = [code for language, code in FENCE.findall(read(page)) if language == "console"]
    return [line.split(" # ")[0] for code in shown for line in code.splitlines()]


def rows(page: Path, heading: str) -> list[list[str]]:
    """Return the cells of the first table below *heading*, without its two header lines."""
    text = read(page)
    assert f"\n{heading}\n" in text, f"{page.name} has no heading {heading!r}"
    lines = text.split(f"\n{heading}\n", 1)[1].splitlines()
    table: list[list[str]] = []
    for line in lines:
        if line.startswith("|"):
            table.append([cell.strip() for cell in line.strip("|").split(" | ")])
        elif table:
            break
    return table[2:]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as a forge makes them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", read(page)), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
