"""The class Capability, and the decorator that makes a tool of a plain function."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType
from typing import Any, overload

import anyio.to_thread
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.llm.tool_schema import tool_schema
from fireswarm.contracts.ports import Clock, Store
from fireswarm.contracts.skills.capability import CapabilityInfo, CapabilityStatus
from fireswarm.contracts.skills.given_files import GivenFiles
from fireswarm.contracts.skills.tool import Tool, ToolAnswer
from fireswarm.errors import InvalidInput
from fireswarm.redaction import Redactor


class NoConfig(BaseModel):
    """A capability without settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True, slots=True)
class CapabilityContext:
    """Context of tools: the session, the task's folder, the clock, and the store if there is one.

    ``task_id`` is the task or run that the tools work for, ``outputs`` its output folder, ``inputs`` its
    input files. Tools for files of ``workdir`` show nothing of the paths that it ``hides``, and no secret that
    ``redact`` finds.
    """

    session: str
    workdir: Path
    clock: Clock
    store: Store | None = None
    task_id: str = ""
    outputs: Path | None = None
    inputs: GivenFiles | None = None
    hides: Callable[[Path], bool] | None = None
    redact: Redactor | None = None


Tools = Callable[[Any, CapabilityContext], Sequence[Tool]]
"""Creates the tools for one use, from its validated configuration and the context."""


Opens = Callable[[Any, CapabilityContext], AbstractAsyncContextManager[Sequence[Tool]]]
"""Like ``Tools``, for tools that need an open resource: a folder, a process, a connection."""


def _no_tools(config: Any, context: CapabilityContext) -> Sequence[Tool]:
    return ()


@dataclass(frozen=True, slots=True)
class Capability:
    """One capability. ``system_prompt`` precedes the agent's prompt; ``needs`` lists capabilities it depends on.

    ``operator_keys`` of its configuration affect security, so only the role card or the settings may set them.
    ``opens`` replaces ``tools`` if a resource must be closed when the agent ends.
    """

    id: str
    name: str
    description: str
    tools: Tools = _no_tools
    system_prompt: str = ""
    opens: Opens | None = None
    config: type[BaseModel] = NoConfig
    operator_keys: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    status: CapabilityStatus = CapabilityStatus.AVAILABLE
    icon: str | None = None
    category: str | None = None
    source: str = field(default="built in", compare=False)

    @property
    def info(self) -> CapabilityInfo:
        """The capability as shown in lists."""
        return CapabilityInfo(
            id=self.id,
            name=self.name,
            description=self.description,
            status=self.status,
            icon=self.icon,
            category=self.category,
        )


@overload
def tool(function: Callable[..., Any]) -> Tool: ...
@overload
def tool(
    *, name: str = "", idempotent: bool | None = None, writes: bool = False, preview: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    *,
    name: str = "",
    idempotent: bool | None = None,
    writes: bool = False,
    preview: Callable[..., Any] | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function: its name, the first paragraph of its docstring, and its typed parameters.

    A plain function runs in a thread. Invalid input raises InvalidInput, and the model gets its message. *preview*
    takes the same parameters, validated in the same way, and returns the change as a text. A call that a crash cut off
    is repeated if the tool is *idempotent*: unless it says so, if it does not write.
    """

    def make(given: Callable[..., Any]) -> Tool:
        called = name or getattr(given, "__name__", "tool")
        shape = _shape_of(given, called)
        run = _runner(given, shape.model, called)
        shows = None if preview is None else _runner(preview, shape.model, called)
        again = not writes if idempotent is None else idempotent
        return Tool(called, shape.words, shape.schema, run, again, writes, preview=shows)

    return make if function is None else make(function)


@dataclass(frozen=True, slots=True)
class _Shape:
    """The parts of a tool that depend only on the function's source."""

    model: type[BaseModel]
    words: str
    schema: dict[str, Any]


_shapes: dict[Hashable, _Shape] = {}
"""Cache: tools are created for each agent from the same functions, and a shape takes a millisecond to compute."""

MAX_SHAPES = 2_000


def _shape_of(function: Callable[..., Any], name: str) -> _Shape:
    """Return the tool's input model, description and schema, cached by the function's source."""
    key = _text_of(function, name)
    if key is not None and key in _shapes:
        return _shapes[key]
    model = _input_of(function, name)
    words = " ".join((inspect.getdoc(function) or name).split("\n\n")[0].split())
    shape = _Shape(model, words, tool_schema(model))
    if key is not None and len(_shapes) < MAX_SHAPES:
        _shapes[key] = shape
    return shape


def _text_of(function: Callable[..., Any], name: str) -> Hashable | None:
    """Return a key that is equal for functions with the same source, types and defaults, or None if unknown."""
    plain = getattr(function, "__func__", function)
    if not isinstance(plain, FunctionType):
        return None
    defaults = (*(plain.__defaults__ or ()), *(plain.__kwdefaults__ or {}).values())
    key = (
        plain.__code__,
        name,
        plain is function,
        plain.__doc__,
        tuple((type(value), value) for value in defaults),
        tuple(plain.__annotations__.items()),
    )
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _input_of(function: Callable[..., Any], name: str) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"tool {name}: *args and **kwargs have no schema; name the parameters")
        if parameter.annotation is parameter.empty:
            raise TypeError(f"tool {name}: parameter {parameter.name} needs a type")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (parameter.annotation, default)
    return create_model(f"{name}_input", __config__=ConfigDict(extra="forbid"), **fields)


def _runner(
    function: Callable[..., Any], model: type[BaseModel], name: str
) -> Callable[[Mapping[str, Any]], Awaitable[Any]]:
    """Return a function that validates the input, calls *function* and converts the result to JSON values."""

    async def run(given: Mapping[str, Any]) -> Any:
        """Validate the input and call the function."""
        try:
            read = model.model_validate(given)
        except ValidationError as error:
            raise InvalidInput(f"{name}: {explain_validation(error)}") from error
        values = {field: getattr(read, field) for field in model.model_fields}
        if inspect.iscoroutinefunction(function):
            result = await function(**values)
        else:
            result = await anyio.to_thread.run_sync(lambda: function(**values))
        return result if isinstance(result, ToolAnswer) else _JSON.dump_python(result, mode="json")

    return run


_JSON: TypeAdapter[Any] = TypeAdapter(Any)
