"""Operator actions on a task: cancel, retry, answer. Every write is a compare-and-set."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from fireswarm.contracts.limits import MAX_LABEL_CHARS, MAX_STORED_SUMMARY_CHARS, shown_id, truncate
from fireswarm.contracts.ports import SERVER_TIME, Clock, Create, Store, Update, Write
from fireswarm.contracts.skills.artifact import Signal
from fireswarm.contracts.swarm.envelope import Envelope, TaskRef
from fireswarm.contracts.swarm.run import RunStatus
from fireswarm.contracts.swarm.task import (
    NO_DEADLINE,
    WAITS_FOR_OTHERS,
    Lease,
    StatusReason,
    StepDecision,
    Task,
    TaskStatus,
)
from fireswarm.errors import Conflict, InvalidInput, NotFound, StoreUnavailable, TerminalTask
from fireswarm.runs.sinks.run_reader import read_last_events
from fireswarm.signals.spans import report_end
from fireswarm.storage.documents.build import message_document
from fireswarm.storage.documents.paths import message_path, run_path, task_path
from fireswarm.storage.documents.read import parse_readable, parse_task_snapshot, shows
from fireswarm.swarm.board.dependents import commit_with_dependents, tell_of_retry
from fireswarm.swarm.board.operator import answers
from fireswarm.swarm.board.rules import BoardContext, BoardRules
from fireswarm.swarm.board.state import end_run_write, lost_at, queued_fields, unleased_fields
from fireswarm.swarm.board.waits import waits_in_vain

CANCEL_SIGNAL = "cancel"
"""Name of the signal that tells a task's holder to stop after a cancel."""

RETRYABLE = frozenset(
    {
        StatusReason.DEAD_LETTER,
        StatusReason.ESCALATED,
        StatusReason.GATE_FAILED,
        StatusReason.DEADLINE_EXCEEDED,
        StatusReason.BUDGET_EXCEEDED,
        StatusReason.NEEDS_MODEL,
        StatusReason.NEEDS_CONFINEMENT,
        StatusReason.RETRY_BACKOFF,
        StatusReason.PAUSED,
    }
)

STOPPED = RETRYABLE - {StatusReason.RETRY_BACKOFF, StatusReason.PAUSED}
"""Reasons that no time mends."""


MAX_PRIORITY = 10
"""The priority that is first."""

RETRIED_TURNS = 10
"""Additional decisions of a model whose task its planner retries: it may have used up its own."""


async def load(store: Store, task_id: str) -> tuple[Task, Any]:
    """Read a task and its version. Raises NotFound, with a hint, for an unknown id."""
    snapshot = await store.get(task_path(task_id))
    if snapshot.data is None:
        raise NotFound(f"there is no task {task_id}: `swarm tasks` lists the tasks")
    return parse_task_snapshot(snapshot), snapshot.update_time


async def change_task(
    store: Store,
    rules: BoardRules,
    task_id: str,
    fields: Callable[[Task], Mapping[str, Any]],
    also: Callable[[Task], Awaitable[Sequence[Write]]],
) -> Task:
    """Compute *fields* and commit them with *also*; repeats this after a conflict. Returns the changed task.

    A commit that failed, but was applied all the same, is recognized.
    """
    for _ in range(rules.settle_attempts):
        task, version = await load(store, task_id)
        change = {**fields(task), "updated_at": SERVER_TIME}
        try:
            await store.commit([Update(task_path(task_id), change, version), *await also(task)])
        except Conflict as conflict:
            if not (conflict.ambiguous and shows((await store.get(task_path(task_id))).data, change)):
                continue
        return (await load(store, task_id))[0]
    raise StoreUnavailable(f"task {task_id} keeps changing: nothing was written, try again")


async def cancel(
    board: BoardContext, task_id: str, reason: str = "by the operator", *, tree: bool = False
) -> list[str]:
    """Cancel a task, and with *tree* every task below it. Returns the ids that this call canceled.

    The holder of a running task gets a message in its inbox. Without *tree*, a terminal task raises TerminalTask; with
    *tree*, terminal tasks are skipped.
    """
    canceled: list[str] = []
    pending = [task_id]
    seen: set[str] = set()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        try:
            task = await _cancel_one(board, current, reason, named=current == task_id and not tree)
            below = (await load(board.store, current))[0].children if tree else ()
        except NotFound:
            if current == task_id:
                raise
            continue  # a task below was deleted
        canceled += [current] if task is not None else []
        pending.extend(below)
    return canceled


async def _cancel_one(board: BoardContext, task_id: str, reason: str, *, named: bool) -> Task | None:
    """Cancel one task, its run and its holder. Returns None for a terminal task, or raises TerminalTask if *named*."""
    summary = truncate(f"canceled: {reason}", MAX_STORED_SUMMARY_CHARS)
    for _ in range(board.rules.settle_attempts):
        task, version = await load(board.store, task_id)
        if task.status.terminal:
            if named:
                raise TerminalTask(f"task {task_id} is {task.status.value} and cannot change any more")
            return None
        try:
            await end_task(board, task, version, TaskStatus.CANCELED, summary)
        except Conflict as conflict:
            stored = (await load(board.store, task_id))[0]
            if not (conflict.ambiguous and (stored.status, stored.summary) == (TaskStatus.CANCELED, summary)):
                continue
        report_end(task, TaskStatus.CANCELED, board.clock.now())
        return task
    raise StoreUnavailable(f"task {task_id} keeps changing: it was not canceled, try again")


