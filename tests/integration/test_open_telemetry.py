"""An objective is one trace over all processes; by default without content; a collector that is away stops no work."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process

from fireswarm.client import Swarm
from fireswarm.settings import load_settings
from fireswarm.signals.exporting import FLUSH_SECONDS
from fireswarm.swarm.opening.embedded_store import serving
from tests.support.collector import KeptSpan, OtlpCollector
from tests.support.fleet import environment, lay_out
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.anyio

PLAN = """
from fireswarm.contracts.skills.skill import PlannedTask, SkillResult, SkillState

def run(request):
    if request.children:
        return SkillResult(summary="both have ended")
    tasks = tuple(PlannedTask(key=key, assigned_to="scout", objective=f"look at {key}") for key in ("a", "b"))
    return SkillResult(state=SkillState.DELEGATING, summary="planned", tasks=tasks)
"""
SECRET = "ghp_" + "Zq7Lw9Xk2Pv4Rt6Yb8Nc1Md3Fg5Hj0SaQeWu"
MODEL = f"""
def answer(request):
    if request.answers:
        return "I looked around."
    items = [{{"text": "use the token {SECRET}", "state": "pending"}}]
    wrong = {{"name": "no_such_tool", "input": {{}}}}
    return {{"calls": [{{"name": "todo", "input": {{"items": items}}}}, wrong], "text": "first a list of what to do"}}
