"""Write the code of an operation from its template."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from fireswarm import pipelines

MAX_LINE_CHARS = 100
"""Longer objects have a line for each entry."""

_ORIGIN = re.compile(r"(https?://[^/?#{}@\\]+)(?=[/?#]|$)")
_AUTHORITY = re.compile(r"(?:https?://)?[^/?#]*")

NAMES = ("MISSING", *(name for name, each in vars(pipelines.shaping).items() if callable(each) and name.islower()))
"""Names of shaping.py that such code may use."""


def code_of(operation: pipelines.Operation, about: str) -> str:
    """Return the function of an operation that has a template. *about* is its docstring, without quotes.

    Raises ValueError for an operation without a template.
    """
    template = operation.template
    if template is None:
        raise ValueError(f"{operation.key} has no template")
    head = [f"\ndef {operation.function}(parameters: dict[str, Any], send: Send) -> Any:", f'    """{about}."""']
    last = str(len(template.requests) - 1)
    made = expression(template.items) if template.items is not None else _answer(last)
    # `items` makes a list of what is none.
    made = re.sub(r'^through\("items", (.*)\)$', r"\1", made)
    lines = [f"    return items({made})"]
    for number in reversed(range(len(template.requests))):
        request, answer = template.requests[number], _answer(str(number))
        if request.pages is not None:
            line = _following(request.pages, str(number))
            is_used = _pages(str(number)) in "\n".join(lines)
            lines = [line if is_used else line.replace(f"{_pages(str(number))} = ", "", 1), *lines]
        kept = f"{answer} = " if answer in "\n".join(lines) else ""
        if request.when is None:
            lines = [f"    {kept}{_sending(request)}", *lines]
        else:
            sending = f"        {kept}{_sending(request, 2)}"
            lines = [f"    {kept}MISSING"] * bool(kept) + [f"    if {_of_condition(request.when)}:", sending, *lines]
    return "\n".join([*head, *lines]) + "\n"


def origins_of(schema: pipelines.NodeSchema) -> tuple[str, ...]:
    """Return the servers that the addresses of all operations name, without those that are made of values."""
    templates = [operation.template for operation in schema.operations if operation.template is not None]
    paths = (request.path for template in templates for request in template.list_requests())
    found = {_ORIGIN.match(pattern) for path in paths for pattern in pipelines.patterns_of(path)}
    return tuple(sorted({each[1] for each in found if each}))


def names_used(code: str) -> list[str]:
    """Return the names of shaping.py in *code*."""
    return sorted(names_in(code).intersection(NAMES))


def names_in(code: str) -> set[str]:
    """Return the names that code uses; words of its texts are none."""
    return {each.id for each in ast.walk(ast.parse(code)) if isinstance(each, ast.Name)}


def _answer(number: str) -> str:
    return f"answer_{int(number) + 1}"


def _pages(number: str) -> str:
    return f"pages_{int(number) + 1}"


def text_literal(text: str) -> str:
    """Return a literal of *text* in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def _literal(value: Any) -> str:
    return text_literal(value) if isinstance(value, str) else repr(value)


def _sending(request: Any, depth: int = 1) -> str:
    path = expression(request.path, depth)
    arguments = [text_literal(request.method), f"Told({path})" if _is_told(request.path) else path]
    body = "body" if request.encoding == "json" else request.encoding
    for name, value in (("query", request.query), (body, request.body), ("headers", request.headers)):
        if value is not None:
            arguments.append(f"{name}=content({expression(value, depth + 1)})")
    return call_expression("send", arguments, depth)


def _is_told(path: Any) -> bool:
    """Return True if the server of an address may be what an answer names."""
    roots = (pipelines.ANSWERS, pipelines.values.PAGE, pipelines.values.EACH)
    for pattern in pipelines.patterns_of(path):
        server = _AUTHORITY.match(pattern)
        if server and any(f"{{{root}" in server[0] for root in roots):
            return True
    return False


def _following(pages: Any, number: str) -> str:
    """Return the line that asks for further pages."""
    answer = _answer(number)
    followed = call_expression(
        "follow", [answer, text_literal(pages.cursor), f"lambda page: {_sending(pages.further, 2)}"], 1
    )
    if pages.when is not None:
        return f"    {_pages(number)} = {followed} if {_of_condition(pages.when)} else [{answer}]"
    return f"    {_pages(number)} = {followed}"


def _of_condition(when: Any) -> str:
    taken = _taken(when.parameter)
    if when.is_filled:
        return f"nonempty({taken}) is not MISSING"
    return f"{taken} is {when.value}" if isinstance(when.value, bool) else f"{taken} == {_literal(when.value)}"


def call_expression(name: str, arguments: list[str], depth: int) -> str:
    """Return a call; one that is long has a line for each argument."""
    line = f"{name}({', '.join(arguments)})"
    if "\n" not in line and len(line) + 4 * depth <= MAX_LINE_CHARS:
        return line
    space = "    " * depth
    return "\n".join([f"{name}(", *(f"{space}    {each}," for each in arguments), f"{space})"])


