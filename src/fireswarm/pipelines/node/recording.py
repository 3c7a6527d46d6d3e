"""Recordings of a node's code: for several inputs of an operation, the requests that it sent and the items it made.

``source-ingest`` makes them by running the code with a recorder in the place of the network.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

from pydantic import Field, JsonValue

from fireswarm.contracts.base import Contract

RECORDING = "recording.json"
"""Name of the recording among the files of a run."""

CREDENTIALS = "$credentials"
"""Name below which the fields of a credential are, beside the parameters."""

MADE_UP_FILE = "made-up"
"""Begins name, type and size of each file of the input: no parameter has them."""

SELECTORS = ("resource", "operation", "authentication")
"""Parameters that choose the operation, and the kind of credential."""

SHOWN = ("notice", "callout", "button")
"""Types of properties that are only shown."""


Encoding = Literal["json", "form", "multipart", "data"]


class RecordedRequest(Contract):
    """One request. ``encoding`` says how the body was sent: json, form, multipart, text or binary."""

    method: str
    url: str
    query: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    body: JsonValue = None
    encoding: str = "json"
    credential: str = ""
    authentication: str = "none"
    basic: dict[str, str] | None = None

    @property
    def given_as(self) -> Encoding:
        """How the body is given to the transport of the Python node: a text and bytes are both its data."""
        return "data" if self.encoding in ("text", "binary") else cast(Encoding, self.encoding)


class Case(Contract):
    """One input of an operation. ``values`` are made-up values, each with the parameter that it stands for.

    ``withheld`` are, for each answer, dotted paths of what leads to a further page, which the last page did not have.

    ``items`` are None if the code failed, with ``error``. ``files`` are values that name a file of the input: its
    content is that value. ``refused`` is the HTTP status of the answer to its requests, if that is an error.
    """

    case: str
    parameters: dict[str, JsonValue]
    values: dict[str, str] = Field(default_factory=dict[str, str])
    requests: tuple[RecordedRequest, ...] = ()
    answers: tuple[JsonValue, ...] = ()
    withheld: tuple[tuple[str, ...], ...] = ()
    items: tuple[JsonValue, ...] | None = None
    error: str = ""
    refused: int = 0
    credentials: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    secrets: dict[str, str] = Field(default_factory=dict[str, str])

    @property
    def shows_file(self) -> bool:
        """Whether it sends name, type or size of a file of the input, which no parameter has."""
        return any(MADE_UP_FILE in request.model_dump_json() for request in self.requests)

    @property
    def given(self) -> dict[str, Any]:
        """The parameters as a caller of the Python node gives them: without selectors, and locators as their value.

        The fields of the credential are below `CREDENTIALS`.
        """
        plain = {name: _plain(value) for name, value in self.parameters.items() if name not in SELECTORS}
        return {**plain, CREDENTIALS: {field: value for value, field in self.secrets.items()}}

    @property
    def named(self) -> dict[str, str]:
        """All made-up values, each with the dotted path of what it stands for."""
        return {**self.values, **{value: f"{CREDENTIALS}.{field}" for value, field in self.secrets.items()}}


class RecordedOperation(Contract):
    """One operation with its cases; ``left_out`` further ones were too many to keep."""

    resource: JsonValue = ""
    operation: JsonValue = ""
    name: str = ""
    description: str = ""
    cases: tuple[Case, ...] = ()
    left_out: int = 0


class RecordedNode(Contract):
    """A node: what its description says, and its operations. ``loaded`` are the files of the package that ran.

    ``hidden`` are operations that a form shows in another version of the node only; they were not run.

    ``missing`` are packages that are not installed, ``unsupported`` modules that reach more than an HTTP API.
    """

    file: str
    node_class: str = Field(alias="class")
    version: JsonValue = 1
    description: dict[str, Any]
    credentials: tuple[dict[str, Any], ...] = ()
    operations: tuple[RecordedOperation, ...] = ()
    hidden: tuple[RecordedOperation, ...] = ()
    loaded: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    secrets: dict[str, str] = Field(default_factory=dict[str, str])


def described_operations(description: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return all operations in a description as (resource, operation), counted apart from the recorder.

    The resource is empty for an operation that is not shown for certain resources.
    """
    found: set[tuple[str, str]] = set()
    for entry in description.get("properties") or ():
        if isinstance(entry, dict) and entry.get("name") == "operation" and isinstance(entry.get("options"), list):
            resources = ((entry.get("displayOptions") or {}).get("show") or {}).get("resource") or [""]
            values = [str(option["value"]) for option in entry["options"] if "value" in option]
            found |= {(str(resource), value) for resource in resources for value in values}
    return found


