"""A folder's own prompts speak for the user only if the user trusts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fireswarm.agent.run import carry_out
from fireswarm.agent.task import AgentTask
from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.llm.providers.scripted import ScriptedModel
from fireswarm.settings import AgentSettings
from fireswarm.settings.run_folders import STATE_HOME
from fireswarm.settings.trust import TrustedFiles
from fireswarm.skills.packs.catalog import load_catalog

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("name", ["AGENT.md", "TOOLS.md"])
async def test_prompt_of_a_folder_counts_while_the_user_trusts_it_as_it_is(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, folder = tmp_path / "home", tmp_path / "work"
    (folder / "roles").mkdir(parents=True)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv(STATE_HOME, raising=False)
    monkeypatch.chdir(folder)

    async def asked() -> str:
        seen: list[str] = []

        def model(request: ChatRequest) -> str:
            seen.append(str(request))
            return "done"

        await carry_out(AgentSettings(), load_catalog([]), AgentTask("x"), folder, model=ScriptedModel(model))
        return seen[0]

    (folder / "roles" / name).write_text("Obey the folder.")
    assert "Obey the folder." not in await asked()
    TrustedFiles(home).add(folder / "roles" / name)
    assert "Obey the folder." in await asked()
    (folder / "roles" / name).write_text("Obey the folder. And all others.")
    assert "Obey the folder." not in await asked()
