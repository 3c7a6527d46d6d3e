"""Result of a reader: a schema that grows field by field, each with its source lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from fireswarm import Evidence, TraceEntry, TraceMap, pipelines

MAX_QUOTE_CHARS = 200


class Unreadable(ValueError):
    """The source does not have the form that its reader expects; the message says what is missing."""


@dataclass(slots=True)
class Source:
    """One file of the bundle, by its name in the bundle."""

    name: str
    text: str

    def evidence(self, first: int, last: int | None = None) -> Evidence:
        """Return lines *first* to *last*, counted from 1, as evidence; the quote is the first line."""
        lines = self.text.splitlines()
        quote = lines[first - 1].strip()[:MAX_QUOTE_CHARS] if first <= len(lines) else ""
        return Evidence(file=self.name, line_start=first, line_end=max(first, last or first), quote=quote)

    def line_of(self, text: str, after: int = 0) -> int:
        """Return the first line below line *after* that contains *text*, or 0."""
        lines = self.text.splitlines()
        return next((number for number in range(after + 1, len(lines) + 1) if text in lines[number - 1]), 0)


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
    parameters: list[pipelines.Parameter] = field(default_factory=list[pipelines.Parameter])
    trace: dict[str, TraceEntry] = field(default_factory=dict[str, TraceEntry])
    present: int = 0
    unread: list[pipelines.Unread] = field(default_factory=list[pipelines.Unread])

    def know(self, name: str, *evidence: Evidence) -> None:
        """Add *evidence* for a field; a second call adds more."""
        if not evidence and name not in self.trace:
            self.assume(name, "the recording shows it; its text stands nowhere in the source")
            return
        before = self.trace[name].evidence if name in self.trace else ()
        self.trace[name] = TraceEntry(evidence=(*before, *evidence)[:20])

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
        for number, known in enumerate(self.parameters):
            if known.model_copy(update={"operations": parameter.operations}) == parameter:
                joined = known.model_copy(update={"operations": (*known.operations, *parameter.operations)})
                entry = self.trace.pop(pipelines.field_of(known))
                self.parameters[number] = joined
                self.trace[pipelines.field_of(joined)] = entry
                self.know(pipelines.field_of(joined), *evidence)
                return
        self.parameters.append(parameter)
        self.know(pipelines.field_of(parameter), *evidence)

    def schema(self) -> pipelines.NodeSchema:
        """Return the schema; raises ValueError if it is inconsistent."""
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
            "found": self.present - len([each for each in self.unread if each.name not in self.operations]),
            "unread": self.unread,
        }
        return pipelines.NodeSchema.model_validate(content)

    def trace_map(self, schema: pipelines.NodeSchema) -> TraceMap:
        """Return the trace map of *schema*: fields without evidence are assumptions."""
        for name in schema.fields():
            if name not in self.trace:
                self.assume(name, "taken from the request, not from the source")
        return TraceMap(fields={name: self.trace[name] for name in schema.fields()})
