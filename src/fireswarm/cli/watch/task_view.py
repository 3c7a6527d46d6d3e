"""``swarm show``: one task with its graph, runs and events, and the reason why it is stuck."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text
from rich.tree import Tree

from fireswarm.cli.shared.options import ago, console, style_status
from fireswarm.cli.shared.tables import cell, table
from fireswarm.cli.watch.answer import print_answer
from fireswarm.cli.watch.approval_view import draw_approval
from fireswarm.cli.watch.follow import RunEventPrinter, tail
from fireswarm.client import Swarm
from fireswarm.contracts.limits import shown_id
from fireswarm.contracts.model_choice import NO_CHOICE
from fireswarm.contracts.skills.artifact import ANSWER
from fireswarm.contracts.skills.permissions import APPROVE
from fireswarm.contracts.swarm.run import RunDocument, RunStatus
from fireswarm.contracts.swarm.task import Task, TaskStatus
from fireswarm.errors import ConfigError
from fireswarm.runs.sinks.run_reader import read_events
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import RUNS
from fireswarm.storage.documents.read import parse_readable, parse_run_snapshot
from fireswarm.swarm.records.artifacts import read_answer, with_present_uris
from fireswarm.swarm.records.spending import Total

SHOWN_RUNS = 10


@dataclass(frozen=True, slots=True)
class Seen:
    """Data for the output of one task, with the current URIs of its artifacts.

    ``events`` are the events of its last run, journal pages included. ``model`` says which model it has, if that is
    not the swarm's. ``cost`` is what models cost for all tasks of the objective, of which it is the first.
    """

    task: Task
    why: str
    runs: tuple[RunDocument, ...]
    relatives: dict[str, Task]
    events: tuple[Mapping[str, Any], ...] = ()
    answer: str = ""
    model: str = ""
    cost: str = ""


async def look(swarm: Swarm, task: Task) -> Seen:
    """Read a task's runs, relatives and events."""
    query = queries.newest(RUNS, "started_at", SHOWN_RUNS, task_id=task.task_id)
    found_runs = await swarm.parts.store.query(query)
    runs = tuple(await swarm.parts.run_ends.complete(parse_readable(found_runs, parse_run_snapshot), [task]))
    events = tuple(await read_events(swarm.parts.store, found_runs[0])) if found_runs else ()
    relatives = await swarm.relatives(task)
    why = await swarm.explain(task, relatives)
    if any(relatives[child].children for child in task.children if child in relatives):
        relatives = {item.task_id: item for item in await swarm.objective(task)} | relatives
    answer = await read_answer(swarm.parts.blobs, task)
    model = _describe_model(swarm, task, runs)
    cost = await _describe_cost(swarm, task) if task.children else ""
    return Seen(with_present_uris(task, swarm.parts.blobs), why, runs, relatives, events, answer, model, cost)


async def _describe_cost(swarm: Swarm, task: Task) -> str:
    """Return what models cost for an objective with all its tasks, or "" for a part of one, and without calls."""
    if task.trace.chain_id != task.task_id:
        return ""
    total = Total()
    for run in parse_readable(await swarm.parts.store.query(queries.runs_of(task.task_id)), parse_run_snapshot):
        total.add(run.usage)
    count = total.counts
    if not count["calls"]:
        return ""
    return f"{count['usd']:.4f} USD, {count['tokens']:,} tokens, {count['calls']:,} calls, with all its tasks"


def _describe_model(swarm: Swarm, task: Task, runs: Sequence[RunDocument]) -> str:
    """Return the model that the task or its role chooses, and the one that its last run used; "" for the swarm's."""
    settings, card = swarm.parts.settings, swarm.parts.roles.get(task.assigned_to, NO_CHOICE)
    used = next((f"{run.usage['provider']}:{run.usage.get('model')}" for run in runs if run.usage.get("provider")), "")
    try:
        model = settings.model_of(task.assigned_to, card, task)
    except ConfigError as error:
        return f"cannot be used: {error}"
    parts: list[str] = []
    if model is not settings.model:
        effort = f", effort {model.effort}" if model.effort else ""
        fallback = f", fallback {', '.join(model.fallback)}" if model.fallback else ""
        parts.append(f"{model.full_name}{effort}{fallback}")
    if used and used != model.full_name:
        parts.append(f"last run: {used}")
    return "   ".join(parts)


