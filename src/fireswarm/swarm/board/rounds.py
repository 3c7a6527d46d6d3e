"""A plan in rounds: its later tasks, tasks that are sent back, and the planner's waiting for children at work.

While the planner works, its children end without telling it. So its next handoff counts them after the commit, like a
task that waits for many; a sweep repeats that in case the process died in between.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from fireswarm.contracts.base import count_noun
from fireswarm.contracts.limits import shown_id
from fireswarm.contracts.ports import Snapshot, Update, Write
from fireswarm.contracts.swarm.envelope import Trace
from fireswarm.contracts.swarm.outcome import Handoff
from fireswarm.contracts.swarm.task import ChildFailure, StatusReason, Task, TaskStatus
from fireswarm.errors import Conflict, InvalidInput, StoreError
from fireswarm.storage.documents.build import idempotency_key, task_id_for
from fireswarm.storage.documents.paths import task_path
from fireswarm.storage.documents.read import parse_readable, parse_task_snapshot
from fireswarm.swarm.board.dependents import MAX_WRITTEN
from fireswarm.swarm.board.rules import BoardContext
from fireswarm.swarm.board.state import queued_fields
from fireswarm.swarm.board.submit import children_of

_log = logging.getLogger(__name__)

MAX_EARLIER = 50
"""Maximum number of tasks of one conversation."""


def by_key(children: Sequence[Task]) -> dict[str, Task]:
    """Return the children of a planner by their keys."""
    return {child.plan_key: child for child in children}


def births_of(board: BoardContext, parent: Task, epoch: int, handoff: Handoff) -> list[Task]:
    """Return the tasks that a handoff creates: the new ones of the plan, and those that go on with a child's work."""
    known = by_key(handoff.children)
    births: list[Task] = []
    if handoff.tasks or not (known or handoff.revisions):
        births = children_of(parent, epoch, handoff.tasks, board.roles, board.clock, board.rules, known)
    taken = {*known, *(birth.plan_key for birth in births)}
    for revision in handoff.revisions:
        key = revision.key or _next_key(revision.task, taken)
        taken.add(key)
        fresh_key = f"{parent.task_id}.{epoch}/{key}"
        planned: dict[str, Any] = {"plan_key": key, "parent_task_id": parent.task_id, "created_by": parent.assigned_to}
        if revision.key:  # a question: its answer changes nothing, and its files are not those of the one asked
            asked = revision.task.constraints.model_copy(update={"read_only": True})
            planned |= {"thread_id": None, "constraints": asked}
        trace = Trace(chain_id=parent.trace.chain_id, step=parent.trace.step + 1)
        births.append(follow_up(revision.task, revision.feedback, fresh_key, board.clock.now(), **planned, trace=trace))
    return births


def base_key(plan_key: str) -> str:
    """Return the key of a task that was planned, without the number of its revision."""
    return plan_key.rsplit("~", 1)[0]


def _next_key(child: Task, taken: Collection[str]) -> str:
    number, base = 2, base_key(child.plan_key)
    while (key := f"{base}~{number}") in taken:
        number += 1
    return key


def follow_up(task: Task, feedback: str, fresh_key: str, now: datetime, **more: Any) -> Task:
    """Return a new task that goes on with a task's conversation, told the *feedback*. *more* are further fields."""
    own_key = idempotency_key(task.objective, task.context, fresh_key)
    task_id = task_id_for(task.session_hash, own_key, task.assigned_to)
    return Task.model_validate(
        {
            **{name: getattr(task, name) for name in _KEPT},
            "task_id": task_id,
            "key_id": task_id,
            "status": TaskStatus.QUEUED,
            "summary": "goes on with a conversation, waits for an agent",
            "open": True,
            "fresh_key": fresh_key,
            "idempotency_key": own_key,
            "continues": task.task_id,
            "thread_id": task.thread,
            "feedback": f"{feedback}\n[message {shown_id(task_id)}]" if feedback else "",  # told once: also old words
            "trace": Trace(chain_id=task_id, step=0),
            "created_at": now,
            "updated_at": now,
            **more,
        }
    )


_KEPT = (
    "session_hash", "objective", "assigned_to", "skill", "model", "effort", "fallback",
    "context", "constraints", "capabilities", "attachments",
    "priority", "deadline", "handoff_reason", "expected_outcome", "instructions", "for_agent", "max_attempts",
    "depends_on", "on_child_failure", "answers", "answered", "checks", "max_revisions",
    "review_plan", "message_id",
)  # fmt: skip
"""Fields that a task which goes on with another one's conversation has in common with it."""


async def read_earlier(board: BoardContext, task: Task) -> Sequence[Task]:
    """Return the tasks whose conversation a task goes on with, the oldest first.

    A task that is gone, unreadable or of another session ends the search: documents may name any task.
    """
    found: list[Task] = []
    following = task.continues
    while following is not None and len(found) < MAX_EARLIER:
        snapshot = await board.store.get(task_path(following))
        read = parse_readable([snapshot] if snapshot.data is not None else [], parse_task_snapshot)
        if not read or read[0].session_hash != task.session_hash:
            break
        found.insert(0, read[0])
        following = read[0].continues
    return found


