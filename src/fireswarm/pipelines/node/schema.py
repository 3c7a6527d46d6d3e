"""Schema of a node: operations that call an API, their parameters, and the API's base URL.

``inferred_schema.json`` and ``node_schema.json`` contain one. A trace map uses the same field names.
"""

from __future__ import annotations

import keyword
import re
from collections import Counter
from typing import Literal

from pydantic import Field, model_validator

from fireswarm.contracts.base import Contract, JsonObject
from fireswarm.pipelines.node import shaping
from fireswarm.pipelines.node.request_template import OperationTemplate

METHODS = (
    *("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "QUERY"),
    *("COPY", "LIST", "LOCK", "MKCOL", "MOVE", "PROPFIND", "PROPPATCH", "REPORT", "SEARCH", "UNLOCK"),  # WebDAV, Vault
)
Kind = Literal["string", "number", "integer", "boolean", "options", "array", "object", "binary", "any"]
Place = Literal["path", "query", "header", "cookie", "body", ""]

MAX_OPERATIONS = 2_000
"""The largest published node that we know has 72."""

MAX_PARAMETERS = 20_000

_USED = {"Any", "Send", "credential", *(name for name in vars(shaping) if not name.startswith("_"))}

_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]{0,63}")
_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_LITERAL = re.compile(r"[^/?&=]+")
_HOST = re.compile(r"https?://([^/{}]+)(?=/|$)")


