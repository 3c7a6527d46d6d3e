"""One task: why it does not move, what it asks, its objective's tree, runs, answer and files; and its actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from fireswarm.api.console.pages.spend import describe_limit, read_usd
from fireswarm.api.console.pages.work.questions import describe_uncertain, read_answers, shown_questions
from fireswarm.api.console.pages.work.run_list import sum_work
from fireswarm.api.console.plan import draw_chart, draw_graph
from fireswarm.api.console.visit import Goto, Shown, Visit
from fireswarm.client import Swarm
from fireswarm.contracts.swarm.run import RunDocument
from fireswarm.contracts.swarm.status import GONE, SILENT
from fireswarm.contracts.swarm.task import WAITS_FOR_OTHERS, StatusReason, Task, TaskStatus
from fireswarm.errors import InvalidInput
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import RUNS
from fireswarm.storage.documents.read import parse_readable, parse_run_snapshot
from fireswarm.swarm.records.artifacts import name_of, read_answer
from fireswarm.swarm.records.budgets import read_limits
from fireswarm.swarm.records.spending import sort_by_cost, sum_runs
from fireswarm.swarm.submission.fork_task import find_following

SHOWN_RUNS = 20
SHOWN_TREE = 500
MAX_CHAIN_RUNS = 1_000
"""Of an objective, so many runs are drawn over time."""

LIMIT_SECONDS = 10.0
MAX_ANSWER_CHARS = 200_000

TREE_SECONDS = 3.0
"""How long the tasks of an objective are kept, for all pages that show one of them."""

Acted = tuple[Task, str]
"""The task to show after an action, and the word of ``DONE`` that says what was done."""


async def show(visit: Visit) -> Shown:
    """Make the page."""
    swarm = visit.swarm
    task = await swarm.get(visit.path["task_id"])
    found = await swarm.parts.store.query(queries.newest(RUNS, "started_at", SHOWN_RUNS, task_id=task.task_id))
    chain = task.trace.chain_id
    feed = visit.console.feed
    tree, chain_runs = await feed.remember(("tree", chain), TREE_SECONDS, lambda: _read_tree(swarm, task))
    tree = [task if item.task_id == task.task_id else item for item in tree]
    tree = tree if task in tree else [task, *tree]  # one that a person wrote without a trace
    now = swarm.parts.clock.now()
    runs = await swarm.parts.run_ends.complete(parse_readable(found, parse_run_snapshot), [task])
    answer = await read_answer(swarm.parts.blobs, task)
    parts = swarm.parts
    limits = await feed.remember(
        ("limits", task.task_id),
        LIMIT_SECONDS,
        lambda: read_limits(parts.store, parts.clock, task, runs, parts.settings.budget),
    )
    relatives = await swarm.relatives(task) if task.status is TaskStatus.BLOCKED else {}
    values = {
        "task": task,
        "why": await swarm.explain(task, relatives),
        "order": await swarm.orders.find(task.assigned_to) if task.status is TaskStatus.QUEUED else None,
        "blockers": _blockers_of(task, relatives),
        "work": sum_work(runs),
        "roles_cost": sort_by_cost(sum_runs(chain_runs).by_role),
        "questions": await shown_questions(swarm, task),
        "answer": answer[:MAX_ANSWER_CHARS],
        "answer_is_cut": len(answer) > MAX_ANSWER_CHARS,
        "limits": [(limit.scope, limit.left, describe_limit(limit)) for limit in limits],
        "holder": await _state_of_holder(swarm, task),
        "files": [(name_of(artifact), artifact) for artifact in (task.result.artifacts if task.result else ())],
        "runs": runs,
        "talks": task.continues is not None or any(run.usage.get("calls") for run in runs),
        "tree": [(depth, item) for depth, item in _with_depth(tree)][:SHOWN_TREE],
        "tree_size": len(tree),
        "graph": draw_graph(tree) if len(tree) > 1 else None,
        "chart": draw_chart(tree, chain_runs, now),
        "following": await find_following(parts.store, task),
        "uncertain": await describe_uncertain(swarm, task),
        "below": [
            (item, number, name_of(artifact), artifact.type)
            for item in tree
            if item.task_id != task.task_id and item.result and item.parent_task_id and not task.parent_task_id
            for number, artifact in enumerate(item.result.artifacts)
        ],
        "now": now,
    }
    return Shown("task.html", values)


def _blockers_of(task: Task, relatives: Mapping[str, Task]) -> list[Task]:
    """Return the tasks that a blocked task waits for: dependencies, and tasks that it planned."""
    if task.status_reason not in WAITS_FOR_OTHERS:
        return []
    awaited = {*task.depends_on, *(task.awaits or task.children)}
    return [other for other in relatives.values() if other.task_id in awaited and other.status is not TaskStatus.DONE]


async def _state_of_holder(swarm: Swarm, task: Task) -> str:
    """Return a sentence about the agent that holds the task if it does not report any more, otherwise ""."""
    if task.lease is None or task.status is not TaskStatus.IN_PROGRESS:
        return ""
    holder, now = task.lease.owner_agent_id, swarm.parts.clock.now()
    status = await swarm.parts.heartbeats.find(holder)
    if status is None or status.state_at(now) not in (SILENT, GONE):
        return ""
    silent, left = (now - status.created_at).total_seconds(), (task.lease.expires_at - now).total_seconds()
    takes = f" Another agent may take the task over in {left:.0f} s." if left > 0 else ""
    return f"{holder} has not reported for {silent:.0f} s.{takes}"


async def _read_tree(swarm: Swarm, task: Task) -> tuple[list[Task], list[RunDocument]]:
    """Return the tasks of a task's objective and the first of their runs."""
    tree = await swarm.objective(task)
    found = await swarm.parts.store.query(replace(queries.runs_of(task.trace.chain_id), limit=MAX_CHAIN_RUNS))
    return tree, await swarm.parts.run_ends.complete(parse_readable(found, parse_run_snapshot), tree)