def draw(seen: Seen, *, events: int, level: str) -> None:
    """Print a task, with the last *events* of its last run."""
    task = seen.task
    word = _word(task)
    title = Text.assemble((task.task_id, "bold"), "  ", style_status(word), f"  {task.assigned_to}")
    console.print(title, soft_wrap=True)
    console.prose(task.objective)
    console.prose(seen.why, style="yellow" if task.status is TaskStatus.BLOCKED else "")
    lease = f"{task.lease.owner_agent_id}, epoch {task.lease.epoch}" if task.lease else "none"
    lines = [
        f"session {task.session_hash}   priority {task.priority}   attempts used {task.attempt} of {task.max_attempts}",
        f"lease {lease}   epoch {task.epoch}   created {ago(task.created_at)} ago   changed {ago(task.updated_at)} ago",
    ]
    if seen.model:
        lines.append(f"model {seen.model}")
    if seen.cost:
        lines.append(f"models {seen.cost}")
    for line in lines:
        console.print(line, style="dim", soft_wrap=True)
    for question in task.questions:
        if question.approval is not None or question.step.startswith(f"{APPROVE}/"):
            draw_approval(question)
            continue
        choices = f" One of: {', '.join(map(str, question.choices))}." if question.choices else ""
        asked = f"  asks {question.key} {question.name} ({question.type}): {question.description}{choices}"
        console.prose(asked)
    _draw_graph(seen)
    _draw_result(seen)
    rows = [
        (
            run.run_id.rpartition(".")[2],
            style_status(run.status.value),
            run.agent_id,
            ago(run.started_at),
            cell(run.summary, 90),
        )
        for run in seen.runs
    ]
    table("runs", ["epoch", "status", "agent", "started", "summary"], rows, none="no run yet")
    if seen.runs and events:
        _draw_events(seen, events, level)


def _word(task: Task) -> str:
    return task.status_reason.value if task.status_reason else task.status.value


def _draw_events(seen: Seen, count: int, level: str) -> None:
    run = seen.runs[0]
    console.print("events of the last run" if seen.events else "no event in the last run", style="bold")
    RunEventPrinter(console, level).print(run.model_dump(), seen.events, last=count)
    if run.live and run.status is RunStatus.PROGRESS:
        console.print(Text.assemble((f"{run.role} says ", "magenta"), (tail(run.live), "dim")), soft_wrap=True)


def _draw_graph(seen: Seen) -> None:
    """Print the tasks that the task needs, and those below it, as a tree."""
    task = seen.task
    if not seen.relatives:
        return
    if not console.is_terminal:
        found = [("needs", 0, item) for item in _find_tasks(seen, task.depends_on)]
        found += [("created", depth, item) for depth, item in _below(seen, task)]
        rows = [
            (
                title,
                f"{'  ' * depth}{shown_id(item.task_id)}",
                step_of(item),
                item.assigned_to,
                _word(item),
                item.summary,
            )
            for title, depth, item in found
        ]
        table("graph", ("relation", "task", "step", "role", "status", "summary"), rows, none="no other tasks")
        return
    tree = Tree(f"{shown_id(task.task_id)} {task.plan_key or 'objective'}")
    if needed := _find_tasks(seen, task.depends_on):
        branch = tree.add("needs")
        for item in needed:
            branch.add(_line(item))
    branches = [tree.add("created")] if task.children else []
    for depth, item in _below(seen, task):
        branches[depth + 1 :] = [branches[depth].add(_line(item))]
    console.print(tree)


def _find_tasks(seen: Seen, ids: Iterable[str]) -> list[Task]:
    return [seen.relatives[task_id] for task_id in ids if task_id in seen.relatives]


def _below(seen: Seen, task: Task, depth: int = 0, shown: set[str] | None = None) -> Iterator[tuple[int, Task]]:
    """Yield the task's children, each followed by its own, with their depth; each task's children once."""
    shown = {task.task_id} if shown is None else shown
    for child in _find_tasks(seen, dict.fromkeys(task.children)):
        yield depth, child
        if child.task_id not in shown:  # documents by hand may name each other
            shown.add(child.task_id)
            yield from _below(seen, child, depth + 1, shown)


def _line(item: Task) -> Text:
    place = f"{shown_id(item.task_id)} {step_of(item)} {item.assigned_to} "
    return Text.assemble(place, style_status(_word(item)), f" {cell(item.summary, 80)}")


def step_of(task: Task) -> str:
    """Return a task's key in its plan; a task without one was delegated, or asked a question."""
    if task.is_question:
        return "question"
    return "delegated" if task.is_call else task.plan_key


def _draw_result(seen: Seen) -> None:
    """Print the result's answer, insights and artifacts."""
    task = seen.task
    if task.result is None:
        return
    print_answer(seen.answer, console)
    for insight in task.result.insights[:10]:
        console.prose(f"  - {insight}")
    for artifact in task.result.artifacts:
        if artifact.type == ANSWER:
            continue
        console.print(f"  {artifact.type} {artifact.name}: {artifact.uri or 'inline'}", soft_wrap=True)
