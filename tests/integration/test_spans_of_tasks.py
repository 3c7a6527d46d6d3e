"""What ends a task, wherever that happens, and what fails in a turn: the spans tell it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
import pytest

from fireswarm.contracts.ports import Update
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.redaction import Redactor
from fireswarm.signals.current import telemetry_in_use
from fireswarm.signals.exporting import exporting
from fireswarm.storage.documents.paths import task_path
from tests.integration.test_inputs import Expert, turn
from tests.integration.test_thinking import act, decide, submit
from tests.support.api import HEADERS, serving
from tests.support.collector import KeptSpan, OtlpCollector
from tests.support.fleet import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.swarm import SwarmRig, open_test_swarm
from tests.support.working import with_skills, working

pytestmark = pytest.mark.anyio


@contextlib.asynccontextmanager
async def collecting(monkeypatch: pytest.MonkeyPatch, **variables: str) -> AsyncGenerator[OtlpCollector]:
    """Export to a collector inside the block."""
    collector = OtlpCollector()
    async with collector.open() as address:
        with monkeypatch.context() as patch:
            for name, value in {"OTEL_EXPORTER_OTLP_ENDPOINT": address, **variables}.items():
                patch.setenv(name, value)
            async with exporting(Redactor(["hunter2-hunter2"])):
                yield collector


async def ended(swarm: SwarmRig, task_id: str, status: TaskStatus = TaskStatus.DONE) -> None:
    async def has_status() -> bool:
        await swarm.clock.settle()
        return (await swarm.task(task_id)).status is status

    await until(has_status, seconds=PATIENCE_SECONDS, what=f"the status {status}")


def objectives(collector: OtlpCollector) -> list[KeptSpan]:
    return [span for span in collector.spans() if not span.parent]


async def test_objective_that_is_canceled_is_recorded_once(swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch) -> None:
    async with collecting(monkeypatch) as collector:
        task = await swarm.submit("look around")
        await swarm.clock.advance(30)
        assert await swarm.client.cancel(task) == [task.task_id]
        assert await swarm.client.cancel(task) == []
    [span] = objectives(collector)
    assert span.name == "invoke_workflow scout" and span.failed
    assert (span.attributes["fireswarm.status"], span.attributes["error.type"]) == ("canceled", "canceled")
    assert span.end - span.start == pytest.approx(30e9, rel=0.01)


async def test_objective_that_is_canceled_through_the_api_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_test_swarm(session="s1") as swarm, collecting(monkeypatch) as collector:
        task = await swarm.submit("look around")
        async with (
            serving(swarm) as port,
            httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=HEADERS) as client,
        ):
            answer = await client.post(f"/v1/tasks/{task.task_id}/cancel", json={}, timeout=PATIENCE_SECONDS)
            assert answer.json() == {"canceled": [task.task_id]}
    [span] = objectives(collector)
    assert span.attributes["fireswarm.task_id"] == task.task_id and span.failed


async def test_objective_that_is_set_to_done_by_hand_is_recorded(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with collecting(monkeypatch) as collector:
        task = await swarm.submit("look around", role="executor")
        await swarm.store.commit([Update(task_path(task.task_id), {"status": "done"})])
        async with working(with_skills(swarm), role="executor", agent="executor-1"):

            async def is_settled() -> bool:
                await swarm.clock.advance(30)
                return "open" not in await swarm.raw(task.task_id)

            await until(is_settled, seconds=PATIENCE_SECONDS, what="the end")
    [span] = objectives(collector)
    assert (span.attributes["fireswarm.status"], span.failed) == ("done", False)


async def test_turn_that_fails_is_marked_and_its_log_entries_belong_to_it(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(request: SkillRequest) -> SkillResult:
        logging.getLogger("fireswarm.test").warning("a password is %s", "hunter2-hunter2")
        raise ValueError("no such place")

    async with collecting(monkeypatch) as collector:
        task = await swarm.submit("look around", skill="fail", max_attempts=1)
        async with working(with_skills(swarm, fail=fail)):
            await ended(swarm, task.task_id, TaskStatus.BLOCKED)
    assert (await swarm.task(task.task_id)).status_reason is StatusReason.DEAD_LETTER
    [turn] = [span for span in collector.spans() if span.operation == "invoke_agent"]
    assert turn.failed and turn.attributes["error.type"] in ("retry", "dead_letter")
    assert turn.attributes["gen_ai.agent.id"] == "scout-1"
    assert not objectives(collector), "it is blocked, not ended"
    [entry] = [entry for entry in collector.entries() if "a password" in entry.body.string_value]
    assert entry.body.string_value == "a password is [redacted]"
    assert (entry.trace_id.hex(), entry.span_id.hex()) == (turn.trace, turn.id)
    assert entry.severity_text == "WARN"


async def test_turn_whose_lease_is_lost_is_marked(swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[str] = []

    async def reset(request: SkillRequest) -> SkillResult:
        began.append(request.task_id)
        if len(began) == 1:
            await swarm.store.commit([Update(task_path(task.task_id), {"status": "queued", "lease": None, "epoch": 7})])
        return SkillResult(summary="done")

    async with collecting(monkeypatch) as collector:
        task = await swarm.submit("look around", skill="reset")
        async with working(with_skills(swarm, reset=reset)):
            await ended(swarm, task.task_id)
    turns = [span for span in collector.spans() if span.operation == "invoke_agent"]
    assert sorted(span.attributes.get("error.type", "") for span in turns) == ["", "LeaseLost"]
    assert len(objectives(collector)) == 1


@pytest.mark.parametrize(("share", "expected"), [("0", 0), ("0.5", None), ("1", 20)])
async def test_sampler_decides_by_the_trace_in_every_process_alike(
    swarm: SwarmRig, monkeypatch: pytest.MonkeyPatch, share: str, expected: int | None
) -> None:
    sampler = {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": share}
    async with collecting(monkeypatch, **sampler) as collector:
        tasks = [await swarm.submit(f"look at {number}", skill="noop") for number in range(20)]
        async with working(with_skills(swarm)):
            for task in tasks:
                await ended(swarm, task.task_id)
    by_trace: dict[str, set[str]] = {}
    for span in collector.spans():
        by_trace.setdefault(span.trace, set()).add(span.operation)
    assert all(kinds == {"invoke_workflow", "invoke_agent", "commit"} for kinds in by_trace.values())
    assert len(by_trace) == expected if expected is not None else 0 < len(by_trace) < 20


async def test_block_inside_an_exporting_one_uses_its_exporters(monkeypatch: pytest.MonkeyPatch) -> None:
    async with collecting(monkeypatch):
        outer = telemetry_in_use.get()
        async with exporting(Redactor()):
            assert telemetry_in_use.get() is outer
        assert telemetry_in_use.get() is outer


async def test_calls_are_recorded_when_they_are_executed_and_not_when_they_are_replayed(
    swarm: SwarmRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with collecting(monkeypatch) as collector:
        task = await submit(swarm, tmp_path)
        fails, asks = act("run_command", command="cat missing"), act("ask_user", question="which?")
        waiting = await turn(swarm, tmp_path, Expert(decide(fails), decide(asks)), "scout")
        await swarm.client.answer(task, {waiting.questions[0].name: "this one"})
        await turn(swarm, tmp_path, Expert("done"), "scout")
        await swarm.client.fork(task, 3)
        await turn(swarm, tmp_path, Expert("done too"), "scout")
    calls = [span for span in collector.spans() if span.operation == "execute_tool"]
    told = [(span.attributes["gen_ai.tool.name"], span.failed) for span in calls]
    assert told == [("run_command", True), ("ask_user", False), ("ask_user", False)]
    assert calls[1].attributes["fireswarm.suspended_by"] == "NeedsAnswer"
