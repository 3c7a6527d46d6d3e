"""Tools that list, read and search files below one folder."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from fireswarm.capabilities.capability import tool
from fireswarm.capabilities.workspace.images import check_media, kind_of_media
from fireswarm.capabilities.workspace.matching_lines import check_search, find_matching_lines
from fireswarm.capabilities.workspace.place import Hides, Workspace, place_of
from fireswarm.capabilities.workspace.ripgrep import find_candidates
from fireswarm.capabilities.workspace.shown_text import count_hidden, line_end_of, lines_of
from fireswarm.capabilities.workspace.walk import SKIPPED_GLOBS, walk_files
from fireswarm.contracts.base import count_noun
from fireswarm.contracts.limits import SNIFF_BYTES
from fireswarm.contracts.linear_pattern import match_glob
from fireswarm.contracts.skills.artifact import MediaBlock
from fireswarm.contracts.skills.given_files import GivenFiles
from fireswarm.contracts.skills.tool import Tool, ToolAnswer
from fireswarm.contracts.text_page import MAX_LINE_CHARS, MAX_LINES, page_of_lines
from fireswarm.errors import InvalidInput
from fireswarm.redaction import Redactor, environment_redactor, sanitize, tag_secret

MAX_ENTRIES = 1_000
MAX_MATCHES = 200
MAX_LEFT_OUT = 5
"""Maximum number of files and folders that are named as left out."""

MAX_FILE_BYTES = 50_000_000
MAX_SEARCHED_BYTES = 2_000_000
"""Larger files are not searched: they rarely contain human-written text."""

MAX_SEARCH_SECONDS = 30.0
"""A search that takes longer shows what it has found so far."""

LONGEST_SECRET_CHARS = 65_536
"""Characters before and after a page of a file that are searched for the ends of a secret, such as a private key."""

Mask = Callable[[str], str]
"""Puts placeholders into a text, without changing the number of its lines."""

FilePath = Annotated[str, Field(description="path of a file, relative to the workspace")]
Folder = Annotated[str, Field(description="path of a folder, relative to the workspace; default: all of it")]
Glob = Annotated[str, Field(description="such as *.{js,ts} for names, or src/**/*.py for whole paths")]
Ignored = Annotated[bool, Field(description="also files that .gitignore names; default: false")]
Context = Annotated[int, Field(ge=0, le=20, description="lines to show before and after each match")]


def reading_tools(
    root: Path,
    outputs: Path | None = None,
    inputs: GivenFiles | None = None,
    redact: Redactor | None = None,
    hides: Hides | None = None,
) -> dict[str, Tool]:
    """Return the tools for one folder, for that of outputs by its whole path, and for input files.

    Other paths are refused. *redact* finds secrets: placeholders with tags are shown in their place.
    """
    root = root.resolve()
    redact = redact or environment_redactor()

    def mask(text: str) -> str:
        return redact.text(text, by_line=True, mark=tag_secret)

    def list_files(path: Folder = ".", glob: Glob = "**", ignored: Ignored = False) -> str:
        """Lists files with their sizes in bytes. It leaves out .git, node_modules and what .gitignore names."""
        return _list(*place_of(path, root, outputs, inputs, hides=hides), glob, Unlisted(ignored=ignored))

    def read_file(
        path: FilePath,
        offset: Annotated[int, Field(ge=1, description="number of the first line")] = 1,
        limit: Annotated[int, Field(ge=1, description="number of lines")] = MAX_LINES,
        column: Annotated[int, Field(ge=1, description="first character of each line, to read on in a long one")] = 1,
    ) -> str | ToolAnswer:
        """Reads a text file with line numbers, or shows an image or a PDF. A long file comes in pages."""
        return _read(*place_of(path, root, outputs, inputs, hides=hides), mask, offset, limit, column)

    def search_files(
        pattern: Annotated[str, Field(min_length=1, description="regular expression, without look-around")],
        path: Folder = ".",
        glob: Glob = "**",
        context: Context = 0,
        ignored: Ignored = False,
    ) -> str:
        """Finds the lines that match a regular expression, as path:line:text. Put (?i) first to ignore case.

        It leaves out files that .gitignore names.
        """
        unlisted = Unlisted(ignored=ignored)
        return _search(*place_of(path, root, outputs, inputs, hides=hides), mask, pattern, glob, context, unlisted)

    made = (tool(list_files), tool(read_file), tool(search_files))
    spec_names = ("Glob", "Read", "Grep")
    return {
        each.name: Tool(each.name, each.description, each.parameters, _with_inputs(each.run, inputs), spec_name=name)
        for each, name in zip(made, spec_names, strict=True)
    }


def _with_inputs(
    run: Callable[[Mapping[str, Any]], Awaitable[Any]], inputs: GivenFiles | None
) -> Callable[[Mapping[str, Any]], Awaitable[Any]]:
    """Return *run*, which first fetches the input files that its path names, and says which of a folder are missing."""
    if inputs is None:
        return run

    async def run_on_fetched(given: Mapping[str, Any]) -> Any:
        path, missing = given.get("path"), ""
        if isinstance(path, str) and (name := inputs.name_of(path)) is not None:
            try:
                await inputs.fetch(name)
            except InvalidInput as error:
                if name in inputs.names:
                    raise
                missing = f"\n[{error}]"
        answer = await run(given)
        return f"{answer}{missing}" if isinstance(answer, str) else answer

    return run_on_fetched


@dataclass(slots=True)
class Unlisted:
    """What a list or a search leaves out: files and folders that ``.gitignore`` names, unless they are *ignored* too.

    ``unnamed`` counts the files whose names cannot be shown.
    """

    ignored: bool
    entries: list[str] = field(default_factory=list[str])
    unnamed: int = 0

    def notes(self, what: str = "") -> Iterator[str]:
        """Yield lines on what was left out, if there is anything; *what* follows the number of unnamed files."""
        if self.unnamed:
            rest = "is left out: its name has" if self.unnamed == 1 else "are left out: their names have"
            yield f"[{count_noun(self.unnamed, 'file')}{what} {rest} characters that cannot be shown]"
        if named := [name for name in self.entries if _can_show(name)][:MAX_LEFT_OUT]:
            more = len(self.entries) - len(named)
            rest = f" and {more:,} more" if more else ""
            yield f"[left out, since .gitignore names it: {', '.join(named)}{rest}; ignored: true includes it]"


def _list(place: Workspace, path: str, glob: str, left_out: Unlisted) -> str:
    lines: list[str] = []
    total = 0
    for file, name in _matching(place, place.locate(path), glob, left_out):
        if not _can_show(name):
            left_out.unnamed += 1
            continue
        total += 1
        if total <= MAX_ENTRIES:
            lines.append(f"{name} ({file.lstat().st_size:,} bytes)")
    if total > MAX_ENTRIES:
        lines.append(f"[{total - MAX_ENTRIES:,} more files: narrow path or glob]")
    return "\n".join([*(lines or ["[no files]"] * (not left_out.unnamed)), *left_out.notes()])


def _can_show(name: str) -> bool:
    """Return True if a file's name reaches the model as it is, and in one line."""
    return "\n" not in name and sanitize(name) == name