"""
OFTEN = {"OTEL_BSP_SCHEDULE_DELAY": "100", "OTEL_METRIC_EXPORT_INTERVAL": "60000"}
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    lay_out(tmp_path, {"plan": PLAN}, settings={})
    (tmp_path / "model.py").write_text(MODEL)
    return tmp_path


@contextlib.asynccontextmanager
async def role_process(root: Path, store: str, role: str, variables: Mapping[str, str]) -> AsyncGenerator[Process]:
    """Run a role process inside the block; at its end it gets SIGTERM and must end well."""
    scripted = {"FIRESWARM_PROVIDER": "scripted", "FIRESWARM_SCRIPT": "model.py:answer"}
    scripted = {"FIRESWARM_THINK": "never"} if role == "architect" else scripted
    command = [sys.executable, "-m", "fireswarm.cli", "--log-format", "json", "role", role, "--store", store]
    with (root / f"{role}.log").open("ab") as log:
        process = await anyio.open_process(
            command, cwd=root, env=environment() | scripted | dict(variables), stdout=None, stderr=log
        )
    async with process:
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            with anyio.fail_after(PATIENCE_SECONDS):
                assert await process.wait() == 0, (root / f"{role}.log").read_text()
        finally:
            if process.returncode is None:
                process.kill()


async def run_objective(root: Path, variables: Mapping[str, str]) -> str:
    """Let an architect's process and a scout's process work on an objective; returns its id."""
    async with (
        serving(load_settings(root)) as store,
        role_process(root, store, "architect", variables),
        role_process(root, store, "scout", variables),
        Swarm.open(store, root=root) as swarm,
    ):
        submitted = await swarm.submit("see what is there", role="architect", skill="plan")
        task = await swarm.wait(submitted, timeout_seconds=PATIENCE_SECONDS)
        assert task.status.terminal, await swarm.explain(task)
        assert len(task.children) == 2
    return task.task_id


def by_operation(spans: list[KeptSpan]) -> dict[str, list[KeptSpan]]:
    return {name: [span for span in spans if span.operation == name] for name in {span.operation for span in spans}}


async def test_objective_over_two_processes_is_one_trace(root: Path) -> None:
    collector = OtlpCollector()
    async with collector.open() as address:
        task_id = await run_objective(root, OFTEN | {"OTEL_EXPORTER_OTLP_ENDPOINT": address})
    spans = collector.spans()
    ids = [span.id for span in spans]
    assert len(set(ids)) == len(ids), "each span is exported once"
    assert len({span.trace for span in spans}) == 1 and len({span.process for span in spans}) == 2
    [objective] = [span for span in spans if not span.parent]
    assert {span.parent for span in spans if span.parent} <= set(ids)
    assert objective.name == "invoke_workflow architect" and objective.attributes["fireswarm.task_id"] == task_id
    assert all(span.start >= objective.start - 1_000_000 for span in spans)
    kinds = by_operation(spans)
    assert [len(kinds[name]) for name in ("task", "invoke_agent", "chat", "execute_tool")] == [2, 4, 4, 4]
    assert {span.parent for span in kinds["task"]} == {objective.id}
    assert Counter(span.parent for span in kinds["invoke_agent"]) == {
        objective.id: 2, **{task.id: 1 for task in kinds["task"]}
    }  # fmt: skip
    turns = {span.id: span for span in kinds["invoke_agent"]}
    assert all(turns[span.parent].name == "invoke_agent scout" for span in [*kinds["chat"], *kinds["execute_tool"]])
    assert {span.parent for span in kinds["commit"]} == set(turns)
    assert {(span.service, span.schema) for span in spans} == {("fireswarm", "https://opentelemetry.io/schemas/1.41.0")}
    chat = kinds["chat"][0].attributes
    assert (chat["gen_ai.provider.name"], chat["gen_ai.request.model"]) == ("scripted", "scripted")
    assert chat["gen_ai.usage.input_tokens"] > 0 and chat["gen_ai.usage.output_tokens"] > 0
    failed = [span for span in kinds["execute_tool"] if span.failed]
    assert [span.attributes["gen_ai.tool.name"] for span in failed] == ["no_such_tool", "no_such_tool"]
    assert {span.attributes["error.type"] for span in failed} == {"tool_failed"}
    check_metrics(collector)
    sent = b"".join(request.body for request in collector.requests)
    for text in (SECRET, "use the token", "first a list", "I looked around", "see what is there", "A role of a test"):
        assert text.encode() not in sent, text


def check_metrics(collector: OtlpCollector) -> None:
    turns = Counter[tuple[str, str]]()
    for labels, point in collector.points("fireswarm.turn.duration"):
        turns[labels["gen_ai.agent.name"], labels["fireswarm.outcome"]] += point.count
    assert turns == {("architect", "handoff"): 1, ("architect", "done"): 1, ("scout", "done"): 2}
    kinds = {labels["gen_ai.token.type"]: point for labels, point in collector.points("gen_ai.client.token.usage")}
    assert kinds["input"].count == kinds["output"].count == 4 and kinds["input"].sum > 0
    assert [point.count for _, point in collector.points("gen_ai.client.operation.duration")] == [4]
    claims = {
        (labels["gen_ai.agent.name"], labels["fireswarm.result"]): point.as_int
        for labels, point in collector.points("fireswarm.claims")
    }
    assert (claims["architect", "won"], claims["scout", "won"]) == (2, 2)


async def test_content_is_exported_without_secrets_when_it_is_asked_for(root: Path) -> None:
    collector = OtlpCollector()
    async with collector.open() as address:
        asked = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{address}/v1/traces", CONTENT: "true"}
        await run_objective(root, OFTEN | asked | {"OTEL_SERVICE_NAME": "swarm-of-a-test"})
    assert {request.path for request in collector.requests} == {"/v1/traces"}, "only the signal with an endpoint"
    kinds = by_operation(collector.spans())
    tool = next(span for span in kinds["execute_tool"] if span.name == "execute_tool todo").attributes
    assert "use the token [redacted]" in tool["gen_ai.tool.call.arguments"]
    first, second = sorted(kinds["chat"], key=lambda span: span.start)[0::3]
    assert "look at" in first.attributes["gen_ai.input.messages"]
    [answer] = json.loads(second.attributes["gen_ai.output.messages"])
    assert answer["parts"] == [{"type": "text", "content": "I looked around."}]
    assert "A role of a test" in json.loads(first.attributes["gen_ai.system_instructions"])[0]["content"]
    assert {span.service for span in kinds["chat"]} == {"swarm-of-a-test"}
    assert all(SECRET.encode() not in request.body for request in collector.requests)


@pytest.mark.parametrize("hangs", [False, True], ids=["away", "hanging"])
async def test_collector_that_does_not_answer_costs_the_work_nothing(root: Path, hangs: bool) -> None:
    collector = OtlpCollector(hangs=True)
    async with collector.open() as address:
        endpoint = address if hangs else "http://127.0.0.1:9"
        await run_objective(root, OFTEN | {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint})
    log = (root / "scout.log").read_text()
    assert f"the collector did not take everything within {FLUSH_SECONDS:g} s" in log
    assert "Traceback" not in log
