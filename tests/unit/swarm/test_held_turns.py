"""A turn of a conversation is taken before the skill runs: it runs once, however many calls there are."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from fireswarm.clocks import VirtualClock
from fireswarm.contracts.llm.response import AgentResponse
from fireswarm.contracts.skills.context import ConversationChange, TurnHold
from fireswarm.contracts.skills.conversation import MAX_FACT_BYTES, PocketFact, TaskState
from fireswarm.contracts.skills.skill import Question, SkillRequest, SkillResult, SkillState
from fireswarm.errors import ContextEnded, FireswarmError, ResumeRefused, VersionConflict
from fireswarm.skills.packs.catalog import Skill, load_catalog
from fireswarm.swarm.conversations.adapter import GRACE_SECONDS, AgentAdapter
from tests.support.conversations import opened
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.anyio

HEADER = """---
name: asking
description: Asks.
metadata:
  entry: scripts/skill.py
  state_persistence: full_events
  interaction_outcomes: |
    allowed_intermediate_states: [input_required]
    max_turns: 20
---
# Asking
"""
ASKS = SkillResult(
    state=SkillState.INPUT_REQUIRED, summary="How deep?", questions=(Question(name="depth", description="How deep?"),)
)
Answer = Callable[[SkillRequest], Awaitable[SkillResult]]


class Counted:
    """A skill that counts its runs and waits until it may end."""

    def __init__(self) -> None:
        self.runs = 0
        self.began = anyio.Event()
        self.may_end = anyio.Event()

    async def __call__(self, skill: Skill, request: SkillRequest) -> SkillResult:
        """Ask."""
        self.runs += 1
        self.began.set()
        await self.may_end.wait()
        return ASKS


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def skill() -> Counted:
    return Counted()


@pytest.fixture(params=["embedded", "grpc", "stand-alone", "postgres"])
async def agent(
    request: pytest.FixtureRequest, clock: VirtualClock, skill: Counted, tmp_path: Path
) -> AsyncGenerator[AgentAdapter]:
    folder = tmp_path / "skills" / "asking"
    (folder / "scripts").mkdir(parents=True)
    (folder / "scripts" / "skill.py").write_text("def run(request): ...\n")
    (folder / "SKILL.md").write_text(HEADER)
    url = request.getfixturevalue("database_url") if request.param == "postgres" else ""
    async with opened(request.param, clock, tmp_path, url) as contexts:
        yield AgentAdapter(load_catalog([tmp_path / "skills"]), contexts, clock, run=skill)


_numbers = itertools.count(1)


@pytest.fixture
def talk(tmp_path: Path) -> str:
    """Name of a conversation; all tests share one database."""
    return f"{tmp_path.name[:80].replace('[', '-').replace(']', '')}-{next(_numbers)}"


async def gather(
    clock: VirtualClock, skill: Counted, *calls: Callable[[], Awaitable[AgentResponse]]
) -> list[AgentResponse | FireswarmError]:
    """Make all calls at once, let the skill end when one of them has begun it, and return what came of each."""
    found: list[AgentResponse | FireswarmError] = []

    async def note(call: Callable[[], Awaitable[AgentResponse]]) -> None:
        try:
            found.append(await call())
        except FireswarmError as error:
            found.append(error)

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            for call in calls:
                group.start_soon(note, call)
            await skill.began.wait()
            await clock.settle()
            skill.may_end.set()
            while len(found) < len(calls):
                await clock.advance(0.05)
    return found


async def test_skill_runs_once_for_all_calls_with_one_message(
    agent: AgentAdapter, clock: VirtualClock, skill: Counted, talk: str
) -> None:
    call = [lambda: agent.invoke("asking", {}, talk, message_id="m1")] * 4
    found = await gather(clock, skill, *call)
    assert skill.runs == 1
    assert [item.state for item in found if isinstance(item, AgentResponse)] == [TaskState.INPUT_REQUIRED] * 4, found
    assert len({item.resume_token for item in found if isinstance(item, AgentResponse)}) == 1


async def test_of_calls_that_resume_with_one_token_one_runs(
    agent: AgentAdapter, clock: VirtualClock, skill: Counted, talk: str
) -> None:
    skill.may_end.set()
    first = await agent.invoke("asking", {}, talk)
    skill.began, skill.may_end = anyio.Event(), anyio.Event()
    numbers = [{"number": number} for number in range(5)]

    def resume(inputs: dict[str, int]) -> Callable[[], Awaitable[AgentResponse]]:
        return lambda: agent.invoke("asking", inputs, talk, resume=True, token=first.resume_token)

    found = await gather(clock, skill, *map(resume, numbers))
    assert skill.runs == 2
    assert sum(isinstance(item, AgentResponse) for item in found) == 1
    assert {type(item) for item in found} <= {AgentResponse, VersionConflict, ResumeRefused}


@contextlib.asynccontextmanager
async def under_way(agent: AgentAdapter, skill: Counted, talk: str) -> AsyncGenerator[None]:
    """Run a first turn that never ends by itself, and cancel it at the end."""
    async with anyio.create_task_group() as group:
        group.start_soon(agent.invoke, "asking", {}, talk)
        await skill.began.wait()
        yield
        group.cancel_scope.cancel()


async def test_canceled_call_gives_its_turn_back(agent: AgentAdapter, skill: Counted, talk: str) -> None:
    async with under_way(agent, skill, talk):
        with pytest.raises(VersionConflict, match="another call has the turn"):
            await agent.invoke("asking", {}, talk)
    skill.may_end.set()
    response = await agent.invoke("asking", {}, talk)
    assert (response.state, response.metadata.turn, skill.runs) == (TaskState.INPUT_REQUIRED, 1, 2)


async def test_turn_of_a_killed_call_is_taken_after_its_limit_with_the_same_token(
    agent: AgentAdapter, clock: VirtualClock, skill: Counted, talk: str
) -> None:
    skill.may_end.set()
    first = await agent.invoke("asking", {}, talk)
    until = clock.now() + timedelta(seconds=agent.timeout_seconds + GRACE_SECONDS)
    killed = ConversationChange(talk, 1, hold=TurnHold("call-killed", "m2", until), expected_holder="")
    await agent.contexts.apply(killed)
    with pytest.raises(VersionConflict):
        await agent.invoke("asking", {}, talk, resume=True, token=first.resume_token)
    await clock.advance(agent.timeout_seconds + GRACE_SECONDS)
    response = await agent.invoke("asking", {}, talk, resume=True, token=first.resume_token, message_id="m2")
    assert (response.state, response.metadata.turn) == (TaskState.INPUT_REQUIRED, 2)
    with pytest.raises(VersionConflict, match="another call has the turn"):
        await agent.contexts.apply(ConversationChange(talk, 2, turn=2, expected_holder="call-killed"))


async def test_conversation_whose_first_turn_never_ended_begins_again_or_expires(
    agent: AgentAdapter, clock: VirtualClock, skill: Counted, talk: str
) -> None:
    skill.may_end.set()
    until = clock.now() + timedelta(seconds=1)
    for name in (talk, f"{talk}-2"):
        killed = ConversationChange(
            name, 0, skill="asking", session_hash="default", hold=TurnHold("call-killed", "", until)
        )
        await agent.contexts.apply(killed)
    await clock.advance(1)
    with pytest.raises(ResumeRefused, match="no conversation"):
        await agent.invoke("asking", {}, talk, resume=True)
    assert (await agent.invoke("asking", {}, talk)).metadata.turn == 1
    await clock.advance(timedelta(days=31).total_seconds())
    await agent.contexts.prune(clock.now())
    assert await agent.contexts.load(f"{talk}-2") is None
    assert await agent.contexts.load(talk) is not None


async def test_what_does_not_fit_into_the_store_is_a_failed_response(
    agent: AgentAdapter, skill: Counted, talk: str
) -> None:
    async def too_large(_: Skill, request: SkillRequest) -> SkillResult:
        return ASKS.model_copy(update={"pocket": (PocketFact(key="page", value="x" * MAX_FACT_BYTES),)})

    response = await replace(agent, run=too_large).invoke("asking", {"depth": 1}, talk, message_id="m1")
    assert response.state is TaskState.FAILED
    assert "fact state/page is larger than 16,384 bytes" in response.message
    again = await agent.invoke("asking", {}, talk, message_id="m1")
    assert (again.state, skill.runs) == (TaskState.FAILED, 0)
    with pytest.raises(ContextEnded, match="is failed"):
        await agent.invoke("asking", {}, talk, resume=True)
