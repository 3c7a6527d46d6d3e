"""Capabilities: resolving a list of them, and the built-in ones."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from fireswarm.capabilities import Capability, CapabilityContext, Registry, Resolved, registry, tool
from fireswarm.clocks import VirtualClock
from fireswarm.contracts.skills.capability import CapabilityStatus, CapabilityUse
from fireswarm.contracts.swarm.role import RoleCard
from fireswarm.errors import ConfigError, InvalidInput, NotFound
from fireswarm.mind import Tool

pytestmark = pytest.mark.anyio


@tool
def ping(times: int = 1) -> str:
    """Answers."""
    return "pong " * times


@tool(name="ping", writes=True)
async def other_ping(host: str) -> str:
    """Asks a host."""
    return f"{host} is there"


class Limits(BaseModel):
    most: int = 3


def counting(config: Limits, context: CapabilityContext) -> Sequence[Tool]:
    @tool
    def count() -> int:
        """Counts as far as it may."""
        return config.most

    return [count]


ONE = Capability("one", "One", "first", tools=lambda config, context: [ping], system_prompt="one's words")
TWO = Capability("two", "Two", "second", tools=lambda config, context: [other_ping], needs=("three",))
THREE = Capability("three", "Three", "third", tools=counting, config=Limits, system_prompt="three's words")
LATER = Capability("later", "Later", "not yet", status=CapabilityStatus.COMING_SOON)


def resolve(*uses: str | dict[str, Any], among: Sequence[Capability] = (ONE, TWO, THREE, LATER)) -> Resolved:
    context = CapabilityContext("s1", Path(), VirtualClock())
    return Registry.of(among).resolve([CapabilityUse.model_validate(use) for use in uses], context)


async def use(capability: str, name: str, given: dict[str, Any], **config: Any) -> Any:
    found = registry().resolve(
        [CapabilityUse(id=capability, config=config)], CapabilityContext("s1", Path(), VirtualClock())
    )
    return await found.tools[name].run(given)


def test_prompts_and_tools_are_in_the_order_of_the_list() -> None:
    found = resolve("three", "one")
    assert found.prompts == ("three's words", "one's words")
    assert list(found.tools) == ["count", "ping"]


def test_dependencies_come_before_the_capability() -> None:
    assert resolve("two").capabilities == ("three", "two")


def test_capability_with_a_tool_name_of_an_earlier_one_gets_its_id_as_prefix() -> None:
    words = replace(TWO, system_prompt="Use `ping`.")
    found = resolve("one", "two", among=(ONE, words, THREE))
    assert list(found.tools) == ["ping", "count", "two_ping"]
    assert found.prompts[-1] == "Use `ping`.\n\nThe names of these tools begin with `two_` here."
    assert "far_ping" in resolve("one", {"id": "two", "prefix": "far_"}).tools


def test_tool_name_that_is_taken_in_spite_of_a_prefix_is_rejected_with_both_owners() -> None:
    uses = [{"id": "one", "prefix": "far_"}, {"id": "two", "prefix": "far_"}]
    with pytest.raises(ConfigError, match="the tool name far_ping is used by one and two"):
        resolve(*uses)
    with pytest.raises(ConfigError, match="the tool name far_ping is used by one and two"):
        Registry.of((ONE, TWO, THREE)).check([CapabilityUse.model_validate(use) for use in uses])


def test_capability_whose_tools_cannot_be_made_is_rejected_with_the_reason() -> None:
    def broken(config: Any, context: CapabilityContext) -> Sequence[Tool]:
        raise KeyError("no such table")

    for method in ("check", "resolve"):
        known = Registry.of((Capability("broken", "B", "", tools=broken),))
        rest = () if method == "check" else (CapabilityContext("s1", Path(), VirtualClock()),)
        with pytest.raises(ConfigError, match="the capability broken .built in. has no tools: KeyError"):
            getattr(known, method)([CapabilityUse(id="broken")], *rest)


def test_circular_dependency_is_rejected() -> None:
    a, b = Capability("a", "A", "", needs=("b",)), Capability("b", "B", "", needs=("a",))
    with pytest.raises(ConfigError, match="a -> b -> a"):
        resolve("a", among=(a, b))


def test_configuration_is_validated_by_the_capability() -> None:
    with pytest.raises(ConfigError, match="invalid configuration of the capability three: most"):
        resolve({"id": "three", "config": {"most": "many"}})


async def test_each_use_has_its_own_configuration() -> None:
    assert await resolve({"id": "three", "config": {"most": 7}}).tools["count"].run({}) == 7


def test_unknown_unavailable_or_duplicate_capability_is_rejected() -> None:
    with pytest.raises(NotFound, match="unknown capability 'four'; known: later, one, three, two"):
        resolve("four")
    with pytest.raises(ConfigError, match="coming_soon"):
        resolve("later")
    with pytest.raises(ConfigError, match="listed twice: one"):
        resolve("one", "one")


def test_duplicate_capability_id_is_rejected() -> None:
    with pytest.raises(ConfigError, match="duplicate capability id one"):
        Registry.of([ONE, ONE])


def test_tool_schema_comes_from_types_and_docstring() -> None:
    assert (ping.name, ping.description, ping.writes) == ("ping", "Answers.", False)
    assert ping.parameters["properties"]["times"]["type"] == "integer"
    assert (other_ping.name, other_ping.writes, other_ping.parameters["required"]) == ("ping", True, ["host"])


async def test_same_source_with_other_types_or_defaults_gives_another_tool() -> None:
    def made(kind: Any, default: Any) -> Tool:
        def show(value) -> str:  # type: ignore[no-untyped-def]  # pyright: ignore
            """Shows."""
            return repr(value)  # pyright: ignore[reportUnknownArgumentType] - typed by the next line

        show.__annotations__["value"] = kind
        show.__defaults__ = (default,)
        return tool(show)  # pyright: ignore[reportUnknownArgumentType] - as above

    assert made(int, 1).parameters is made(int, 1).parameters
    assert made(int, 1).parameters != made(str, "1").parameters
    assert (await made(bool, True).run({}), await made(int, 1).run({})) == ("True", "1")
    assert await made(list[int], [1]).run({"value": [2]}) == "[2]"


async def test_invalid_input_raises_a_readable_error() -> None:
    with pytest.raises(InvalidInput, match="ping: times"):
        await ping.run({"times": "often"})
    with pytest.raises(InvalidInput, match="Extra inputs"):
        await ping.run({"tiems": 2})


def test_parameter_without_a_type_is_rejected_at_definition() -> None:
    def vague(thing) -> str:  # pyright: ignore - the missing type is the subject of the test
        return str(thing)

    with pytest.raises(TypeError, match="parameter thing needs a type"):
        tool(vague)


async def test_resources_are_closed_in_reverse_order() -> None:
    seen: list[str] = []

    def holding(name: str) -> Capability:
        @asynccontextmanager
        async def opens(config: Any, context: CapabilityContext) -> AsyncGenerator[Sequence[Tool]]:
            seen.append(f"{name} opens")
            try:
                yield [replace(ping, name=f"{name}_ping")]
            finally:
                seen.append(f"{name} closes")

        return Capability(name, name, "", opens=opens)

    known = Registry.of([holding("a"), ONE, holding("b")])
    uses = [CapabilityUse(id=name) for name in ("a", "one", "b")]
    context = CapabilityContext("s1", Path(), VirtualClock())
    async with known.open(uses, context) as found:
        assert list(found.tools) == ["a_ping", "ping", "b_ping"]
        assert seen == ["a opens", "b opens"]
    assert seen[2:] == ["b closes", "a closes"]
    with pytest.raises(ConfigError, match="needs open resources"):
        known.resolve(uses, context)
    with pytest.raises(ConfigError, match="configuration"):
        async with known.open([*uses, CapabilityUse(id="a", prefix="x_", config={"y": 1})][3:], context):
            raise AssertionError("nothing is opened")
    assert len(seen) == 4


# ── the built-in ones ───────────────────────────────────────────────────────────────────────────────────


async def test_current_time_supports_formats_and_time_zones() -> None:
    assert (await use("current_time", "get_current_time", {}))["time"] == "2026-01-01T00:00:00+00:00"
    assert (await use("current_time", "get_current_time", {"format": "unix"}))["time"] == 1767225600
    told = await use("current_time", "get_current_time", {"timezone": "America/New_York", "format": "human"})
    assert told["time"] == "Wednesday, 31 December 2025, 19:00:00 EST"
    with pytest.raises(InvalidInput, match="unknown time zone"):
        await use("current_time", "get_current_time", {"timezone": "Mars/Olympus"})


@pytest.mark.parametrize(("name", "result"), [("add", 8), ("subtract", 4), ("multiply", 12), ("divide", 3)])
async def test_calculator_computes_the_four_operations(name: str, result: float) -> None:
    assert await use("test_math", name, {"a": 6, "b": 2}) == result


async def test_division_by_zero_raises_invalid_input() -> None:
    with pytest.raises(InvalidInput, match="division by zero"):
        await use("test_math", "divide", {"a": 1, "b": 0})


async def test_weather_is_deterministic_per_city_and_day() -> None:
    first = await use("test_weather", "get_weather", {"city": "Oslo"})
    assert first == await use("test_weather", "get_weather", {"city": "Oslo"})
    assert first["invented"] is True
    forecast = await use("test_weather", "get_forecast", {"city": "Oslo", "days": 5})
    assert [day["date"] for day in forecast["days"]] == [f"2026-01-0{day}" for day in range(2, 7)]
    with pytest.raises(InvalidInput, match="from 1 to 14"):
        await use("test_weather", "get_forecast", {"city": "Oslo", "days": 99})


async def test_role_without_capabilities_gets_the_workspace_tools(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    card = RoleCard(name="scout", description="looks", skills=("noop",))
    found = registry().resolve(card.capabilities, CapabilityContext("s1", tmp_path, VirtualClock()))
    assert await found.tools["read_file"].run({"path": "a.txt"}) == "     1\thello"