def _read(place: Workspace, named: str, mask: Mask, offset: int, limit: int, column: int) -> str | ToolAnswer:
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
    _mask_lines(lines, mask, offset - 1, min(len(lines), offset - 1 + min(limit, MAX_LINES)))
    return page_of_lines(lines, offset, limit, named, column=column) + _not_shown(text) + rest


def _mask_lines(lines: list[str], mask: Mask, start: int, end: int) -> None:
    """Mask the secrets of some lines, also of one that begins or ends as far away as the longest secret is long."""
    first, chars = start, 0
    while first > 0 and chars < LONGEST_SECRET_CHARS:
        first -= 1
        chars += len(lines[first]) + 1
    last, chars = end, 0
    while last < len(lines) and chars < LONGEST_SECRET_CHARS:
        chars += len(lines[last]) + 1
        last += 1
    if first < last:
        lines[first:last] = mask("\n".join(lines[first:last])).split("\n")


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


def _search(place: Workspace, path: str, mask: Mask, pattern: str, glob: str, context: int, left_out: Unlisted) -> str:
    check_search(pattern)
    found: list[str] = []
    total, until = 0, time.monotonic() + MAX_SEARCH_SECONDS
    start = place.locate(path)
    candidates = None
    if start.is_dir():
        candidates = find_candidates(pattern, start, SKIPPED_GLOBS, MAX_SEARCHED_BYTES, MAX_SEARCH_SECONDS)
    for file, name in _matching(place, start, glob, left_out):
        if time.monotonic() > until:
            found.append(f"[stopped after {MAX_SEARCH_SECONDS:g} s: narrow path or glob]")
            break
        if candidates is not None and os.fsencode(file.relative_to(start)) not in candidates:
            continue
        text = _text_in(place, file)
        hits = find_matching_lines(pattern, lines := lines_of(text))
        if hits:  # a pattern that fits to a secret only finds nothing, also when matches are only counted
            hits = find_matching_lines(pattern, lines := lines_of(mask(text)))
        if not _can_show(name):
            left_out.unnamed += bool(hits)
            continue
        for number in hits[: max(0, MAX_MATCHES - total)]:
            found += _shown_match(name, lines, number, context)
        total += len(hits)
    if total > MAX_MATCHES:
        found.append(f"[{total - MAX_MATCHES:,} more matches: narrow pattern, path or glob]")
    notes = left_out.notes(" with matches")
    return "\n".join([*(found or ["[no matches]"] * (not left_out.unnamed)), *notes])


def _shown_match(name: str, lines: list[str], number: int, context: int) -> list[str]:
    around = range(max(0, number - context), min(len(lines), number + context + 1))
    marks = {each: ":" if each == number else "-" for each in around}
    shown = [f"{name}{mark}{each + 1}{mark}{lines[each][:MAX_LINE_CHARS]}" for each, mark in marks.items()]
    return [*shown, "--"] if context else shown


def _matching(place: Workspace, start: Path, glob: str, left_out: Unlisted) -> Iterator[tuple[Path, str]]:
    """Yield the files below *start* whose path or name the glob matches, in order, with their relative paths."""
    if start.is_file():
        yield start, place.name_of(start)
        return
    check_search(glob=glob)
    for path in walk_files(start, place.root, None if left_out.ignored else left_out.entries.append):
        if place.hides is not None and place.hides(path):
            continue
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
