"""Adopt a hand-written task: complete it in place, and link it to its dependencies or to the task that it repeats.

The document that a person wrote is the task: it keeps its id, and all later changes are written to it. A small document
in ``agent_task_keys`` has the id of the task that owns the work of one session, role, objective and context.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fireswarm.contracts.base import count_noun
from fireswarm.contracts.ports import SERVER_TIME, Snapshot, Store, Update, Write
from fireswarm.contracts.swarm.task import SCHEMA_VERSION, StatusReason, Task, TaskStatus
from fireswarm.errors import Conflict, FireswarmError, InvalidInput, NewerDocument
from fireswarm.storage.documents.build import next_sweep
from fireswarm.storage.documents.paths import task_path
from fireswarm.storage.documents.read import parse_task_snapshot, shows
from fireswarm.swarm.board.by_hand.keys import Owner, does_work, read_owner
from fireswarm.swarm.board.rules import BoardContext
from fireswarm.swarm.board.state import unleased_fields, waiting_fields

MAX_CYCLE_READS = 200
"""Maximum number of tasks read to detect a cycle through a hand-written dependency."""

TYPED = ("priority", "deadline", "max_attempts", "created_at", "not_before")
"""Fields whose stored type matters to a query; a number or time stored as text is converted."""


async def adopt(board: BoardContext, task: Task, snapshot: Snapshot) -> None:
    """Complete the document and register it with its dependencies, in one commit; a conflict leaves it for later.

    Raises InvalidInput for a dependency that does not exist or forms a cycle with the task.
    """
    store = board.store
    fields = _missing_fields(task, snapshot) | {"open": True}
    was_edited = bool(task.key_id) and task.key_id != task.work_id
    state, writes = ({}, list[Write]()) if was_edited else await _dependencies(board, task)
    if not writes:  # no dependency: it does its work, or waits for the task with the same work
        fields |= {"idempotency_key": task.idempotency_key, "key_id": task.work_id}
        owner = await read_owner(store, task)
        if does_work(owner, task):
            more, writes = _repeats(board, owner, task)
            state |= more
        elif owner.key.data is None or owner.key.data.get("task_id") != task.task_id:
            writes = [owner.take_over(task.work_id, task)]
    if was_edited:  # the results of its earlier runs are of other work
        fields |= {"work_epoch": task.epoch, "answered": {}}
    if task.duplicate_of is not None and "duplicate_of" not in state:
        fields["duplicate_of"] = None
    await try_commit(store, [*writes, Update(snapshot.path, fields | state, snapshot.update_time)])


def _missing_fields(task: Task, snapshot: Snapshot) -> dict[str, Any]:
    """Return the fields that the document lacks or stores in another type."""
    data: Mapping[str, Any] = snapshot.data or {}
    fields: dict[str, Any] = {"task_id": task.task_id, "session_hash": task.session_hash, "updated_at": SERVER_TIME}
    fields["schema_version"] = SCHEMA_VERSION
    if data.get("task_id") != snapshot.id or data.get("trace") is None:
        fields["trace"] = {"chain_id": task.task_id, "step": 0}
    for name in TYPED:
        value = getattr(task, name)
        if value is not None and type(data.get(name)) is not type(value):
            fields[name] = value
    return fields


async def _dependencies(board: BoardContext, task: Task) -> tuple[dict[str, Any], list[Write]]:
    """Return the task's state and the writes that register it with its unfinished dependencies."""
    store = board.store
    unmet: list[tuple[Snapshot, Task | None]] = []
    for parent_snapshot in await store.get_many([task_path(parent_id) for parent_id in dict.fromkeys(task.depends_on)]):
        if parent_snapshot.data is None:
            raise InvalidInput(f"depends_on names {parent_snapshot.id}, which does not exist")
        try:
            parent = parse_task_snapshot(parent_snapshot)
        except InvalidInput as fault:  # it waits until a person has corrected the dependency, or a newer agent ends it
            ended = {"status": TaskStatus.DONE.value, "session_hash": task.session_hash}
            if not (isinstance(fault, NewerDocument) and shows(parent_snapshot.data, ended)):
                unmet.append((parent_snapshot, None))
            continue
        if parent.session_hash != task.session_hash:
            other = parent.session_hash
            raise InvalidInput(f"depends_on names {parent.task_id} of session {other!r}: set session_hash to {other!r}")
        if parent.status is TaskStatus.CANCELED:
            raise InvalidInput(f"depends_on names {parent_snapshot.id}, which is canceled")
        if not parent.status.terminal:
            unmet.append((parent_snapshot, parent))
    await _check_cycle(store, task, [parent for _, parent in unmet if parent is not None])
    if not unmet:
        sweep_at = next_sweep(task.status, task.status_reason, None, None, task.deadline)
        return {} if sweep_at is None else {"sweep_at": sweep_at}, []
    state = waiting_fields(
        task, StatusReason.DEPENDENCIES, f"waits for {count_noun(len(unmet), 'task')}", board.clock.now()
    )
    writes: list[Write] = []
    for parent_snapshot, _ in unmet:
        stored: Any = (parent_snapshot.data or {}).get("dependents")
        before = [item for item in stored if isinstance(item, str)] if isinstance(stored, list) else []
        fields = {"dependents": [*dict.fromkeys((*before, task.task_id))], "updated_at": SERVER_TIME}
        writes.append(Update(parent_snapshot.path, fields, parent_snapshot.update_time))
    return state | {"waiting_on": len(unmet)}, writes


