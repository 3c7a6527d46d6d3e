"""A tool: a function that a model may call, with its schema."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fireswarm.contracts.media import MediaBlock


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The result of a tool that also shows images or documents."""

    text: str
    media: tuple[MediaBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """A function of the engine that a model may call. ``parameters`` is a JSON Schema of its input.

    ``spec_name`` is its name in ``allowed-tools`` of a skill. Tools with ``writes`` are refused to read-only tasks.
    ``preview`` returns the change that an input would make, as a unified diff, and changes nothing.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[[Mapping[str, Any]], Awaitable[Any]]
    idempotent: bool = True
    writes: bool = False
    spec_name: str = ""
    preview: Callable[[Mapping[str, Any]], Awaitable[str]] | None = None