def lost_operations(node: RecordedNode) -> list[str]:
    """Return the operations in the description that are neither read nor listed as hidden, by name."""
    known = [(str(each.resource or ""), str(each.operation)) for each in (*node.operations, *node.hidden)]
    alone = {operation for _, operation in known}
    present = described_operations(node.description)
    lost = [each for each in present if each not in known and not (each[0] == "" and each[1] in alone)]
    return sorted(".".join(filter(None, each)) for each in lost)


def described_parameters(node: RecordedNode, operation: RecordedOperation) -> set[str]:
    """Return the names of the parameters that the description has for an operation, counted apart from the recorder.

    Those that are shown for other versions of the node only are not among them.
    """
    chosen = {"resource": operation.resource, "operation": operation.operation, "@version": node.version}
    return {
        str(entry["name"])
        for entry in node.description.get("properties") or ()
        if isinstance(entry, dict) and entry.get("name") and entry.get("type") not in SHOWN
        if entry["name"] not in SELECTORS and can_be_shown(entry, chosen)
    }


def can_be_shown(entry: Mapping[str, Any], chosen: Mapping[str, Any]) -> bool:
    """Return whether a property can be shown for what is chosen; what else its form depends on may have any value."""
    options = entry.get("displayOptions")
    told: Mapping[str, Any] = options if isinstance(options, dict) else {}
    for kind in ("show", "hide"):
        wanted = told.get(kind)
        conditions: Mapping[str, Any] = wanted if isinstance(wanted, dict) else {}
        for name, value in chosen.items():
            values = conditions.get(name)
            if isinstance(values, list) and any(_fits(each, value) for each in values) is (kind == "hide"):
                return False
    return True


def _fits(wanted: Any, value: Any) -> bool:
    """Return whether a value is the one that an option wants, or fits a condition such as ``{"_cnd": {"gte": 2}}``."""
    condition: Any = wanted.get("_cnd") if isinstance(wanted, Mapping) else None
    if not isinstance(condition, Mapping):
        return wanted == value
    inner: Mapping[str, Any] = condition
    return all(_COMPARED[kind](value, limit) for kind, limit in inner.items() if kind in _COMPARED)


def _compare(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def fits(value: Any, limit: Any) -> bool:
        is_number = isinstance(value, (int, float)) and isinstance(limit, (int, float))
        return not is_number or compare(value, limit)  # what cannot be compared may fit

    return fits


_COMPARED = {
    "eq": operator.eq,
    "not": operator.ne,
    **{name: _compare(each) for name, each in (("gte", operator.ge), ("lte", operator.le))},
    **{name: _compare(each) for name, each in (("gt", operator.gt), ("lt", operator.lt))},
}


def recorded_node(content: Mapping[str, Any]) -> RecordedNode:
    """Return the node of a recording; null values of the recorder are left out. Raises ValidationError."""
    node = dict(content)
    secrets = node.get("secrets") or {}
    node["operations"] = [_without_nulls(operation, secrets) for operation in node.get("operations") or ()]
    return RecordedNode.model_validate(node)


def _without_nulls(operation: Mapping[str, Any], secrets: Mapping[str, str]) -> dict[str, Any]:
    cases = [{key: value for key, value in case.items() if value is not None} for case in operation["cases"]]
    cases = [{**case, "secrets": secrets} for case in cases]
    return {**operation, "cases": cases}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        inner: Mapping[str, Any] = value
        return inner["value"] if inner.get("__rl") else {key: _plain(each) for key, each in inner.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value