async def _check_cycle(store: Store, task: Task, parents: list[Task]) -> None:
    """Raise InvalidInput if an unfinished dependency waits, directly or not, for *task*."""
    pending, seen = list(parents), {parent.task_id for parent in parents}
    while pending and len(seen) <= MAX_CYCLE_READS:
        parent = pending.pop()
        if task.task_id in parent.depends_on:
            raise InvalidInput(f"depends_on makes a cycle: {parent.task_id} waits for this task")
        next_ids = [task_id for task_id in parent.depends_on if task_id not in seen]
        seen.update(next_ids)
        for snapshot in await store.get_many([task_path(task_id) for task_id in next_ids]):
            with contextlib.suppress(InvalidInput):  # missing, or waiting for a person to correct it
                pending.append(parse_task_snapshot(snapshot))


def _repeats(board: BoardContext, owner: Owner, task: Task) -> tuple[dict[str, Any], list[Write]]:
    """Return the state of a task that repeats another's work, and the write that registers it with that task."""
    original = owner.task
    if original is None or original.status.terminal:
        return {"duplicate_of": original.task_id if original else None}, []
    summary = f"same objective and context as task {original.task_id}, which does the work"
    state = waiting_fields(task, StatusReason.DEPENDENCIES, summary, board.clock.now())
    dependents = {"dependents": [*original.dependents, task.task_id], "updated_at": SERVER_TIME}
    tied = {"duplicate_of": original.task_id, "waiting_on": 1}
    return state | tied, [Update(owner.snapshot.path, dependents, owner.snapshot.update_time)]


async def ask_again(store: Store, task: Task, snapshot: Snapshot, error: FireswarmError) -> None:
    """Block a task that was queued by hand with invalid answers; the answers stay on the document."""
    summary = f"{error}. Correct answers, then set status to queued."
    fields = unleased_fields(task, TaskStatus.BLOCKED, StatusReason.INPUT_REQUIRED, summary)
    await try_commit(store, [Update(snapshot.path, fields, snapshot.update_time)])


async def pause_until(board: BoardContext, task: Task, snapshot: Snapshot, until: datetime, summary: str) -> None:
    """Block a queued task until a time at which a sweep queues it again."""
    fields = unleased_fields(task, TaskStatus.BLOCKED, StatusReason.PAUSED, summary, not_before=until)
    await try_commit(board.store, [Update(snapshot.path, fields, snapshot.update_time)])


async def try_commit(store: Store, writes: list[Write]) -> None:
    """Commit; a conflict is ignored, because the next claim or sweep reads the document again."""
    try:
        await store.commit(writes)
    except Conflict:
        return
