"""Strict check of a SKILL.md against the Agent Skills specification, by file, line and rule.

The rules are those of agentskills.io/specification, and three of fireswarm: ``script-outside`` for scripts outside the
skill's folder, the conversation contract (``check_terms``), and the code (``check_code``). The loader accepts most of
these faults.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fireswarm.contracts.frontmatter import check_yaml
from fireswarm.contracts.skills.advice import ExecutionMode
from fireswarm.skills.checks.code import check_code
from fireswarm.skills.checks.conversation import check_terms
from fireswarm.skills.packs import field_values, origin
from fireswarm.skills.packs.discovery import SKILL_FILE, discover
from fireswarm.skills.packs.parse import MAX_FILE_BYTES, MAX_HEADER_CHARS, Parsed, parse
from fireswarm.skills.packs.terms import FIELDS as CONVERSATION_FIELDS

FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
"""All fields of the specification; the first two are required."""

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_TEXT = "tag:yaml.org,2002:str"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class PackFault:
    """One fault, on a 1-based line of a file; ``rule`` is a stable name."""

    path: Path
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


@dataclass(frozen=True, slots=True)
class Report:
    """Faults in the order of files and lines, and the number of checked skills."""

    skills: int
    faults: tuple[PackFault, ...]


def check_paths(paths: Iterable[Path]) -> Report:
    """Check SKILL.md files, skill folders, and every skill below other folders."""
    faults: list[PackFault] = []
    judged = 0
    for path in paths:
        files = [path] if path.is_file() else [Path(place.file) for place in discover([path]).skills]
        if not files:
            faults.append(PackFault(path, 1, "no-skill", f"{SKILL_FILE} is missing"))
        for file in files:
            judged += 1
            faults += check_file(file)
    return Report(judged, tuple(faults))


def check_file(path: Path) -> tuple[PackFault, ...]:
    """Check one SKILL.md; invalid content is a fault, not an exception."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        return (PackFault(path, 1, "unreadable", str(error.strerror)),)
    parsed = parse(data)
    findings = [*_form(path, data, parsed)]
    if parsed.has_header and parsed.closed:
        findings += _header(parsed, path)
    folder = Path(os.path.realpath(path.parent))
    for sentence in origin.outside(parsed, folder):
        line, _, text = sentence.removeprefix("line ").partition(": ")
        findings.append((int(line), "script-outside", text))
    findings += [(1, "script-outside", text) for text in origin.entry_outside(_metadata(parsed), folder)]
    if parsed.has_header and parsed.closed:
        findings += check_terms(parsed)
        findings += _mode(_metadata(parsed).get("execution_mode", ""))
    judged = tuple(PackFault(path, line, rule, message) for line, rule, message in sorted(dict.fromkeys(findings)))
    return (*judged, *_code(folder, _metadata(parsed)))


def _mode(said: str) -> Iterator[Found]:
    """Check the execution mode of a pipeline step, if it has one."""
    if said and said not in set(ExecutionMode):
        known = ", ".join(mode.value for mode in ExecutionMode)
        yield 1, "execution-mode", f"metadata.execution_mode {said!r} is not one of {known}"


def _code(folder: Path, metadata: dict[str, str]) -> Iterator[PackFault]:
    """Check the code of a skill that has an entry."""
    entry, said = metadata.get("entry", ""), metadata.get("execution_mode", "")
    mode = ExecutionMode(said) if said in set(ExecutionMode) else None
    if entry and not origin.leads_outside(entry, folder) and (folder / entry).is_file():
        for fault in check_code(folder, Path(entry), mode):
            yield PackFault(*fault)


Found = tuple[int, str, str]


def _metadata(parsed: Parsed) -> dict[str, str]:
    return field_values.flat(parsed.fields.get("metadata"))


def _form(path: Path, data: bytes, parsed: Parsed) -> Iterator[Found]:
    """Check the file: its name, encoding and frontmatter marks."""
    if path.name != SKILL_FILE:
        yield 1, "file-name", f"the file must be named {SKILL_FILE}"
    if len(data) > MAX_FILE_BYTES:
        yield 1, "file-size", f"the file is larger than {MAX_FILE_BYTES:,} bytes"
    yield from _encoding(data[:MAX_FILE_BYTES])
    if not parsed.has_header:
        yield 1, "frontmatter-missing", "the file must begin with frontmatter between two lines of ---"
    elif parsed.header_line > 2:
        yield 1, "frontmatter-start", "the first line must be ---"
    if parsed.has_header and not parsed.closed:
        yield parsed.header_line - 1, "frontmatter-unclosed", "the frontmatter must end with a line of ---"


def _encoding(data: bytes) -> Iterator[Found]:
    """Check that the file is UTF-8 without a byte order mark and control characters."""
    if data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        yield 1, "encoding", "the file must be UTF-8 without a byte order mark"
        return
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        yield data.count(b"\n", 0, error.start) + 1, "encoding", "the file must be UTF-8"
        return
    control = _CONTROL.search(text)
    if control is not None:
        yield text.count("\n", 0, control.start()) + 1, "encoding", "the file contains a control character"


