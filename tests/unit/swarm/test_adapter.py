"""Skills called turn by turn through the adapter, and the rules that it enforces on skills and callers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from fireswarm.clocks import VirtualClock
from fireswarm.contracts.llm.response import AgentResponse, as_result
from fireswarm.contracts.skills.conversation import (
    STATES,
    ConversationEvent,
    InputField,
    InputRequest,
    InteractionOutcomes,
    PocketFact,
    TaskState,
    Terms,
)
from fireswarm.contracts.skills.skill import PlannedTask, Question, SkillRequest, SkillResult, SkillState
from fireswarm.errors import ConfigError, ContextEnded, InvalidInput, ResumeRefused
from fireswarm.settings import load_settings
from fireswarm.settings.swarm import StoreSettings
from fireswarm.skills.packs.catalog import Skill, load_catalog
from fireswarm.swarm.conversations.adapter import AgentAdapter
from fireswarm.swarm.opening.embedded_store import serving
from fireswarm.swarm.opening.stand_alone import StandAloneConversations, create_agent_adapter

pytestmark = pytest.mark.anyio

HEADER = """---
name: asking
description: Asks.
metadata:
  entry: scripts/skill.py
  interaction_outcomes: |
    allowed_intermediate_states: [input_required, delegating]
    max_turns: 3
  state_persistence: {persistence}
  input_request_jsonschema: |
    properties: {{depth: {{type: integer}}}}
    required: [depth]
