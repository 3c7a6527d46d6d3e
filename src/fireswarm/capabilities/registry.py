"""The registry of capabilities by id; it also prepares the capabilities of one agent."""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from fireswarm.capabilities import drop_in
from fireswarm.capabilities.capability import Capability, CapabilityContext
from fireswarm.capabilities.tool_names import valid_names
from fireswarm.clocks import ServerClock
from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.foreign.call import refuse_own_end
from fireswarm.contracts.skills.capability import CapabilityStatus, CapabilityUse
from fireswarm.contracts.skills.tool import Tool
from fireswarm.errors import ConfigError, FireswarmError, NotFound, ToolFailed

_log = logging.getLogger(__name__)

ENTRY_POINTS = "fireswarm.capabilities"

LARGER = {
    "session_file_system": "session_files.capability:SESSION_FILES",
    "web_fetch": "web.fetch:WEB_FETCH",
    "research": "research:RESEARCH",
    "sandbox": "sandbox:SANDBOX",
    "mcp": "mcp.capability:MCP",
}
"""Built-in capabilities in separate modules, loaded when one of them is used or listed."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The resolved capabilities of an agent: instructions that precede its prompt, in order, and the tools by name."""

    prompts: tuple[str, ...] = ()
    tools: Mapping[str, Tool] = field(default_factory=dict)
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Registry:
    """Capabilities by id, in the order in which they were registered.

    ``left_out`` has those that failed to load, with the reason.
    """

    known: Mapping[str, Capability]
    left_out: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, capabilities: Iterable[Capability]) -> Registry:
        """Register *capabilities*. Raises ConfigError for a duplicate id."""
        known: dict[str, Capability] = {}
        for capability in capabilities:
            if capability.id in known:
                raise ConfigError(
                    f"duplicate capability id {capability.id}: {known[capability.id].source} and {capability.source}"
                )
            known[capability.id] = capability
        return cls(known)

    def get(self, name: str) -> Capability:
        """Return a capability. Raises NotFound with the known ids."""
        if name not in self.known:
            failed = "".join(f"; left out: {point}: {reason}" for point, reason in self.left_out)
            raise NotFound(f"unknown capability {name!r}; known: {', '.join(sorted(self.known))}{failed}")
        return self.known[name]

    def check(self, uses: Sequence[CapabilityUse]) -> None:
        """Raise the ConfigError or NotFound that ``open`` would raise for *uses*, without opening their resources.

        The tools of a capability with resources cannot be checked here.
        """
        context, gathered = CapabilityContext("check", Path(), ServerClock()), _Gathered()
        for use in self._order(uses):
            capability = self.get(use.id)
            config = _config(capability, use)
            gathered.take(use, capability, () if capability.opens else _tools(capability, config, context))

    def resolve(self, uses: Sequence[CapabilityUse], context: CapabilityContext) -> Resolved:
        """Resolve *uses* in order, each after its dependencies; none of them may need open resources.

        Raises ConfigError for an invalid configuration, an unavailable capability, a circular dependency, and
        a duplicate tool name.
        """
        gathered = _Gathered()
        for use in self._order(uses):
            capability = self.get(use.id)
            if capability.opens is not None:
                raise ConfigError(f"the capability {use.id} needs open resources: use `async with registry.open(...)`")
            gathered.take(use, capability, _tools(capability, _config(capability, use), context))
        return gathered.resolve_all()

    @asynccontextmanager
    async def open(self, uses: Sequence[CapabilityUse], context: CapabilityContext) -> AsyncGenerator[Resolved]:
        """Like ``resolve``, also for capabilities with resources, which are closed at the end of the block."""
        gathered = _Gathered()
        ordered = [(use, self.get(use.id)) for use in self._order(uses)]
        configured = [(use, capability, _config(capability, use)) for use, capability in ordered]
        async with AsyncExitStack() as stack:
            for use, capability, config in configured:
                if capability.opens is not None:
                    await stack.enter_async_context(refuse_own_end(f"the capability {capability.id}", ToolFailed))
                    made = await stack.enter_async_context(capability.opens(config, context))
                else:
                    made = _tools(capability, config, context)
                gathered.take(use, capability, made)
            yield gathered.resolve_all()

    def _order(self, uses: Sequence[CapabilityUse]) -> list[CapabilityUse]:
        """Return the uses in order, after their dependencies and without duplicates."""
        by_id = {use.id: use for use in uses}
        if len(by_id) < len(uses):
            names = [use.id for use in uses]
            twice = sorted({name for name in names if names.count(name) > 1})
            raise ConfigError(f"capabilities are listed twice: {', '.join(twice)}")
        ordered: dict[str, CapabilityUse] = {}

        def take(name: str, path: tuple[str, ...]) -> None:
            """Add a capability after its dependencies."""
            if name in path:
                raise ConfigError(f"circular dependency of capabilities: {' -> '.join((*path, name))}")
            if name in ordered:
                return
            capability = self.get(name)
            if capability.status is CapabilityStatus.COMING_SOON:
                raise ConfigError(f"the capability {name} is not available yet (coming_soon): remove it")
            for needed in capability.needs:
                take(needed, (*path, name))
            ordered[name] = by_id.get(name, CapabilityUse(id=name))

        for use in uses:
            take(use.id, ())
        return list(ordered.values())


