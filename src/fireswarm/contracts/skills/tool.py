"""A tool: a function that a model may call, with its schema."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from fireswarm.contracts.foreign.call import call_foreign
from fireswarm.contracts.skills.artifact import Artifact, MediaBlock
from fireswarm.errors import ToolFailed


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The result of a tool that also has images or documents, or stored artifacts of the task."""

    text: str
    media: tuple[MediaBlock, ...] = ()
    artifacts: tuple[Artifact, ...] = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """A function of the engine that a model may call. ``parameters`` is a JSON Schema of its input.

    ``spec_name`` is its name in ``allowed-tools`` of a skill and in permission rules, by default ``name``.
    ``rule_names`` are further names for such rules. Tools with ``writes`` are not available to read-only tasks. With
    ``outputs_only``, it writes only to the output folder of the task, so that every task may use it. ``preview``
    returns the change of an input as a unified diff, without making the change. It raises the error that ``run`` would
    raise for the input. ``asks`` is the reason why a person has to approve a call, whatever the rules allow.
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
    asks: str = ""

    async def call(self, given: Mapping[str, Any]) -> Any:
        """Call ``run``. Raises ToolFailed if its code cancels itself or calls `sys.exit`, else what it raises."""
        return await call_foreign(partial(self.run, given), f"the tool {self.name}", ToolFailed)

    async def show_change(self, given: Mapping[str, Any]) -> str:
        """Return the change that a call would make, or "" if the tool has no preview. Raises as ``call`` does."""
        if self.preview is None:
            return ""
        return await call_foreign(partial(self.preview, given), f"the preview of the tool {self.name}", ToolFailed)