async def end_task(board: BoardContext, task: Task, version: Any, status: TaskStatus, summary: str) -> None:
    """End *task* from outside, in one commit with its dependents, its run and a message to its lease holder.

    Raises Conflict if the task changed.
    """
    writes: list[Write] = [Update(task_path(task.task_id), unleased_fields(task, status, None, summary), version)]
    if task.lease is not None:
        writes.append(await _end_run(board, task, task.lease, summary))
        writes.append(_stop_message(task, task.lease.owner_agent_id, summary, board.clock, board.rules))
    await commit_with_dependents(board, task, writes, status)


async def _end_run(board: BoardContext, task: Task, lease: Lease, summary: str) -> Write:
    """Return the write that ends the run of a task's holder: now, or when the holder was lost. That costs two reads."""
    if lease.expires_at > board.clock.now():
        return end_run_write(task, lease, RunStatus.ERROR, summary)
    run = await board.store.get(run_path(task.run_id(lease.epoch)))
    events = (await read_last_events(board.store, run, 0, 1)).events
    return end_run_write(task, lease, RunStatus.ERROR, summary, lost_at(board, task, lease, events))


def _stop_message(task: Task, owner: str, reason: str, clock: Clock, rules: BoardRules) -> Write:
    """Return the write of the message that tells *owner* to stop working on the task."""
    envelope = Envelope(
        envelope_id=str(uuid.uuid4()),
        task=TaskRef(task_id=task.task_id, assigned_to=task.assigned_to),
        session_hash=task.session_hash,
        signals=(
            Signal(name=CANCEL_SIGNAL, strength=1.0, subject=task.task_id, note=truncate(reason, MAX_LABEL_CHARS)),
        ),
        notes=truncate(reason, MAX_STORED_SUMMARY_CHARS),
        trace=task.trace,
    )
    now = clock.now()
    keep = now + timedelta(seconds=rules.message_ttl_seconds)
    return Create(message_path(envelope.envelope_id), message_document(envelope, "operator", owner, now, keep))


async def retry(
    board: BoardContext, task_id: str, *, redo: Sequence[str] = (), skip: Sequence[str] = (), turns: int = 0
) -> Task:
    """Queue a blocked task again with all its attempts, or one in progress that nobody holds.

    A deadline in the past is removed. A task that waits for others can be retried if one of them is gone.

    *redo* and *skip* name steps that the task gave up on: to run again, or to treat as done. *turns* are additional
    decisions of its model. Raises InvalidInput for other steps, and for an uncertain step without a decision.
    """
    store, clock, rules = board.store, board.clock, board.rules
    lost = WAITS_FOR_OTHERS if await waits_in_vain(board, (await load(store, task_id))[0]) else ()

    def fields(task: Task) -> dict[str, Any]:
        """Return the fields that queue the task. Raises TerminalTask or InvalidInput if it cannot be retried."""
        if task.status.terminal:
            raise TerminalTask(
                f"task {task_id} is {task.status.value} and cannot change any more: submit it again with --again WORD"
            )
        unheld = task.status is TaskStatus.IN_PROGRESS and task.lease is None
        blocked = task.status is TaskStatus.BLOCKED and task.status_reason in {*RETRYABLE, *lost, None}
        if not (unheld or blocked):
            state = task.status_reason.value if task.status_reason else task.status.value
            raise InvalidInput(f"task {task_id} is {state}: only a task that failed or is paused can be retried")
        deadline = NO_DEADLINE if task.deadline <= clock.now() else task.deadline
        state = unleased_fields(
            task, TaskStatus.QUEUED, None, "retried by the operator, waits for an agent", deadline=deadline
        )
        decided = _decision_fields(task, redo, skip) | {"extra_turns": task.extra_turns + turns}
        return state | decided | {"attempt": 0, "setbacks": 0, "error": None, "waiting_on": 0, "deadline": deadline}

    return await change_task(store, rules, task_id, fields, also=partial(tell_of_retry, store))


async def retry_with_note(board: BoardContext, child: Task, note: str) -> Task:
    """Queue a failed child again as its planner asks; its model is told the *note*. Raises as ``retry`` does."""
    told = f"{note}\n[message {shown_id(child.task_id)}.{child.epoch}]"  # told once: also words said before

    def fields(task: Task) -> dict[str, Any]:
        return {"said": [*(text for text in task.said if text != told), told]}

    await change_task(board.store, board.rules, child.task_id, fields, also=_nothing_else)
    return await retry(board, child.task_id, turns=RETRIED_TURNS)


