"""Read-only tools below one folder: list files, read a file, search for a text."""

from __future__ import annotations

import fnmatch
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio.to_thread

from fireswarm.contracts.limits import SNIFF_BYTES
from fireswarm.contracts.skills.tool import Tool
from fireswarm.errors import InvalidInput

MAX_ENTRIES = 500
MAX_LINES = 400
MAX_MATCHES = 100
MAX_MATCH_CHARS = 300
MAX_SEARCHED_BYTES = 2_000_000
"""Larger files are not searched: they rarely contain human-written text."""

SKIPPED = frozenset({".git", "node_modules", "__pycache__", ".tools", ".venv", "venv", ".fireswarm", ".hg", ".svn"})


def reading_tools(root: Path) -> dict[str, Tool]:
    """Return the tools for one folder; paths outside of it are rejected."""
    text = {"type": "string"}
    path = text | {"description": "path below the workspace; default: the workspace itself"}
    number = {"type": "integer"}
    listed = (
        ("list_files", "Lists files below a folder, with sizes.", {"path": path, "pattern": text}, _list_files, "Glob"),
        ("read_file", "Reads lines of a text file.", {"path": path, "start": number, "lines": number}, _read, "Read"),
        (
            "search_text",
            "Finds lines that contain a text.",
            {"text": text, "path": path, "pattern": text},
            _search,
            "Grep",
        ),
    )
    return {
        name: Tool(
            name,
            description,
            {"type": "object", "properties": properties},
            _in_thread(root.resolve(), function),
            spec_name=spec_name,
        )
        for name, description, properties, function, spec_name in listed
    }


def describe_tools(tools: Mapping[str, Tool]) -> str:
    """Describe the tools for the model, in the system text."""
    lines = [f"- `{tool.name}`: {tool.description} Input: {_input_of(tool)}" for tool in tools.values()]
    return "\n".join(["# Tools", "", *lines]) if lines else ""


def _input_of(tool: Tool) -> str:
    """Return names and types of the parameters if that is sufficient, otherwise the schema."""
    properties: dict[str, dict[str, Any]] = tool.parameters.get("properties", {})
    if "$defs" in tool.parameters or any("type" not in schema for schema in properties.values()):
        return json.dumps(tool.parameters, separators=(",", ":"))
    required = tool.parameters.get("required", ())
    named = (
        f"{name}{'' if name in required else '?'}: {'|'.join(schema.get('enum', ())) or schema['type']}"
        for name, schema in properties.items()
    )
    return ", ".join(named) or "none"


def _in_thread(root: Path, function: Callable[[Path, Mapping[str, Any]], Any]) -> Any:
    async def run(given: Mapping[str, Any]) -> Any:
        return await anyio.to_thread.run_sync(function, root, given)

    return run


def _inside(root: Path, given: Mapping[str, Any]) -> Path:
    named = str(given.get("path") or ".").removeprefix("file://")
    path = (root / named).resolve()
    if not path.is_relative_to(root):
        raise InvalidInput(f"{named} is outside the workspace {root}")
    if not path.exists():
        raise InvalidInput(f"{named} does not exist")
    return path


def _files(folder: Path) -> Iterator[Path]:
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        for name in sorted(files):
            yield Path(where) / name


def _list_files(root: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    folder, pattern = _inside(root, given), str(given.get("pattern") or "*")
    entries: list[dict[str, Any]] = []
    total = 0
    for path in _files(folder) if folder.is_dir() else iter((folder,)):
        relative = path.relative_to(root).as_posix()
        if fnmatch.fnmatch(path.name, pattern) or fnmatch.fnmatch(relative, pattern):
            total += 1
            if total <= MAX_ENTRIES:
                entries.append({"path": relative, "bytes": path.lstat().st_size})
    return {"files": entries, "total": total}


def _read(root: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return lines of a text file. Raises InvalidInput for a folder or a binary file."""
    path = _inside(root, given)
    if not path.is_file():
        raise InvalidInput(f"{given.get('path')} is a folder: use list_files")
    start = max(1, int(given.get("start") or 1))
    count = min(MAX_LINES, max(1, int(given.get("lines") or MAX_LINES)))
    with path.open("rb") as file:
        content = file.read(MAX_SEARCHED_BYTES)
        whole = not file.read(1)
    if b"\0" in content[:SNIFF_BYTES]:
        raise InvalidInput(f"{given.get('path')} is not text")
    lines = content.decode("utf-8", "replace").splitlines()
    excerpt = {"lines": lines[start - 1 : start - 1 + count], "from": start, "total_lines": len(lines)}
    return excerpt if whole else excerpt | {"cut": f"only the first {MAX_SEARCHED_BYTES:,} bytes were read"}


def _text_in(path: Path) -> bytes:
    """Return a file's content, or nothing if it is binary, too large, a pipe, or unreadable."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_SEARCHED_BYTES:
            return b""
        content = path.read_bytes()
    except OSError:
        return b""
    return b"" if b"\0" in content[:SNIFF_BYTES] else content


def _search(root: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the lines that contain a text, ignoring case: the first MAX_MATCHES and the total."""
    wanted = str(given.get("text") or "").lower()
    if not wanted:
        raise InvalidInput("search_text needs a text")
    folder, pattern = _inside(root, given), str(given.get("pattern") or "*")
    matches: list[dict[str, Any]] = []
    total = 0
    for path in _files(folder) if folder.is_dir() else iter((folder,)):
        content = _text_in(path) if fnmatch.fnmatch(path.name, pattern) else b""
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
            if wanted in line.lower():
                total += 1
                if total <= MAX_MATCHES:
                    matches.append(
                        {"path": path.relative_to(root).as_posix(), "line": number, "text": line[:MAX_MATCH_CHARS]}
                    )
    return {"matches": matches, "total": total}
