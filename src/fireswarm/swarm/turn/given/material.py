"""The inputs of a model's task in words: what it was given, from whom, and how to read on. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fireswarm.contracts.limits import MAX_LABEL_CHARS, MAX_RESULT_SUMMARY_CHARS, truncate
from fireswarm.contracts.skills.artifact import ANSWER
from fireswarm.contracts.text_page import fence, say_after
from fireswarm.swarm.turn.given.files import Giver, InputFile

TEXT_CHARS = 24_000
"""Maximum characters of all quoted files. A file that does not fit gets a fair share of what the others leave."""

MIN_SHARE = 300
"""A file whose share would be smaller is only named."""

MAX_LISTED = 200
"""Maximum number of files that are named; list_files shows all."""

MAX_LINES_CHARS = 8_000
"""Maximum characters of signals, or of facts; whole lines only."""


def shares(lengths: Sequence[int], room: int) -> list[int]:
    """Return how much of each text is quoted: all of the small ones, and an equal part of the large ones."""
    granted = [0] * len(lengths)
    left = room
    for rank, number in enumerate(sorted(range(len(lengths)), key=lambda each: lengths[each])):
        granted[number] = min(lengths[number], left // (len(lengths) - rank))
        left -= granted[number]
    return granted


def describe_givers(
    givers: Sequence[Giver],
    files: Mapping[str, Sequence[InputFile]],
    texts: Mapping[str, str],
    room: int = TEXT_CHARS,
) -> list[str]:
    """Return what each giver gives, in order: its summary, its files, and their texts, in full or in part.

    *texts* are the texts of files by their path.
    """
    listed = [file for giver in givers for file in files.get(giver.folder, ())]
    quoted = [file for file in listed if file.name in texts]
    room_of = shares([len(texts[file.name]) for file in quoted], room)
    granted = {file.name: share for file, share in zip(quoted, room_of, strict=True)}
    named = {file.name for file in listed[:MAX_LISTED]}
    blocks: list[str] = []
    for giver in givers:
        own = files.get(giver.folder, ())
        lines = [f"## {giver.folder} ({giver.title})"]
        if giver.summary and not any(file.artifact.type == ANSWER and file.name in texts for file in own):
            summary = truncate(giver.summary, MAX_RESULT_SUMMARY_CHARS)
            lines.append(say_after("Summary", summary, f"the summary of {giver.folder}"))
        lines += [say_after("- Insight", insight, f"an insight of {giver.folder}") for insight in giver.insights]
        for file in own:
            if file.name in named:
                lines.append(_describe_file(file, texts.get(file.name), granted.get(file.name, 0)))
        blocks.append("\n".join(lines))
    if len(listed) > MAX_LISTED:
        blocks.append(f"[{len(listed) - MAX_LISTED:,} more files: list_files with path inputs names them]")
    return blocks


def _describe_file(file: InputFile, text: str | None, share: int) -> str:
    """Return one file: its line, and as much of its text as its share allows."""
    artifact = file.artifact
    size = len(text.encode()) if text is not None else artifact.size_bytes
    facts = [artifact.type, *([f"{size:,} bytes"] if size is not None else [])]
    about = (
        f": {truncate(' '.join(artifact.summary.split()), MAX_LABEL_CHARS)}"
        if artifact.summary and artifact.type != ANSWER
        else ""
    )
    line = f"- {file.name} ({', '.join(facts)}){about}"
    if text is None:
        return line
    if share >= len(text):
        return f"{line}\n{fence(text, file.name)}"
    if file.is_json:
        return f"{line}\n  {outline(text)}; read_file shows it"
    if share < MIN_SHARE:
        return f"{line}\n  {len(text):,} characters: read_file shows them"
    part = _cut(text, share)
    line_number = part.count("\n") + 1
    where = f"offset {line_number}"
    if (column := len(part) - part.rfind("\n")) > 1 and len(text.split("\n")[line_number - 1]) > MAX_LABEL_CHARS:
        where += f", limit 1, column {column}"
    note = f"[the first {len(part):,} of {len(text):,} characters: read on with read_file {file.name}, {where}]"
    return f"{line}\n{fence(part, file.name)}\n{note}"


def _cut(text: str, most: int) -> str:
    """Return the beginning of a text, up to the end of a line if one is near, or of a word."""
    for end in ("\n", " "):
        if (at := text.rfind(end, most * 3 // 4, most)) > 0:
            return text[: at + 1] if end == "\n" else text[:at]
    return text[:most]


def outline(text: str) -> str:
    """Return the form of a JSON text in one line: its keys, with types and sizes."""
    try:
        value: Any = json.loads(text)
    except ValueError:
        return f"{len(text):,} characters"
    if isinstance(value, dict):
        return truncate("JSON object with " + ", ".join(f"{key} ({_kind(each)})" for key, each in value.items()), 600)
    return f"JSON: {_kind(value)}"


def _kind(value: Any) -> str:
    match value:
        case dict():
            return f"object with {len(value):,} keys"
        case list():
            return f"list of {len(value):,}"
        case str():
            return f"text of {len(value):,} characters"
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def whole_lines(title: str, lines: Sequence[str], room: int = MAX_LINES_CHARS) -> str:
    """Return a list under its title, with as many whole lines as fit, and the number of the others; "" if empty."""
    shown: list[str] = []
    for line in lines:
        room -= len(line) + 3
        if room < 0:
            shown.append(f"[{len(lines) - len(shown):,} more]")
            break
        shown.append(f"- {line}")
    return "\n".join([f"## {title}", *shown]) if shown else ""
