"""Names of tools are valid for every provider and unique, and rules may use the names of the server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fireswarm.capabilities.tool_names import valid_names
from fireswarm.contracts.grant import Grant, Verdict
from fireswarm.mind import Tool, gate
from fireswarm.skills.packs.catalog import Skill
from tests.support.experts import Expert, calls, run
from tests.support.mcp_odd_server import LONG, NAMES, opened
from tests.support.minds import Bench

pytestmark = pytest.mark.anyio

VALID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


async def called_names(tools: Mapping[str, Tool]) -> dict[str, str]:
    """Return the model's name of each tool by the server's."""
    named = {name: tool for name, tool in tools.items() if not name.endswith("__look")}
    return {str(await tool.run({})).removeprefix("called "): name for name, tool in named.items()}


@pytest.mark.parametrize("prefix", ["", "a_long_prefix_of_20__"[:20]])
async def test_tools_get_valid_names_and_are_called_by_their_own(prefix: str) -> None:
    async with opened(prefix) as tools:
        names = await called_names(tools)
    assert set(names) == set(NAMES) - {"look"}
    assert all(VALID.fullmatch(name) and tools[name].name == name for name in names.values()), names
    assert names["create.entities"] == f"{prefix}mcp_s__create_entities"
    assert names["x_y"] == f"{prefix}mcp_s__x_y"
    assert names["x.y"].startswith(f"{prefix}mcp_s__x_y_") and names["x/y"].startswith(f"{prefix}mcp_s__x_y_")


async def test_rules_name_a_tool_as_the_server_and_as_the_model_do() -> None:
    async with opened() as tools:
        names = await called_names(tools)
    entities, long = tools[names["create.entities"]], tools[names[f"{LONG}b"]]
    for rule in (
        "mcp_s__create.entities",
        "mcp_s__create_entities",
        "mcp__s__create.entities",
        "mcp__s__create_entities",
    ):
        assert allows(rule, entities) and denies(rule, entities), rule
        assert not allows(rule, long) and not denies(rule, long)
    for rule in (f"mcp_s__{LONG}b", f"mcp__s__{LONG}b", names[f"{LONG}b"], "mcp__s__aaa*", "mcp__s"):
        assert allows(rule, long) and denies(rule, long), rule
        assert not allows(rule, tools[names["plain"]]) or rule == "mcp__s"
    assert allows("mcp__s__x_y", tools["mcp_s__x_y"]) and not allows("mcp__s__x_y", tools[names["x.y"]])
    assert allows("mcp_s__x.y", tools[names["x.y"]]) and not allows("mcp_s__x.y", tools[names["x/y"]])


async def test_rules_name_a_tool_with_its_prefix_or_its_server() -> None:
    async with opened("p_") as tools:
        tool = tools["p_mcp_s__create_entities"]
    assert allows("p_mcp_s__create.entities", tool) and allows("mcp__s", tool) and not allows("mcp__p", tool)


def allows(rule: str, tool: Tool) -> bool:
    """Return True if a skill's allowed-tools and the allow rules of the settings let the tool be used."""
    call = gate.Call(tool.spec_name or tool.name, "", tool.name, tool.rule_names)
    by_skill = gate.decide(call, Grant(Path(), named=Skill("x", "x", Path(), allowed_tools=(rule,))))
    by_rule = gate.decide(call, Grant(Path(), allow=(rule,), default=Verdict.DENY))
    assert isinstance(by_skill, gate.Allow) == isinstance(by_rule, gate.Allow)
    return isinstance(by_rule, gate.Allow)


def denies(rule: str, tool: Tool) -> bool:
    call = gate.Call(tool.spec_name or tool.name, "", tool.name, tool.rule_names)
    decisions = [type(gate.decide(call, grant)) for grant in (Grant(Path(), deny=(rule,)), Grant(Path(), ask=(rule,)))]
    assert decisions in ([gate.Deny, gate.Ask], [gate.Allow, gate.Allow])
    return decisions[0] is gate.Deny


async def test_run_calls_a_tool_with_a_dot_and_obeys_the_rule_for_its_server(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    async with opened() as tools:
        for deny, told in (((), "called create.entities"), (("mcp__s",), "the permissions deny mcp__s")):
            expert = Expert(calls(("mcp_s__create_entities", {})), "Done.")
            await run(bench, expert, tools=tools, grant=Grant(bench.cwd, deny=deny))
            assert told in expert.told[0]


@given(st.lists(st.text(st.sampled_from("a._/é\n-"), max_size=4) | st.text(min_size=60, max_size=70), max_size=8))
def test_names_are_valid_and_unique(names: list[str]) -> None:
    valid = valid_names(names)
    assert set(valid) == set(names) and len(set(valid.values())) == len(valid)
    assert all(VALID.fullmatch(short) for name, short in valid.items() if name)
    assert all(valid[name] == name for name in names if VALID.fullmatch(name))


def test_names_do_not_depend_on_the_order() -> None:
    names = ["x.y", "x_y", "x/y", "a" * 70, "a" * 71]
    assert valid_names(names) == valid_names(names[::-1])
