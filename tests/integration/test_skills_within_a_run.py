"""A model calls a skill with a conversation contract inside its run: unsupported calls are refused with a reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.swarm.parts import SwarmParts
from tests.integration.test_thinking import act, answers_so_far, decide, one_turn, submit, thinking, told
from tests.support.swarm import SwarmRig
from tests.support.talking import SKILLS, lay_out_skills

pytestmark = pytest.mark.anyio

KEEPS_NOTHING = "\nstate_persistence: none\ninput_request_jsonschema: {properties: {depth: {maximum: 100}}}\n---\n# "
ONE_TURN = """
from fireswarm.contracts.skills.skill import Question, SkillResult, SkillState

def run(request):
    talk = request.conversation
    if talk.inputs["depth"] == 0:
        asked = (Question(name="q", description="?"),)
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary="?", questions=asked)
    return SkillResult(summary=f"turn {talk.turn} of {talk.context_id}, depth {talk.inputs['depth']}")
"""


def with_conversing_skills(swarm: SwarmRig, script: Any, folder: Path) -> SwarmParts:
    lay_out_skills(folder)
    card = folder / "skills" / "resting" / "SKILL.md"
    head, _, rest = card.read_text().partition("\ninteraction_outcomes:")
    card.write_text(f"{head}{KEEPS_NOTHING}{rest.partition(chr(10) + '# ')[2]}")
    (folder / "skills" / "resting" / "scripts" / "skill.py").write_text(ONE_TURN)
    core = thinking(swarm, script, folder)
    names = (*SKILLS, "counting")
    roles = {name: role.model_copy(update={"skills": names}) for name, role in core.roles.items()}
    return replace(core, roles=roles, catalog=load_catalog([folder / "skills"]))


class Calls:
    """Calls a skill with each input in turn, then concludes; records the messages it was shown."""

    def __init__(self, skill: str, *given: dict[str, Any]) -> None:
        self.skill, self.given = skill, given
        self.shown: list[str] = []

    def __call__(self, request: ChatRequest) -> dict[str, Any]:
        turn = answers_so_far(request)
        self.shown.append(told(request))
        if turn < len(self.given):
            return decide(act("use_skill", name=self.skill, reason="x", input=self.given[turn]))
        return decide(act("finish", answer="did without"))


async def test_skill_with_persistent_state_is_refused_inside_a_run(swarm: SwarmRig, tmp_path: Path) -> None:
    model = Calls("survey", {"where": "north"})
    core = with_conversing_skills(swarm, model, tmp_path)
    await submit(swarm, tmp_path, context={"log": str(tmp_path / "ran")})
    task = await one_turn(swarm, core)
    assert task.status is TaskStatus.DONE, task.error
    shown = model.shown[-1]
    assert "refused: " in shown and "skill 'survey' stores a conversation across the turns of a task" in shown
    assert "Finish with a task in result.tasks that names the skill" in shown
    assert not (tmp_path / "ran").exists(), "it was not run"


async def test_refused_skill_can_be_delegated_to_a_task_as_advised(swarm: SwarmRig, tmp_path: Path) -> None:
    plan = {"tasks": [{"key": "survey", "assigned_to": "scout", "objective": "survey it", "skill": "survey"}]}

    def model(request: ChatRequest) -> dict[str, Any]:
        if answers_so_far(request) == 0:
            return decide(act("use_skill", name="survey", reason="x"))
        return decide(act("finish", answer="handed over", result=plan))

    core = with_conversing_skills(swarm, model, tmp_path)
    await submit(swarm, tmp_path)
    task = await one_turn(swarm, core)
    assert task.status_reason is StatusReason.DELEGATING, task.error
    [child] = task.children
    asking = await one_turn(swarm, core)
    assert (asking.task_id, [question.name for question in asking.questions]) == (child, ["where"])


async def test_stateless_skill_runs_with_its_conversation_and_contract(swarm: SwarmRig, tmp_path: Path) -> None:
    model = Calls("resting", {"depth": 7}, {"depth": 500})
    core = with_conversing_skills(swarm, model, tmp_path)
    task = await submit(swarm, tmp_path)
    ended = await one_turn(swarm, core)
    assert ended.status is TaskStatus.DONE, ended.error
    shown = "\n".join(model.shown)
    assert f"turn 1 of {task.task_id}, depth 7" in shown
    assert "500 is greater than the maximum of 100" in shown


async def test_skill_that_asks_against_its_contract_fails(swarm: SwarmRig, tmp_path: Path) -> None:
    script = Calls("resting", {"depth": 0})
    core = with_conversing_skills(swarm, script, tmp_path)
    await submit(swarm, tmp_path)
    assert (await one_turn(swarm, core)).status is TaskStatus.DONE, "the model is told, and goes on"
    assert "ended its turn with input_required, which its contract does not allow" in script.shown[-1]
