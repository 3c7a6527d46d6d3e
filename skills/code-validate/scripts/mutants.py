"""Change the code of operations in small ways, and count the changes that the expectations of its tests find.

A change that nothing finds names a place that no expectation looks at.
"""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fireswarm import count_noun, format_percent

from . import judge

LEAST_SHARE = 0.8
"""Of the changes, this share has to be found."""

MAX_MUTANTS = 400
"""Of a node. Of more, each operation gets its part, evenly spread over its code."""

MAX_CALLS = 12
"""By which a change is looked for: the first inputs of its operation."""

MAX_TOGETHER = 1_000
"""Calls of one process. If it does not answer, or unchanged code does something else after them, none of its changes
counts as found."""

MAX_LISTED = 100
MAX_TOLD = 10

NEUTRAL = ("content", "items", "keep", "parts")
"""Functions that only leave out what is missing, or list what is no list: mostly, the same is sent without them."""

OTHER_METHODS = {"GET": "POST", "POST": "PUT", "PUT": "POST", "PATCH": "PUT", "DELETE": "GET", "HEAD": "GET"}
OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
}


class Mutant(NamedTuple):
    """A changed function: where, what was changed, and the function's whole code."""

    operation: str
    function: str
    where: str
    code: str


def count_killed(
    project: Mapping[str, str], expected: list[judge.Expected], folder: Path, seconds: float, confinement: str
) -> dict[str, Any] | None:
    """Return how many changes of operations were made and found, and which were not.

    Only of operations of which a recording or a document says the whole request: of others, too little is known to find
    a change. None without such operations, or without code to change.
    """
    cases: defaultdict[tuple[str, str], list[judge.Expected]] = defaultdict(list)
    for each in (known for known in expected if known.kind != "told"):
        cases[each.call["package"], each.call["operation"]].append(each)
    functions = {package: _functions(project, package) for package in {package for package, _ in cases}}
    possible = {name: _of_operation(name[1], functions[name[0]].get(name[1])) for name in cases}
    made = [(mutant, name) for name, mutants in possible.items() for mutant in _spread(mutants, len(possible))]
    if not made:
        return None
    tried = [
        (number, each._replace(call=each.call | {"function": mutant.function, "code": mutant.code}))
        for number, (mutant, name) in enumerate(made)
        for each in cases[name][:MAX_CALLS]
    ]
    dead: set[int] = set()
    for start in range(0, len(tried), MAX_TOGETHER):
        some = tried[start : start + MAX_TOGETHER]
        control = cases[made[some[-1][0]][1]][0]  # unchanged code, after all changes
        calls = [*(each for _, each in some), control]
        *found, broken = judge.replay_each(project, calls, folder / str(start), seconds, confinement)
        if not broken:
            dead |= {number for (number, _), why in zip(some, found, strict=True) if why}
    alive = [f"{mutant.operation}: {mutant.where}" for number, (mutant, _) in enumerate(made) if number not in dead]
    return {
        "possible": sum(map(len, possible.values())),
        "made": len(made),
        "killed": len(dead),
        "alive": alive[:MAX_LISTED],
    }


def list_faults(counted: Mapping[str, Any] | None) -> list[str]:
    """Return why too few changes were found, or nothing."""
    if counted is None or counted["killed"] >= LEAST_SHARE * counted["made"]:
        return []
    found = f"the tests find {counted['killed']:,} of {count_noun(counted['made'], 'change')} of the code"
    wanted = f"at least {format_percent(LEAST_SHARE)} are needed"
    return [f"{found}, {wanted}; not found: {'; '.join(counted['alive'][:MAX_TOLD])}"]