async def set_budget(board: BoardContext, task_id: str, amounts: Mapping[str, Any]) -> Task:
    """Store the budget of a task, or of the objective of which it is the first task. Raises TerminalTask."""

    def fields(task: Task) -> dict[str, Any]:
        if task.status.terminal:
            raise TerminalTask(f"task {task_id} is {task.status.value} and spends nothing any more")
        return {"budget": (task.budget.model_dump(exclude_none=True) if task.budget else {}) | dict(amounts)}

    return await change_task(board.store, board.rules, task_id, fields, also=_nothing_else)


async def prioritize(board: BoardContext, task_id: str, priority: int) -> Task:
    """Set the priority of a task. Raises TerminalTask, and InvalidInput for a number that is none of 1 to 10."""
    if not 1 <= priority <= MAX_PRIORITY:
        raise InvalidInput(f"a priority is 1 to {MAX_PRIORITY}, {MAX_PRIORITY} is first: {priority} is none")

    def fields(task: Task) -> dict[str, Any]:
        if task.status.terminal:
            raise TerminalTask(f"task {task_id} is {task.status.value} and waits for nothing any more")
        return {"priority": priority}

    return await change_task(board.store, board.rules, task_id, fields, also=_nothing_else)


async def retry_tree(board: BoardContext, task_id: str, reason: StatusReason | None = None) -> list[Task]:
    """Retry a task and all tasks below it that stopped for one *reason*; by default the one of the first that stopped.

    Tasks that wait for a decision about a step are left out. Raises InvalidInput if no task can be retried, and for
    tasks below a waiting one that stopped for several reasons.
    """
    root = (await load(board.store, task_id))[0]
    if root.uncertain_step:
        return [await retry(board, task_id)]  # it says which decision is missing
    tasks, pending = {task_id: root}, [root]
    while pending:
        ids = {child: None for task in pending for child in task.children if child not in tasks}
        read = await board.store.get_many([task_path(child) for child in ids]) if ids else []
        pending = parse_readable([item for item in read if item.data is not None], parse_task_snapshot)
        tasks |= {task.task_id: task for task in pending}
    stopped = [task for task in tasks.values() if task.status_reason in STOPPED and not task.uncertain_step]
    reasons = list(dict.fromkeys(task.status_reason for task in stopped if task.status_reason is not None))
    if root in stopped:
        reasons = reasons[:1]
    if reason is not None:
        reasons = [reason]
    if len(reasons) > 1:
        names = ", ".join(each.value for each in reasons)
        raise InvalidInput(f"tasks below {task_id} stopped for several reasons: {names}. Choose one with --reason")
    chosen = [task for task in stopped if task.status_reason in reasons]
    if not chosen:
        return [await retry(board, task_id)]
    return [await retry(board, task.task_id) for task in chosen]


async def _nothing_else(_: Task) -> Sequence[Write]:
    return ()


def _decision_fields(task: Task, redo: Sequence[str], skip: Sequence[str]) -> dict[str, Any]:
    """Return the fields that hold the operator's decisions; steps with an unusable result are run again by default."""
    known = {task.uncertain_step, *task.redo_steps} - {""}
    for name in (*redo, *skip):
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise InvalidInput(f"task {task.task_id} did not give up on a step {name!r}; it gave up on: {listed}")
    if task.uncertain_step and task.uncertain_step not in (*redo, *skip):
        raise InvalidInput(
            f"step {task.uncertain_step!r} may have taken effect: give --redo '{task.uncertain_step}' to run it "
            f"again, or --skip '{task.uncertain_step}' to treat it as done"
        )
    decisions = {name: StepDecision.REDO.value for name in (*task.redo_steps, *redo)}
    decisions |= {name: StepDecision.SKIP.value for name in skip}
    return {"step_decisions": decisions, "decided_epoch": task.epoch, "uncertain_step": "", "redo_steps": []}


async def answer(
    board: BoardContext,
    task_id: str,
    given: Mapping[str, Any],
    *,
    accept: Callable[[Task], None] = lambda _: None,
    also: Sequence[Write] = (),
) -> Task:
    """Store answers to a blocked task's questions, by their ids or names, and queue it.

    Raises StaleAnswer for a question that is not open, InvalidInput with all missing or mistyped answers. *accept*
    may refuse the task by raising. *also* is written in the same commit.
    """

    def fields(task: Task) -> dict[str, Any]:
        accept(task)
        if task.status.terminal:
            raise TerminalTask(f"task {task_id} is {task.status.value} and cannot change any more")
        answers.check_open(task, given)
        if task.status_reason not in (StatusReason.INPUT_REQUIRED, StatusReason.APPROVAL_REQUIRED):
            raise InvalidInput(f"task {task_id} asks no question: it is {task.status.value}")
        merged = answers.merge_answers(task, given)
        return queued_fields(task, "answered, waits for an agent") | merged | {"questions": []}

    async def with_answer(_: Task) -> Sequence[Write]:
        return also

    return await change_task(board.store, board.rules, task_id, fields, with_answer)
