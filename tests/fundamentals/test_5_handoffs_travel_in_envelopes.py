"""The mailbox: small typed envelopes, claimed once, redelivered when their claimant dies, limited by a policy."""

from __future__ import annotations

from pathlib import Path

import pytest

from fireswarm.contracts.ports import Create
from fireswarm.contracts.skills.artifact import Artifact, Signal
from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.envelope import Envelope, TaskRef, Trace
from fireswarm.contracts.swarm.outcome import Handoff, Outcome, Waiting
from fireswarm.contracts.swarm.task import StatusReason, TaskResult, TaskStatus
from fireswarm.errors import ConfigError, PolicyRefused, WorkEdited
from fireswarm.storage.documents import queries
from fireswarm.swarm.records.policy import HandoffPolicy
from tests.support.swarm import SwarmRig, done

pytestmark = pytest.mark.anyio
ALL_MAIL = queries.newest("agent_mailbox", "created_at", 10)


def envelope(number: int = 1, **fields: object) -> Envelope:
    given: dict[str, object] = {
        "envelope_id": f"e{number}",
        "task": TaskRef(task_id="t1", assigned_to="predictor"),
        "session_hash": "s1",
        "trace": Trace(chain_id="c1", step=1),
    }
    return Envelope.model_validate(given | fields)


async def test_handoff_commits_tasks_together_with_their_envelopes(swarm: SwarmRig) -> None:
    await swarm.submit("plan", role="architect")
    held = await swarm.claim_one(role="architect")
    result = TaskResult(
        artifacts=(Artifact(type="plan", value={"steps": 1}),), signals=(Signal(name="x", strength=0.5),)
    )
    handoff = Handoff(
        (PlannedTask(key="look", assigned_to="scout", objective="look"),), result=result, notes="mind the gap"
    )
    births = swarm.board.births(held, handoff)
    also = swarm.core.mailbox.handoffs(held.task, births, result, handoff.notes)
    await swarm.board.settle(held, handoff, also)
    child = await swarm.claim_one(role="scout")
    opened = await swarm.core.mailbox.open(child.task, child.owner, child.epoch)
    assert opened is not None
    assert (opened.artifacts, opened.signals, opened.notes) == (result.artifacts, result.signals, "mind the gap")
    assert (opened.trace.chain_id, opened.trace.step) == (held.task.task_id, 1)
    await swarm.board.settle(
        child,
        Handoff((PlannedTask(key="n", assigned_to="memory", objective="n"),)),
        swarm.core.mailbox.open_envelope_writes(child.task),
    )
    assert (await swarm.store.get(f"agent_mailbox/{child.task.task_id}")).data["status"] == "read"


@pytest.mark.parametrize(
    "outcome",
    [
        Waiting(StatusReason.INPUT_REQUIRED, "which folder?"),
        Handoff((PlannedTask(key="look", assigned_to="scout", objective="look"),)),
    ],
    ids=["waits", "hands off"],
)
async def test_turn_whose_model_missed_a_message_may_wait_and_hand_off_but_not_end(
    swarm: SwarmRig, outcome: Outcome
) -> None:
    await swarm.submit("plan", role="architect")
    held = await swarm.claim_one(role="architect")
    held.heard = 0
    await swarm.board.say(held.task.task_id, "count the words, too")
    with pytest.raises(WorkEdited, match="was told something at the end of its turn"):
        await swarm.settle(held, done())
    await swarm.settle(held, outcome)
    assert (await swarm.task(held.task.task_id)).status is TaskStatus.BLOCKED


async def test_message_sent_twice_is_stored_once(swarm: SwarmRig) -> None:
    for _ in range(2):
        await swarm.core.mailbox.send(envelope(), "scout-1", "predictor", sender_role="scout")
    assert len(await swarm.core.mailbox.read(ALL_MAIL)) == 1


async def test_policy_limits_routes_hops_and_envelope_size(swarm: SwarmRig) -> None:
    for bad, fault in [
        (envelope(task=TaskRef(task_id="t1", assigned_to="executor")), "scout may not hand work to executor"),
        (envelope(trace=Trace(chain_id="c1", step=17)), "exceeds max_hops = 16"),
        (envelope(notes="x" * 70_000), "more than max_envelope_bytes"),
    ]:
        with pytest.raises(PolicyRefused, match=fault):
            await swarm.core.mailbox.send(bad, "scout-1", bad.task.assigned_to, sender_role="scout")
    assert await swarm.core.mailbox.read(ALL_MAIL) == []


async def test_envelope_of_a_task_can_be_opened_again_by_its_next_holder(swarm: SwarmRig) -> None:
    mailbox = swarm.core.mailbox
    await swarm.submit("plan", role="architect")
    held = await swarm.claim_one(role="architect")
    handoff = Handoff((PlannedTask(key="look", assigned_to="scout", objective="look"),))
    births = swarm.board.births(held, handoff)
    await swarm.board.settle(held, handoff, mailbox.handoffs(held.task, births, TaskResult(), ""))
    child = await swarm.claim_one(role="scout")
    assert await mailbox.open(child.task, "scout-1", 1) is not None
    assert await mailbox.open(child.task, "scout-2", 2) is not None, "the next holder of the task can open it too"
    await swarm.settle(child, done())
    assert await mailbox.open(held.task, "architect-1", 1) is None, "a submitted task came with no envelope"


async def test_malformed_messages_and_policies_are_reported_by_name(
    swarm: SwarmRig, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await swarm.store.commit([Create("agent_mailbox/bad", {"to_agent_id": "a", "status": "new", "created_at": 1})])
    assert await swarm.core.mailbox.read(ALL_MAIL) == []
    assert "agent_mailbox/bad is not a message: " in caplog.text and "payload" in caplog.text
    for content, words in [("max_hops: [", "is not YAML"), ("max_hops: 0", "max_hops"), ("rutes: {}", "rutes")]:
        path = tmp_path / "policy.yaml"
        path.write_text(content)
        with pytest.raises(ConfigError, match=words):
            HandoffPolicy.load(path)
    with pytest.raises(ConfigError, match="swarm init"):
        HandoffPolicy.load(tmp_path / "none.yaml")
