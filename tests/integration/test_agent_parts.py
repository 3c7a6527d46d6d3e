"""The stand-alone agent does the work itself that a swarm would split into tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fireswarm.agent.run import carry_out
from fireswarm.agent.task import AgentTask
from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.llm.providers.scripted import Answer, ScriptedModel
from fireswarm.mind import ConclusionStatus
from fireswarm.settings import AgentSettings
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.packs.catalog import load_catalog

pytestmark = pytest.mark.anyio


def use(skill: str, **given: Any) -> Answer:
    return {"calls": [{"name": "use_skill", "input": {"name": skill, "reason": "it fits", "input": given}}]}


async def test_large_folder_is_read_in_shards_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    for number in range(12):
        (notes / f"note-{number}.md").write_text(f"# Note {number}\n")
    monkeypatch.chdir(tmp_path)
    answers = [
        use("workspace-inventory", shard_files=4),
        use("markdown-report-drafter"),
        "reported",
    ]
    catalog = load_catalog([packaged_path("skills")])
    task = AgentTask("inventory this folder and draft a report", context={"path": str(notes)})
    conclusion, log = await carry_out(AgentSettings(), catalog, task, tmp_path, model=ScriptedModel(answers))
    assert (conclusion.status, conclusion.answer) == (ConclusionStatus.FINISHED, "reported")
    inventory, report = conclusion.outputs
    assert "12 files" in inventory.summary
    assert len(list((log.folder / "artifacts" / "workspace-inventory").glob("shard-*"))) == 3
    written = {artifact.type: artifact.uri for artifact in report.artifacts}
    assert str(written["report"]).endswith("/artifacts/markdown-report-drafter/report.md")


async def test_conversational_skill_is_refused_with_a_reason_for_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown: list[str] = []

    def model(request: ChatRequest) -> Answer:
        shown.extend(output.text for output in request.messages[-1].outputs)
        if not shown:
            return use("request-clarifier")
        return "requested by myself"

    catalog = load_catalog([packaged_path("skills")])
    task = AgentTask("write up the migration")
    conclusion, _ = await carry_out(AgentSettings(), catalog, task, tmp_path, model=ScriptedModel(model))
    assert (conclusion.status, conclusion.answer) == (ConclusionStatus.FINISHED, "requested by myself")
    assert (
        "skill 'request-clarifier' stores a conversation" in shown[-1] and "Use ask_user for missing input" in shown[-1]
    )
