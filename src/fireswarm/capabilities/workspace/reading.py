"""Tools that list, read and search files below one folder."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from fireswarm.capabilities.capability import tool
from fireswarm.capabilities.workspace.images import check_media, kind_of_media
from fireswarm.capabilities.workspace.matching_lines import check_search, find_matching_lines
from fireswarm.capabilities.workspace.place import Workspace, place_of
from fireswarm.capabilities.workspace.ripgrep import find_candidates
from fireswarm.capabilities.workspace.shown_text import count_hidden, line_end_of, lines_of
from fireswarm.capabilities.workspace.walk import SKIPPED_GLOBS, walk_files
from fireswarm.contracts.base import count_noun
from fireswarm.contracts.limits import SNIFF_BYTES
from fireswarm.contracts.linear_pattern import match_glob
from fireswarm.contracts.skills.artifact import MediaBlock
from fireswarm.contracts.skills.tool import Tool, ToolAnswer
from fireswarm.contracts.text_page import MAX_LINE_CHARS, MAX_LINES, page_of_lines
from fireswarm.errors import InvalidInput
from fireswarm.redaction import sanitize

MAX_ENTRIES = 1_000
MAX_MATCHES = 200
MAX_FILE_BYTES = 50_000_000
MAX_SEARCHED_BYTES = 2_000_000
"""Larger files are not searched: they rarely contain human-written text."""

MAX_SEARCH_SECONDS = 30.0
"""A search that takes longer shows what it has found so far."""

FilePath = Annotated[str, Field(description="path of a file, relative to the workspace")]
Folder = Annotated[str, Field(description="path of a folder, relative to the workspace; default: all of it")]
Glob = Annotated[str, Field(description="such as *.{js,ts} for names, or src/**/*.py for whole paths")]
Context = Annotated[int, Field(ge=0, le=20, description="lines to show before and after each match")]


def reading_tools(root: Path, outputs: Path | None = None) -> dict[str, Tool]:
    """Return the tools for one folder, and for that of outputs by its whole path. Other paths are refused."""
    root = root.resolve()

    def list_files(path: Folder = ".", glob: Glob = "**") -> str:
        """Lists files with their sizes in bytes. It leaves out .git, node_modules and the like."""
        return _list(*place_of(path, root, outputs), glob)

    def read_file(
        path: FilePath,
        offset: Annotated[int, Field(ge=1, description="number of the first line")] = 1,
        limit: Annotated[int, Field(ge=1, description="number of lines")] = MAX_LINES,
    ) -> str | ToolAnswer:
        """Reads a text file with line numbers, or shows an image or a PDF. A long file comes in pages."""
        return _read(*place_of(path, root, outputs), offset, limit)

    def search_files(
        pattern: Annotated[str, Field(min_length=1, description="regular expression, without look-around")],
        path: Folder = ".",
        glob: Glob = "**",
        context: Context = 0,
    ) -> str:
        """Finds the lines that match a regular expression, as path:line:text. Put (?i) first to ignore case."""
        return _search(*place_of(path, root, outputs), pattern, glob, context)

    made = (tool(list_files), tool(read_file), tool(search_files))
    spec_names = ("Glob", "Read", "Grep")
    return {
        each.name: Tool(each.name, each.description, each.parameters, each.run, spec_name=name)
        for each, name in zip(made, spec_names, strict=True)
    }


def _list(place: Workspace, path: str, glob: str) -> str:
    lines: list[str] = []
    total, unnamed = 0, 0
    for file, name in _matching(place, place.locate(path), glob):
        if not _can_show(name):
            unnamed += 1
            continue
        total += 1
        if total <= MAX_ENTRIES:
            lines.append(f"{name} ({file.lstat().st_size:,} bytes)")
    if total > MAX_ENTRIES:
        lines.append(f"[{total - MAX_ENTRIES:,} more files: narrow path or glob]")
    return "\n".join([*lines, *_left_out(unnamed)]) or "[no files]"


def _can_show(name: str) -> bool:
    """Return True if a file's name reaches the model as it is, and in one line."""
    return "\n" not in name and sanitize(name) == name


def _left_out(number: int, more: str = "") -> Iterator[str]:
    """Yield a note on so many files whose names cannot be shown, if there are any."""
    if number:
        rest = "is left out: its name has" if number == 1 else "are left out: their names have"
        yield f"[{count_noun(number, 'file')}{more} {rest} characters that cannot be shown]"


