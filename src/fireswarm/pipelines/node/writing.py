"""Write a node's operations with the advisor's answer: one question, one file in scope, and the run's diff."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Sequence
from typing import Any

from fireswarm.contracts.base import count_noun
from fireswarm.contracts.limits import truncate
from fireswarm.contracts.skills.advice import (
    MAX_MATERIAL_CHARS,
    MAX_PIECES,
    AdviceKind,
    AdviceRequest,
    CodeAdvice,
    Material,
    TraceMap,
)
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult, SkillState
from fireswarm.errors import InvalidInput
from fireswarm.pipelines.files import PROJECT, SOURCES, Carried
from fireswarm.pipelines.node.schema import NodeSchema, Operation, field_of
from fireswarm.pipelines.scope import unified_diff

SCHEMA = "node_schema.json"

LINES_BEFORE, LINES_AFTER, LINES_AROUND = 10, 60, 200
"""Lines of the source that an advisor has with one operation."""

MAX_EXCERPT_CHARS = 20_000
MAX_SOURCES = 4


def load_schema(files: Carried) -> NodeSchema:
    """Return the schema of a node that all steps after it use."""
    content = files.json("node_schema.json")
    content.pop("inputs", None)
    return NodeSchema.model_validate(content)


def write_operations(request: SkillRequest, question: str) -> SkillResult:
    """Write ``operations.py`` from the advisor's answer. *question* is a template with ``{name}`` and ``{target}``."""
    carried = Carried.of(request)
    schema = load_schema(carried)
    name = schema.name
    target = f"nodes/{name}/operations.py"
    if schema.source_type == "TYPE2" and (pending := schema.to_write()):
        return _write_each(request, carried, schema, pending, question.replace("{name}", name))
    if not request.advice:
        paths = [*carried.names(SOURCES), SCHEMA, *carried.names(f"{PROJECT}nodes/")]
        asks = AdviceRequest(
            kind=AdviceKind.CODE,
            question=question.replace("{name}", name).replace("{target}", target),
            material=material_of(carried, paths),
            scope=(target,),
        )
        return SkillResult(state=SkillState.ADVICE_REQUIRED, summary=f"{target} needs to be written", asks=asks)
    advice = CodeAdvice.model_validate(request.advice[-1].content)
    carried.write_project({draft.path: draft.content for draft in advice.files})
    write_diff(carried)
    summary = f"{target} written by {request.advice[-1].by or 'the advisor'}"
    notes = (advice.notes,) if advice.notes else ()
    return SkillResult(summary=summary, artifacts=carried.artifacts(), insights=notes, confidence=0.6)


def _write_each(
    request: SkillRequest, carried: Carried, schema: NodeSchema, pending: Sequence[Operation], question: str
) -> SkillResult:
    """Write the operations of which a document does not say all: each one is a question with its part of the source."""
    target = f"nodes/{schema.name}/operations.py"
    code = carried.text(f"{PROJECT}{target}")
    others = {operation.function for operation in schema.operations}
    for operation, advice in zip(pending, request.advice, strict=False):
        drafts = CodeAdvice.model_validate(advice.content).files
        code = put_function(code, drafts[0].content, operation.function, others)
    if len(request.advice) >= len(pending):
        carried.write_project({target: code})
        write_diff(carried)
        told = count_noun(len(pending), "operation")
        summary = f"{told} of {target} written by {request.advice[-1].by or 'the advisor'}"
        return SkillResult(summary=summary, artifacts=carried.artifacts(), confidence=0.6)
    operation = pending[len(request.advice)]
    missing = f"The documents do not say {schema.missing_of(operation)}."
    asks = AdviceRequest(
        kind=AdviceKind.CODE,
        question=f"{question.replace('{target}', target).replace('{function}', operation.function)}\n{missing}",
        material=_material_of_one(carried, schema, operation),
        scope=(target,),
    )
    summary = f"{operation.function} needs to be written: {missing}"
    return SkillResult(state=SkillState.ADVICE_REQUIRED, summary=summary, asks=asks)


def _material_of_one(carried: Carried, schema: NodeSchema, operation: Operation) -> tuple[Material, ...]:
    """Return the schema of one operation, the lines of the source around its evidence, and the transport."""
    parameters = schema.parameters_of(operation.key)
    names = [f"operations.{operation.key}", *(field_of(each) for each in parameters)]
    trace = TraceMap.model_validate(carried.json("trace_map.json")).fields
    pieces = [Material(name=SCHEMA, text=_schema_of(carried.json(SCHEMA), {operation.key}))]
    lines: dict[str, list[int]] = {}
    for piece in [piece for name in names if name in trace for piece in trace[name].evidence]:
        lines.setdefault(piece.file, []).append(piece.line_start)
    for file, found in sorted(lines.items()):
        text = carried.text(f"{SOURCES}{file}").splitlines()
        near = [each for each in found if abs(each - found[0]) < LINES_AROUND]
        excerpt = "\n".join(text[max(min(near) - LINES_BEFORE, 0) : max(near) + LINES_AFTER])
        pieces.append(Material(name=f"{SOURCES}{file}", text=truncate(excerpt, MAX_EXCERPT_CHARS)))
    transport = f"{PROJECT}nodes/{schema.name}/transport.py"
    return (*pieces[:MAX_SOURCES], Material(name=transport, text=carried.text(transport)))


def put_function(code: str, answer: str, function: str, others: Collection[str]) -> str:
    """Return *code* with a function of *answer* in the place of its stub, and what else the answer has for it.

    Functions of other operations (*others*) are left out. Raises InvalidInput if the function is in neither.
    """
    tree, given = ast.parse(code), ast.parse(answer)
    mine = next((each for each in given.body if isinstance(each, ast.FunctionDef) and each.name == function), None)
    stub = next((each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == function), None)
    if mine is None or stub is None:
        raise InvalidInput(f"the advice has no function {function}: its file must define it")
    known = {ast.unparse(each) for each in tree.body}
    imports: list[str] = []
    helpers: list[str] = []
    for each in given.body:
        text = ast.get_source_segment(answer, each) or ""
        is_other = isinstance(each, ast.FunctionDef) and each.name in others
        is_docstring = isinstance(each, ast.Expr)
        if each is mine or is_other or is_docstring or ast.unparse(each) in known:
            continue
        (imports if isinstance(each, (ast.Import, ast.ImportFrom)) else helpers).append(text)
    lines = code.splitlines()
    made = "\n\n\n".join([*helpers, ast.get_source_segment(answer, mine) or ""])
    after = [*lines[: stub.lineno - 1], *made.splitlines(), *lines[stub.end_lineno or stub.lineno :]]
    last = max(
        (each.end_lineno or 0 for each in tree.body if isinstance(each, (ast.Import, ast.ImportFrom))), default=0
    )
    return "\n".join([*after[:last], *imports, *after[last:]]) + "\n"


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


def write_diff(carried: Carried) -> None:
    """Write ``diff.patch``: all additions of the run so far."""
    carried.write("diff.patch", unified_diff({}, carried.tree(PROJECT)), "all additions of this run")
