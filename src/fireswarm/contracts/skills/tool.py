"""A tool: a function that a model may call, with its schema."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fireswarm.contracts.skills.artifact import Artifact, MediaBlock


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The result of a tool that also shows images or documents, or stored artifacts of the task."""

    text: str
    media: tuple[MediaBlock, ...] = ()
    artifacts: tuple[Artifact, ...] = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """A function of the engine that a model may call. ``parameters`` is a JSON Schema of its input.

    ``spec_name`` is its name in ``allowed-tools`` of a skill, and in rules of permissions; without it, its name is.
    ``rule_names`` are further names that such rules may use. Tools with ``writes`` are refused to read-only tasks.
    ``outputs_only``: it writes to the output folder of the task only, so that every task may use it.
    ``preview`` returns the change that an input would make, as a unified diff, and changes nothing. It raises the error
    of an input that ``run`` would refuse.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[[Mapping[str, Any]], Awaitable[Any]]
    idempotent: bool = True
    writes: bool = False
    spec_name: str = ""
    rule_names: tuple[str, ...] = ()
    outputs_only: bool = False
    preview: Callable[[Mapping[str, Any]], Awaitable[str]] | None = None
