"""Parse any bytes as a SKILL.md: lenient, never raising, with a warning for each accepted fault.

The steps: ``decode`` (BOM, invalid bytes, line ends), ``split`` (frontmatter and body), ``read_header`` (YAML with
every scalar as text; if YAML fails, field by field). ``skills.checks`` contains the strict checks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from fireswarm.contracts.frontmatter import check_yaml

MARK = "---"

MAX_FILE_BYTES = 1_000_000
"""Maximum bytes read of a SKILL.md; the specification recommends fewer than 500 lines, about 30 KB."""

MAX_HEADER_CHARS = 64_000
"""Maximum characters of frontmatter parsed as YAML. The specification's fields take 3,000; the rest is for metadata."""

_FIELD = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]++(.*+)|)$")
_SIMPLE = re.compile(
    r"""([a-z][a-z_-]*):[ ]+(?:'([^'\n\t]*[^'\s])'|"([^"\\\n\t]*[^"\\\s])"|([A-Za-z0-9][ -~]*+))[ ]*"""
)
"""``key: value`` on one line: in single quotes, in double quotes without an escape, or plain ASCII."""

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u0080-\u0084\u0086-\u009f\ufffe\uffff\ud800-\udfff]")
_BLOCK_SCALAR = re.compile(r"[>|][+-]?\d?[+-]?[ \t]*(?:#.*)?$")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed SKILL.md. ``body_line`` is the 1-based line of the file on which ``body`` begins."""

    fields: dict[str, Any]
    header: str
    body: str
    header_line: int = 2
    body_line: int = 1
    has_header: bool = True
    closed: bool = True
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class _Notes:
    said: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        if text not in self.said and len(self.said) < 20:
            self.said.append(text)


def parse(data: bytes) -> Parsed:
    """Parse the bytes of a SKILL.md; accepted faults are in ``warnings``."""
    notes = _Notes()
    text = decode(data, notes.add)
    header, body, header_line, body_line, closed = split(text)
    if header is None:
        notes.add("line 1: no frontmatter between two lines of ---")
        return Parsed({}, "", body, 1, body_line, has_header=False, closed=False, warnings=tuple(notes.said))
    if header_line > 2:
        notes.add(f"line {header_line - 1}: the frontmatter begins here, after blank lines")
    if not closed:
        notes.add(f"line {header_line - 1}: the frontmatter is never closed by a line of ---")
    fields = read_header(header, header_line, notes.add)
    return Parsed(fields, header, body, header_line, body_line, closed=closed, warnings=tuple(notes.said))


def decode(data: bytes, note: Any) -> str:
    """Decode bytes: the byte order mark is removed, line ends are unified, invalid bytes are replaced."""
    if len(data) > MAX_FILE_BYTES:
        note(f"only the first {MAX_FILE_BYTES:,} of {len(data):,} bytes were read")
        data = data[:MAX_FILE_BYTES]
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        note("the file is UTF-16; it should be UTF-8")
        text = data.decode("utf-16", errors="replace")
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            note(f"byte {error.start} is not valid UTF-8; invalid bytes were replaced")
            text = data.decode("utf-8-sig", errors="replace")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.isprintable() and _UNPRINTABLE.search(text):
        note("control characters were removed")
        text = _UNPRINTABLE.sub("", text)
    return text


def split(text: str) -> tuple[str | None, str, int, int, bool]:
    """Split into header, body, their first lines, and whether the header was closed.

    Only a whole line of ``---`` opens or closes. A header without an end stops at the first blank line or heading,
    since the text after it is unlikely to be fields.
    """
    lines = text.split("\n")
    start = next((number for number, line in enumerate(lines) if line.strip()), None)
    if start is None or lines[start].rstrip() != MARK:
        return None, text.strip("\n"), 1, 1, False
    for number in range(start + 1, len(lines)):
        if lines[number].rstrip() == MARK:
            body = "\n".join(lines[number + 1 :])
            return "\n".join(lines[start + 1 : number]), body, start + 2, number + 2, True
    end = start + 1
    while end < len(lines) and lines[end].strip() and not lines[end].startswith("# "):
        end += 1
    return "\n".join(lines[start + 1 : end]), "\n".join(lines[end:]), start + 2, end + 1, False


def read_header(header: str, first_line: int, note: Any) -> dict[str, Any]:
    """Return the fields of a frontmatter, every scalar as text; if YAML fails, they are parsed field by field."""
    if len(header) > MAX_HEADER_CHARS:
        note(f"only the first {MAX_HEADER_CHARS:,} of {len(header):,} characters of frontmatter were read")
        header = header[:MAX_HEADER_CHARS]
    simple = _simple(header)
    if simple is not None:
        return simple
    loaded = _load(header)
    if isinstance(loaded, dict):
        fields = {str(key): value for key, value in loaded.items() if isinstance(key, str)}
        for name, line in _repeated_keys(header, first_line):
            note(f"line {line}: {name} is given twice; the last one counts")
        return fields
    if loaded is None and not header.strip():
        return {}
    return _by_field(header, first_line, note)


def _simple(header: str) -> dict[str, Any] | None:
    """Parse a header with only one-line strings, as YAML would; None if YAML is needed.

    Most skills have such headers, and YAML would take half of the time of loading 20,000 of them.
    """
    fields: dict[str, Any] = {}
    for line in header.split("\n"):
        match = _SIMPLE.fullmatch(line)
        if match is None or match[1] in fields:
            return None
        value = match[2] or match[3] or match[4] or ""
        if match[4] and (": " in value or " #" in value or value.endswith(":")):
            return None
        fields[match[1]] = value.rstrip(" ")
    return fields


def _load(text: str) -> Any:
    """Parse YAML with every scalar as a string, so that a date or ``yes`` is not converted; ``_Refused`` on failure."""
    try:
        check_yaml(text, _LOADER)
        return yaml.load(text, Loader=_LOADER)
    except (yaml.YAMLError, ValueError, RecursionError, TypeError):
        return _Refused


class _Refused:
    """Marks a YAML failure; None would be ambiguous, since it is also an empty document."""


_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""libyaml if available (ten times as fast), otherwise PyYAML's loader."""