class Join(NamedTuple):
    """A child at work for which new tasks wait, as it was read."""

    snapshot: Snapshot
    child: Task


async def read_joined(board: BoardContext, outcome: Handoff) -> tuple[Handoff, list[Join]]:
    """Return a handoff with the children that new tasks depend on as they are now, and those that are at work."""
    needed = {key for task in outcome.tasks for key in task.depends_on}
    named = [child for child in outcome.children if child.plan_key in needed and child.status is not TaskStatus.DONE]
    snapshots = await board.store.get_many([task_path(child.task_id) for child in named]) if named else []
    fresh = {item.id: Join(item, parse_task_snapshot(item)) for item in snapshots if item.data is not None}
    current = tuple(fresh[child.task_id].child if child.task_id in fresh else child for child in outcome.children)
    return replace(outcome, children=current), [join for join in fresh.values() if not join.child.status.terminal]


def link(births: Sequence[Task], joins: Sequence[Join]) -> list[Write]:
    """Return the writes that make children at work tell the new tasks that wait for them.

    A child must be unchanged; the caller repeats a commit that conflicts.
    """
    linked: list[Write] = []
    for snapshot, child in joins:
        new = [birth.task_id for birth in births if child.task_id in birth.depends_on]
        fields = {"dependents": [*child.dependents, *new]}
        linked.append(Update(snapshot.path, fields, snapshot.update_time))
    return linked


def wait_fields(task: Task, births: Sequence[Task], handoff: Handoff) -> dict[str, Any]:
    """Return what a task waits for: the answers to its calls, or all its children.

    ``waiting_on`` is exact for new tasks only, otherwise an upper bound that is counted.
    """
    at_work = find_awaited(handoff.children)
    calls = [birth.task_id for birth in births if birth.is_call]
    awaits = calls if at_work and len(calls) == len(births) else []
    if not (births or handoff.plans):
        awaits = [*task.awaits]  # woken by something else: it goes on waiting for the answers
    counted = at_work and not (births and awaits)
    waiting_on = max(MAX_WRITTEN + 1, len(births) + len(at_work)) if counted else len(births)
    return {"waiting_on": waiting_on} | ({"awaits": awaits} if awaits or task.awaits else {})


def find_awaited(children: Sequence[Task]) -> list[Task]:
    """Return the children that may still end by themselves: not ended, given up, or behind such a one."""
    lost = {child.task_id for child in children if child.given_up or child.status is TaskStatus.CANCELED}
    open_ones = [child for child in children if not child.status.terminal and not child.given_up]
    waiting = [child for child in open_ones if child.status_reason is StatusReason.DEPENDENCIES]
    while behind := {child.task_id for child in waiting if lost & {*child.depends_on}} - lost:
        lost |= behind
    return [child for child in open_ones if child.task_id not in lost]


def no_longer_awaited(children: Sequence[Task]) -> list[str]:
    """Return the ids of children that have not ended and will not by themselves, and of canceled ones."""
    at_work = {child.task_id for child in find_awaited(children)}
    return [child.task_id for child in children if child.status is not TaskStatus.DONE and child.task_id not in at_work]


async def check_children(board: BoardContext, task_id: str) -> bool:
    """Queue a planner of which a child was given up unseen, or for which none is at work. Returns True if it did.

    Costs one read for each child.
    """
    for _ in range(board.rules.settle_attempts):
        snapshot = await board.store.get(task_path(task_id))
        if snapshot.data is None:
            return False
        task = parse_task_snapshot(snapshot)
        if task.status is not TaskStatus.BLOCKED or task.status_reason is not StatusReason.DELEGATING:
            return False
        read = await board.store.get_many([task_path(child) for child in task.children])
        children = [parse_task_snapshot(item) for item in read if item.data is not None]
        lost = [child for child in children if child.given_up and child.task_id not in task.gave_up]
        wakes = lost and task.wakes_on_failure and task.on_child_failure is ChildFailure.REPLAN
        if find_awaited([child for child in children if task.awaits_child(child.task_id)]) and not wakes:
            return False
        summary = "all its tasks ended, waits for an agent"
        if lost:
            names = ", ".join(child.plan_key or shown_id(child.task_id) for child in lost)
            summary = f"{count_noun(len(lost), 'task')} failed ({names}): its planner decides"
        fields: dict[str, Any] = queued_fields(task, summary) | {"waiting_on": 0}
        fields["gave_up"] = [*task.gave_up, *(child.task_id for child in lost)]
        try:
            await board.store.commit([Update(snapshot.path, fields, snapshot.update_time)])
        except Conflict:
            continue
        return True
    return False  # a sweep checks again


async def check_after(board: BoardContext, task_id: str, outcome: Handoff) -> None:
    """Check the children of a planner whose handoff was committed; if that fails, a sweep repeats it."""
    if not (outcome.resume and outcome.children):
        return
    try:
        await check_children(board, task_id)
    except (StoreError, Conflict, InvalidInput) as error:
        _log.warning("the tasks that %s waits for could not be checked: %s", task_id, error)
