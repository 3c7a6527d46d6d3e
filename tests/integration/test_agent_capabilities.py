"""The stand-alone agent opens the resources of its capabilities for a run and closes them after it."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from fireswarm.agent.run import carry_out
from fireswarm.agent.task import AgentTask
from fireswarm.errors import ToolFailed
from fireswarm.llm.providers.scripted import Answer, ScriptedModel
from fireswarm.mind import ConclusionStatus
from fireswarm.runs.sinks.files import read_events
from fireswarm.settings import AgentSettings
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.packs.catalog import load_catalog

pytestmark = pytest.mark.anyio

SERVER = {"command": sys.executable, "args": ["-m", "mcp_server_time"]}


def call(tool: str, **given: str) -> Answer:
    return {"calls": [{"name": tool, "input": given}]}


async def test_run_uses_notes_code_and_an_mcp_server_and_closes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.chdir(tmp_path)
    settings = AgentSettings.model_validate(
        {
            "capabilities": ["research", "sandbox", {"id": "mcp", "config": {"servers": {"time": SERVER}}}],
            "permissions": {"default": "allow"},
        }
    )
    answers = [
        call("add_note", text="apples ripen in autumn", source="https://a.example/"),
        call("execute_code", code="print(6 * 7)"),
        call("mcp_time__get_current_time", timezone="Europe/Berlin"),
        call("search_notes", query="apples"),
        "noted",
    ]
    catalog = load_catalog([packaged_path("skills")])
    task = AgentTask("inventory this folder and draft a report")
    conclusion, log = await carry_out(settings, catalog, task, tmp_path, model=ScriptedModel(answers))
    assert (conclusion.status, conclusion.answer) == (ConclusionStatus.FINISHED, "noted"), conclusion.error
    told = json.dumps([event.payload for event in read_events(log.folder)], default=str)
    assert "Europe/Berlin" in told and told.count("apples ripen in autumn") >= 2
    assert "42" in told or "bubblewrap" in told or "cannot create a sandbox" in told, (
        "without bubblewrap the model is told so"
    )
    assert [path.name for path in temporary.iterdir()] == []
    assert [each for each in psutil.Process().children(recursive=True) if "mcp_server_time" in each.cmdline()] == []


async def test_mcp_server_that_cannot_start_fails_the_run_before_any_model_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    broken = {"id": "mcp", "config": {"servers": {"gone": {"command": "/no/such/server"}}}}
    model = ScriptedModel(["not reached"])
    with pytest.raises(ToolFailed, match="MCP server gone failed to start"):
        await carry_out(
            AgentSettings.model_validate({"capabilities": [broken]}),
            load_catalog([packaged_path("skills")]),
            AgentTask("inventory this folder"),
            tmp_path,
            model=model,
        )