@dataclass(slots=True)
class _Gathered:
    """The result so far, with the owner of each tool."""

    prompts: list[str] = field(default_factory=list[str])
    tools: dict[str, Tool] = field(default_factory=dict[str, Tool])
    owners: dict[str, str] = field(default_factory=dict[str, str])
    capabilities: list[str] = field(default_factory=list[str])

    def take(self, use: CapabilityUse, capability: Capability, made: Sequence[Tool]) -> None:
        """Add one capability. If one of its tool names is already used, all of its tools get its id as a prefix.

        Raises ConfigError if a name is a duplicate even with the prefix.
        """
        prefix = use.prefix
        if not prefix and any(each.name in self.tools for each in made):
            prefix = f"{use.id}_"
        if capability.system_prompt:
            note = f"\n\nThe names of these tools begin with `{prefix}` here." if prefix and made else ""
            self.prompts.append(f"{capability.system_prompt}{note}")
        for each in made:
            named = f"{prefix}{each.name}"
            if named in self.tools:
                raise ConfigError(
                    f"the tool name {named} is used by {self.owners[named]} and {use.id}: set a different prefix, "
                    f"such as {{id: {use.id}, prefix: {use.id[:8]}2_}}"
                )
            self.tools[named] = _with_prefix(each, prefix) if prefix else each
            self.owners[named] = use.id
        self.capabilities.append(use.id)

    def resolve_all(self) -> Resolved:
        """Return the result, with tool names that every provider accepts."""
        names = valid_names(self.tools)
        tools = {
            names[name]: each if names[name] == name else replace(each, name=names[name], rule_names=_names_of(each))
            for name, each in self.tools.items()
        }
        return Resolved(tuple(self.prompts), tools, tuple(self.capabilities))


def _names_of(tool: Tool) -> tuple[str, ...]:
    return (tool.name, *tool.rule_names)


def _with_prefix(tool: Tool, prefix: str) -> Tool:
    """Return the tool with *prefix* before its name and before its names in rules."""
    also = tuple(f"{prefix}{name}" for name in tool.rule_names)
    return replace(tool, name=f"{prefix}{tool.name}", rule_names=(*tool.rule_names, *also))


def _config(capability: Capability, use: CapabilityUse) -> BaseModel:
    try:
        return capability.config.model_validate(use.config)
    except ValidationError as error:
        raise ConfigError(
            f"invalid configuration of the capability {capability.id}: {explain_validation(error)}"
        ) from error


def _tools(capability: Capability, config: BaseModel, context: CapabilityContext) -> Sequence[Tool]:
    """Return the tools of a capability without resources. Raises ConfigError if its code fails."""
    try:
        return capability.tools(config, context)
    except FireswarmError:
        raise
    except (Exception, CancelledError, SystemExit) as error:  # foreign code may raise anything
        reason = f"{type(error).__name__}: {error}"
        raise ConfigError(f"the capability {capability.id} ({capability.source}) has no tools: {reason}") from error


def registry() -> Registry:
    """Return the built-in capabilities, those of installed packages by entry point, and those of the swarm's folder.

    A capability that cannot be loaded is left out, with the reason in ``left_out``.
    """
    return _registry(drop_in.files(), drop_in.stamp())


@cache
def _registry(files: tuple[Path, ...], stamp: tuple[int, ...]) -> Registry:
    """Load all capabilities; *stamp* changes with the content of *files*."""
    capabilities = {capability.id: capability for capability in _built_in(LARGER)}
    left_out: list[tuple[str, str]] = []
    points = sorted(entry_points(group=ENTRY_POINTS), key=lambda each: (each.name, each.value))
    sources: list[tuple[str, str, Callable[[], Iterable[Any]]]] = [
        (f"the entry point {point.name} ({point.value})", point.value, partial(_load_point, point)) for point in points
    ]
    sources += [(str(file), str(file), partial(drop_in.load, file)) for file in files]
    for name, source, load in sources:
        try:
            loaded = [_check_capability(value, source) for value in load()]
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # its import may raise anything, SystemExit included
            reason = str(error) if isinstance(error, ConfigError) else f"{type(error).__name__}: {error}"
            left_out.append((name, reason))
            continue
        for capability in loaded:
            if capability.id in capabilities:
                left_out.append((name, f"its id {capability.id} is taken by {capabilities[capability.id].source}"))
            else:
                capabilities[capability.id] = capability
    for name, reason in left_out:
        _log.warning("the capability of %s is left out: %s", name, reason)
    return Registry(capabilities, tuple(left_out))


def _load_point(point: EntryPoint) -> list[Any]:
    return [point.load()]


def _check_capability(value: Any, source: str) -> Capability:
    """Return a capability with its source. Raises ConfigError if *value* is not a valid capability."""
    if not isinstance(value, Capability):
        raise ConfigError(f"it is a {type(value).__name__}, not a Capability")
    try:
        _ = value.info
    except ValidationError as error:
        raise ConfigError(f"it is not valid: {explain_validation(error)}") from error
    return replace(value, source=source)


def _built_in(names: Iterable[str]) -> list[Capability]:
    """Return the small built-in capabilities, and the larger ones in *names* with their dependencies."""
    from fireswarm.capabilities.builtin import BUILTIN

    capabilities = list(BUILTIN)
    wanted = list(names)
    while wanted:
        place = LARGER.get(wanted.pop(0), "")
        if place:
            module, _, name = place.partition(":")
            capability: Capability = getattr(import_module(f"fireswarm.capabilities.{module}"), name)
            if capability not in capabilities:
                capabilities.append(capability)
                wanted += capability.needs
    return capabilities


def registry_for(uses: Sequence[CapabilityUse]) -> Registry:
    """Return a registry for *uses*. Capabilities that are not built in are loaded only if *uses* has one of them."""
    own = Registry.of(_built_in([use.id for use in uses]))
    return own if all(use.id in own.known for use in uses) else registry()
