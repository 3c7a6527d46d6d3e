"""``swarm show``: one task with all that matters to it, and why it does not move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.markup import escape
from rich.text import Text
from rich.tree import Tree

from fireswarm.cli.shared.options import ago, clip, console, short, style_status, table
from fireswarm.cli.watch.follow import Teller, tail
from fireswarm.contracts.swarm.run import Run, RunStatus
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import RUNS, task_path
from fireswarm.storage.documents.read import parse_readable, parse_run_snapshot, parse_task_snapshot
from fireswarm.swarm.records.run_reader import read_events
from fireswarm.swarm.swarm import Swarm

SHOWN_RUNS = 10
ANSWER = "answer"
"""Type of the artifact that holds what a model concluded."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What there is to say about one task. ``events`` are those of its last run, journal pages included."""

    task: Task
    why: str
    runs: tuple[Run, ...]
    relatives: dict[str, Task]
    events: tuple[Mapping[str, Any], ...] = ()


async def look(swarm: Swarm, task: Task) -> Seen:
    """Read a task's surroundings."""
    query = queries.newest(RUNS, "started_at", SHOWN_RUNS, task_id=task.task_id)
    found_runs = await swarm.store.query(query)
    runs = tuple(parse_readable(found_runs, parse_run_snapshot))
    events = tuple(await read_events(swarm.store, found_runs[0])) if found_runs else ()
    ids = dict.fromkeys([*task.depends_on, *task.children])
    found = await swarm.store.get_many([task_path(task_id) for task_id in ids])
    relatives = {
        task.task_id: task
        for task in parse_readable((item for item in found if item.data is not None), parse_task_snapshot)
    }
    return Seen(task, why(task, relatives), runs, relatives, events)


def why(task: Task, relatives: dict[str, Task]) -> str:
    """Say in one or two sentences what the task waits for and what would move it."""
    name = short(task.task_id)
    if task.status.terminal:
        return f"It is {task.status.value} and never changes again."
    if task.status is TaskStatus.QUEUED:
        return f"It waits for a {task.assigned_to} agent: `swarm agents` shows whether one runs."
    if task.status is TaskStatus.IN_PROGRESS and task.lease is not None:
        left = (task.lease.expires_at - datetime.now(UTC)).total_seconds()
        if left < 0:
            return f"Its holder's lease ran out {-left:.0f} s ago: any {task.assigned_to} agent takes it over."
        return f"{task.lease.owner_agent_id} works on it; its lease lasts {left:.0f} s more without renewal."
    match task.status_reason:
        case StatusReason.DEPENDENCIES | StatusReason.DELEGATING:
            open_ones = [relative for relative in relatives.values() if not relative.status.terminal]
            stuck = [relative for relative in open_ones if relative.status is TaskStatus.BLOCKED]
            text = (
                f"It waits for {task.waiting_on} task(s): {', '.join(short(item.task_id) for item in open_ones[:8])}."
            )
            return text + "".join(f" {short(item.task_id)} is blocked: {item.summary}" for item in stuck[:3])
        case StatusReason.INPUT_REQUIRED | StatusReason.APPROVAL_REQUIRED:
            asked = " ".join(f"{question.name}=..." for question in task.questions)
            return f"It asks for input: `swarm answer {name} {asked}`."
        case StatusReason.RETRY_BACKOFF | StatusReason.PAUSED:
            if task.not_before is None:
                return f"It rests: {task.summary} `swarm retry {name}` lets it go on."
            return f"It is tried again at {task.not_before.isoformat()}; `swarm retry {name}` does so now."
        case (
            StatusReason.DEAD_LETTER
            | StatusReason.ESCALATED
            | StatusReason.GATE_FAILED
            | StatusReason.DEADLINE_EXCEEDED
        ):
            return f"It gave up: {task.error or task.summary} Mend the cause, then `swarm retry {name}`."
        case _:
            return task.summary


def draw(seen: Seen, *, events: int, level: str) -> None:
    """Print a task for a person, with the last *events* of its last run."""
    task = seen.task
    word = task.status_reason.value if task.status_reason else task.status.value
    console.print(f"[bold]{task.task_id}[/]  {style_status(word)}  {task.assigned_to}", soft_wrap=True)
    console.print(escape(task.objective), soft_wrap=True)
    console.print(escape(seen.why), style="yellow" if task.status is TaskStatus.BLOCKED else "", soft_wrap=True)
    lease = f"{task.lease.owner_agent_id}, epoch {task.lease.epoch}" if task.lease else "none"
    lines = [
        f"session {task.session_hash}   priority {task.priority}   attempts used {task.attempt} of {task.max_attempts}",
        f"lease {lease}   epoch {task.epoch}   created {ago(task.created_at)} ago   changed {ago(task.updated_at)} ago",
    ]
    for line in lines:
        console.print(escape(line), style="dim", soft_wrap=True)
    for question in task.questions:
        console.print(escape(f"  asks {question.name} ({question.type}): {question.description}"), soft_wrap=True)
    _draw_graph(seen)
    _draw_result(task)
    rows = [
        (
            run.run_id.rpartition(".")[2],
            style_status(run.status.value),
            run.agent_id,
            ago(run.started_at),
            escape(clip(run.summary, 90)),
        )
        for run in seen.runs
    ]
    table("runs", ["epoch", "status", "agent", "started", "summary"], rows, none="no run yet")
    if seen.runs and events:
        _draw_events(seen, events, level)


def _draw_events(seen: Seen, count: int, level: str) -> None:
    run = seen.runs[0]
    console.print("events of the last run" if seen.events else "no event in the last run", style="bold")
    Teller(console, level).tell(run.model_dump(), seen.events, last=count)
    if run.live and run.status is RunStatus.PROGRESS:
        console.print(Text.assemble((f"{run.role} says ", "magenta"), (tail(run.live), "dim")), soft_wrap=True)


def _draw_graph(seen: Seen) -> None:
    task = seen.task
    if not seen.relatives:
        return
    tree = Tree(f"{short(task.task_id)} {task.plan_key or 'objective'}")
    for title, ids in (("needs", task.depends_on), ("created", task.children)):
        known = [seen.relatives[task_id] for task_id in ids if task_id in seen.relatives]
        if known:
            branch = tree.add(title)
            for item in known:
                word = item.status_reason.value if item.status_reason else item.status.value
                branch.add(
                    f"{short(item.task_id)} {item.assigned_to} {style_status(word)} {escape(clip(item.summary, 80))}"
                )
    console.print(tree)


def _draw_result(task: Task) -> None:
    if task.result is None:
        return
    for insight in task.result.insights[:10]:
        console.print(escape(f"  - {insight}"), soft_wrap=True)
    for artifact in task.result.artifacts:
        if artifact.type == ANSWER and isinstance(artifact.value, str) and artifact.value != task.result.summary:
            console.print(escape(artifact.value), soft_wrap=True)
            continue
        where = artifact.uri or "inline"
        console.print(escape(f"  {artifact.type} {artifact.name}: {where}"), soft_wrap=True)
