"""A model, or a skill, names a folder for other work: none is outside of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fireswarm.agent.run import carry_out
from fireswarm.agent.task import AgentTask
from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.llm.providers.scripted import Answer, ScriptedModel
from fireswarm.settings import AgentSettings
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.packs.catalog import load_catalog
from tests.integration.test_thinking import act, answers_so_far, decide, one_turn, submit, thinking, told
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio

OUTSIDE = ["~", "/", "..", "../other", "/etc", "file://{outside}", "{inside}/../other", "link"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    inside, outside = tmp_path / "inside", tmp_path / "other"
    for place in (inside / "part", outside, tmp_path / "home"):
        place.mkdir(parents=True)
    (inside / "part" / "a.md").write_text("# a\n")
    (outside / "b.md").write_text("# secret\n")
    (inside / "link").symlink_to(outside)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(inside)
    return inside


def named(path: str, folder: Path) -> str:
    return path.format(inside=folder, outside=folder.parent / "other")


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("path", OUTSIDE)
async def test_a_model_gives_a_skill_no_folder_outside_of_its_own(path: str, read_only: bool, folder: Path) -> None:
    shown: list[str] = []

    def model(request: ChatRequest) -> Answer:
        shown.extend(output.text for output in request.messages[-1].outputs)
        if shown:
            return "done"
        given = {"path": named(path, folder)}
        return {
            "calls": [{"name": "use_skill", "input": {"name": "workspace-inventory", "reason": "x", "input": given}}]
        }

    settings = AgentSettings.model_validate({"runtime": {"profile": "read_only" if read_only else "permissive"}})
    catalog = load_catalog([packaged_path("skills")])
    await carry_out(settings, catalog, AgentTask("list", yes=True), folder, model=ScriptedModel(model))
    assert "is outside of" in "\n".join(shown), shown


@pytest.mark.parametrize(
    ("skill", "given"),
    [
        ("workspace-inventory", {"path": "file://file://{outside}"}),
        ("content-summarizer", {"path": "FILE://file:{outside}"}),
        ("csv-forecast", {"csv": "{outside}/b.md"}),
        ("csv-forecast", {"csv": "file://file://{outside}/b.md"}),
        ("csv-forecast", {"csv": "~/.ssh"}),
        ("csv-forecast", {"csv": "../other/b.md"}),
        ("csv-forecast", {"csv": "link/b.md"}),
    ],
)
async def test_a_model_gives_a_skill_no_file_outside_of_its_own_folder_by_any_name(
    skill: str, given: dict[str, str], folder: Path
) -> None:
    (folder.parent / "home" / ".ssh").mkdir()
    shown = await outputs_of(folder, skill, {key: named(value, folder) for key, value in given.items()})
    assert "is outside of" in shown or "is no path of a file" in shown, shown
    assert "secret" not in shown


FORGING = """
from fireswarm import Artifact, SkillResult

def run(request):
    uri = {uri!r}
    return SkillResult(summary="made", artifacts=(Artifact(type="file", name="x", uri=uri),))
"""


@pytest.mark.parametrize("uri", ["file://{outside}/b.md", "workdir:../../../../b.md", "file://{outside}"])
async def test_a_skill_names_no_file_of_others_as_its_result(uri: str, folder: Path, tmp_path: Path) -> None:
    """The code of the next skill may read what a result names."""
    scripts = tmp_path / "skills" / "forging" / "scripts"
    scripts.mkdir(parents=True)
    (scripts.parent / "SKILL.md").write_text(
        "---\nname: forging\ndescription: Forges a file.\nmetadata: {entry: scripts/skill.py}\n---\n"
    )
    (scripts / "skill.py").write_text(FORGING.format(uri=named(uri, folder)))
    shown = await outputs_of(folder, "forging", {}, tmp_path / "skills")
    assert "no file of the workdir" in shown, shown


async def outputs_of(folder: Path, skill: str, given: dict[str, str], *skills: Path) -> str:
    """Let a model call a skill; returns what it is told."""
    shown: list[str] = []

    def model(request: ChatRequest) -> Answer:
        shown.extend(output.text for output in request.messages[-1].outputs)
        if shown:
            return "done"
        return {"calls": [{"name": "use_skill", "input": {"name": skill, "reason": "x", "input": given}}]}

    catalog = load_catalog([*skills, packaged_path("skills")])
    await carry_out(AgentSettings(), catalog, AgentTask("list", yes=True), folder, model=ScriptedModel(model))
    return "\n".join(shown)


async def test_a_model_gives_a_skill_a_part_of_its_folder(folder: Path) -> None:
    shown: list[str] = []

    def model(request: ChatRequest) -> Answer:
        shown.extend(output.text for output in request.messages[-1].outputs)
        if shown:
            return "done"
        given = {"path": "part"}
        return {
            "calls": [{"name": "use_skill", "input": {"name": "workspace-inventory", "reason": "x", "input": given}}]
        }

    catalog = load_catalog([packaged_path("skills")])
    await carry_out(AgentSettings(), catalog, AgentTask("list", yes=True), folder, model=ScriptedModel(model))
    assert "1 file" in "\n".join(shown), shown


@pytest.mark.parametrize("path", OUTSIDE)
async def test_a_planner_gives_a_task_no_folder_outside_of_its_own(path: str, folder: Path, swarm: SwarmRig) -> None:
    shown: list[str] = []

    def model(request: ChatRequest) -> dict[str, Any]:
        shown.append(told(request))
        child = {"key": "a", "assigned_to": "scout", "objective": "look", "context": {"path": named(path, folder)}}
        if answers_so_far(request) == 0:
            return decide(act("finish", answer="planned", result={"tasks": [child]}))
        return decide(act("finish", answer="did it myself"))

    core = thinking(swarm, model, folder)
    await submit(swarm, folder, context={"path": str(folder)})
    task = await one_turn(swarm, core)
    assert (task.status, task.children) == (TaskStatus.DONE, ()), task.error
    assert "is outside of" in shown[-1]


async def test_a_planner_gives_a_task_a_part_of_its_folder(folder: Path, swarm: SwarmRig) -> None:
    child = PlannedTask(key="a", assigned_to="scout", objective="look", context={"path": "part"})

    def model(_request: ChatRequest) -> dict[str, Any]:
        return decide(act("finish", answer="planned", result={"tasks": [child.model_dump(exclude_defaults=True)]}))

    core = thinking(swarm, model, folder)
    await submit(swarm, folder, context={"path": str(folder)})
    task = await one_turn(swarm, core)
    assert task.status_reason is StatusReason.DELEGATING, task.error
