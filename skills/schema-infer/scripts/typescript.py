"""Read a node's TypeScript source with tree-sitter: its description object, and the requests in ``execute``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import tree_sitter_typescript
from tree_sitter import Language, Node, Parser

from fireswarm import pipelines

from .reading import Reading, Source, Unreadable

KINDS: dict[str, pipelines.Kind] = {
    "string": "string",
    "number": "number",
    "boolean": "boolean",
    "options": "options",
    "multiOptions": "array",
    "collection": "object",
    "fixedCollection": "object",
    "json": "object",
    "dateTime": "string",
}
"""Types of a property, as the source names them. Other types are read as text."""

SELECTORS = ("resource", "operation")


def read(source: Source, name: str) -> Reading:
    """Return the node that *source* describes; raises Unreadable if it has no description."""
    tree = Parser(Language(tree_sitter_typescript.language_typescript())).parse(source.text.encode())
    described = next((node for node in _all(tree.root_node, "object") if _is_description(node)), None)
    if described is None:
        raise Unreadable(f"{source.name} has no description object with displayName and properties")
    pairs = _pairs(described)
    constants = dict(_constants(tree.root_node))
    reading = Reading("TYPE1", pipelines.identifier(_text(pairs.get("name")) or name))
    reading.display_name = _text(pairs.get("displayName"))
    reading.description = _text(pairs.get("description"))
    reading.know("name", _evidence(source, pairs.get("name", described)))
    _credentials(reading, source, pairs.get("credentials"))
    properties = [_pairs(item) for item in _items(pairs.get("properties"))]
    _operations(reading, source, properties)
    calls = {key: _call(nodes, constants) for key, nodes in _branches(tree.root_node).items()}
    _calls(reading, source, calls)
    _base_url(reading, source, constants, tree.root_node)
    _parameters(reading, source, properties, calls)
    return reading


def _all(node: Node, kind: str) -> Iterator[Node]:
    """Every node of *kind*, outer ones first."""
    stack = [node]
    while stack:
        found = stack.pop()
        if found.type == kind:
            yield found
        stack.extend(reversed(found.children))


def _raw(node: Node | None) -> str:
    return node.text.decode() if node is not None and node.text is not None else ""


def _is_description(node: Node) -> bool:
    return {"displayName", "properties"} <= _pairs(node).keys()


def _pairs(node: Node | None) -> dict[str, Node]:
    """The entries of an object literal: values by key."""
    found: dict[str, Node] = {}
    for child in node.children if node is not None else ():
        key, value = child.child_by_field_name("key"), child.child_by_field_name("value")
        if child.type == "pair" and key is not None and value is not None:
            found[_raw(key).strip("'\"")] = value
    return found


def _items(node: Node | None) -> list[Node]:
    return [child for child in node.children if child.is_named and child.type != "comment"] if node is not None else []


def _literal(node: Node | None) -> Any:
    """Return a literal's value, or None for an expression that must be evaluated."""
    match node.type if node is not None else "":
        case "string":
            try:
                return ast.literal_eval(_raw(node))
            except (SyntaxError, ValueError):
                return _raw(node)[1:-1]
        case "number":
            text = _raw(node)
            try:
                return int(text, 0) if not set(text) & set(".eE") or text.startswith("0x") else float(text)
            except ValueError:
                return None
        case "true" | "false":
            return _raw(node) == "true"
        case "array":
            return [_literal(item) for item in _items(node)]
        case "object":
            return {key: _literal(value) for key, value in _pairs(node).items()}
        case _:
            return None


def _text(node: Node | None) -> str:
    value = _literal(node)
    return value if isinstance(value, str) else ""


def _evidence(source: Source, node: Node) -> Any:
    return source.evidence(node.start_point[0] + 1, node.end_point[0] + 1)


def _constants(root: Node) -> Iterator[tuple[str, str]]:
    for declared in _all(root, "variable_declarator"):
        value = _text(declared.child_by_field_name("value"))
        if value:
            yield _raw(declared.child_by_field_name("name")), value


def _credentials(reading: Reading, source: Source, node: Node | None) -> None:
    for item in _items(node):
        if name := _text(_pairs(item).get("name")):
            reading.credentials.append(name)
    if reading.credentials and node is not None:
        reading.know("credentials", _evidence(source, node))


def _shown(properties: dict[str, Node], selector: str) -> list[str]:
    """Return the resources or operations for which a property is shown; empty for all."""
    shown = _literal(_pairs(_pairs(properties.get("displayOptions")).get("show")).get(selector))
    return [str(value) for value in shown] if isinstance(shown, list) else []


def _operations(reading: Reading, source: Source, properties: list[dict[str, Node]]) -> None:
    for entries in properties:
        if _text(entries.get("name")) != "operation":
            continue
        for resource in _shown(entries, "resource") or [""]:
            for option in _items(entries.get("options")):
                value = _pairs(option)
                key = _key(resource, _text(value.get("value")))
                about = {"name": _text(value.get("name")), "description": _text(value.get("description"))}
                operation = pipelines.Operation(
                    key=key, resource=resource, name=about["name"], description=about["description"]
                )
                reading.operation(operation, _evidence(source, option))
    if not reading.operations:
        raise Unreadable(f"{source.name} describes no operations: no property is called operation")


def _key(resource: str, operation: str) -> str:
    return (
        f"{pipelines.identifier(resource)}.{pipelines.identifier(operation)}"
        if resource
        else pipelines.identifier(operation)
    )


