"""Write the typed client of a node, and the page that describes its operations."""

from __future__ import annotations

import json
import keyword
from collections.abc import Callable, Collection, Mapping
from typing import Any

from fireswarm import pipelines

TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list[Any]",
    "object": "dict[str, Any]",
    "null": "None",
}
"""Python's type of each type of JSON."""

BAR = "\\|"
TAKEN = ("self", "given")


PAGES = """
    def _pages(self, operation: str, given: dict[str, Any]) -> Iterator[Any]:
        return pages(operation, {name: value for name, value in given.items() if value is not None}, self._send)
"""
"""What the methods for further pages call."""


def methods_of(schema: pipelines.NodeSchema, inputs: Mapping[str, Any], about: Callable[[Any], str]) -> str:
    """Return the methods of all operations; of one whose answers have further pages also that which yields them.

    *inputs* are the JSON Schemas of their input by key, *about* returns the docstring of an operation, without quotes.
    """
    taken = {each.function for each in schema.operations}
    lines: list[str] = []
    for each in schema.operations:
        lines.append(_method_of(each, inputs[each.key], about(each)))
        if each.paging is not None:
            name = pages_name(each, taken)
            lines.append(_method_of(each, inputs[each.key], f"Yield the answer of each page: {about(each)}", name))
    return "".join(lines)


def pages_name(operation: pipelines.Operation, taken: Collection[str]) -> str:
    """Return the name of the method that yields the pages of an operation, which is none of *taken*."""
    name = f"{operation.function}_pages"
    while name in taken:
        name += "_"
    return name


def _method_of(operation: pipelines.Operation, inputs: Mapping[str, Any], about: str, pages: str = "") -> str:
    names = _arguments(inputs["properties"])
    required = set(inputs["required"])
    ordered = sorted(names, key=lambda name: name not in required)
    given = ["*"] * bool(names) + [f"{names[name]}: {_annotation(inputs, name)}" for name in ordered]
    passed = "".join(f"{json.dumps(name, ensure_ascii=False)}: {names[name]}, " for name in ordered)
    parameters = "".join(f"        {each},\n" for each in given)
    head = f"self,\n{parameters}    " if given else "self"
    head = f"\n        {head}" if given else head
    shown = f"{pages}({head}) -> Iterator[Any]" if pages else f"{operation.function}({head}) -> Any"
    lines = [f"\n    def {shown}:", f'        """{about}."""']
    called = "_pages" if pages else "_call"
    lines.append(f"        return self.{called}({json.dumps(operation.key)}, {{{passed.removesuffix(', ')}}})")
    return "\n".join(lines) + "\n"


def _arguments(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return the name of the argument of each parameter: no keyword of Python, and no name twice."""
    taken, names = set[str](TAKEN), dict[str, str]()
    for name in properties:
        wanted = pipelines.identifier(name)
        while wanted in taken or keyword.iskeyword(wanted):
            wanted += "_"
        taken.add(wanted)
        names[name] = wanted
    return names


def _annotation(inputs: Mapping[str, Any], name: str) -> str:
    item = inputs["properties"][name]
    told = item.get("type", [])
    kinds = [TYPES[kind] for kind in ([told] if isinstance(told, str) else told)]
    shown = " | ".join(dict.fromkeys(kinds)) or "Any"
    if name in inputs["required"]:
        return shown
    return shown + ("" if shown == "Any" or "None" in kinds else " | None") + " = None"


def page_of(schema: pipelines.NodeSchema, inputs: Mapping[str, Any], plain: Callable[[str], str]) -> str:
    """Return the page of a node in Markdown. *plain* makes a line of a text of the source."""
    lines = [f"# {_cell(plain(schema.display_name or schema.name))}", ""]
    lines += ["```python", f"from nodes.{schema.name} import Client", "", "client = Client()", "```", ""]
    lines += [
        f"Address of the API: {_code(schema.base_url or '-')}; `{schema.name.upper()}_BASE_URL` names another.",
        "",
    ]
    for operation in schema.operations:
        lines += [f"## {_cell(operation.key)}", ""]
        about = plain(operation.description or operation.name)
        lines += [_cell(f"{about}."), ""] * bool(about)
        sends = f" sends {_code(f'{operation.method} {operation.path}')}" if operation.method else ""
        lines += [f"{_code(f'client.{operation.function}(...)')}{sends}.", ""]
        if operation.paging is not None:
            name = pages_name(operation, {each.function for each in schema.operations})
            lines += [f"{_code(f'client.{name}(...)')} yields the answer of each page.", ""]
        wanted = inputs[operation.key]
        names = _arguments(wanted["properties"])
        rows = [
            f"| `{names[name]}` | {_type_of(item).replace('|', BAR)} | {'yes' if name in wanted['required'] else ''} "
            f"| {_cell(plain(str(item.get('description', ''))))} |"
            for name, item in wanted["properties"].items()
        ]
        lines += ["| argument | type | required | |", "| --- | --- | --- | --- |", *rows, ""] if rows else []
    return "\n".join(lines)


def _type_of(item: Mapping[str, Any]) -> str:
    if options := item.get("enum"):
        return ", ".join(_code(json.dumps(option, ensure_ascii=False)) for option in options)
    told = item.get("type", [])
    return " or ".join([told] if isinstance(told, str) else told) or "any"


def _cell(text: str) -> str:
    return text.replace("|", BAR).replace("<", "&lt;")


def _code(text: str) -> str:
    return f"`{' '.join(text.replace('`', chr(39)).split())}`"