def _spread(mutants: list[Mutant], operations: int) -> list[Mutant]:
    most = max(MAX_MUTANTS // operations, 1)
    if len(mutants) <= most:
        return mutants
    return [mutants[number * len(mutants) // most] for number in range(most)]


def _functions(project: Mapping[str, str], package: str) -> dict[str, ast.FunctionDef]:
    """Return the function of each operation of a package."""
    folder = package.replace(".", "/")
    body = ast.parse(project[f"{folder}/operations.py"]).body
    named = {each.name: each for each in body if isinstance(each, ast.FunctionDef)}
    functions: dict[str, str] = json.loads(project[f"{folder}/schema.json"])["functions"]
    return {operation: named[name] for operation, name in functions.items() if name in named}


def _of_operation(operation: str, function: ast.FunctionDef | None) -> list[Mutant]:
    if function is None:
        return []
    return [Mutant(operation, function.name, f"line {line}, {told}", code) for line, told, code in mutate(function)]


def mutate(function: ast.FunctionDef) -> Iterator[tuple[int, str, str]]:
    """Yield line, description and code of the function with one change each. *function* is the same afterwards."""
    is_told = ast.get_docstring(function, clean=False) is not None
    for statement in function.body[is_told:]:
        for parent in ast.walk(statement):
            for told, field, changed in _changes_in(parent):
                kept = getattr(parent, field)
                setattr(parent, field, changed)
                yield getattr(parent, "lineno", statement.lineno), told, ast.unparse(function)
                setattr(parent, field, kept)


def _changes_in(parent: ast.AST) -> Iterator[tuple[str, str, Any]]:
    """Yield a description, a field of a node, and another value of it."""
    for field, value in ast.iter_fields(parent):
        if isinstance(value, ast.expr) and field != "annotation":  # which is not evaluated
            yield from ((told, field, other) for told, other in _others(value))
        elif isinstance(value, list) and all(isinstance(each, ast.expr) for each in value):
            for number, each in enumerate(value):
                rest = value[:number], value[number + 1 :]
                yield from ((told, field, [*rest[0], other, *rest[1]]) for told, other in _others(each))
    for field in ("keywords", "elts"):
        for each in (entries := getattr(parent, field, ())):
            yield f"without {_shown(each)}", field, [other for other in entries if other is not each]


def _others(value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield what may stand instead of an expression, and how that is told."""
    for other in OPERATORS.get(type(value), lambda _: ())(value):
        yield f"{_shown(other)} instead of {_shown(value)}", other


def _of_constant(value: ast.Constant) -> Iterator[ast.expr]:
    match value.value:
        case bool() as truth:
            yield ast.Constant(not truth)
        case str() as text:
            yield ast.Constant(OTHER_METHODS.get(text, f"{text}_"))
        case int() | float() as number:
            yield ast.Constant(number + 1)
        case _:
            return


def _of_comparison(value: ast.Compare) -> Iterator[ast.expr]:
    if len(value.ops) == 1:
        yield ast.Compare(value.left, [OPPOSITES[type(value.ops[0])]()], value.comparators)


def _of_both(value: ast.BoolOp) -> Iterator[ast.expr]:
    yield ast.BoolOp(ast.Or() if isinstance(value.op, ast.And) else ast.And(), value.values)


def _of_sum(value: ast.BinOp) -> Iterator[ast.expr]:
    yield value.left


def _of_not(value: ast.UnaryOp) -> Iterator[ast.expr]:
    yield value.operand


def _of_choice(value: ast.IfExp) -> Iterator[ast.expr]:
    yield from (value.body, value.orelse)


def _of_call(value: ast.Call) -> Iterator[ast.expr]:
    is_neutral = isinstance(value.func, ast.Name) and value.func.id in NEUTRAL
    if len(value.args) == 1 and not value.keywords and not is_neutral:
        yield ast.Constant(None) if isinstance(value.args[0], ast.Constant) else value.args[0]


def _of_object(value: ast.Dict) -> Iterator[ast.expr]:
    for number in range(len(value.keys)):
        keys, values = list(value.keys), list(value.values)
        del keys[number], values[number]
        yield ast.Dict(keys, values)


OPERATORS: dict[type[ast.expr], Callable[[Any], Iterable[ast.expr]]] = {
    ast.Constant: _of_constant,
    ast.Compare: _of_comparison,
    ast.BoolOp: _of_both,
    ast.BinOp: _of_sum,
    ast.UnaryOp: _of_not,
    ast.IfExp: _of_choice,
    ast.Call: _of_call,
    ast.Dict: _of_object,
}
"""What is tried instead of each kind of expression."""


def _shown(value: ast.AST) -> str:
    text = ast.unparse(value)
    return text if len(text) <= judge.MAX_SHOWN_CHARS // 4 else f"{text[: judge.MAX_SHOWN_CHARS // 4]}…"
