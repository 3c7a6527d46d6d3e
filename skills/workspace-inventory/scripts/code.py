"""Complexity of source code: cyclomatic numbers for Python, blocks by indentation for other languages."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

MAX_IMPORTS = 120

_LONGEST_PARSED = 1_000_000
"""Maximum characters for the parser: larger generated files are measured by indentation."""

_BRANCHES = frozenset({ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case})
_FUNCTIONS = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda})
_IMPORTS = frozenset({ast.Import, ast.ImportFrom})
_LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop, ast.Pass)
"""Node types without anything to count below them: more than half of a tree, and not visited."""

_RELATIVE_IMPORT = re.compile(r"""(?:\bfrom|\brequire\(|\bimport\(?)\s*['"](\.{1,2}/[^'"]{1,200})['"]""")


@dataclass(frozen=True)
class CodeMeasure:
    """Branches in a file (at least 1), the maximum in one function, the method, and the imports."""

    complexity: int | None = None
    worst: int | None = None
    worst_name: str = ""
    method: str = ""
    imports: tuple[str, ...] = ()


def measure_code(text: str, language: str) -> CodeMeasure:
    """Measure *text*: Python by its syntax tree, anything else (and Python that does not parse) by indentation."""
    if language == "Python" and len(text) <= _LONGEST_PARSED:
        tree = _parsed(text)
        if tree is not None:
            return _measure_python(tree)
    imports: tuple[str, ...] = ()
    if language in {"JavaScript", "TypeScript", "Vue"}:
        imports = tuple(sorted(set(_RELATIVE_IMPORT.findall(text[:_LONGEST_PARSED]))))[:60]
    return _measure_indentation(text, imports)


def _parsed(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _measure_python(tree: ast.Module) -> CodeMeasure:
    """Walk once with an explicit stack: each node counts for the innermost function around it."""
    names = ["<module>"]
    counts = [1]
    imports: set[str] = set()
    stack: list[tuple[ast.AST, int]] = [(tree, 0)]
    while stack:
        node, owner = stack.pop()
        kind = type(node)
        if kind in _FUNCTIONS:
            counts.append(1)
            names.append(getattr(node, "name", "<lambda>"))
            owner = len(counts) - 1
        if kind in _BRANCHES:
            counts[owner] += 1
        elif kind in _IMPORTS:
            imports |= _imported(node)
        else:
            counts[owner] += _decisions(node)
        for child in _children(node):
            stack.append((child, owner))
    worst = max(range(len(counts)), key=lambda index: (counts[index], names[index]))
    return CodeMeasure(
        complexity=sum(counts) - len(counts) + 1,
        worst=counts[worst],
        worst_name=names[worst],
        method="cyclomatic",
        imports=tuple(sorted(imports))[:MAX_IMPORTS],
    )


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            for entry in value:
                if isinstance(entry, ast.AST) and not isinstance(entry, _LEAVES):
                    yield entry
        elif isinstance(value, ast.AST) and not isinstance(value, _LEAVES):
            yield value


def _decisions(node: ast.AST) -> int:
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    return 1 + len(node.ifs) if isinstance(node, ast.comprehension) else 0


def _imported(node: ast.AST) -> set[str]:
    """Dotted names of what a statement imports; relative ones keep their leading dots."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        base = "." * node.level + (node.module or "")
        joint = "" if base.endswith(".") or not base else "."
        return {base} | {f"{base}{joint}{alias.name}" for alias in node.names if alias.name != "*"}
    return set()


def _measure_indentation(text: str, imports: tuple[str, ...]) -> CodeMeasure:
    """Count the lines that open a deeper block than the line before; the deepest nesting counts as worst function."""
    levels = [0]
    opened = 1
    deepest = 1
    for line in text.splitlines():
        stripped = line.lstrip(" \t")
        if not stripped:
            continue
        indent = len(line[: len(line) - len(stripped)].expandtabs(4))
        if indent > levels[-1]:
            levels.append(indent)
            opened += 1
            deepest = max(deepest, len(levels))
        else:
            while levels[-1] > indent:
                levels.pop()
    return CodeMeasure(complexity=opened, worst=deepest, method="indentation", imports=imports)
