"""Check the stored documents after the run: every task done, settled once, by its last epoch, and not repeated."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from fireswarm.contracts.ports import Query, Snapshot
from fireswarm.errors import InvalidInput, NewerDocument
from fireswarm.runs.sinks.run_reader import read_events
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.parts import SwarmParts
from tests.chaos.at_size.work import SESSION

TOLERANCE_SECONDS = 2.0
"""Error of a worker's estimate of the store's time; a lost lease is noticed, and its step repeated, later than that."""

LOST_EPOCH = frozenset({"timeout", "error"})


async def check(swarm: SwarmParts, expected: int, evidence: Path, words: Mapping[str, str]) -> dict[str, Any]:
    """Return the counts of the JSON line; all of ``lost`` to ``poison_in_queue`` must be 0.

    *words* is what the results of edited tasks must contain.
    """
    tasks = await swarm.store.query(Query("agent_tasks", where=(("session_hash", "==", SESSION),)))
    runs: dict[str, list[Snapshot]] = defaultdict(list)
    for run in await swarm.store.query(Query("agent_runs", where=(("session_hash", "==", SESSION),))):
        runs[str((run.data or {}).get("task_id"))].append(run)
    starts = _executions(evidence)
    found: Counter[str] = Counter()
    for task in tasks:
        if _of(task, "status") != "done":
            names = ("assigned_to", "status", "status_reason", "summary", "epoch", "waiting_on", "lease", "sweep_at")
            print(task.path, {name: _of(task, name) for name in names}, file=sys.stderr)
        found.update(await _faults(swarm, task, runs[task.id], starts.get(task.id, [])))
        found["old_results"] += words.get(task.id, "") not in str(_of(task, "summary"))
        if int(_of(task, "attempt") or 0) > (_of(task, "skill") == "fail-once"):
            found["attempts_lost"] += 1
            ends = [
                (run.id, _of(run, "agent_id"), _of(run, "error"), f"{_of(run, 'ended_at'):%T}") for run in runs[task.id]
            ]
            print(task.path, _of(task, "attempt"), *sorted(ends), file=sys.stderr)
    return {
        "stored_tasks": len(tasks),
        "runs": sum(len(of_task) for of_task in runs.values()),
        "executions": sum(len(times) for times in starts.values()),
        "lost": found["lost"] + abs(expected - len(tasks)),
        "completed_twice": found["completed_twice"],
        "stale_commits": found["stale_commits"],
        "repeated_after_finish": found["repeated_after_finish"],
        "old_results": found["old_results"],
        "attempts_lost": found["attempts_lost"],
        "poison_in_queue": await _poison_in_queue(swarm),
    }


async def _faults(swarm: SwarmParts, task: Snapshot, runs: list[Snapshot], started: list[float]) -> Mapping[str, int]:
    data: Any = task.data
    completed = [int(_of(run, "epoch")) for run in runs if _of(run, "status") == "completed"]
    others = {_of(run, "status") for run in runs if int(_of(run, "epoch")) not in completed}
    expected = 1 + bool(data.get("children"))  # a graph's root has one completed turn that plans, and one that ends it
    stale = max(completed, default=0) != data.get("epoch") or not others <= LOST_EPOCH
    finished = await _finished_at(swarm, runs) if started and not data.get("children") else None
    late = [at for at in started if finished is not None and at > finished.timestamp() + TOLERANCE_SECONDS]
    if late:
        print(task.path, "finished", finished, "repeated", late, [(run.id, run.data) for run in runs], file=sys.stderr)
    return {
        "lost": int(data.get("status") != "done"),
        "completed_twice": int(len(completed) > expected),
        "stale_commits": int(data.get("status") == "done" and stale),
        "repeated_after_finish": int(bool(late)),
    }


async def _finished_at(swarm: SwarmParts, runs: list[Snapshot]) -> datetime | None:
    """Return when the step of the skill that succeeded was journaled as finished, by the store's time."""
    ends = [
        event["ts"]
        for run in runs
        if _of(run, "status") == "completed"
        for event in await read_events(swarm.store, run)
        if event["type"] == "step_finished"
    ]
    return max(ends, default=None)


def _of(document: Snapshot, name: str) -> Any:
    return (document.data or {}).get(name)


def _executions(evidence: Path) -> dict[str, list[float]]:
    """Return the starts of each task's executions, by the kernel's time."""
    found: dict[str, list[float]] = defaultdict(list)
    for path in filter(Path.is_file, evidence.iterdir()):
        found[path.name.rpartition(".")[0]].append(path.stat().st_mtime)
    return found


async def _poison_in_queue(swarm: SwarmParts) -> int:
    """Return the number of unreadable documents that agents of a known role would still look at."""
    left = 0
    for snapshot in await swarm.store.query(Query("agent_tasks", where=(("status", "==", "queued"),))):
        try:
            parse_task_snapshot(snapshot)
        except NewerDocument:
            continue  # it is left to the version that may have written it
        except InvalidInput as error:
            if str((snapshot.data or {}).get("assigned_to")) in swarm.roles:
                left += 1
                print(snapshot.path, "is still in the queue:", error, snapshot.data, file=sys.stderr)
    return left
