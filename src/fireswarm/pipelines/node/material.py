"""What an advisor has before it: the schema of what is to be written, the source, and what was recorded."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Any

from fireswarm.contracts.limits import truncate
from fireswarm.contracts.skills.advice import MAX_MATERIAL_CHARS, MAX_PIECES, Material, TraceMap
from fireswarm.pipelines.files import PROJECT, SOURCES, Carried
from fireswarm.pipelines.node.recording import CREDENTIALS, RECORDING, recorded_node
from fireswarm.pipelines.node.replay import operation_keys, replay_cases
from fireswarm.pipelines.node.request_template import common_base
from fireswarm.pipelines.node.schema import NodeSchema, Operation, field_of
from fireswarm.pipelines.packages import folder_version

SCHEMA = "node_schema.json"
RECORDED = "recorded.json"
"""Name of the recorded inputs of one operation."""

LINES_BEFORE, LINES_AFTER, LINES_AROUND = 10, 60, 200
"""Lines of a document that an advisor has with one operation."""

CODE_BEFORE, CODE_AFTER = 20, 120
"""Lines of code around each one that names an operation, or a part of its address."""

_DEFINES = "function "
_QUOTED = re.compile(r"['\"]([^'\"]*+)['\"]")

MAX_EXCERPT_CHARS = 20_000
MAX_CODE_CHARS = 40_000
MIN_CODE_CHARS = 500
"""Less of a file tells nothing."""

MAX_CASES_CHARS = 30_000
MAX_SOURCES = 4


def material_of(carried: Carried, paths: list[str], spent: Sequence[Material] = ()) -> tuple[Material, ...]:
    """Return the named files as material for the advisor, as far as they fit beside *spent*, without empty ones.

    Of the schema it has what is still to be written. Files of the source come last, small ones first. A note stands
    where a text is cut.
    """
    texts = {path: _schema_to_write(text) if path == SCHEMA else text for path in paths if (text := carried.text(path))}
    sources = sorted((path for path in texts if path.startswith(SOURCES)), key=lambda path: len(texts[path]))
    chosen: list[Material] = []
    room = MAX_MATERIAL_CHARS - sum(len(piece.text) for piece in spent)
    for path in [*(path for path in texts if path not in sources), *sources]:
        text = texts[path]
        if len(text) > room:
            note = f"\n[the rest is left out: {len(text):,} characters do not fit]\n"
            text = text[: max(room - len(note), 0)] + note
        if len(text) > room or len(chosen) + len(spent) >= MAX_PIECES:
            continue
        chosen.append(Material(name=path, text=text))
        room -= len(text)
    return tuple(chosen)


def material_of_one(carried: Carried, schema: NodeSchema, operation: Operation) -> tuple[Material, ...]:
    """Return the schema of one operation, the parts of the source that are about it, and what was recorded of it."""
    described = Material(name=SCHEMA, text=_schema_of(carried.json(SCHEMA), {operation.key}))
    if RECORDING in carried:
        return (described, _cases_of(carried, schema, operation), *_code_of(carried, operation))
    transport = f"{PROJECT}nodes/{schema.name}/transport.py"
    return (
        described,
        *_lines_of(carried, schema, operation),
        Material(name=transport, text=carried.text(transport)),
    )


def _lines_of(carried: Carried, schema: NodeSchema, operation: Operation) -> list[Material]:
    """Return the lines of documents around the evidence of an operation and its parameters."""
    names = [f"operations.{operation.key}", *(field_of(each) for each in schema.parameters_of(operation.key))]
    trace = TraceMap.model_validate(carried.json("trace_map.json")).fields
    lines: dict[str, list[int]] = {}
    for piece in [piece for name in names if name in trace for piece in trace[name].evidence]:
        lines.setdefault(piece.file, []).append(piece.line_start)
    pieces: list[Material] = []
    for file, found in sorted(lines.items())[: MAX_SOURCES - 1]:
        text = carried.text(f"{SOURCES}{file}").splitlines()
        near = [each for each in found if abs(each - found[0]) < LINES_AROUND]
        excerpt = "\n".join(text[max(min(near) - LINES_BEFORE, 0) : max(near) + LINES_AFTER])
        pieces.append(Material(name=f"{SOURCES}{file}", text=truncate(excerpt, MAX_EXCERPT_CHARS)))
    return pieces


def _cases_of(carried: Carried, schema: NodeSchema, operation: Operation) -> Material:
    """Return recorded inputs of an operation, each with requests, answers and items; at least one, if there is any."""
    node = recorded_node(carried.json(RECORDING))
    every = operation_keys(node)
    urls = [request.url for each in every.values() for case in each.cases for request in case.requests]
    alone = schema.model_copy(update={"operations": (operation,)})
    cases: list[dict[str, Any]] = []
    room = MAX_CASES_CHARS
    for case in replay_cases(node, alone, common_base(urls)):
        room -= len(json.dumps(case, ensure_ascii=False))
        if cases and room < 0:
            break
        cases.append({name: value for name, value in case.items() if name != "operation"})
    errors = sorted({case.error for case in every[operation.key].cases if case.error and not case.requests})
    told = {
        CREDENTIALS: {field: value for value, field in node.secrets.items()},
        "cases": cases,
        **({"errors": errors} if errors and not cases else {}),
    }
    return Material(name=RECORDED, text=json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def _code_of(carried: Carried, operation: Operation) -> list[Material]:
    """Return the code around the lines that name an operation or a part of its address, then files with helpers.

    Small files are whole. A line that names the action counts below one that names the resource.
    """
    texts: dict[str, str] = {}
    for path in carried.names(SOURCES):
        if (text := carried.text(path)) not in texts.values():
            texts[path] = text
    spots = {path: _spots(text.splitlines(), operation) for path, text in texts.items()}
    about = sorted(
        (path for path in texts if spots[path]), key=lambda path: (*_rank(path, operation), -len(spots[path]))
    )
    others = (path for path in texts if not spots[path] and _DEFINES in texts[path])
    helping = sorted(others, key=lambda path: (*_rank(path, operation), len(texts[path])))
    chosen: list[Material] = []
    for paths, room in ((about, MAX_CODE_CHARS), (helping, MAX_EXCERPT_CHARS)):
        for path in paths:
            text = (
                texts[path] if len(texts[path]) <= MAX_EXCERPT_CHARS else _around(texts[path].splitlines(), spots[path])
            )
            if text.strip() and room >= MIN_CODE_CHARS and len(chosen) < MAX_PIECES - 2:
                chosen.append(Material(name=path, text=truncate(text, min(room, MAX_EXCERPT_CHARS))))
                room -= len(chosen[-1].text)
    return chosen


def _rank(path: str, operation: Operation) -> tuple[int, int]:
    """Return how far a file is from an operation: by the words of its key in the path, then by its version."""
    folded = re.sub(r"[^a-z0-9/.]", "", path.lower())
    words = [word.replace("_", "") for word in operation.key.split(".")]
    return -sum(word in folded.rpartition("/nodes/")[2] for word in words), -folder_version(path)


def _spots(lines: Sequence[str], operation: Operation) -> list[int]:
    """Return the numbers of the lines that name an operation or a part of its address."""
    resource, action = (part.replace("_", "") for part in operation.key.rpartition(".")[::2])
    address = [f"/{part}" for part in re.split(r"[/?]|\{[^{}]*+\}", operation.path) if len(part) > 1]
    owner, spots = -CODE_AFTER, list[int]()
    for number, line in enumerate(lines):
        named = {_fold(text) for text in _QUOTED.findall(line)}
        if not resource or resource in named:
            owner = number
        if (action in named and number - owner < CODE_AFTER) or any(part in line for part in address):
            spots.append(number)
    return spots


def _fold(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _around(lines: Sequence[str], spots: Sequence[int]) -> str:
    """Return the lines around some of them, with the numbers of those that are left out."""
    kept = {near for spot in spots for near in range(spot - CODE_BEFORE, spot + CODE_AFTER) if 0 <= near < len(lines)}
    shown: list[str] = []
    last = -1
    for number in sorted(kept):
        if number != last + 1:
            shown.append(f"[lines {last + 2:,} to {number:,} are left out]")
        shown.append(lines[number])
        last = number
    return "\n".join(shown)


def _schema_to_write(text: str) -> str:
    """Return the schema without the operations that a template has written."""
    content: dict[str, Any] = json.loads(text)
    keys = {each["key"] for each in content["operations"] if not each.get("template")}
    return text if len(keys) == len(content["operations"]) else _schema_of(content, keys)


def _schema_of(content: dict[str, Any], keys: Collection[str]) -> str:
    """Return a schema with these operations only."""
    operations = [each for each in content["operations"] if each["key"] in keys]
    mine = [each for each in content["parameters"] if not each["operations"] or set(keys) & set(each["operations"])]
    inputs = {key: each for key, each in content.get("inputs", {}).items() if key in keys}
    left_out = {"unread", "parts"}
    kept = {name: each for name, each in content.items() if name not in left_out}
    kept |= {"operations": operations, "parameters": mine, "inputs": inputs}
    return json.dumps(kept, indent=2, ensure_ascii=False) + "\n"
