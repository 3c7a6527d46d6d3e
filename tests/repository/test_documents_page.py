"""docs/reference/documents.md has every field that a swarm stores, and each field of a contract has a meaning."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from tools import fields

from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import Fact, PlannedTask, SkillRequest, SkillResult, SkillState
from tests.support.pages import DOCS, read
from tests.support.swarm import SwarmRig
from tests.support.working import eventually, with_skills, working

PAGE = DOCS / "reference" / "documents.md"
COLLECTIONS = ("agent_tasks", "agent_task_keys", "agent_runs", "agent_mailbox", "mcp_memory")


async def plan(request: SkillRequest) -> SkillResult:
    if request.children:
        return SkillResult(summary="planned and done")
    planned = PlannedTask(key="look", assigned_to="scout", objective="look", skill="look")
    return SkillResult(state=SkillState.DELEGATING, summary="one task", tasks=(planned,))


async def look(request: SkillRequest) -> SkillResult:
    fact = Fact(bucket="notes", key="basil", value="dry")
    return SkillResult(summary="looked", artifacts=(Artifact(type="list", value=[1]),), facts=(fact,))


def described(collection: str) -> set[str]:
    """Return the words in backticks of the collection's section."""
    section = read(PAGE).split(f"\n## {collection}\n", 1)[1].split("\n## ", 1)[0]
    return set(re.findall(r"`(\w+)`", section))


@pytest.mark.anyio
async def test_page_has_every_field_that_a_swarm_stores(swarm: SwarmRig) -> None:
    core = with_skills(swarm, plan=plan, look=look)
    async with working(core, "architect", "architect-1") as architect, working(core, "scout", "scout-1"):
        await swarm.submit("plan", role="architect", skill="plan")
        await eventually(swarm, lambda: architect.settled == 2, "both turns of the plan")
    client, missing = swarm.connect(), dict[str, set[str]]()
    for collection in COLLECTIONS:
        stored = [document.to_dict() or {} async for document in client.collection(collection).stream()]
        assert stored, collection
        missing[collection] = {field for document in stored for field in document} - described(collection)
    assert missing == {collection: set() for collection in COLLECTIONS}


@pytest.mark.parametrize("change", ["drop", "add"])
def test_meanings_that_are_not_those_of_the_contracts_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    written = yaml.safe_load(fields.MEANINGS.read_text(encoding="utf-8"))
    if change == "drop":
        del written["Task"]["lease"]
    else:
        written["Task"]["rent"] = "nothing"
    other = tmp_path / "fields.yaml"
    other.write_text(yaml.safe_dump(written))
    monkeypatch.setattr(fields, "MEANINGS", other)
    with pytest.raises(ValueError, match="Task differs from its contract in (lease|rent)"):
        fields.meanings()
