"""A plan, a child or a message can add limits to those of the task it comes from, and loosens none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fireswarm.contracts.ports import Create
from fireswarm.contracts.skills.capability import CapabilityUse
from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.constraints import Constraints
from fireswarm.contracts.swarm.envelope import SecurityContext
from fireswarm.contracts.swarm.outcome import Handoff
from fireswarm.contracts.swarm.task import Task, TaskResult, TaskSpec
from fireswarm.errors import InvalidInput
from fireswarm.storage.documents.build import new_task, planned_task
from tests.support.swarm import SwarmRig
from tests.support.working import with_skills, work_message, working

NOW = datetime(2026, 1, 1, tzinfo=UTC)

deadlines = st.none() | st.datetimes(datetime(2026, 1, 2), datetime(2030, 1, 1), timezones=st.just(UTC))
limits = st.fixed_dictionaries(
    {},
    optional={
        "read_only": st.booleans(),
        "demo_safe": st.booleans(),
        "timeout_seconds": st.none() | st.floats(0.1, 1e6),
        "region": st.sampled_from(["eu", "us", None]),
        "budget": st.fixed_dictionaries({"usd": st.integers(0, 9)}),
    },
)
plans = st.lists(st.tuples(limits, deadlines), min_size=1, max_size=5)


def task_with(fields: dict[str, Any], deadline: datetime | None = None, **more: Any) -> Task:
    constraints = Constraints.model_validate(fields)
    spec = TaskSpec(
        objective="work", assigned_to="architect", session_hash="s1", constraints=constraints, deadline=deadline, **more
    )
    return new_task(spec, NOW)


def planned(fields: dict[str, Any], deadline: datetime | None = None, **more: Any) -> PlannedTask:
    return PlannedTask(key="a", assigned_to="scout", objective="do it", constraints=fields, deadline=deadline, **more)


@given(limits, deadlines, plans)
def test_no_chain_of_plans_loosens_a_limit(first: dict[str, Any], deadline: datetime | None, chain: Any) -> None:
    above = [task_with(first, deadline)]
    for fields, until in chain:
        child = planned_task(above[-1], 1, planned(fields, until), NOW, 0)
        for task in above:
            held = task.constraints
            assert child.constraints.read_only >= held.read_only
            assert child.constraints.demo_safe >= held.demo_safe
            if held.timeout_seconds is not None:
                assert child.constraints.timeout_seconds is not None
                assert child.constraints.timeout_seconds <= held.timeout_seconds
            assert (child.constraints.model_extra or {}).items() >= (held.model_extra or {}).items()
            assert child.deadline <= task.deadline
            assert child.session_hash == task.session_hash
        above.append(child)


@given(limits, limits)
def test_limit_that_a_plan_adds_holds(first: dict[str, Any], added: dict[str, Any]) -> None:
    child = planned_task(task_with(first), 1, planned(added), NOW, 0).constraints
    assert child.read_only >= added.get("read_only", False)
    assert child.demo_safe >= added.get("demo_safe", False)
    if added.get("timeout_seconds") is not None:
        assert child.timeout_seconds is not None and child.timeout_seconds <= added["timeout_seconds"]


def test_child_gets_the_parents_configuration_of_a_capability() -> None:
    use = CapabilityUse(id="web_fetch", config={"hosts": ["example.org"]})
    child = planned_task(task_with({}, capabilities=(use,)), 1, planned({}, capabilities=("web_fetch", "noop")), NOW, 0)
    assert child.capabilities == (use, CapabilityUse(id="noop"))


def test_malformed_limit_of_a_plan_is_refused_and_named() -> None:
    with pytest.raises(InvalidInput, match="constraints of the task a: timeout_seconds"):
        planned_task(task_with({"read_only": True}), 1, planned({"timeout_seconds": -1}), NOW, 0)


@pytest.mark.anyio
async def test_plan_that_switches_read_only_off_creates_read_only_tasks(swarm: SwarmRig) -> None:
    constraints = Constraints(read_only=True, timeout_seconds=60)
    parent = await swarm.submit("look", role="architect", constraints=constraints)
    held = await swarm.claim_one(role="architect")
    later = swarm.clock.now() + timedelta(days=9)
    loose = planned({"read_only": False, "timeout_seconds": 9_999}, later)
    await swarm.settle(held, Handoff((loose,)))
    [child_id] = (await swarm.task(parent.task_id)).children
    child = await swarm.task(child_id)
    assert child.constraints.read_only and child.constraints.timeout_seconds == 60
    [write] = swarm.core.mailbox.handoffs(parent, [child], TaskResult(), "")
    assert isinstance(write, Create) and write.data["payload"]["security_context"] == {"mode": "read_only"}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("mode", "limit"), [("standard", Constraints()), ("demo_safe", Constraints(demo_safe=True)),
                        ("read_only", Constraints(demo_safe=True, read_only=True))]
)  # fmt: skip
async def test_task_of_a_message_has_the_limits_of_its_mode(swarm: SwarmRig, mode: str, limit: Constraints) -> None:
    message = work_message(security_context=SecurityContext(mode=mode))
    await swarm.core.mailbox.send(message, "architect-1", "scout", sender_role="architect")
    async with working(with_skills(swarm)):
        await swarm.clock.settle()
    [task] = await swarm.board.list()
    assert task.constraints == limit


@pytest.mark.anyio
async def test_message_with_an_unknown_mode_is_refused(swarm: SwarmRig) -> None:
    message = work_message(security_context=SecurityContext(mode="readonly"))
    await swarm.core.mailbox.send(message, "architect-1", "scout", sender_role="architect")
    async with working(with_skills(swarm)):
        await swarm.clock.settle()
    assert await swarm.board.list() == []
    outcome = (await swarm.store.get("agent_mailbox/m1")).data["outcome"]
    assert "payload.security_context.mode is 'readonly': use read_only, demo_safe, standard" in outcome
