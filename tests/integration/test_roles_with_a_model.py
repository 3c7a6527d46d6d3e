"""The five roles with a scripted model: each uses its prompt and its skills, and together they produce a report."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from fireswarm.contracts.swarm.task import Task, TaskSpec, TaskStatus
from fireswarm.runs.sinks.run_reader import read_events
from fireswarm.settings import Settings
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.build import parse_task
from fireswarm.swarm.opening.open_parts import open_parts
from fireswarm.swarm.parts import SwarmParts
from fireswarm.swarm.worker.loop import Worker

pytestmark = pytest.mark.anyio

MODEL = '''
import json

def call(why, tool, **given):
    return {"calls": [{"name": tool, "input": given}], "text": why}

def answer(request):
    """Call the first skill that is shown, then conclude from what it gave."""
    opening, outputs = request.messages[0].text, request.messages[-1].outputs
    assert request.system.count("Call the tools that you need;") == 1, "every role is told how to work"
    if not outputs:
        shown = opening.split("# Skills you may choose from", 1)[1]
        return call("the skill fits", "use_skill", name=shown.split("- ", 1)[1].split(":", 1)[0], reason="it fits")
    assert not outputs[0].failed, outputs
    found = json.loads(outputs[0].text)
    role = request.system.split("# ", 1)[1].split("\\n", 1)[0]
    return call("it is done", "finish", answer=f"{role} concludes: {found['summary'][:200]}",
                result={"insights": [f"{role} thought"]} if role == "Predictor" else {})
'''


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "README.md").write_text("# A project\n\nTODO: say more.\n")
    (folder / "tool.py").write_text("def double(number):\n    return 2 * number\n")
    (tmp_path / "model.py").write_text(MODEL)
    return folder


async def ended(core: SwarmParts, task_id: str) -> list[Task]:
    """Wait until the root task has ended, and return all tasks of its objective."""
    async with core.store.listen(queries.chain(task_id)) as snapshots:
        async for found in snapshots:
            tasks = [parse_task(snapshot.data, snapshot.path) for snapshot in found]
            root = next(task for task in tasks if task.task_id == task_id)
            stuck = [
                task
                for task in tasks
                if task.status_reason and task.status_reason.value in ("dead_letter", "escalated")
            ]
            assert not stuck, [task.error for task in stuck]
            if root.status.terminal:
                return tasks
    raise AssertionError("the listener ended")


async def test_five_roles_with_a_model_produce_a_report(workspace: Path) -> None:
    settings = Settings.model_validate(
        {
            "root": workspace.parent,
            "session": "s",
            "store": {"uri": "memory"},
            "model": {"provider": "scripted", "script": "model.py:answer"},
        }
    )
    async with open_parts(settings, thinks=True) as core:
        workers = [Worker(core, role, f"{role}-1") for role in core.roles]
        spec = TaskSpec(
            objective="Report on this codebase: what is in it, and which files are most likely to cause trouble next",
            assigned_to="architect",
            session_hash="s",
            context={"path": str(workspace)},
        )
        tasks: list[Task] = []
        async with anyio.create_task_group() as group:
            for worker in workers:
                group.start_soon(worker.run)
            task = (await core.board.submit(spec)).task
            with anyio.fail_after(120):
                tasks = await ended(core, task.task_id)
            for worker in workers:
                worker.stop()
        by_role = {task.assigned_to: task for task in tasks}
        assert set(by_role) == {"architect", "executor", "memory", "predictor", "scout"}
        for role, done in by_role.items():
            assert done.status is TaskStatus.DONE, (role, done.status_reason, done.error)
            assert done.result is not None and done.result.summary.startswith(f"{role.capitalize()} concludes")
            run = await core.store.get(f"agent_runs/{done.run_id(done.epoch)}")
            kinds = [event["type"] for event in await read_events(core.store, run)]
            assert "llm_decision_decoded" in kinds and "run_finished" in kinds, role
        scored = by_role["predictor"].result
        assert scored is not None and "Predictor thought" in scored.insights
        report = by_role["architect"].result
        assert report is not None and {"report", "answer"} <= {artifact.type for artifact in report.artifacts}