def _header(parsed: Parsed, path: Path) -> Iterator[Found]:
    """Check the fields as YAML nodes, which have line numbers and types."""
    first = parsed.header_line
    node = _compose(parsed.header)
    if isinstance(node, tuple):
        yield first + node[0], "frontmatter-yaml", node[1]
        return
    seen: dict[str, Any] = {}
    for key, value in node.value:
        name, line = str(key.value), first + key.start_mark.line
        if name in seen:
            yield line, "field-repeated", f"{name} is given twice"
        elif name not in (*FIELDS, *CONVERSATION_FIELDS):
            yield line, "field-unknown", f"{name} is not a field of the specification: put it under metadata"
        seen[name] = value
    for name in FIELDS[:2]:
        if name not in seen:
            yield first, f"{name}-missing", f"{name} is required"
    for name, value in seen.items():
        if name in _JUDGES:
            yield from _JUDGES[name](value, first + value.start_mark.line, path)


def _compose(header: str) -> Any:
    """Parse the frontmatter to a mapping node, or return (line, fault)."""
    if len(header) > MAX_HEADER_CHARS:
        return 0, "the frontmatter is too long"
    try:
        check_yaml(header, _LOADER)
        node: Any = yaml.compose(header, Loader=_LOADER)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark: Any = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        return mark.line if mark else 0, f"the frontmatter is not valid YAML: {problem}"
    if node is None:
        return yaml.MappingNode("", [])
    return node if isinstance(node, yaml.MappingNode) else (0, "the frontmatter must be a map of fields")


def _is_text(value: Any) -> bool:
    return isinstance(value, yaml.ScalarNode) and value.tag == _TEXT


def _name(value: Any, line: int, path: Path) -> Iterator[Found]:
    """Check the name: its type, length, characters and folder."""
    if not _is_text(value):
        yield line, "name-text", "name must be a string: put it in quotes"
        return
    name = str(value.value)
    if not 1 <= len(name) <= field_values.MAX_NAME_CHARS:
        yield line, "name-length", f"name has {len(name)} characters; it must have 1 to {field_values.MAX_NAME_CHARS}"
    if name and field_values.NAME.fullmatch(name) is None:
        yield line, "name-form", f"name {name[:80]!r} may only contain a-z, 0-9 and single hyphens between them"
    folder = Path(os.path.realpath(path.parent)).name
    if name != folder:
        yield line, "name-folder", f"name {name[:80]!r} must equal the name of its folder, {folder!r}"


def _description(value: Any, line: int, _: Path) -> Iterator[Found]:
    yield from _text("description", value, line, field_values.MAX_DESCRIPTION_CHARS)


def _license(value: Any, line: int, _: Path) -> Iterator[Found]:
    if not _is_text(value):
        yield line, "license-text", "license must be text"


def _compatibility(value: Any, line: int, _: Path) -> Iterator[Found]:
    yield from _text("compatibility", value, line, field_values.MAX_COMPATIBILITY_CHARS)


def _text(name: str, value: Any, line: int, most: int) -> Iterator[Found]:
    """Check a string of 1 to *most* characters."""
    if not _is_text(value):
        yield line, f"{name}-text", f"{name} must be text"
    elif not len(str(value.value).strip()) >= 1 or len(str(value.value)) > most:
        yield line, f"{name}-length", f"{name} has {len(str(value.value)):,} characters; it must have 1 to {most:,}"


def _metadata_map(value: Any, line: int, _: Path) -> Iterator[Found]:
    """Check that metadata maps strings to strings, without repeated keys."""
    if not isinstance(value, yaml.MappingNode):
        yield line, "metadata-map", "metadata must be a map of text to text"
        return
    offset = line - value.start_mark.line
    seen: set[str] = set()
    for key, inner in value.value:
        at = offset + key.start_mark.line
        if str(key.value) in seen:
            yield at, "field-repeated", f"metadata.{key.value} is given twice"
        seen.add(str(key.value))
        if not (_is_text(key) and _is_text(inner)):
            yield at, "metadata-text", f"metadata.{str(key.value)[:80]} must be text: put it in quotes"


def _allowed_tools(value: Any, line: int, _: Path) -> Iterator[Found]:
    if not _is_text(value):
        yield line, "allowed-tools-text", "allowed-tools must be one text of tools separated by spaces"
    elif "," in _without_parentheses(str(value.value)):
        yield line, "allowed-tools-text", "separate allowed-tools by spaces, not by commas"


def _without_parentheses(text: str) -> str:
    return re.sub(r"\([^()]*+\)", "", text)


_JUDGES = {
    "name": _name,
    "description": _description,
    "license": _license,
    "compatibility": _compatibility,
    "metadata": _metadata_map,
    "allowed-tools": _allowed_tools,
}
