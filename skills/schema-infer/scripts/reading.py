"""Result of a reader: a schema that grows field by field, each with its source lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from fireswarm import Evidence, TraceEntry, TraceMap, pipelines

MAX_QUOTE_CHARS = 200
MAX_EVIDENCE = 20
MAX_KEY_CHARS = 64


class Unreadable(ValueError):
    """The source does not have the form that its reader expects; the message says what is missing."""


def unique_key(resource: str, action: str, taken: set[str]) -> str:
    """Return a key whose function no other operation has, and add the function to *taken*."""
    number = 1
    while True:
        ending = f"_{number}" if number > 1 else ""
        key = f"{resource}.{action[: MAX_KEY_CHARS - len(ending)]}{ending}"
        if (function := key.replace(".", "_")) not in taken:
            taken.add(function)
            return key
        number += 1


@dataclass(slots=True)
class Source:
    """One file of the bundle, by its name in the bundle."""

    name: str
    text: str
    lines: list[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Split the text once: readers of large documents ask for thousands of lines."""
        self.lines = self.text.splitlines()

    def evidence(self, first: int, last: int | None = None, column: int = 0) -> Evidence:
        """Return lines *first* to *last*, counted from 1, as evidence; the quote is the first line that has words.

        If there is none, as for the path ``/x`` on a line of its own, further lines are part of the evidence. Of a line
        that is longer than a quote, the quote begins at *column*.
        """
        last = max(first, last or first)
        lines = self.lines[first - 1 : last]
        line = next((line for line in lines if pipelines.is_telling(line)), "")
        quote = (line[column:] if len(line) > MAX_QUOTE_CHARS else line).strip()[:MAX_QUOTE_CHARS]
        while not pipelines.is_telling(quote) and last < len(self.lines):
            last += 1
            quote = " ".join(" ".join(self.lines[first - 1 : last]).split())[:MAX_QUOTE_CHARS]
        return Evidence(file=self.name, line_start=first, line_end=last, quote=quote)

    def line_of(self, text: str, after: int = 0) -> int:
        """Return the first line below line *after* that contains *text*, or 0."""
        found = (number for number in range(after + 1, len(self.lines) + 1) if text in self.lines[number - 1])
        return next(found, 0)


@dataclass(slots=True)
class Reading:
    """Collects operations, parameters and evidence."""

    source_type: Literal["TYPE1", "TYPE2"]
    name: str
    display_name: str = ""
    description: str = ""
    base_url: str = ""
    credentials: list[str] = field(default_factory=list[str])
    operations: dict[str, pipelines.Operation] = field(default_factory=dict[str, pipelines.Operation])
    trace: dict[str, TraceEntry] = field(default_factory=dict[str, TraceEntry])
    present: int = 0
    unread: list[pipelines.Unread] = field(default_factory=list[pipelines.Unread])
    parts: dict[str, pipelines.PartCount] = field(default_factory=dict[str, pipelines.PartCount])
    _merged: dict[str, _Merged] = field(default_factory=dict[str, "_Merged"])

    def know(self, name: str, *evidence: Evidence) -> None:
        """Add *evidence* for a field; a second call adds more."""
        if not evidence and name not in self.trace:
            self.assume(name, "the recording shows it; its text stands nowhere in the source")
            return
        before = self.trace[name].evidence if name in self.trace else ()
        self.trace[name] = TraceEntry(evidence=(*before, *evidence)[:MAX_EVIDENCE])

    def assume(self, name: str, rationale: str) -> None:
        """Note a field as an assumption."""
        self.trace[name] = TraceEntry(kind="ASSUMPTION", rationale=rationale)

    def operation(self, operation: pipelines.Operation, *evidence: Evidence) -> None:
        """Add an operation; a second one with the same key is ignored."""
        if operation.key not in self.operations:
            self.operations[operation.key] = operation
            self.know(f"operations.{operation.key}", *evidence)

    def parameter(self, parameter: pipelines.Parameter, *evidence: Evidence) -> None:
        """Add a parameter; an equal parameter of another operation is merged with it."""
        kind = parameter.model_copy(update={"operations": ()}).model_dump_json()
        merged = self._merged.setdefault(kind, _Merged(parameter))
        merged.operations.extend(key for key in parameter.operations if key not in merged.operations)
        merged.evidence.extend(evidence)

    @property
    def parameters(self) -> list[pipelines.Parameter]:
        """The parameters, each with all operations that it is for."""
        return [
            each.parameter.model_copy(update={"operations": tuple(each.operations)}) for each in self._merged.values()
        ]

    def schema(self) -> pipelines.NodeSchema:
        """Return the schema; raises ValueError if it is inconsistent."""
        for each in self._merged.values():
            joined = each.parameter.model_copy(update={"operations": tuple(each.operations)})
            self.trace.pop(pipelines.field_of(joined), None)
            self.know(pipelines.field_of(joined), *each.evidence)
        whole = [each for each in self.unread if each.part == "operation" and each.name not in self.operations]
        content: dict[str, Any] = {
            "name": self.name,
            "display_name": self.display_name,
            "description": self.description,
            "source_type": self.source_type,
            "base_url": self.base_url,
            "credentials": self.credentials,
            "operations": list(self.operations.values()),
            "parameters": self.parameters,
            "present": self.present,
            "found": self.present - len(whole),
            "unread": self.unread,
            "parts": self.parts,
        }
        return pipelines.NodeSchema.model_validate(content)

    def trace_map(self, schema: pipelines.NodeSchema) -> TraceMap:
        """Return the trace map of *schema*: fields without evidence are assumptions."""
        for name in schema.fields():
            if name not in self.trace:
                self.assume(name, "taken from the request, not from the source")
        return TraceMap(fields={name: self.trace[name] for name in schema.fields()})


@dataclass(slots=True)
class _Merged:
    """A parameter, the operations that it is for, and where the source has it."""

    parameter: pipelines.Parameter
    operations: list[str] = field(default_factory=list[str])
    evidence: list[Evidence] = field(default_factory=list[Evidence])