---
# Asking
"""
ASK = Question(name="depth", type="integer", description="How deep?")
Answer = Callable[[SkillRequest], Awaitable[SkillResult]]


async def asks(request: SkillRequest) -> SkillResult:
    """Asks until it knows how deep."""
    assert request.conversation is not None
    if "depth" not in request.conversation.inputs:
        kept = (PocketFact(key="password", value="letmein"), PocketFact(key="seen", value=request.conversation.turn))
        log = (ConversationEvent(payload={"text": "asked"}),)
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary="How deep?", questions=(ASK,), pocket=kept, log=log)
    return as_result(
        AgentResponse(
            state=TaskState.COMPLETED,
            message="done",
            outputs={"depth": request.conversation.inputs["depth"], "seen": request.conversation.fact("seen")},
        )
    )


def adapter(folder: Path, run: Answer = asks, *, persistence: str = "full_events", **options: Any) -> AgentAdapter:
    skill = folder / "skills" / "asking"
    (skill / "scripts").mkdir(parents=True, exist_ok=True)
    (skill / "scripts" / "skill.py").write_text("def run(request): ...\n")
    (skill / "SKILL.md").write_text(HEADER.format(persistence=persistence))
    clock = VirtualClock()

    async def called(_: Skill, request: SkillRequest) -> SkillResult:
        return await run(request)

    contexts = StandAloneConversations(load_settings(folder, environment={}), clock)
    return AgentAdapter(load_catalog([folder / "skills"]), contexts, clock, run=called, **options)


def always(**fields: Any) -> Answer:
    async def run(request: SkillRequest) -> SkillResult:
        return SkillResult(**fields)

    return run


async def test_asking_skill_is_resumed_with_its_token(tmp_path: Path) -> None:
    agent = adapter(tmp_path)
    first = await agent.invoke("asking", {}, "c1")
    assert (first.state, first.metadata.turn, first.metadata.resumable) == (TaskState.INPUT_REQUIRED, 1, True)
    assert first.input_request is not None and first.input_request.missing_fields[0].name == "depth"
    second = await agent.invoke("asking", {"depth": 4}, "c1", resume=True, token=first.resume_token)
    assert (second.state, second.outputs, second.resume_token) == (TaskState.COMPLETED, {"depth": 4, "seen": 1}, None)
    with pytest.raises(ContextEnded, match="is completed"):
        await agent.invoke("asking", {}, "c1", resume=True)
    with pytest.raises(ContextEnded):
        await agent.invoke("asking", {}, "c1")


async def test_forged_and_stale_tokens_are_refused(tmp_path: Path) -> None:
    agent = adapter(tmp_path)
    first = await agent.invoke("asking", {}, "c1")
    other = await agent.invoke("asking", {}, "c2")
    token = str(first.resume_token)
    for forged in (token[:-1] + ("0" if token[-1] != "0" else "1"), other.resume_token, "", "é", "1.1.", "x"):
        with pytest.raises(ResumeRefused, match="never issued"):
            await agent.invoke("asking", {"depth": 1}, "c1", resume=True, token=forged)
    await agent.invoke("asking", {}, "c1", resume=True, token=token)
    with pytest.raises(ResumeRefused, match="stale"):
        await agent.invoke("asking", {"depth": 1}, "c1", resume=True, token=token)
    with pytest.raises(ResumeRefused, match="no conversation"):
        await agent.invoke("asking", {}, "c3", resume=True)
    with pytest.raises(ResumeRefused, match="resume=True"):
        await agent.invoke("asking", {}, "c1")


async def test_results_that_violate_the_contract_are_blocked(tmp_path: Path) -> None:
    task = PlannedTask(key="a", assigned_to="scout", objective="look")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"state": SkillState.PAUSED, "summary": "later"}, "does not allow"),
        ({"state": SkillState.DELEGATING, "summary": "you do it", "tasks": (task,)}, "no swarm is running"),
        ({"state": SkillState.INPUT_REQUIRED, "summary": "something"}, "asks no question"),
    ]
    for number, (fields, told) in enumerate(cases):
        response = await adapter(tmp_path, always(**fields)).invoke("asking", {}, f"c{number}")
        assert response.state is TaskState.BLOCKED and told in response.errors[0]
    routed = adapter(tmp_path, always(**cases[1][0]), router=True)
    assert (await routed.invoke("asking", {}, "routed")).state is TaskState.DELEGATING


async def test_turn_beyond_max_turns_is_escalated(tmp_path: Path) -> None:
    agent = adapter(tmp_path)
    for turn in (1, 2, 3):
        assert (await agent.invoke("asking", {}, "c1", resume=turn > 1)).state is TaskState.INPUT_REQUIRED
    last = await agent.invoke("asking", {}, "c1", resume=True)
    assert (last.state, last.metadata.terminal) == (TaskState.ESCALATED, True)
    assert "max_turns" in last.errors[0]


async def test_inputs_are_validated_before_the_skill_runs(tmp_path: Path) -> None:
    async def never(request: SkillRequest) -> SkillResult:
        raise AssertionError("it ran")

    with pytest.raises(InvalidInput, match="depth: 'deep' is not of type 'integer'"):
        await adapter(tmp_path, never).invoke("asking", {"depth": "deep"}, "c1")


async def test_repeated_message_returns_the_first_response_without_a_run(tmp_path: Path) -> None:
    agent, ran = adapter(tmp_path), 0

    async def counted(request: SkillRequest) -> SkillResult:
        nonlocal ran
        ran += 1
        return await asks(request)

    agent = adapter(tmp_path, counted)
    first = await agent.invoke("asking", {}, "c1", message_id="m1")
    again = await agent.invoke("asking", {}, "c1", message_id="m1")
    assert ran == 1 and again == first
    await agent.invoke("asking", {"depth": 2}, "c1", resume=True, token=again.resume_token, message_id="m2")
    late = await agent.invoke("asking", {}, "c1", message_id="m1")
    assert (late.state, late.resume_token, ran) == (TaskState.INPUT_REQUIRED, None, 2), "an old answer opens nothing"


async def test_turn_over_its_time_limit_ends_in_timeout(tmp_path: Path) -> None:
    async def stuck(request: SkillRequest) -> SkillResult:
        await anyio.Event().wait()
        raise AssertionError

    response = await adapter(tmp_path, stuck, timeout_seconds=0.01).invoke("asking", {}, "c1")
    assert (response.state, response.metadata.terminal) == (TaskState.TIMEOUT, True)


async def test_persistence_level_controls_stored_facts_and_events(tmp_path: Path) -> None:
    for level, facts, events in (("facts_only", 2, 0), ("full_events", 2, 3)):
        agent = adapter(tmp_path / level, persistence=level)
        await agent.invoke("asking", {}, "c1")
        kept = await agent.contexts.load("c1")
        assert kept is not None and (len(kept.facts), len(kept.events)) == (facts, events)
        data = load_settings(tmp_path / level, environment={}).path(StoreSettings().data)
        assert b"asking" in data.read_bytes()
        assert b"letmein" not in data.read_bytes()


async def test_another_session_cannot_resume_a_conversation(tmp_path: Path) -> None:
    await adapter(tmp_path, session="one").invoke("asking", {}, "c1")
    with pytest.raises(ResumeRefused, match="another session"):
        await adapter(tmp_path, session="two").invoke("asking", {}, "c1", resume=True)


def test_invoke_sync_runs_a_skill_without_an_event_loop(tmp_path: Path) -> None:
    adapter(tmp_path)  # lays the skill out
    imports = "from fireswarm.contracts.skills.skill import SkillResult\n"
    code = f"{imports}def run(request):\n    return SkillResult(summary='ran')\n"
    (tmp_path / "skills" / "asking" / "scripts" / "skill.py").write_text(code)
    agent = create_agent_adapter([tmp_path / "skills"], root=tmp_path)
    response = agent.invoke_sync("asking", {}, "c1")
    assert (response.state, response.message) == (TaskState.COMPLETED, "ran")
    again = agent.invoke_sync("asking", {}, "c2")
    assert (again.state, (tmp_path / StoreSettings().data).is_file()) == (TaskState.COMPLETED, True)


async def test_adapters_of_one_folder_share_its_store(tmp_path: Path) -> None:
    agents = [adapter(tmp_path) for _ in range(4)]
    async with anyio.create_task_group() as group:
        for number, agent in enumerate(agents):
            group.start_soon(agent.invoke, "asking", {}, f"c{number}")
    for number, agent in enumerate(reversed(agents)):
        response = await agent.invoke("asking", {"depth": number}, f"c{number}", resume=True)
        assert (response.state, response.outputs["depth"]) == (TaskState.COMPLETED, number)


async def test_adapter_uses_the_file_that_another_process_serves(tmp_path: Path) -> None:
    agent = adapter(tmp_path)
    first = await agent.invoke("asking", {}, "c1")
    async with serving(load_settings(tmp_path, environment={})):
        second = await agent.invoke("asking", {"depth": 4}, "c1", resume=True, token=first.resume_token)
    assert second.state is TaskState.COMPLETED
    kept = await agent.contexts.load("c1")
    assert kept is not None and kept.state.turn == 2


def test_store_that_would_lose_conversations_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRESWARM_STORE", "memory")
    with pytest.raises(ConfigError, match="loses a conversation"):
        create_agent_adapter([tmp_path], root=tmp_path)


def test_no_state_is_both_terminal_and_resumable() -> None:
    assert set(STATES) == set(TaskState)
    assert not any(state.terminal and state.resumable for state in TaskState)


def test_contradictory_contract_is_refused() -> None:
    with pytest.raises(ValueError, match="not an intermediate state"):
        InteractionOutcomes(allowed_intermediate_states=(TaskState.COMPLETED,))
    with pytest.raises(ValueError, match="less than or equal to 20"):
        InteractionOutcomes(max_turns=21)
    with pytest.raises(ValueError, match="need state_persistence facts_only or full_events"):
        Terms.model_validate(
            {"interaction_outcomes": {"allowed_intermediate_states": ["paused"]}, "state_persistence": "none"}
        )
    with pytest.raises(ValueError, match="input_request"):
        AgentResponse(state=TaskState.INPUT_REQUIRED)
    with pytest.raises(ValueError, match="cannot end in"):
        as_result(AgentResponse(state=TaskState.ESCALATED))
    asked = InputRequest(missing_fields=(InputField(name="a", description="?"),))
    assert as_result(AgentResponse(state=TaskState.INPUT_REQUIRED, input_request=asked)).summary == "needs a"


def test_documented_states_match_the_contract() -> None:
    text = (Path(__file__).parents[3] / "docs" / "how-to" / "conversations.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    for state, row in STATES.items():
        cells = [f"`{state.value}`", "yes" if row.terminal else "no", "yes" if row.resumable else "no", row.meaning]
        assert any(line.startswith(f"| {' | '.join(cells)} |") for line in rows), state
