"""Notes keep their source, are stored in the session's memory, and can be searched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fireswarm.capabilities import CapabilityContext, registry
from fireswarm.capabilities.research import BUCKET
from fireswarm.clocks import VirtualClock
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.errors import InvalidInput
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio

Notes = Callable[..., Any]


def notes_of(context: CapabilityContext, **config: Any) -> Notes:
    tools = registry().resolve([CapabilityUse(id="research", config=config)], context).tools

    async def call(name: str, **given: Any) -> Any:
        return await tools[name].run(given)

    return call


@pytest.fixture(params=["store", "folder"])
def context(request: pytest.FixtureRequest, swarm: SwarmRig, tmp_path: Path) -> CapabilityContext:
    store = swarm.store if request.param == "store" else None
    return CapabilityContext("s1", tmp_path, swarm.clock if store else VirtualClock(), store, "task-1")


async def test_notes_can_be_added_listed_searched_and_removed(context: CapabilityContext) -> None:
    call = notes_of(context)
    first = await call("add_note", text="Apples ripen in autumn.", source="https://a.example/apples")
    await call("add_note", text="Pears ripen earlier.", source="docs/pears.md", tags=["Fruit"])
    same = await call("add_note", text="Apples ripen in autumn.", source="https://a.example/apples")
    assert same == first | {"notes": 2}
    listed = await notes_of(context)("list_notes")
    assert listed["count"] == 2
    assert {note["source"] for note in listed["notes"]} == {"https://a.example/apples", "docs/pears.md"}
    assert (await call("list_notes", source="PEARS"))["notes"][0]["text"] == "Pears ripen earlier."
    found = await call("search_notes", query="when do apples ripen?")
    assert [note["text"] for note in found["notes"]] == ["Apples ripen in autumn.", "Pears ripen earlier."]
    assert (await call("search_notes", query="fruit"))["count"] == 1
    assert (await call("search_notes", query="plums"))["notes"] == []
    assert (await call("remove_note", id=first["id"]))["removed"] is True
    assert (await call("remove_note", id=first["id"]))["removed"] is False
    assert (await call("list_notes"))["count"] == 1


async def test_conclusion_note_names_its_task_as_source(context: CapabilityContext) -> None:
    assert (await notes_of(context)("add_note", text="So it is.", source="thought"))["source"] == "thought by task-1"


async def test_invalid_notes_and_notes_over_the_limit_are_refused(context: CapabilityContext) -> None:
    call = notes_of(context, max_notes=1)
    for given in ({"text": " ", "source": "x"}, {"text": "x", "source": ""}, {"text": "x" * 4_001, "source": "x"}):
        with pytest.raises(InvalidInput, match="note"):
            await call("add_note", **given)
    await call("add_note", text="one", source="x")
    await call("add_note", text="one", source="x")
    with pytest.raises(InvalidInput, match="note limit reached"):
        await call("add_note", text="two", source="x")
    with pytest.raises(InvalidInput, match="needs search words"):
        await call("search_notes", query="?!")


async def test_secrets_are_redacted_in_notes(context: CapabilityContext) -> None:
    secret = "sk-ant-api03-abcdefghijklmnop0123456789"
    call = notes_of(context)
    await call("add_note", text=f"it is {secret}", source=f"https://a.example/?k={secret}", tags=[secret])
    assert "abcdefghijklmnop" not in str(await call("list_notes"))
    assert (await call("search_notes", query="abcdefghijklmnop0123456789"))["count"] == 0


async def test_notes_are_visible_only_in_their_session(swarm: SwarmRig, tmp_path: Path) -> None:
    call = notes_of(CapabilityContext("s1", tmp_path, swarm.clock, swarm.store, "task-1"))
    await call("add_note", text="Apples ripen in autumn.", source="https://a.example/apples")
    [fact] = await swarm.core.memory.recall("s1", "apples")
    assert (fact.bucket, fact.value, fact.source) == (BUCKET, "Apples ripen in autumn.", "https://a.example/apples")
    other = notes_of(CapabilityContext("s2", tmp_path, swarm.clock, swarm.store, "task-2"))
    assert (await other("list_notes"))["count"] == 0


async def test_notes_in_a_folder_are_not_listed_as_session_files(tmp_path: Path) -> None:
    context = CapabilityContext("s1", tmp_path, VirtualClock())
    files = registry().resolve([CapabilityUse(id="session_file_system")], context).tools
    await notes_of(context)("add_note", text="a note", source="x")
    assert (await files["list_directory"].run({}))["count"] == 0
