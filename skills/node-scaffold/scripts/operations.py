"""Write the code of an operation from its template."""

from __future__ import annotations

import json
import re
from typing import Any

from fireswarm import pipelines

HELPERS = ("Nested", "credential", "filled", "given", "items", "quoted", "take", "within")
"""Names of the transport that such code uses."""


def code_of(operation: pipelines.Operation, about: str) -> str:
    """Return the function of an operation that has a template. *about* is its docstring, without quotes.

    Raises ValueError for an operation without a template.
    """
    template = operation.template
    if template is None:
        raise ValueError(f"{operation.key} has no template")
    lines = [f"\ndef {operation.function}(parameters: dict[str, Any], send: Send) -> Any:", f'    """{about}."""']
    last = len(template.requests) - 1
    used = {template.items.partition(".")[0]} if template.fixed_items is None else set[str]()
    text = template.model_dump_json(include={"requests"})
    used |= {str(number) for number in range(last + 1) if f"{pipelines.ANSWERS}.{number}" in text}
    for number, request in enumerate(template.requests):
        arguments = [_text(request.method), _path(request.path)]
        body = "form" if request.encoding == "form" else "body"
        for place, name in (("query", "query"), ("body", body), ("header", "headers")):
            if expression := _place(request, place):
                lines.append(f"    {name} = {expression}")
                arguments.append(f"{name}={name}")
        kept = f"{_answer(str(number))} = " if str(number) in used else ""
        lines.append(f"    {kept}send({', '.join(arguments)})")
    if template.fixed_items is not None:
        lines.append(f"    return {list(template.fixed_items)!r}")
    else:
        number, _, name = template.items.partition(".")
        lines.append(f"    return items({_answer(number)}{f', {_text(name)}' if name else ''})")
    return "\n".join(lines) + "\n"


def _answer(number: str) -> str:
    return f"answer_{int(number) + 1}"


def _text(text: str) -> str:
    """Return a literal of *text* in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def _path(path: str) -> str:
    """Return the expression of an address: its text, and the parameters that stand in it."""
    pieces = re.split(r"(\{[^{}]*\})", path)
    terms = [f"quoted({_taken(piece[1:-1])})" if piece.startswith("{") else _text(piece) for piece in pieces if piece]
    if path.startswith("{"):  # an address
        terms[0] = f"str({terms[0].removeprefix('quoted(')}"
    return " + ".join(terms) or '""'


def _taken(name: str) -> str:
    """Return the expression of a parameter, of a field of the credential, or of a value of an earlier answer."""
    root, _, inner = name.partition(".")
    if root == pipelines.CREDENTIALS:
        return f"credential({_text(inner)})"
    if root == pipelines.ANSWERS:
        number, _, field = inner.partition(".")
        return f"take({_answer(number)}, {_text(field)})" if field else _answer(number)
    return f"take(parameters, {_text(name)})"


def _value(part: Any) -> str:
    if not part.parameter:
        return repr(part.constant) if not isinstance(part.constant, str) else _text(part.constant)
    expression = _taken(part.parameter)
    if part.presence == "filled":
        expression = f"filled({expression})"
    if part.presence == "constant":
        return f"filled({expression}, {part.constant!r})"
    return expression if part.pattern == "{}" else f"within({_text(part.pattern)}, {expression})"


def _place(request: Any, place: str) -> str:
    """Return the expression of the query, the body or the headers, or ""."""
    parts = [part for part in request.parts if part.place == place]
    if whole := next((part for part in parts if not part.name), None):
        return _value(whole)
    tree: dict[str, Any] = {}
    for part in parts:
        inner = tree
        for key in part.name[:-1]:
            inner = inner.setdefault(key, {})
        inner[part.name[-1]] = _value(part)
    return f"given({_literal(tree, 1)})" if tree else ""


def _literal(tree: dict[str, Any], depth: int) -> str:
    """Return an object, each entry on a line of its own."""
    space = "    " * (depth + 1)
    entries = [
        f"{space}{_text(key)}: {value if isinstance(value, str) else f'Nested({_literal(value, depth + 1)})'},"
        for key, value in tree.items()
    ]
    return "\n".join(["{", *entries, "    " * depth + "}"])
