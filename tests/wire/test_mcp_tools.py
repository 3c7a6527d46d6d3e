"""Tools of MCP servers in a run: every provider accepts their names and schemas."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.support.experts import Expert, calls, run_on_the_wire
from tests.support.mcp_odd_server import PIXEL, opened
from tests.support.minds import PROVIDERS, Bench, Lab

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("provider", PROVIDERS)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, decision_mode="tools").set(skills__prefilter_min_score=1)


async def test_tools_with_odd_names_are_offered_and_called(provider: str, lab: Lab, bench: Bench) -> None:
    expert = Expert(calls(("mcp_s__create_entities", {"name": "a"})), "Done.")
    async with opened() as tools:
        ran = await run_on_the_wire(lab, provider, bench, expert, tools=tools)
    assert (ran.conclusion.answer, expert.told[0]) == ("Done.", "called create.entities")


async def test_image_of_a_tool_is_shown_to_the_model(provider: str, lab: Lab, bench: Bench) -> None:
    expert = Expert(calls(("mcp_s__look", {})), "A dot.")
    async with opened() as tools:
        await run_on_the_wire(lab, provider, bench, expert, tools=tools)
    [media] = expert.outputs[0].media
    assert (media.media_type, base64.b64decode(media.data)) == ("image/png", PIXEL)
    assert expert.told == [f"a dot\n[image image/png, {len(PIXEL)} bytes]"]
