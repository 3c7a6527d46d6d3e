"""Read a recording: each operation's method, path and parts of its request are what the node's own code sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from fireswarm import Evidence, pipelines

from .reading import Reading, Source, Unreadable

KINDS: dict[str, pipelines.Kind] = {
    "string": "string",
    "number": "number",
    "boolean": "boolean",
    "collection": "object",
    "fixedCollection": "object",
    "multiOptions": "array",
    "dateTime": "string",
    "color": "string",
}
"""Types of a property, as the description names them. Others take any value."""

MAX_REASON_CHARS = 200
MADE = re.compile(r"a\d+[a-z]*_[\w.@]*+")
"""A text of an answer, as the recorder makes it."""


def read(node: pipelines.RecordedNode, sources: Mapping[str, str], name: str) -> Reading:
    """Return the node of a recording. *sources* are the files that ran, by their names in the bundle."""
    described = node.description
    reading = Reading("TYPE1", pipelines.identifier(str(described.get("name") or name)))
    reading.display_name = str(described.get("displayName") or "")
    reading.description = str(described.get("description") or "")
    positions = _Positions(sources, node.file)
    reading.know("name", *positions.of(f"'{described.get('name')}'", str(described.get("displayName") or "")))
    urls = [request.url for operation in node.operations for case in operation.cases for request in case.requests]
    base = pipelines.common_base(urls)
    _credentials(reading, described, positions)
    keys = pipelines.operation_keys(node)
    if not keys:
        raise Unreadable(f"{node.file} describes no operations")
    _count(reading, node, keys)
    for key, operation in keys.items():
        _operation(reading, key, operation, base, positions)
    shown = _with_names(base, node.secrets)
    reading.base_url = shown
    if shown:
        host = urlsplit(shown).netloc
        reading.know("base_url", *positions.of(shown.partition("{")[0], host.partition("}")[2] or host))
    _parameters(reading, node, keys, positions)
    _count_parameters(reading, keys, node)
    return reading


def _count(reading: Reading, node: pipelines.RecordedNode, keys: Mapping[str, Any]) -> None:
    """Note how many operations the description has, and which the recording does not show. Raises Unreadable."""
    if lost := pipelines.lost_operations(node):
        raise Unreadable(f"{node.file}: the recorder left out {', '.join(lost)}")
    reading.present = len(keys) + len(node.hidden)
    for each in node.hidden:
        name = ".".join(str(part) for part in (each.resource, each.operation) if part)
        why = f"a form shows it in other versions of the node than {node.version} only"
        reading.unread.append(pipelines.Unread(name=name, reason=why))
    for key, operation in keys.items():
        if not any(case.requests for case in operation.cases):
            needed = sorted({name for case in operation.cases for name in case.unsupported} | set(node.unsupported))
            errors = [case.error for case in operation.cases if case.error]
            why = f"it needs {', '.join(needed)}" if needed else (errors or ["its code sends nothing over HTTP"])[0]
            reading.unread.append(pipelines.Unread(name=key, reason=why[:MAX_REASON_CHARS]))


class _Positions:
    """Finds the source lines of literals."""

    def __init__(self, sources: Mapping[str, str], main: str) -> None:
        self._sources = [Source(name, text) for name, text in sources.items()]
        self._sources.sort(key=lambda source: source.name != main)
        self._lines = {source.name: source.text.splitlines() for source in self._sources}

    def of(self, *texts: str) -> tuple[Evidence, ...]:
        """Return the first line that contains the first of *texts* that stands anywhere; () if none does."""
        for text in filter(None, texts):
            for source in self._sources:
                for number, line in enumerate(self._lines[source.name], 1):
                    if text in line:
                        return (source.evidence(number),)
        return ()


def _credentials(reading: Reading, described: Mapping[str, Any], positions: _Positions) -> None:
    for item in described.get("credentials") or ():
        if isinstance(item, dict) and item.get("name"):
            reading.credentials.append(str(item["name"]))
    if reading.credentials:
        reading.know("credentials", *positions.of(f"'{reading.credentials[0]}'", reading.credentials[0]))


def _with_names(text: str, secrets: Mapping[str, str]) -> str:
    for value, field in secrets.items():
        text = text.replace(value, f"{{{pipelines.CREDENTIALS}.{field}}}")
    return text.rstrip("/")


def _operation(reading: Reading, key: str, operation: Any, base: str, positions: _Positions) -> None:
    template, why = None, ""
    try:
        template = pipelines.infer(operation.cases, base)
    except pipelines.NoTemplate as error:
        why = str(error)[:MAX_REASON_CHARS]
    if template is not None and (odd := {each.method for each in template.requests} - {*pipelines.METHODS}):
        template, why = None, f"its method {min(odd)} is none of HTTP"
    method, path = _method_and_path(operation, base)
    made = pipelines.Operation(
        key=key,
        name=operation.name,
        resource=str(operation.resource or ""),
        description=operation.description,
        method=template.requests[-1].method if template else method,
        path=template.requests[-1].shown_path if template else path,
        template=template,
        unexplained=why,
    )
    literals = [part for part in re.split(r"[/?]|\{[^{}]*\}", urlsplit(made.path).path) if part]
    literal = max(literals, key=len, default="")
    shown = (f"/{literal}", f"'{literal}'", f'"{literal}"', literal) if literal else ()
    reading.operation(
        made, *positions.of(f"'{operation.operation}'", f'"{operation.operation}"'), *positions.of(*shown)
    )


def _method_and_path(operation: Any, base: str) -> tuple[str, str]:
    """Return method and path of the last request that the plain case sends; empty if it sends none."""
    for case in operation.cases:
        for request in reversed(case.requests):
            path = request.url.removeprefix(base) if request.url.startswith(base) else request.url
            for value, name in sorted(case.named.items(), key=lambda item: -len(item[0])):
                path = path.replace(value, f"{{{name}}}")
            path = MADE.sub("{answer}", path)
            if request.method in pipelines.METHODS and path.startswith(("/", "http://", "https://")):
                return request.method, path
    return "", ""


def _parameters(reading: Reading, node: pipelines.RecordedNode, keys: Mapping[str, Any], positions: _Positions) -> None:
    """Add each property of the description for the operations whose recordings have it."""
    by_name: dict[str, list[str]] = {}
    for key, operation in keys.items():
        for name in dict.fromkeys(name for case in operation.cases for name in case.given):
            by_name.setdefault(name, []).append(key)
    places: dict[tuple[str, str], pipelines.Place] = {
        (key, name): place for key in keys for name, place in _places(reading.operations[key].template)
    }
    for entry in node.description.get("properties") or ():
        if not isinstance(entry, dict) or entry.get("type") in pipelines.SHOWN or entry.get("name") not in by_name:
            continue
        name = str(entry["name"])
        own = [key for key in by_name[name] if _is_for(entry, keys[key])]
        known = {key for parameter in reading.parameters if parameter.name == name for key in parameter.operations}
        own = [key for key in own if key not in known]
        if not own:
            continue
        found: set[pipelines.Place] = {places.get((key, name), "") for key in own}
        parameter = pipelines.Parameter(
            name=name,
            display_name=str(entry.get("displayName") or ""),
            kind="binary" if any(_is_file(name, keys[key]) for key in own) else _kind(entry),
            required=entry.get("required") is True and all(_is_always_given(name, keys[key]) for key in own),
            description=str(entry.get("description") or ""),
            operations=tuple(own),
            place=found.pop() if len(found) == 1 else "",
        )
        reading.parameter(parameter, *positions.of(f"name: '{name}'", f'name: "{name}"', name))


def _count_parameters(reading: Reading, keys: Mapping[str, Any], node: pipelines.RecordedNode) -> None:
    """Note how many parameters the description has for all operations, and list those that no recorded input has."""
    known: dict[str, set[str]] = {key: set() for key in keys}
    for parameter in reading.parameters:
        for key in parameter.operations:
            known[key].add(parameter.name)
    present = {key: pipelines.described_parameters(node, operation) for key, operation in keys.items()}
    missing = [(key, name) for key, names in present.items() for name in sorted(names - known[key])]
    why = "no recorded input has it: the form shows it with other values only"
    reading.unread += [pipelines.Unread(name=f"{key} {name}", reason=why, part="parameter") for key, name in missing]
    number = sum(map(len, present.values()))
    if number:
        reading.parts["parameters"] = pipelines.PartCount(present=number, found=number - len(missing))


def _places(template: pipelines.OperationTemplate | None) -> Iterator[tuple[str, pipelines.Place]]:
    places: tuple[tuple[str, pipelines.Place], ...] = (
        ("path", "path"), ("query", "query"), ("headers", "header"), ("body", "body"),
    )  # fmt: skip
    for request in template.requests if template is not None else ():
        for field, place in places:
            for name in pipelines.values.names_in(getattr(request, field)):
                yield name.partition(".")[0], place


def _is_for(entry: Mapping[str, Any], operation: Any) -> bool:
    return pipelines.can_be_shown(entry, {"resource": operation.resource, "operation": operation.operation})


def _is_file(name: str, operation: Any) -> bool:
    """Return whether a parameter names a file of the input: its content is given to the Python node."""
    return any(case.values.get(file) == name for case in operation.cases for file in case.files)


def _is_always_given(name: str, operation: Any) -> bool:
    """Return whether all inputs that sent something have the parameter: a form may hide it for other values."""
    sent = [case.given for case in operation.cases if case.requests and not case.error]
    return all(given.get(name) not in (None, "") for given in sent)


def _kind(entry: Mapping[str, Any]) -> pipelines.Kind:
    values = [option.get("value") for option in entry.get("options") or () if isinstance(option, dict)]
    if entry.get("type") == "options":
        return "string" if values and all(isinstance(value, str) for value in values) else "any"
    kind = KINDS.get(str(entry.get("type")), "any")
    if (entry.get("typeOptions") or {}).get("multipleValues"):
        return "any" if kind == "object" else "array"
    return kind