def _read(place: Workspace, named: str, offset: int, limit: int) -> str | ToolAnswer:
    path = place.locate(named)
    if path.is_dir():
        raise InvalidInput(f"{named} is a folder: use list_files")
    content = place.read(path, MAX_FILE_BYTES)
    if kind := kind_of_media(path, content):
        check_media(named, kind, content)
        media = MediaBlock(media_type=kind, data=base64.b64encode(content).decode())
        return ToolAnswer(f"{named}: {kind}, {len(content):,} bytes", (media,))
    if b"\0" in content[:SNIFF_BYTES]:
        raise InvalidInput(f"{named} is not text: it has {len(content):,} bytes; use run_command to look into it")
    text = content.decode("utf-8", "replace")
    lines, rest = lines_of(text), _not_read(path, len(content))
    if offset > max(1, len(lines)):
        raise InvalidInput(f"{named} has {len(lines):,} lines; offset {offset:,} is behind the last one{rest}")
    return page_of_lines(lines, offset, limit, named) + _not_shown(text) + rest


def _not_read(path: Path, size: int) -> str:
    """Return a note on the end of a file that is not read, whose *size* that is read is the limit; or ""."""
    if size < MAX_FILE_BYTES or (whole := path.lstat().st_size) <= size:
        return ""
    return f"\n[the lines of the first {size:,} bytes of {whole:,}: use run_command to look into the rest]"


def _not_shown(text: str) -> str:
    """Return a note on what a page of lines does not show of a text, or ""."""
    notes: list[str] = []
    if (end := line_end_of(text)) != "\n":
        notes.append(f"its lines end with {end!r}")
    if hidden := count_hidden(text):
        notes.append(f"it has {hidden:,} control character{'' if hidden == 1 else 's'} that cannot be shown")
    return f"\n[{', and '.join(notes)}; edit_file keeps them]" if notes else ""


def _search(place: Workspace, path: str, pattern: str, glob: str, context: int) -> str:
    check_search(pattern)
    found: list[str] = []
    total, unnamed, until = 0, 0, time.monotonic() + MAX_SEARCH_SECONDS
    start = place.locate(path)
    candidates = None
    if start.is_dir():
        candidates = find_candidates(pattern, start, SKIPPED_GLOBS, MAX_SEARCHED_BYTES, MAX_SEARCH_SECONDS)
    for file, name in _matching(place, start, glob):
        if time.monotonic() > until:
            found.append(f"[stopped after {MAX_SEARCH_SECONDS:g} s: narrow path or glob]")
            break
        if candidates is not None and os.fsencode(file.relative_to(start)) not in candidates:
            continue
        lines = lines_of(_text_in(place, file))
        hits = find_matching_lines(pattern, lines)
        if not _can_show(name):
            unnamed += bool(hits)
            continue
        for number in hits[: max(0, MAX_MATCHES - total)]:
            found += _shown_match(name, lines, number, context)
        total += len(hits)
    if total > MAX_MATCHES:
        found.append(f"[{total - MAX_MATCHES:,} more matches: narrow pattern, path or glob]")
    return "\n".join([*found, *_left_out(unnamed, " with matches")]) or "[no matches]"


def _shown_match(name: str, lines: list[str], number: int, context: int) -> list[str]:
    around = range(max(0, number - context), min(len(lines), number + context + 1))
    marks = {each: ":" if each == number else "-" for each in around}
    shown = [f"{name}{mark}{each + 1}{mark}{lines[each][:MAX_LINE_CHARS]}" for each, mark in marks.items()]
    return [*shown, "--"] if context else shown


def _matching(place: Workspace, start: Path, glob: str) -> Iterator[tuple[Path, str]]:
    """Yield the files below *start* whose path or name the glob matches, in order, with their relative paths."""
    if start.is_file():
        yield start, place.name_of(start)
        return
    check_search(glob=glob)
    for path in walk_files(start):
        name = place.name_of(path)
        if any(match_glob(glob, each) for each in (name, path.name, str(path.relative_to(start)))):
            yield path, name


def _text_in(place: Workspace, path: Path) -> str:
    """Return a file's text, or nothing if it is binary, too large, a link, a pipe, or unreadable."""
    try:
        if path.is_symlink() or path.stat().st_size > MAX_SEARCHED_BYTES:
            return ""
        content = place.read(path, MAX_SEARCHED_BYTES)
    except (OSError, InvalidInput):
        return ""
    return "" if b"\0" in content[:SNIFF_BYTES] else content.decode("utf-8", "replace")
