"""Count what an OpenAPI document describes, apart from its reader: what is in neither its schema nor its list is lost.

A reader walks the document to build a schema; this walks it to count. They share the loader, and nothing else.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote

from fireswarm.errors import InvalidInput
from fireswarm.pipelines.documents.loading import load_document
from fireswarm.pipelines.node.schema import NodeSchema, PartCount

VERBS = ("get", "post", "put", "patch", "delete", "head", "options", "trace")
IGNORED_HEADERS = ("accept", "content-type", "authorization")
"""Parameters of such names are no parameters: OpenAPI declares them by media types and security schemes."""

PAGING_EXTENSIONS = ("x-ms-pageable", "x-speakeasy-pagination", "x-fern-pagination")
"""Extensions that say how further pages of an answer are asked for."""

MAX_STEPS = 30
MAX_PARTS = 500
"""Schemas that one body may be put together from."""


@dataclass(slots=True)
class CountedOperation:
    """One operation: its parameters as (place, name), and for each media type of a body the names at its top.

    The media type is empty if the body is declared without one, as in Swagger 2. ``has_pages`` if the document says
    more than by names that its answers have further pages.
    """

    parameters: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    bodies: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    has_pages: bool = False


class _Files:
    """The documents of a bundle, loaded when a reference names them."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._texts = files
        self._loaded: dict[str, Any] = {}

    def load(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = load_document(self._texts[name]).value if name in self._texts else None
        return self._loaded[name]

    def follow(self, value: Any, file: str) -> tuple[dict[str, Any], str]:
        """Return what a value refers to, and its file; an empty object for a reference that leads nowhere."""
        for _ in range(MAX_STEPS):
            if not isinstance(value, dict):
                return {}, file
            reference = value.get("$ref")
            if not isinstance(reference, str):
                return value, file
            address, _, pointer = reference.partition("#")
            file = posixpath.normpath(posixpath.join(posixpath.dirname(file), unquote(address))) if address else file
            try:
                value = self.load(file)
            except InvalidInput:
                return {}, file
            for part in pointer.lstrip("/").split("/") if pointer.strip("/") else ():
                value = _at(value, unquote(part).replace("~1", "/").replace("~0", "~"))
        return {}, file


def _at(value: Any, part: str) -> Any:
    if isinstance(value, dict):
        return value.get(part)
    return value[int(part)] if isinstance(value, list) and part.isdecimal() and int(part) < len(value) else None


def count_openapi(files: Mapping[str, str], main: str) -> dict[tuple[str, str], CountedOperation]:
    """Return the operations of a document by method and path. Raises InvalidInput for one that cannot be loaded."""
    known = _Files(files)
    document = known.load(main)
    paths = document.get("paths") if isinstance(document, dict) else None
    found: dict[tuple[str, str], CountedOperation] = {}
    for path, item in (paths if isinstance(paths, dict) else {}).items():
        for at, file in ((item, main), known.follow(item, main)):
            for verb in VERBS if isinstance(at, dict) else ():
                if isinstance(at.get(verb), dict):
                    found[verb.upper(), path] = _count_operation(known, path, at, at[verb], file)
    return found


def _count_operation(known: _Files, path: str, item: Mapping[str, Any], operation: Any, file: str) -> CountedOperation:
    counted = CountedOperation()
    for each in [*_list(item.get("parameters")), *_list(operation.get("parameters"))]:
        parameter, origin = known.follow(each, file)
        place, name = parameter.get("in"), parameter.get("name")
        if place == "body":
            counted.bodies.setdefault("", set()).update(_names(known, parameter.get("schema"), origin))
        elif place == "formData" and isinstance(name, str):
            counted.bodies.setdefault("", set()).add(name)
        elif (
            isinstance(place, str)
            and isinstance(name, str)
            and not (place == "header" and name.lower() in IGNORED_HEADERS)
        ):
            counted.parameters.add((place, name))
    body, origin = known.follow(operation.get("requestBody"), file)
    content = body.get("content")
    for media, each in (content if isinstance(content, dict) else {}).items():
        described, at = known.follow(each, origin)
        counted.bodies[str(media)] = _names(known, described.get("schema"), at)
    counted.has_pages = any(_says_pages(operation.get(name)) for name in PAGING_EXTENSIONS)
    answers = operation.get("responses")
    for code, each in (answers if isinstance(answers, dict) else {}).items():
        if str(code).startswith("2") and not counted.has_pages:
            answer, at = known.follow(each, file)
            counted.has_pages = _has_next(known, answer, at, operation, path, is_get=operation is item.get("get"))
    return counted


def _says_pages(extension: Any) -> bool:
    """Return whether an extension says that there are further pages; x-ms-pageable may say that there are none."""
    return bool(extension) and not (isinstance(extension, dict) and extension.get("nextLinkName", "") is None)


def _has_next(known: _Files, answer: Mapping[str, Any], file: str, operation: Any, path: str, *, is_get: bool) -> bool:
    """Return whether an answer has the header Link, or a link to its own operation with a value of the answer."""
    headers, links = answer.get("headers"), answer.get("links")
    if is_get and any(str(name).lower() == "link" for name in (headers if isinstance(headers, dict) else ())):
        return True
    for each in (links if isinstance(links, dict) else {}).values():
        link, _ = known.follow(each, file)
        given = link.get("parameters")
        own = operation.get("operationId")
        if own and isinstance(own, str) and link.get("operationId") == own:
            named = given.items() if isinstance(given, dict) else ()
            taken = [str(key) for key, value in named if isinstance(value, str) and value[:16] == "$response.body#/"]
            taken = [key for key in taken if given[key] != "$response.body#/"]
            if any(not key.startswith("path.") and f"{{{key}}}" not in path for key in taken):
                return True
    return False


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _names(known: _Files, schema: Any, file: str) -> set[str]:
    """Return the names at the top of a body, without what only answers have."""
    names: set[str] = set()
    seen: set[int] = set()
    left = [(schema, file)]
    while left and len(seen) < MAX_PARTS:
        part, origin = known.follow(*left.pop())
        if id(part) in seen:
            continue
        seen.add(id(part))
        properties = part.get("properties")
        for name, each in (properties if isinstance(properties, dict) else {}).items():
            if known.follow(each, origin)[0].get("readOnly") is not True and not (
                isinstance(each, dict) and each.get("readOnly") is True
            ):
                names.add(name)
        left += [(each, origin) for kind in ("allOf", "oneOf", "anyOf") for each in _list(part.get(kind))]
    return names


class Measured(NamedTuple):
    """How many operations, parameters, bodies and names of bodies there are and were found; what is lost, by name."""

    parts: dict[str, PartCount]
    lost: list[str]


_LINE = re.compile(
    r"([-+*>#|`_ \t0-9.]*+)(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\b([`*_:| \t]++)"
    r"((?:/|https?://)(?:[^\s`*|<>\"']|<[\w-]++>)*+)[`*_]*+(?:[ \t]++HTTP/[0-9.]++)?(.*)"
)
"""What precedes a call, its method, what separates it from the address, the address, and the rest of the line."""

_FENCE = re.compile(r"[ \t]*+(```|~~~)")


def is_markdown(file: str) -> bool:
    """Return whether a file of the bundle is a text in Markdown, by its name."""
    return file.lower().endswith((".md", ".markdown", ".txt"))


def is_call(line: str) -> bool:
    """Return whether a line is a call: it is marked (code, bold, heading, list, table), or there is nothing else."""
    found = _LINE.fullmatch(line)
    return found is not None and (bool(re.search(r"[-+*>#|`_]", found[1] + found[3])) or not found[5].strip())


def count_calls(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, method and address of each line of a text in Markdown that begins with a call.

    In a block of code the line may go on; elsewhere see `is_call`.
    """
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        if mark := _FENCE.match(line):
            fence = "" if fence == mark[1] else fence or mark[1]
            continue
        found = _LINE.fullmatch(line)
        if found is not None and (not found[1].strip() if fence else is_call(line)):
            address = found[4].partition("?")[0].partition("#")[0].rstrip(".,;:)")
            address = re.sub(r"(?<=/)(?::([A-Za-z_]\w*+)|<([A-Za-z_][\w-]*+)>)", r"{\1\2}", address)
            yield number, found[2], address.rstrip("/") if len(address) > 1 else address


def page_as_markdown(text: str) -> str:
    """Return a page of HTML as Markdown."""
    import html_to_markdown

    converted = html_to_markdown.convert(text)
    return converted.content or ""


def measure_markdown(schema: NodeSchema, files: Mapping[str, str], main: str) -> Measured:
    """Compare a schema with the calls in the texts of a bundle, which are *main* and all others."""
    listed = {each.name for each in schema.unread}
    known = {(each.method, each.path) for each in schema.operations}
    known |= {(method, f"{schema.base_url}{path}") for method, path in known}
    texts = [text for name, text in files.items() if is_markdown(name)]
    present = {(method, address) for text in texts for _, method, address in count_calls(text)}
    missing = present - known
    parts = {"operations": PartCount(present=len(present), found=len(present) - len(missing))} if present else {}
    lost = sorted(name for method, path in missing if (name := f"{method} {path}") not in listed)
    return Measured(parts, lost)


def measure(schema: NodeSchema, files: Mapping[str, str], main: str) -> Measured:
    """Compare a schema with the document *main*: what it neither has nor lists as unread is lost.

    Raises InvalidInput for a document that cannot be loaded.
    """
    listed = {each.name for each in schema.unread}
    operations = {(each.method, each.path): each for each in schema.operations}
    present, missing = Counter[str](), list[tuple[str, str]]()
    for (method, path), counted in count_openapi(files, main).items():
        title = f"{method} {path}"
        operation = operations.get((method, path))
        present["operations"] += 1
        present["parameters"] += len(counted.parameters)
        present["bodies"] += bool(counted.bodies)
        present["pages"] += counted.has_pages
        if operation is None or (counted.has_pages and operation.paging is None):
            missing += [("pages", f"{title} pages")] * counted.has_pages
        if operation is None:
            missing.append(("operations", title))
            missing += [("parameters", title)] * len(counted.parameters) + [("bodies", title)] * bool(counted.bodies)
            continue
        mine = schema.parameters_of(operation.key)
        known = {(each.place, each.name) for each in mine}
        missing += [("parameters", f"{title} {each[0]} {each[1]}") for each in sorted(counted.parameters - known)]
        if counted.bodies and not operation.media_type:
            missing.append(("bodies", f"{title} body"))
        elif not any(each.style == "whole" for each in mine):
            names = counted.bodies.get(operation.media_type, counted.bodies.get("", set()))
            present["fields"] += len(names)
            missing += [("fields", f"{title} body {name}") for name in sorted(names) if ("body", name) not in known]
    less = Counter(kind for kind, _ in missing)
    parts = {kind: PartCount(present=number, found=number - less[kind]) for kind, number in present.items() if number}
    return Measured(parts, sorted({name for _, name in missing if name not in listed}))