def _with_depth(tasks: list[Task]) -> list[tuple[int, Task]]:
    """Return the tasks of an objective, parents first, each with its depth below the first."""
    depths: dict[str, int] = {}
    for task in tasks:
        depths[task.task_id] = depths.get(task.parent_task_id or "", -1) + 1
    return [(depths[task.task_id], task) for task in tasks]


async def act(visit: Visit) -> Goto:
    """Do what a form of the task asks for. Raises InvalidInput for an unknown action."""
    action = ACTIONS.get(visit.path["action"])
    if action is None:
        raise InvalidInput(f"unknown action {visit.path['action']!r}; known: {', '.join(ACTIONS)}")
    task = await visit.swarm.get(visit.path["task_id"])
    shown, done = await action(visit.swarm, task, visit.form)
    back = "/inbox" if visit.form.get("back") == "inbox" else f"/tasks/{shown.task_id}"
    return Goto(back, done)


async def _retry(swarm: Swarm, task: Task, form: Mapping[str, str]) -> Acted:
    redo = [form["redo"]] if form.get("redo") else []
    skip = [form["skip"]] if form.get("skip") else []
    retried = await swarm.retry(task, redo=redo, skip=skip)
    return retried, "retry" if retried.deadline == task.deadline else "retry_late"


async def _cancel(swarm: Swarm, task: Task, form: Mapping[str, str]) -> Acted:
    await swarm.cancel(task, form.get("reason", "").strip() or "by the console", tree=form.get("alone") != "yes")
    return task, "cancel"


async def _say(swarm: Swarm, task: Task, form: Mapping[str, str]) -> Acted:
    return await swarm.say(task, form.get("text", "").replace("\r\n", "\n").strip()), "say"


async def _answer(swarm: Swarm, task: Task, form: Mapping[str, str]) -> Acted:
    return await swarm.answer(task.task_id, read_answers(task, form), by_id=True), "answered"


async def _approve(swarm: Swarm, task: Task, form: Mapping[str, str]) -> Acted:
    return await swarm.approve(task.task_id, _question_of(form), always=form.get("always") == "yes"), "approved"


async def _deny(swarm: Swarm, task: Task, form: Mapping[str, str]) -> Acted:
    return await swarm.deny(task.task_id, _question_of(form), reason=form.get("reason", "").strip()), "denied"


async def _budget(swarm: Swarm, task: Task, form: Mapping[str, str]) -> Acted:
    """Set the budget, and queue the tasks again that stopped for it."""
    await swarm.budget(task, usd=read_usd(form))
    stopped = StatusReason.BUDGET_EXCEEDED
    below = [task] if task.parent_task_id else await swarm.objective(task)
    if not any(each.status_reason is stopped for each in below):
        return task, "budget"
    await swarm.retry_tree(task, stopped)
    return task, "budget_retried"


def _question_of(form: Mapping[str, str]) -> str:
    if not form.get("question"):
        raise InvalidInput("the form does not say which request it decides on: load the page again")
    return form["question"]


ACTIONS: Mapping[str, Callable[[Swarm, Task, Mapping[str, str]], Awaitable[Acted]]] = {
    "retry": _retry,
    "cancel": _cancel,
    "say": _say,
    "answer": _answer,
    "approve": _approve,
    "deny": _deny,
    "budget": _budget,
}
