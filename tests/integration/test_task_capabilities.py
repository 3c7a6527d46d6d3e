"""Capabilities of a task: a person may add any, but no operator-only settings; a plan only what the role offers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.llm.chat import ChatRequest
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.swarm.parts import SwarmParts
from tests.integration.test_thinking import act, answers_so_far, decide, one_turn, submit, thinking, told
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio


def noting(request: ChatRequest) -> dict[str, Any]:
    """Take a note if a tool for it is offered, then finish with the names of all offered tools."""
    names = [tool.name for tool in request.tools]
    if answers_so_far(request) == 0 and "add_note" in names:
        return decide(act("add_note", text="five apples", source="basket"))
    return decide(act("finish", answer=f"tools: {names}"))


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def offering(core: SwarmParts, *uses: Any) -> SwarmParts:
    """Return a copy of the core whose roles offer *uses* to plans."""
    offers = tuple(CapabilityUse.model_validate(use) for use in uses)
    return replace(core, roles={name: card.model_copy(update={"offers": offers}) for name, card in core.roles.items()})


async def test_submitted_task_can_add_capabilities(swarm: SwarmRig, tmp_path: Path) -> None:
    core = thinking(swarm, noting, tmp_path)
    await submit(swarm, tmp_path, capabilities=(CapabilityUse(id="research"),))
    done = await one_turn(swarm, core)
    assert done.status is TaskStatus.DONE and done.result is not None, done.error
    assert "'read_file'" in done.result.summary and "'add_note'" in done.result.summary
    [fact] = await core.memory.bucket("s1", "research")
    assert (fact.value, fact.source) == ("five apples", "basket")


async def test_task_instructions_follow_the_role_prompt(swarm: SwarmRig, tmp_path: Path) -> None:
    seen: list[str] = []

    def answer(request: ChatRequest) -> dict[str, Any]:
        seen.append(request.system)
        return decide(act("finish", answer="done"))

    core = thinking(swarm, answer, tmp_path)
    prompt = "You are a scout."
    core = replace(core, roles={name: card.model_copy(update={"prompt": prompt}) for name, card in core.roles.items()})
    await submit(swarm, tmp_path, instructions="Keep every source.")
    assert (await one_turn(swarm, core)).status is TaskStatus.DONE
    assert f"{prompt}\n\nKeep every source." in seen[0]


async def test_task_with_operator_only_settings_is_blocked(swarm: SwarmRig, tmp_path: Path) -> None:
    core = thinking(swarm, noting, tmp_path)
    server = CapabilityUse(id="mcp", config={"servers": {"x": {"command": "/bin/touch", "args": [f"{tmp_path}/ran"]}}})
    await submit(swarm, tmp_path, capabilities=(server,))
    ended = await one_turn(swarm, core)
    assert ended.status is TaskStatus.BLOCKED and "may not set servers" in (ended.error or "")
    assert not names_in(tmp_path) & {"ran"}


def planning(*names: str) -> Any:
    """Plan one task with the capabilities *names*; plan it without them after a refusal."""

    def answer(request: ChatRequest) -> dict[str, Any]:
        if "# Inputs" in request.messages[0].text and "carry out the part" in request.messages[0].text:
            return noting(request)
        refused = "does not offer" in told(request)
        part = {"key": "part", "assigned_to": "scout", "objective": "carry out the part: count the things"}
        plan = {"tasks": [part | ({} if refused else {"capabilities": list(names)})]}
        return decide(act("finish", answer=f"refused: {refused}", result=plan))

    return answer


async def part_of(swarm: SwarmRig, core: SwarmParts, folder: Path) -> Any:
    """Let the architect plan and a scout work on the planned part; return the finished part."""
    await submit(swarm, folder, role="architect")
    planned = await one_turn(swarm, core, role="architect")
    assert planned.status_reason is StatusReason.DELEGATING, planned.error
    part = await one_turn(swarm, core)
    assert part.status is TaskStatus.DONE and part.result is not None, part.error
    return part


async def test_plan_may_use_capabilities_that_the_role_offers(swarm: SwarmRig, tmp_path: Path) -> None:
    core = offering(thinking(swarm, planning("research"), tmp_path), {"id": "research", "config": {"max_notes": 3}})
    part = await part_of(swarm, core, tmp_path)
    assert "'add_note'" in part.result.summary


async def test_plan_with_capabilities_the_role_does_not_offer_is_refused(swarm: SwarmRig, tmp_path: Path) -> None:
    core = thinking(swarm, planning("research"), tmp_path)
    part = await part_of(swarm, core, tmp_path)
    assert part.capabilities == () and "'add_note'" not in part.result.summary


async def test_planned_task_is_blocked_when_its_capability_is_no_longer_offered(
    swarm: SwarmRig, tmp_path: Path
) -> None:
    core = offering(thinking(swarm, planning("research"), tmp_path), "research")
    await submit(swarm, tmp_path, role="architect")
    await one_turn(swarm, core, role="architect")
    stopped = await one_turn(swarm, offering(core))  # the operator took the offer back meanwhile
    assert stopped.status is TaskStatus.BLOCKED and "does not offer research" in (stopped.error or "")