def _taken(name: str) -> str:
    """Return the expression of a parameter, of a field of the credential, or of a value of an earlier answer."""
    root, _, inner = name.partition(".")
    if root == pipelines.CREDENTIALS:
        return f"credential({text_literal(inner)})"
    known = {pipelines.values.EACH: "entry", pipelines.values.PAGE: "page"}
    if root in known:
        return f"take({known[root]}, {text_literal(inner)})" if inner else known[root]
    if root == pipelines.ANSWERS:
        number, _, field = inner.partition(".")
        return f"take({_answer(number)}, {text_literal(field)})" if field else _answer(number)
    return f"take(parameters, {text_literal(name)})"


def expression(value: Any, depth: int = 1) -> str:
    """Return the Python expression of a value; *depth* is how far its further lines are indented."""
    return "MISSING" if value is None else WRITERS[type(value)](value, depth)


def _of_text(value: Any, depth: int) -> str:
    names = [_taken(name) for name in value.names]
    names = [f"nonempty({name})" for name in names] if value.presence == "filled" else names
    return call_expression("within", [text_literal(value.pattern), *names], depth)


def _of_listed(value: Any, depth: int) -> str:
    entries = [expression(each, depth + 1) for each in value.entries]
    return call_expression("list_present" if value.is_optional else "list_all", entries, depth)


def _of_gathered(value: Any, depth: int) -> str:
    return call_expression(
        "gather", [_pages(value.request), *([text_literal(value.name)] if value.name else [])], depth
    )


def _of_either(value: Any, depth: int) -> str:
    full, empty = expression(value.filled, depth), expression(value.empty, depth)
    return f"({full} if nonempty({_taken(value.name)}) is not MISSING else {empty})"


def _of_chosen(value: Any, depth: int) -> str:
    rows = [
        f"({'MISSING' if row.is_missing else _literal(row.value)}, lambda: {expression(row.made, depth + 1)})"
        for row in value.table
    ]
    return call_expression("choose", [text_literal(value.name), _taken(value.name), *rows], depth)


def _of_taken(value: Any, depth: int) -> str:
    taken = _taken(value.name)
    if value.presence != "given":
        is_plain = value.presence == "constant" and not value.steps
        taken = f"nonempty({taken}{f', {_literal(value.constant)}' if is_plain else ''})"
    for step in value.steps:
        taken = f"through({text_literal(step)}, {taken})"
    return f"otherwise({taken}, {_literal(value.constant)})" if value.presence == "constant" and value.steps else taken


def _of_each(value: Any, depth: int) -> str:
    source, entry = expression(value.source, depth + 1), expression(value.entry, depth + 1)
    if value.key is None:
        return call_expression("each", [source, f"lambda entry: {entry}"], depth)
    return call_expression("map_keyed", [source, f"lambda entry: ({expression(value.key, depth + 1)}, {entry})"], depth)


def _of_address(value: Any, depth: int) -> str:
    """Return the expression of an address: its text, and what stands in it."""
    pieces = re.split(r"(\{[^{}]*\})", value.pattern)
    terms = [_part(piece, value.plain) for piece in pieces if piece]
    if value.pattern.startswith("{"):  # an address
        terms[0] = f"text({_taken(pieces[1][1:-1])})"
    return " + ".join(terms) or '""'


def _part(piece: str, plain: tuple[str, ...]) -> str:
    name = piece[1:-1]
    return (
        f"{'plain' if name in plain else 'quote_part'}({_taken(name)})"
        if piece.startswith("{")
        else text_literal(piece)
    )


def _of_fields(value: Any, depth: int) -> str:
    return f"{'optional' if value.is_optional else 'keep'}({_object(value.fields, depth)})"


def _object(fields: Mapping[str, Any], depth: int) -> str:
    entries = [f"{text_literal(name)}: {expression(each, depth + 1)}" for name, each in fields.items()]
    line = f"{{{', '.join(entries)}}}"
    if "\n" not in line and len(line) + 4 * depth <= MAX_LINE_CHARS:
        return line
    space = "    " * depth
    return "\n".join(["{", *(f"{space}    {each}," for each in entries), f"{space}}}"])


WRITERS: dict[type, Callable[[Any, int], str]] = {
    pipelines.values.Constant: lambda value, depth: _literal(value.constant),
    pipelines.values.Taken: _of_taken,
    pipelines.values.Text: _of_text,
    pipelines.values.ObjectValue: _of_fields,
    pipelines.values.Listed: _of_listed,
    pipelines.values.Each: _of_each,
    pipelines.values.FromPages: _of_gathered,
    pipelines.values.Address: _of_address,
    pipelines.values.Either: _of_either,
    pipelines.values.Chosen: _of_chosen,
}
"""What writes each kind of value."""
