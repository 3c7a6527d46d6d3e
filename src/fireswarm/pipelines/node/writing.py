"""Write a node's operations with the advisor's answer: one question, one file in scope, and the run's diff."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence

from fireswarm.contracts.base import count_noun
from fireswarm.contracts.skills.advice import AdviceKind, AdviceRequest, CodeAdvice
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult, SkillState
from fireswarm.errors import InvalidInput
from fireswarm.pipelines.files import PROJECT, SOURCES, Carried
from fireswarm.pipelines.node.material import SCHEMA, material_of, material_of_one
from fireswarm.pipelines.node.recording import RECORDING
from fireswarm.pipelines.node.schema import NodeSchema, Operation
from fireswarm.pipelines.scope import unified_diff


def load_schema(files: Carried) -> NodeSchema:
    """Return the schema of a node that all steps after it use."""
    content = files.json("node_schema.json")
    content.pop("inputs", None)
    return NodeSchema.model_validate(content)


def write_operations(request: SkillRequest, question: str) -> SkillResult:
    """Write ``operations.py`` from the advisor's answers. *question* is a template with ``{name}`` and ``{target}``.

    What a document or a recording does not say is asked for each operation by itself; otherwise for the whole file.
    """
    carried = Carried.of(request)
    schema = load_schema(carried)
    name = schema.name
    target = f"nodes/{name}/operations.py"
    is_each = schema.source_type == "TYPE2" or RECORDING in carried
    if is_each and (pending := schema.to_write()):
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
    """Write the operations of which the source does not show all: each is a question with its part of the source."""
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
    missing = schema.missing_of(operation)
    missing = (
        f"No template can write it: {missing}." if RECORDING in carried else f"The documents do not say {missing}."
    )
    asks = AdviceRequest(
        kind=AdviceKind.CODE,
        question=f"{question.replace('{target}', target).replace('{function}', operation.function)}\n{missing}",
        material=material_of_one(carried, schema, operation),
        scope=(target,),
    )
    summary = f"{operation.function} needs to be written: {missing}"
    return SkillResult(state=SkillState.ADVICE_REQUIRED, summary=summary, asks=asks)


def put_function(code: str, answer: str, function: str, others: Collection[str]) -> str:
    """Return *code* with a function of *answer* in the place of its stub, and what else the answer has for it.

    Functions of other operations (*others*) are left out; helpers whose names the code has with another content get
    the function's name as well. Raises InvalidInput if the function is in neither.
    """
    tree = ast.parse(code)
    answer = _with_own_names(answer, tree, function, others)
    given = ast.parse(answer)
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


def _with_own_names(answer: str, tree: ast.Module, function: str, others: Collection[str]) -> str:
    """Return an answer with another name for each helper whose name the code has already, with another content."""
    known = {name: ast.unparse(each) for each in tree.body for name in _names_of(each)}
    taken = {
        name
        for each in ast.parse(answer).body
        for name in _names_of(each)
        if name not in (function, *others) and known.get(name, ast.unparse(each)) != ast.unparse(each)
    }
    if not taken:
        return answer
    renamed = ast.parse(answer)
    for each in ast.walk(renamed):
        if isinstance(each, ast.Name) and each.id in taken:
            each.id = f"{each.id}_{function}"
        elif isinstance(each, (ast.FunctionDef, ast.ClassDef)) and each.name in taken:
            each.name = f"{each.name}_{function}"
    return ast.unparse(renamed)


def _names_of(statement: ast.stmt) -> list[str]:
    """Return the names that a statement of a module defines, without those that it imports."""
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [each.id for each in targets if isinstance(each, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case _:
            return []


def write_diff(carried: Carried) -> None:
    """Write ``diff.patch``: all additions of the run so far."""
    carried.write("diff.patch", unified_diff({}, carried.tree(PROJECT)), "all additions of this run")
