"""Field tables of docs/reference/documents.md: names, types, defaults from the contracts, meanings from fields.yaml."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from fireswarm.contracts.skills.context import ConversationState
from fireswarm.contracts.skills.skill import Fact
from fireswarm.contracts.swarm.agent import Agent
from fireswarm.contracts.swarm.envelope import Message
from fireswarm.contracts.swarm.run import RunDocument
from fireswarm.contracts.swarm.status import AgentStatus
from fireswarm.contracts.swarm.task import NO_DEADLINE, Task
from fireswarm.swarm.schedules.schedule import Schedule

MEANINGS = Path(__file__).with_name("fields.yaml")
DOCUMENTS: tuple[type[BaseModel], ...] = (
    Task,
    RunDocument,
    Message,
    AgentStatus,
    Fact,
    ConversationState,
    Agent,
    Schedule,
)
"""Contracts of stored documents. Their parts have tables of their own, once each."""

MAX_WORDS = 8
"""Words of an enumeration that fit into a cell; more are described below the table."""

_WORDS = {"str": "text", "int": "integer", "float": "number", "bool": "boolean", "datetime": "time", "dict": "map"}


def meanings() -> dict[str, dict[str, str]]:
    """Return the meanings by model and field. Raises ValueError if they are not those of the contracts' fields."""
    written: dict[str, dict[str, str]] = yaml.safe_load(MEANINGS.read_text(encoding="utf-8"))
    models = {model.__name__: model for document in DOCUMENTS for model in (document, *parts(document))}
    for name in models.keys() | written.keys():
        fields = set(models[name].model_fields) if name in models else set[str]()
        differ = fields ^ set(written.get(name, {}))
        if differ:
            raise ValueError(f"{MEANINGS.name}: {name} differs from its contract in {', '.join(sorted(differ))}")
    return written


def table(model: type[BaseModel]) -> str:
    """Return the fields of one model as a Markdown table."""
    about = meanings()[model.__name__]
    rows = ["| field | type | default | meaning |", "| --- | --- | --- | --- |"]
    for name, field in model.model_fields.items():
        kind = " or ".join(_kinds(field.annotation))
        rows.append(f"| `{name}` | {kind} | {_default(field)} | {about[name]} |")
    return "\n".join(rows)


def part_tables() -> str:
    """Return a section with a table for each part of the documents, in alphabetical order."""
    models = {part.__name__: part for document in DOCUMENTS for part in parts(document)}
    return "\n\n".join(f"### {name}\n\n{table(model)}" for name, model in sorted(models.items()))


def parts(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield the models that the fields of a model hold, at any depth."""
    for field in model.model_fields.values():
        for part in _models(field.annotation):
            yield part
            yield from parts(part)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


def _kinds(annotation: Any) -> list[str]:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        return [kind for part in inner for kind in _kinds(part)]
    if origin is typing.Annotated:
        return _kinds(inner[0])
    if origin is tuple:
        return [f"list of {_kinds(inner[0])[0]}"]
    if origin is dict:
        held = inner[1]
        return [f"map of {_kinds(held)[0]}" if held is not Any else "map"]
    if annotation is type(None):
        return ["null"]
    return [_named(annotation)]


def _named(annotation: Any) -> str:
    if annotation is Any:
        return "JSON"
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{word}`" for word in get_args(annotation))
    if issubclass(annotation, Enum):
        if len(annotation) > MAX_WORDS:
            return "word"
        return ", ".join(f"`{member.value}`" for member in annotation if member.value)
    if issubclass(annotation, BaseModel):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    return _WORDS[annotation.__name__]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value: Any = field.get_default(call_default_factory=True)
    if value == NO_DEADLINE:
        return "year 9999"
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, BaseModel) or value in ("", (), None) or (isinstance(value, Mapping) and not value):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"