def _repeated_keys(header: str, first_line: int) -> list[tuple[str, int]]:
    """Return the top-level fields that occur more than once, with their lines."""
    seen: set[str] = set()
    again: list[tuple[str, int]] = []
    for number, line in enumerate(header.split("\n")):
        match = _FIELD.match(line)
        if match is None:
            continue
        if match[1] in seen:
            again.append((match[1], first_line + number))
        seen.add(match[1])
    return again


def _by_field(header: str, first_line: int, note: Any) -> dict[str, Any]:
    """Parse each top-level field separately, so that a broken field does not affect the others."""
    fields: dict[str, Any] = {}
    for name, value, block, line in _blocks(header.expandtabs(2).split("\n"), first_line):
        loaded = _load(block)
        if isinstance(loaded, dict) and list(loaded) == [name]:
            fields[name] = loaded[name]
            continue
        fields[name] = _as_written(value, block)
        note(f"line {line}: {name} is not valid YAML (often because of an unquoted colon); it was read as plain text")
    if not fields:
        note(f"line {first_line}: the frontmatter is not a map of fields")
    return fields


def _blocks(lines: list[str], first_line: int) -> list[tuple[str, str, str, int]]:
    """Return (name, first line's value, whole block, line number) of each field at the left margin."""
    blocks: list[tuple[str, str, list[str], int]] = []
    for number, line in enumerate(lines):
        match = _FIELD.match(line)
        if match is not None:
            blocks.append((match[1], (match[2] or "").strip(), [line], first_line + number))
        elif blocks:
            blocks[-1][2].append(line)
    return [(name, value, "\n".join(block), line) for name, value, block, line in blocks]


def _as_written(value: str, block: str) -> Any:
    """Return a field that YAML rejected: nested ``key: value`` lines as a map, anything else as one text."""
    rest = [line.strip() for line in block.split("\n")[1:]]
    if not value and rest:
        pairs = [found for line in rest if (found := _FIELD.match(line))]
        if pairs and len(pairs) == sum(1 for line in rest if line):
            return {found[1]: _unquote((found[2] or "").strip()) for found in pairs}
    if _BLOCK_SCALAR.match(value):
        value = ""
    return _unquote(" ".join(part for part in [value, *rest] if part))


def _unquote(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text.lstrip("\"'") if text[:1] in {'"', "'"} and text.count(text[0]) == 1 else text
