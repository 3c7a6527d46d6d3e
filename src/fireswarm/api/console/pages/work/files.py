"""The files of a task: text, tables and pictures are shown as what they are, never as a page; all can be saved.

Of a PDF, the text is shown.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from fireswarm.api.console.pages.work.pdf import MARK, read_pdf
from fireswarm.api.console.visit import Download, Shown, Visit
from fireswarm.contracts.skills.artifact import ANSWER, Artifact
from fireswarm.contracts.swarm.task import Task
from fireswarm.redaction import Redactor
from fireswarm.swarm.records.artifacts import Content, find_numbered, name_of, open_content, read_content

MAX_FILE_BYTES = 50_000_000
"""Largest file that is served."""

MAX_SHOWN_CHARS = 200_000
MAX_SECRET_CHARS = 32_768
"""Read after what is shown: a secret that began before the end is recognized whole."""

MAX_ROWS, MAX_COLUMNS, MAX_CELL_CHARS, MAX_FIELDS = 200, 40, 300, 200
"""What is shown of a table, and of the fields of a JSON document."""

_COLUMNS = frozenset(map(str, range(MAX_COLUMNS)))

_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")
"""Beginnings of pictures that hold no code; an SVG is shown as text."""


async def download(visit: Visit) -> Download:
    """Return a file of the task. It is saved, never shown: a model or a stranger wrote it."""
    _, artifact = await _find(visit)
    return Download(await open_content(visit.swarm.parts.blobs, artifact, MAX_FILE_BYTES))


async def show(visit: Visit) -> Shown:
    """Make the page of one file."""
    task, artifact = await _find(visit)
    name = name_of(artifact)
    async with visit.console.files:
        content = await read_content(visit.swarm.parts.blobs, artifact, MAX_FILE_BYTES)
        kind, shown, is_cut = await _prepare(content, name, visit.console.redactor)
    kind = "markdown" if kind == "text" and artifact.type == ANSWER else kind
    sort = visit.query.get("sort", "")
    if kind == "table" and shown:
        shown = [shown[0], *sort_rows(shown[1:], sort)]
    values = {
        "task": task,
        "sort": sort,
        "number": visit.path["number"],
        "name": name,
        "artifact": artifact,
        "size": len(content.data),
        "kind": kind,
        "shown": shown,
        "is_cut": is_cut,
    }
    return Shown("file.html", values)


def sort_rows(rows: list[list[str]], sort: str) -> list[list[str]]:
    """Sort rows by the column of this number, from 0; with a ``-``, in reverse. Numbers come before texts."""
    column = sort.removeprefix("-")
    if column not in _COLUMNS:
        return rows

    def key(row: list[str]) -> tuple[bool, float, str]:
        cell = row[int(column)] if int(column) < len(row) else ""
        try:
            number = float(cell.replace(",", "."))
        except ValueError:
            return True, 0.0, cell
        return (False, number, "") if math.isfinite(number) else (True, 0.0, cell)

    return sorted(rows, key=key, reverse=sort.startswith("-"))


async def _find(visit: Visit) -> tuple[Task, Artifact]:
    """Return the task and the file that an address names. Raises NotFound."""
    task = await visit.swarm.get(visit.path["task_id"])
    return task, find_numbered(task, visit.path["number"], visit.swarm.parts.blobs)


async def _prepare(content: Content, name: str, redactor: Redactor) -> tuple[str, Any, bool]:
    """Return how a file is shown, what is shown of it, and whether a part is left out.

    Values under the name of a secret are redacted here; all other secrets when the page is made.
    """
    if content.data.startswith(_PICTURES) or (content.data[:4] == b"RIFF" and content.data[8:12] == b"WEBP"):
        return "picture", "", False
    if content.data.startswith(MARK):
        pdf = await read_pdf(content.data)
        pages = _cut_pages(pdf.pages, redactor)
        is_cut = pdf.is_cut or sum(map(len, pdf.pages)) > MAX_SHOWN_CHARS
        return "pdf", replace(pdf, pages=pages), is_cut
    try:
        whole = content.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "none", "", False
    if "\0" in whole:
        return "none", "", False
    text, is_cut = _cut(whole, redactor), len(whole) > MAX_SHOWN_CHARS
    kind, suffix = content.media_type.partition(";")[0], name.lower().rpartition(".")[2]
    if kind == "text/csv" or suffix in ("csv", "tsv"):
        return _prepare_table(text, is_cut, redactor)
    if kind == "application/json" and not is_cut:
        return _prepare_fields(text, redactor)
    if kind == "text/markdown" or suffix == "md":
        return "markdown", text, is_cut
    return "diff" if kind == "text/x-diff" or suffix in ("diff", "patch") else "text", text, is_cut


def _cut(text: str, redactor: Redactor, most: int = MAX_SHOWN_CHARS) -> str:
    """Return the beginning of a text, without secrets before it is cut: a part of one could not be recognized."""
    return text if len(text) <= most else redactor.clean(text[: most + MAX_SECRET_CHARS])[:most]


def _cut_pages(pages: Iterable[str], redactor: Redactor) -> tuple[str, ...]:
    """Return pages with `MAX_SHOWN_CHARS` characters together."""
    shown: list[str] = []
    left = MAX_SHOWN_CHARS
    for page in pages:
        if left <= 0:
            break
        shown.append(_cut(page, redactor, left))
        left -= len(page)
    return tuple(shown)


def _prepare_table(text: str, is_cut: bool, redactor: Redactor) -> tuple[str, Any, bool]:
    """Return the first rows of a table; its text if it is none."""
    first = text.partition("\n")[0]
    separator = max(",;\t|", key=first.count)
    lines = io.StringIO(text)
    try:
        rows = [row for _, row in zip(range(MAX_ROWS + 1), csv.reader(lines, delimiter=separator), strict=False)]
    except csv.Error:
        return "text", text, is_cut
    is_wide = any(len(row) > MAX_COLUMNS for row in rows)
    names = rows[0] if rows else []
    named = (zip_longest(names[: len(row[:MAX_COLUMNS])], row[:MAX_COLUMNS], fillvalue="") for row in rows[1:MAX_ROWS])
    cells = [[redactor.named_value(name, cell)[:MAX_CELL_CHARS] for name, cell in row] for row in named]
    shown = [[name[:MAX_CELL_CHARS] for name in names[:MAX_COLUMNS]], *cells] if rows else []
    return "table", shown, is_cut or is_wide or len(rows) > MAX_ROWS


def _prepare_fields(text: str, redactor: Redactor) -> tuple[str, Any, bool]:
    """Return the fields of a JSON document, each with its text; the whole text if it has none."""
    try:
        value: Any = redactor.value(json.loads(text))
    except (ValueError, RecursionError):
        return "text", text, False
    if isinstance(value, dict):
        pairs = [(str(name), item) for name, item in value.items()]
    elif isinstance(value, list):
        pairs = [(str(number), item) for number, item in enumerate(value)]
    else:
        return "text", text, False
    return "fields", pairs[:MAX_FIELDS], len(pairs) > MAX_FIELDS