def identifier(text: str) -> str:
    """Return *text* as a Python name: ``Add Bookmark`` and ``addBookmark`` become ``add_bookmark``."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)
    name = re.sub(r"[^a-z0-9]+", "_", parted.lower()).strip("_") or "unnamed"
    name = name if name[0].isalpha() else f"n_{name}"
    return (f"{name}_" if keyword.iskeyword(name) else name)[:64]


class Parameter(Contract):
    """One input. ``name`` is the API's name; ``place`` is its location in the request, empty if unknown.

    ``input`` is the name for the caller, where it is another one: an operation may have one name in several places.
    ``style`` and ``explode`` are those of OpenAPI; the style "json" is JSON as a text, "whole" is all of a body.
    """

    name: str = Field(min_length=1, max_length=200)
    input: str = Field(default="", max_length=220)
    display_name: str = ""
    kind: Kind = "string"
    required: bool = False
    default: JsonObject | list[object] | str | int | float | bool | None = None
    description: str = ""
    options: tuple[str | bool | int | float | None, ...] = ()
    operations: tuple[str, ...] = ()
    place: Place = ""
    nullable: bool = False
    style: str = ""
    explode: bool = False

    @property
    def given_as(self) -> str:
        """Name under which a caller gives it."""
        return self.input or self.name


class Paging(Contract):
    """How further pages of an answer are asked for.

    By ``kind``: *cursor*: what an answer has at ``cursor`` is given as the parameter ``input``; *address*: it is the
    address of the next page; *link*: the header ``Link`` has that; *page* and *offset*: ``input`` counts pages, or
    items, until a page has no items at ``items``. Both are dotted paths in the answer, empty for all of it.
    """

    kind: Literal["cursor", "address", "link", "page", "offset"]
    input: str = ""
    cursor: str = ""
    items: str = ""


class Operation(Contract):
    """One operation of the node. ``method`` and ``path`` are empty if unknown.

    ``template`` is what it sends, if the source shows all of it; otherwise ``unexplained`` is the reason.
    ``source_id`` is its id in a document, ``server`` the base of its address if it is not that of the node.
    ``media_type`` is that of its body, which is sent even if it is empty with ``body_required``.
    ``security`` names the fields of the credential that it sends, by the name of what is sent, such as
    ``header X-Api-Key``. ``paging`` says how its further pages are asked for; those of a template are part of that.
    """

    key: str
    name: str = ""
    resource: str = ""
    description: str = ""
    method: str = ""
    path: str = ""
    source_id: str = ""
    server: str = ""
    media_type: str = ""
    body_required: bool = False
    security: dict[str, str] = Field(default_factory=dict[str, str])
    paging: Paging | None = None
    template: OperationTemplate | None = None
    unexplained: str = ""

    @model_validator(mode="after")
    def _is_callable(self) -> Operation:
        if not all(_IDENTIFIER.fullmatch(part) for part in self.key.split(".")):
            raise ValueError(
                f"operation {self.key!r}: a key consists of lowercase names separated by a dot, such as bookmark.create"
            )
        if self.method and self.method not in METHODS:
            raise ValueError(f"operation {self.key}: {self.method!r} is not one of {', '.join(METHODS)}")
        if self.path and not self.path.startswith(("/", "https://", "http://", "{")):
            raise ValueError(f"operation {self.key}: the path {self.path!r} must begin with / or {{")
        return self

    @property
    def function(self) -> str:
        """Name of the function that implements it; names of what such functions use get an underscore."""
        name = self.key.replace(".", "_")
        return f"{name}_" if name in _USED else name

    @property
    def placeholders(self) -> list[str]:
        """Names in braces in the path."""
        return _PLACEHOLDER.findall(self.path)


class Unread(Contract):
    """What of a source is not in the schema, or is in it without its request, and why.

    ``position`` is a file and a line of the bundle. ``part`` says what it is: an operation or a part of one.
    """

    name: str
    reason: str
    position: str = ""
    part: Literal["operation", "parameter", "body", "security", "pages", "document"] = "operation"


class PartCount(Contract):
    """How many parts of a kind the source has, and how many of them the schema has."""

    present: int = 0
    found: int = 0


class NodeSchema(Contract):
    """A node. ``source_type``: TYPE1 is from a node's TypeScript source, TYPE2 from an API's documents.

    Where operations can be counted apart from the reader, ``present`` is their number in the source, ``found`` those of
    them in the schema; ``unread`` names the others, and those that sent nothing. ``parts`` has the same of parameters,
    bodies and answers with further pages.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    display_name: str = ""
    description: str = ""
    source_type: Literal["TYPE1", "TYPE2"]
    base_url: str = ""
    credentials: tuple[str, ...] = ()
    operations: tuple[Operation, ...] = Field(min_length=1, max_length=MAX_OPERATIONS)
    parameters: tuple[Parameter, ...] = Field(default=(), max_length=MAX_PARAMETERS)
    found: int = 0
    present: int = 0
    unread: tuple[Unread, ...] = ()
    parts: dict[str, PartCount] = Field(default_factory=dict[str, PartCount])

    @model_validator(mode="after")
    def _holds_together(self) -> NodeSchema:
        keys = [operation.key for operation in self.operations]
        if twice := sorted(key for key, number in Counter(keys).items() if number > 1):
            raise ValueError(f"duplicate operations: {', '.join(twice)}")
        functions = Counter(operation.function for operation in self.operations)
        if twice := sorted(name for name, number in functions.items() if number > 1):
            raise ValueError(f"several operations would be the function {', '.join(twice)}: change their keys")
        known = set(keys)
        for parameter in self.parameters:
            if unknown := sorted(set(parameter.operations) - known):
                raise ValueError(f"parameter {parameter.name} names unknown operations: {', '.join(unknown)}")
        return self

    def parameters_of(self, key: str) -> list[Parameter]:
        """Return the parameters of one operation, including those of all operations."""
        return [parameter for parameter in self.parameters if not parameter.operations or key in parameter.operations]

    def missing_of(self, operation: Operation) -> str:
        """Return what of a request neither a recording nor a document shows; "" if a template can write it."""
        if operation.template is not None:
            return ""
        if self.source_type == "TYPE1":
            return operation.unexplained or "its requests were not recorded"
        if operation.unexplained or not (operation.method and operation.path):
            return operation.unexplained or "its method and path"
        mine = self.parameters_of(operation.key)
        unplaced = [each.name for each in mine if not each.place]
        unplaced += sorted(set(operation.placeholders) - {each.name for each in mine if each.place == "path"})
        return f"where {', '.join(unplaced)} is sent" if unplaced else ""

    def to_write(self) -> list[Operation]:
        """Return the operations that no template can write."""
        return [operation for operation in self.operations if self.missing_of(operation)]

    def fields(self) -> list[str]:
        """Return the fields that a trace map must cover: each operation, each parameter, and the facts of the node."""
        own = [name for name in ("name", "base_url", "credentials") if getattr(self, name)]
        operations = [f"operations.{operation.key}" for operation in self.operations]
        return [*own, *operations, *(field_of(parameter) for parameter in self.parameters)]

    def values(self) -> dict[str, list[str]]:
        """Return the words of the source that show each field: method and literal parts of a path, name, host."""
        shown = {
            f"operations.{operation.key}": [operation.method, *_LITERAL.findall(_PLACEHOLDER.sub("/", operation.path))]
            for operation in self.operations
            if operation.method and operation.path
        }
        shown |= {field_of(parameter): [parameter.name] for parameter in self.parameters}
        host = _HOST.match(self.base_url)
        return shown | ({"base_url": [host[1]]} if host else {})


def field_of(parameter: Parameter) -> str:
    """Return a parameter's name in a trace map, which is unique even if two operations share a parameter name."""
    return f"parameters.{parameter.given_as}@{'+'.join(parameter.operations) or 'all'}"
