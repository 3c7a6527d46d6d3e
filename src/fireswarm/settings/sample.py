"""Generate a sample settings file, and the rows of the reference, from the settings models."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo


class Key(NamedTuple):
    """One setting: dotted name, type in words, default as YAML, allowed values, description."""

    name: str
    kind: str
    default: str
    allowed: str
    meaning: str


def keys(model: type[BaseModel], above: str = "") -> Iterator[Key]:
    """Yield every setting of *model*, including those in sections, in the order of the file."""
    for attribute, field in model.model_fields.items():
        name, inner = field.alias or attribute, _section(field)
        if inner is not None:
            yield from keys(inner, f"{above}{name}.")
        else:
            default = _plain(field.get_default(call_default_factory=True))
            yield Key(
                f"{above}{name}",
                _kind(field.annotation),
                _yaml(default),
                _allowed_values(field),
                field.description or "",
            )


def sample(model: type[BaseModel]) -> str:
    """Return a settings file with every key at its default, each with its description."""
    lines = ["# Every key is optional. The values shown are the defaults."]
    _sample(model, 0, lines, None)
    return "\n".join(lines) + "\n"


def _sample(model: type[BaseModel], depth: int, lines: list[str], values: BaseModel | None) -> None:
    """Append a section's lines; ``values`` is its default in its parent, since providers differ in key variables."""
    shown = values if values is not None else model()
    for attribute, field in model.model_fields.items():
        indent, name = "  " * depth, field.alias or attribute
        value = getattr(shown, attribute)
        if isinstance(value, BaseModel):
            lines.append(f"{indent}{name}:")
            _sample(type(value), depth + 1, lines, value)
        else:
            allowed = _allowed_values(field)
            about = f"{field.description or ''}" + (f" ({allowed})" if allowed else "")
            lines.append(f"{indent}{name}: {_yaml(_plain(value))}  # {about}")


def _section(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        text = value.as_posix()
        return text if text.startswith(("/", "~", ".")) else f"./{text}"
    if isinstance(value, tuple):
        return [_plain(item) for item in typing.cast("tuple[Any, ...]", value)]
    return dict(typing.cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("\n").removesuffix("\n...")


def _kind(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is typing.Annotated:
        return _kind(inner[0])
    if origin is Literal:
        return "word" if isinstance(inner[0], str) else type(inner[0]).__name__
    if origin in (types.UnionType, typing.Union):
        return " or ".join(dict.fromkeys(_kind(kind) for kind in inner if kind is not type(None)))
    if origin is tuple:
        return f"list of {_kind(inner[0])}"
    if origin is dict:
        return "map"
    names = {str: "text", int: "integer", float: "number", bool: "boolean", Path: "path"}
    return names.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _allowed_values(field: FieldInfo) -> str:
    words = [word for kind in (field.annotation, *get_args(field.annotation)) for word in _literals(kind)]
    bounds = [
        f"{sign} {getattr(limit, attribute)}"
        for limit in field.metadata
        for attribute, sign in _BOUNDS
        if hasattr(limit, attribute)
    ]
    if type(None) in get_args(field.annotation):
        bounds.append("null")
    return " | ".join(_yaml(word) for word in words) or ", ".join(bounds)


_BOUNDS = (
    ("ge", ">="),
    ("gt", ">"),
    ("le", "<="),
    ("lt", "<"),
    ("min_length", "length >="),
    ("max_length", "length <="),
)


def _literals(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) is Literal else ()
