"""Kill role processes at random while 200 tasks run; then check the invariants of the stored documents."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from fireswarm.contracts.ports import Query, Snapshot
from fireswarm.contracts.swarm.task import Task, TaskSpec, TaskStatus
from fireswarm.runs.sinks.run_reader import read_events
from fireswarm.settings import load_settings
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.build import parse_task
from fireswarm.swarm.opening.open_parts import open_parts
from fireswarm.swarm.parts import SwarmParts
from tests.support.fleet import GRAPH, lay_out, role_processes, swarm_up, until, with_signal

pytestmark = [pytest.mark.anyio, pytest.mark.chaos]

TASKS, IN_CI = 200, 50
LEASE_SECONDS = 3.0
KILL_EVERY_SECONDS = 2.0
LIMIT_SECONDS = 240.0
SETTINGS = {
    "session": "chaos",
    "leases": {"lease_seconds": LEASE_SECONDS, "backoff_base_seconds": 0.1},
    "worker": {"concurrency": 2, "drain_seconds": 3},
}
EVIDENCE = """
import os, time, uuid  # the work takes some time, so that kills interrupt it: no test waits here
from pathlib import Path
from fireswarm.contracts.skills.skill import SkillResult

def run(request):
    started = time.time()
    time.sleep(0.1)
    folder = Path(request.context["path"])
    (folder / f"{request.task_id}.{uuid.uuid4().hex}").write_text(repr(started))
    return SkillResult(summary=f"{request.context['key']} executed")
"""


async def test_all_tasks_are_done_once_despite_a_kill_every_two_seconds(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    count = IN_CI if pytestconfig.getoption("part") else TASKS
    seed = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1_000_000))
    print(f"\nCHAOS_SEED={seed}")
    rng = random.Random(seed)
    evidence = tmp_path / "evidence"
    evidence.mkdir()
    lay_out(tmp_path, {"leave-evidence": EVIDENCE, "diamond": GRAPH}, settings=SETTINGS)
    replicas = [f"--replicas={role}=2" for role in ("architect", "executor", "memory", "predictor", "scout")]
    with swarm_up(tmp_path, *replicas) as up:
        await until(lambda: _served(tmp_path), seconds=30, what="serving the store")
        async with open_parts(load_settings(tmp_path, environment={})) as core:
            context = {"path": str(evidence), "count": count}
            spec = TaskSpec(
                objective="diamond",
                assigned_to="architect",
                session_hash="chaos",
                skill="diamond",
                context=context,
                max_attempts=50,
            )
            root = (await core.board.submit(spec)).task
            kills = await _wreak_havoc(core, up, root.task_id, rng)
            tasks = [parse_task(item.data, item.path) for item in await core.store.query(queries.chain(root.task_id))]
            assert len(tasks) == count + 1
            await _check_documents(core, tasks, evidence)
    print(f"killed {kills} processes; epochs {Counter(task.epoch for task in tasks)}")
    assert kills > 0


async def _served(root: Path) -> bool:
    return "FIRESTORE_EMULATOR_HOST" in (root / "up.log").read_text()


async def _wreak_havoc(core: SwarmParts, up: psutil.Process, root_id: str, rng: random.Random) -> int:
    """Kill a role process every two seconds and stop another past its lease, until the objective is done."""
    kills = 0
    finished = anyio.Event()

    async def havoc() -> None:
        nonlocal kills
        stopped: psutil.Process | None = None
        rounds = 0
        while not finished.is_set():
            with anyio.move_on_after(KILL_EVERY_SECONDS):
                await finished.wait()
            rounds += 1
            alive = [process for process in role_processes(up) if process != stopped]
            if alive:
                kills += with_signal(rng.choice(alive), signal.SIGKILL)
            if rounds % 4 == 1 and stopped is None and alive:
                stopped = rng.choice(role_processes(up) or alive)
                with_signal(stopped, signal.SIGSTOP)
            elif rounds % 4 == 3 and stopped is not None:  # four seconds later: longer than a lease
                with_signal(stopped, signal.SIGCONT)
                stopped = None
        if stopped is not None:
            with_signal(stopped, signal.SIGCONT)

    async def done() -> bool:
        return (await core.board.get(root_id)).status.terminal

    async with anyio.create_task_group() as group:
        group.start_soon(havoc)
        await until(done, seconds=LIMIT_SECONDS, every=0.5, what="finishing all tasks")
        finished.set()
    return kills


async def _check_documents(core: SwarmParts, tasks: list[Task], evidence: Path) -> None:
    assert {task.status for task in tasks} == {TaskStatus.DONE}
    executions = _executions(evidence)
    for task in tasks:
        runs = await core.store.query(Query("agent_runs", where=(("task_id", "==", task.task_id),)))
        by_epoch = {int((run.data or {})["epoch"]): run for run in runs}
        assert sorted(by_epoch) == list(range(1, task.epoch + 1)), "an epoch without a run, or a run without an epoch"
        _check_settled_once(task, by_epoch)
        await _check_steps(core, task, runs, executions.get(task.task_id, []))
    _check_order({task.plan_key: task for task in tasks})


def _check_settled_once(task: Task, by_epoch: dict[int, Snapshot]) -> None:
    completed = [epoch for epoch, run in by_epoch.items() if (run.data or {})["status"] == "completed"]
    delegated = 1 if task.children else 0
    assert len(completed) == 1 + delegated, f"{task.plan_key} was settled {len(completed)} times"
    assert max(completed) == task.epoch, "the task was ended by another epoch than its last"
    rest = {(run.data or {})["status"] for epoch, run in by_epoch.items() if epoch not in completed}
    assert rest <= {"timeout", "error"}, f"{task.plan_key}: a lost epoch ended as {rest}"


async def _check_steps(core: SwarmParts, task: Task, runs: list[Snapshot], executed: list[float]) -> None:
    finished: dict[str, datetime] = {}
    for run in runs:
        for event in await read_events(core.store, run):
            if event["type"] == "step_finished":
                step = str(event["payload"]["step"])
                assert step not in finished, f"step {step} of {task.plan_key} was journaled as finished twice"
                finished[step] = event["ts"]
    if task.plan_key:
        assert len(finished) == 1
        [at] = finished.values()
        late = [started for started in executed if datetime.fromtimestamp(started, UTC) > at]
        assert executed, f"{task.plan_key} is done but was never executed"
        assert not late, f"{task.plan_key} was executed again after its step was journaled as finished"


def _executions(evidence: Path) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for path in evidence.iterdir():
        found.setdefault(path.name.partition(".")[0], []).append(float(path.read_text()))
    return found


def _check_order(tasks: dict[str, Any]) -> None:
    tail, top = tasks["tail"], tasks["top"]
    middle = [task for key, task in tasks.items() if key.startswith("m")]
    assert len(middle) == len(tasks) - 3  # top, tail and the objective are not in the middle
    assert all(top.ended_at <= task.ended_at <= tail.ended_at for task in middle)
