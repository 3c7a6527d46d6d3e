"""Skills that stop and resume, laid out for tests, and a swarm that has them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from fireswarm.contracts.swarm.task import Task
from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.turn.turn import run_turn
from tests.support.fleet import lay_out
from tests.support.swarm import SwarmRig, open_test_swarm

SURVEY = """
from pathlib import Path
from fireswarm.contracts.skills.conversation import ConversationEvent, InputField, InputRequest, PocketFact, TaskState
from fireswarm.contracts.llm.response import AgentResponse
from fireswarm.contracts.skills.skill import Question, SkillResult, SkillState

def run(request):
    talk = request.conversation
    if "log" in request.context:
        with open(request.context["log"], "a") as log:
            log.write(f"{talk.turn}\\n")
    seen = PocketFact(bucket="plan", key="turns", value=[*talk.fact("turns", [], bucket="plan"), talk.turn])
    note = ConversationEvent(type="looked", payload={"turn": talk.turn})
    if "where" not in talk.inputs:
        field = InputField(name="where", description="Which side?", allowed={"enum": ["north", "south"]})
        return AgentResponse(state=TaskState.INPUT_REQUIRED, input_request=InputRequest(missing_fields=(field,)),
                             facts=(seen,), events=(note,), message="Which side is it?")
    if "depth" not in talk.inputs:
        ask = Question(name="depth", type="integer", description="How deep?")
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary="How deep is it?", questions=(ask,),
                           pocket=(seen,), log=(note,))
    return SkillResult(summary=f"{talk.inputs['where']} {talk.inputs['depth']}, turns {seen.value}", pocket=(seen,))
"""
RESTING = """
from fireswarm.contracts.skills.skill import SkillResult, SkillState

def run(request):
    if request.conversation.turn == 1:
        return SkillResult(state=SkillState.PAUSED, summary="later", pause_seconds=600)
    return SkillResult(summary=f"rested, {request.conversation.resumed_from.value}")
"""
ENDLESS = """
from fireswarm.contracts.skills.skill import Question, SkillResult, SkillState

def run(request):
    ask = Question(name=f"q{request.conversation.turn}", description="And?")
    return SkillResult(state=SkillState.INPUT_REQUIRED, summary="and?", questions=(ask,))
"""
DELEGATES = """
from fireswarm.contracts.skills.skill import PlannedTask, SkillResult, SkillState

def run(request):
    if request.children:
        return SkillResult(summary=f"{request.children[0].summary}, turn {request.conversation.turn}")
    task = PlannedTask(key="look", assigned_to="scout", objective="look", skill="noop")
    return SkillResult(state=SkillState.DELEGATING, summary="asks a scout", tasks=(task,))
"""
TERMS = """
interaction_outcomes:
  allowed_intermediate_states: [{states}]
  max_turns: 3
state_persistence: {persistence}
input_request_jsonschema:
  type: object
  properties:
    depth: {{type: integer, maximum: 100}}
  required: [depth]
"""
SKILLS = {"survey": SURVEY, "resting": RESTING, "endless": ENDLESS, "delegates": DELEGATES, "forbidden": SURVEY}
STATES = {"resting": "paused", "delegates": "delegating", "forbidden": "paused"}


def lay_out_skills(root: Path) -> None:
    """Write the skills and a swarm.yaml below a folder."""
    lay_out(root, SKILLS, settings={"session": "s1"})
    for name in SKILLS:
        card = root / "skills" / name / "SKILL.md"
        terms = TERMS.format(states=STATES.get(name, "input_required"), persistence="full_events")
        card.write_text(card.read_text().replace("\n---\n# ", f"{terms}\n---\n# ").replace("\n\n---", "\n---"))


@asynccontextmanager
async def open_talking(root: Path) -> AsyncGenerator[tuple[SwarmRig, SwarmParts]]:
    """A swarm, and its core with the skills that stop and resume."""
    lay_out_skills(root)
    async with open_test_swarm() as swarm:
        roles = {name: card.model_copy(update={"skills": tuple(SKILLS)}) for name, card in swarm.core.roles.items()}
        yield swarm, replace(swarm.core, catalog=load_catalog([root / "skills"]), roles=roles)


async def one_turn(swarm: SwarmRig, core: SwarmParts, agent: str = "a") -> Task:
    """Claim a task, have its turn and settle it."""
    held = await swarm.claim_one(agent)
    ending = await run_turn(held, core)
    await swarm.board.settle(held, ending.outcome, ending.writes)
    return await swarm.task(held.task.task_id)