def _parameters(
    reading: Reading, source: Source, properties: list[dict[str, Node]], calls: dict[str, dict[str, Any]]
) -> None:
    for entries in properties:
        name = _text(entries.get("name"))
        if not name or name in SELECTORS:
            continue
        keys = _keys_of(entries, reading)
        choices = [_literal(_pairs(option).get("value")) for option in _items(entries.get("options"))]
        kind = KINDS.get(_text(entries.get("type")), "string")
        parameter = pipelines.Parameter(
            name=name,
            display_name=_text(entries.get("displayName")),
            kind=kind,
            required=_literal(entries.get("required")) is True,
            default=_literal(entries.get("default")),
            description=_text(entries.get("description")),
            options=tuple(str(choice) for choice in choices if isinstance(choice, str | int)),
            operations=tuple(keys),
            place=_place(name, keys, calls),
        )
        node = entries["name"].parent
        reading.parameter(parameter, _evidence(source, (node.parent if node is not None else None) or entries["name"]))


def _keys_of(entries: dict[str, Node], reading: Reading) -> list[str]:
    """Return the operations that have a parameter."""
    resources, operations = _shown(entries, "resource"), _shown(entries, "operation")
    wanted = [
        operation for operation in reading.operations.values() if not resources or operation.resource in resources
    ]
    names = {pipelines.identifier(operation) for operation in operations}
    found = [operation.key for operation in wanted if not names or operation.key.rpartition(".")[2] in names]
    return [] if len(found) == len(reading.operations) else found


def _place(name: str, keys: list[str], calls: dict[str, dict[str, Any]]) -> pipelines.Place:
    """Return the location of a parameter; unknown if its operations differ."""
    found = {calls[key]["places"].get(name, "") for key in keys if key in calls}
    return next(iter(found)) if len(found) == 1 else ""


# ── execute ─────────────────────────────────────────────────────────────────────────────────────────────


def _branches(root: Node) -> dict[str, list[Node]]:
    """Return the code of each operation: bodies of ``if (operation === 'x')`` inside ``if (resource === 'y')``."""
    found: dict[str, list[Node]] = {}

    def visit(node: Node, resource: str) -> None:
        if node.type == "if_statement":
            selector, value = _test(node.child_by_field_name("condition"))
            body, other = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
            if body is not None:
                if selector == "operation":
                    found.setdefault(_key(resource, value), []).append(body)
                visit(body, value if selector == "resource" else resource)
            if other is not None:
                visit(other, resource)
            return
        for child in node.children:
            visit(child, resource)

    visit(root, "")
    return found


def _test(condition: Node | None) -> tuple[str, str]:
    """Selector and value of ``operation === 'x'``; empty for other conditions."""
    for compared in _all(condition, "binary_expression") if condition is not None else ():
        left, right = compared.child_by_field_name("left"), compared.child_by_field_name("right")
        if _raw(compared.child_by_field_name("operator")) in ("===", "==") and _raw(left) in SELECTORS:
            return _raw(left), _text(right)
    return "", ""


def _call(bodies: list[Node], constants: dict[str, str]) -> dict[str, Any]:
    """Return the request of a branch: method, path, places of parameters, and the source lines."""
    call: dict[str, Any] = {"method": "", "path": "", "places": {}, "lines": []}
    for body in bodies:
        for assigned in _all(body, "assignment_expression"):
            left, right = assigned.child_by_field_name("left"), assigned.child_by_field_name("right")
            target = _raw(left).rpartition(".")[2]
            if right is None or target not in ("method", "url", "uri", "body", "qs"):
                continue
            call["lines"].append((assigned.start_point[0] + 1, assigned.end_point[0] + 1))
            if target == "method":
                call["method"] = _text(right).upper()
            elif target in ("url", "uri"):
                call["path"] = _path(right, constants, call["places"])
            else:
                for name in _asked(right):
                    call["places"][name] = "body" if target == "body" else "query"
    return call


def _path(node: Node, constants: dict[str, str], places: dict[str, str]) -> str:
    """Return a URL without its base; inserted values become names in braces."""
    text = ""
    for part in node.children if node.type == "template_string" else [node]:
        if part.type == "template_substitution":
            names = list(_asked(part))
            inner = _raw(part)[2:-1].strip()
            text += constants.get(inner, "") if not names else "".join(f"{{{name}}}" for name in names)
            places.update(dict.fromkeys(names, "path"))
        elif part.type in ("string_fragment", "string"):
            text += _raw(part).strip("'\"")
    for base in constants.values():
        if "://" in base:
            text = text.removeprefix(base.rstrip("/"))
    return text if text.startswith("/") else ""


def _asked(node: Node) -> Iterator[str]:
    """Return the parameters that are read inside *node*: ``this.getNodeParameter('x', i)``."""
    for called in _all(node, "call_expression"):
        if _raw(called.child_by_field_name("function")).endswith("getNodeParameter"):
            arguments = _items(called.child_by_field_name("arguments"))
            if arguments and (name := _text(arguments[0])):
                yield name


def _calls(reading: Reading, source: Source, calls: dict[str, dict[str, Any]]) -> None:
    for key, call in calls.items():
        if key in reading.operations and call["method"] and call["path"]:
            update = {"method": call["method"], "path": call["path"]}
            reading.operations[key] = reading.operations[key].model_copy(update=update)
            reading.know(f"operations.{key}", *(source.evidence(first, last) for first, last in call["lines"]))


def _base_url(reading: Reading, source: Source, constants: dict[str, str], root: Node) -> None:
    for declared in _all(root, "variable_declarator"):
        value = constants.get(_raw(declared.child_by_field_name("name")), "")
        if value.startswith(("http://", "https://")):
            reading.base_url = value.rstrip("/")
            reading.know("base_url", _evidence(source, declared))
            return
