"""Content of one file: read once, within limits, with any content."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections import Counter
from pathlib import Path
from typing import Any

from fireswarm import binary_kind, is_secret_file, without_secrets

from .code import measure_code
from .kinds import is_code, is_prose, language_of, mime_of
from .prose import headings_of, links_of
from .terms import code_terms, prose_terms

MAX_TEXT_BYTES = 2_000_000
"""Maximum bytes of text that are analyzed in a file; the record of a larger file says so."""

MAX_HASH_BYTES = 256_000_000
"""Maximum size of a hashed file: reading a larger one would take longer than the rest of the folder."""

MAX_MARKERS, MAX_HEADINGS, MAX_LINKS, MAX_TERMS = 50, 60, 200, 30
_LONGEST_LINE = 2_000

_MARKER = re.compile(
    r"(?:^\s*+|[#/*;%!-]\s*+|(?=(?:TODO|FIXME|XXX|HACK)[:(]))\b(TODO|FIXME|XXX|HACK)\b[:\s-]*+(.{0,160})"
)
_COMMENT_ENDS = ("*/", "-->", "#}")
_UNCHECKED = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+\[ \]\s+(.{0,160})")
_SECRET = re.compile(
    r"(AKIA[0-9A-Z]{12,}+|gh[pousr]_\w{16,}+|sk-[\w-]{16,}+|xox[abprs]-[\w-]{10,}+|(?<![\w-])eyJ[\w-]{10,}+\.[\w.-]{10,}+"
    r"|\b[A-Fa-f0-9]{32,}+\b|(?i:\b(?:password|passwd|secret|token|api_?key)\b\s*+[:=]\s*+)\S+|(?<=://)[^/\s:@]++:[^/\s@]++(?=@))"
)

_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

Record = dict[str, Any]
"""One file of the inventory, in the form of its JSON."""


class _NotRegular(Exception):
    """The file is a pipe, a socket or a device."""


def redact(text: str) -> str:
    """Blank out text that looks like a credential, so that no excerpt contains one."""
    return _SECRET.sub("[redacted]", text)


def read_record(root: Path, path: str) -> Record | str:
    """Return the record of the file at *path* below *root*, or the reason why it could not be read."""
    try:
        return _describe(root, path)
    except FileNotFoundError:
        return "vanished"
    except _NotRegular:
        return "special_file"
    except OSError:
        return "unreadable"


def _describe(root: Path, path: str) -> Record:
    file = root / path
    language = language_of(path)
    if is_secret_file(file.name) and not is_code(language):
        size = file.stat().st_size
        mime = mime_of(path, binary=False)
        return {"path": path, "bytes": size, "mime": mime, "language": language, "kind": "sensitive"}
    head, size, digest = _read(file)
    kind = binary_kind(file.name, head)
    binary = kind is not None
    record: Record = {
        "path": path,
        "bytes": size,
        "mime": mime_of(path, binary=binary),
        "language": "" if binary else language,
        "kind": "binary" if binary else "text",
        "sha256": digest,
    }
    return record | ({"format": kind} if binary else _describe_text(root, path, head, size))


def _read(file: Path) -> tuple[bytes, int, str | None]:
    """Read the beginning and hash the whole; the size is the number of bytes read, so that it matches the hash."""
    hasher = hashlib.sha256()
    number = os.open(file, _OPEN)
    if not stat.S_ISREG(os.fstat(number).st_mode):  # it became a pipe after it was listed
        os.close(number)
        raise _NotRegular
    with os.fdopen(number, "rb") as stream:
        head = stream.read(MAX_TEXT_BYTES)
        hasher.update(head)
        size = len(head)
        while size <= MAX_HASH_BYTES and (block := stream.read(1_048_576)):
            hasher.update(block)
            size += len(block)
        if size > MAX_HASH_BYTES:
            return head, file.stat().st_size, None
    return head, size, hasher.hexdigest()


def _decode(head: bytes) -> tuple[str, str]:
    """Decode as UTF-8, as UTF-16 by its mark, otherwise byte by byte; returns also the encoding."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head.decode("utf-16", "replace"), "utf-16"
    try:
        return head.decode("utf-8-sig"), "utf-8"
    except UnicodeDecodeError as error:
        if len(head) == MAX_TEXT_BYTES and error.start > MAX_TEXT_BYTES - 4:
            return head[: error.start].decode("utf-8-sig"), "utf-8"
        return head.decode("latin-1"), "unknown-8bit"


def _describe_text(root: Path, path: str, head: bytes, size: int) -> Record:
    text, encoding = _decode(head)
    lines = text.splitlines()
    language = language_of(path)
    clipped = [line[:_LONGEST_LINE] for line in lines]
    record: Record = {"lines": len(lines), "encoding": encoding}
    if size > len(head):
        record["analysed_bytes"] = len(head)
    if len(clipped) and max(map(len, lines)) > _LONGEST_LINE:
        record["longest_line"] = max(map(len, lines))
    if is_code(language):
        record |= _describe_code(text, language)
    if is_secret_file(Path(path).name):  # code is measured, but no text of it is shown
        return record
    record |= _bounded("markers", find_markers(clipped, prose=is_prose(language)), MAX_MARKERS)
    if language == "Markdown":
        headings = [found | {"text": redact(found["text"])} for found in headings_of(clipped)]
        links = [found | {"target": redact(found["target"])} for found in links_of(root, path, clipped)]
        record |= _bounded("headings", headings, MAX_HEADINGS) | _bounded("links", links, MAX_LINKS)
    known = prose_terms if is_prose(language) else code_terms if is_code(language) else None
    terms = (
        known(without_secrets("\n".join(clipped)).replace("[redacted]", " ").split("\n")) if known else Counter[str]()
    )
    if terms:
        ranked = sorted(terms.items(), key=lambda item: (-item[1], item[0]))
        record["terms"] = dict(ranked[:MAX_TERMS])
    return record


def _describe_code(text: str, language: str) -> Record:
    measure = measure_code(text, language)
    record: Record = {"complexity": measure.complexity, "worst_complexity": measure.worst, "measured": measure.method}
    if measure.worst_name:
        record["worst_function"] = measure.worst_name
    if measure.imports:
        record["imports"] = list(measure.imports)
    return record


def _bounded(name: str, found: list[Record], most: int) -> Record:
    """Return the first *most* entries, and the total number if there are more."""
    if not found:
        return {}
    kept: Record = {name: found[:most]}
    return kept | ({f"{name}_in_all": len(found)} if len(found) > most else {})


def find_markers(lines: list[str], *, prose: bool = False) -> list[Record]:
    """Return the TODO, FIXME, XXX and HACK markers with their line numbers, credentials blanked out.

    A marker counts at the beginning of a line or comment, or before a colon or bracket; in prose an unchecked list item
    counts too, as OPEN.
    """
    found: list[Record] = []
    for number, line in enumerate(lines, start=1):
        unchecked = _UNCHECKED.match(line) if prose else None
        match = _MARKER.search(line)
        if unchecked:
            found.append({"line": number, "kind": "OPEN", "text": redact(unchecked.group(1)).strip()})
        elif match:
            text = _without_comment_end(redact(match.group(2)))
            found.append({"line": number, "kind": match.group(1), "text": text})
    return found


def _without_comment_end(text: str) -> str:
    text = text.rstrip()
    end = next((end for end in _COMMENT_ENDS if text.endswith(end)), "")
    return text.removesuffix(end).rstrip()
