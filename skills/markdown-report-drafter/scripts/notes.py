"""The sections of a report on notes, and the checklist of open items."""

from __future__ import annotations

from typing import Any

from fireswarm import count_noun, format_counts, format_extent

from .folder import open_markers
from .markdown import code, inline, number, table
from .sources import Source

_SHOWN = 20
MOST_ITEMS = 200


def notes_section(source: Source) -> str:
    """Describe the subject and the structure of the documents."""
    content = source.content
    documents = [record for record in content.get("files", []) if record.get("headings") or record.get("links")]
    totals: dict[str, Any] = content.get("totals", {})
    parts = [
        "## What the notes are about",
        f"{_extent_of(totals)}. {source.cite}",
    ]
    keywords = [entry for entry in content.get("keywords", []) if isinstance(entry, dict)][:_SHOWN]
    if keywords:
        rows = [[inline(entry["term"]), number(entry["score"]), number(entry["files"])] for entry in keywords]
        parts += [f"### Keywords {source.cite}", table(["Keyword", "Weight", "Files"], rows, "lrr")]
    if documents:
        rows = [_document(record) for record in documents[:_SHOWN]]
        parts += [
            f"### Documents ({format_extent(len(rows), len(documents))}) {source.cite}",
            table(["Document", "Title", "Headings", "Links", "Broken", "Open"], rows, "llrrrr"),
        ]
    return "\n\n".join(parts)


def _extent_of(totals: dict[str, Any]) -> str:
    """Return the counts of the documents above zero."""
    nouns = ("document", "heading", "link", "broken link", "open point")
    names = ("documents", "headings", "links", "broken_links", "markers")
    counts = format_counts((totals.get(name, 0), noun) for name, noun in zip(names, nouns, strict=True))
    return counts or "There is no text document"


def checklist(source: Source, title: str) -> tuple[str, int]:
    """Return a checklist by file and its length: broken links, open markers, documents without a title."""
    content = source.content
    items: dict[str, list[str]] = {}
    for entry in content.get("broken_links", []):
        text = f"Line {entry['line']}: repair the link to {code(entry['target'])}"
        items.setdefault(entry["path"], []).append(text)
    for entry in open_markers(content):
        text = f"Line {entry['line']}: {inline(entry['kind'])} {inline(entry['text']) or 'without a text'}"
        items.setdefault(entry["path"], []).append(text)
    for record in content.get("files", []):
        if record.get("language") == "Markdown" and not record.get("headings"):
            items.setdefault(record["path"], []).append("Give the document a heading")
    lines = [f"# Checklist: {inline(title)}"]
    count = 0
    for path in sorted(items):
        kept = items[path][: MOST_ITEMS - count]
        if kept:
            lines.append(f"## {code(path)}")
            lines.append("\n".join(f"- [ ] {text}" for text in kept))
            count += len(kept)
    total = sum(len(texts) for texts in items.values())
    if total > count:
        lines.append(f"The inventory has {count_noun(total - count, 'further point')}.")
    if not items:
        lines.append("Nothing is open.")
    return "\n\n".join(lines) + "\n", count


def _document(record: dict[str, Any]) -> list[str]:
    headings: list[dict[str, Any]] = record.get("headings", [])
    links: list[dict[str, Any]] = record.get("links", [])
    return [
        code(record["path"]),
        inline(headings[0]["text"]) if headings else "-",
        number(record.get("headings_in_all", len(headings))),
        number(record.get("links_in_all", len(links))),
        number(sum(link.get("ok") is False for link in links)),
        number(record.get("markers_in_all", len(record.get("markers", [])))),
    ]
