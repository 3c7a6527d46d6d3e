"""Submit an objective or a graph of tasks. Submitting the same objective or graph twice creates it once."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fireswarm.contracts.ports import SERVER_TIME, Clock, Create, Snapshot, Store, Update, Write
from fireswarm.contracts.skills.skill import PlannedTask
from fireswarm.contracts.swarm.task import Submitted, Task, TaskSpec, TaskStatus
from fireswarm.errors import Conflict, InvalidInput, QueueFull, StoreUnavailable
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.build import new_task, plain, planned_task
from fireswarm.storage.documents.paths import task_path
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.board import graph
from fireswarm.swarm.board.by_hand.keys import Owner, create_key, read_owner
from fireswarm.swarm.board.rules import BoardContext, BoardRules


def document(task: Task) -> dict[str, Any]:
    """Return a new task's document, with the server's time for both timestamps."""
    return plain(task) | {"created_at": SERVER_TIME, "updated_at": SERVER_TIME}


def _as_stored(store: Store, spec: TaskSpec) -> TaskSpec:
    """Return the spec with the objective and context that will be stored: their key is that of the document."""
    stored = store.as_stored(plain(spec))
    changed = {name: stored[name] for name in ("objective", "context") if stored.get(name, {}) != getattr(spec, name)}
    return spec.model_copy(update=changed) if changed else spec


async def submit(board: BoardContext, spec: TaskSpec) -> Submitted:
    """Create a task, or return the existing one with this objective, context and session.

    The role is not checked: ``submission.submit_task`` does that. Raises InvalidInput for an invalid dependency or a
    deadline in the past, QueueFull for a role with too many queued tasks, and StoreUnavailable after repeated
    conflicts.
    """
    store, clock, rules = board.store, board.clock, board.rules
    spec = _as_stored(store, spec)
    room = _has_room(board, spec.assigned_to)
    if not room and (earlier := await _sent_to_full_queue(board, spec)) is not None:
        return Submitted(earlier, created=False)
    owner: Owner | None = None
    for _ in range(rules.settle_attempts):
        parents = await _parents(store, spec) if spec.depends_on else {}
        unmet = {path: task for path, task in parents.items() if not task[1].status.terminal}
        now = clock.now()
        task = new_task(spec, now, waiting_on=len(unmet))
        if task.deadline <= now:
            return await _sent_before(store, task)
        if owner is not None and owner.taken:
            task = task.model_copy(update={"task_id": str(uuid.uuid4())})
        writes: list[Write] = [Create(task_path(task.task_id), document(task))]
        writes.append(create_key(task.key_id, task) if owner is None else owner.take_over(task.key_id, task))
        for path, (snapshot, parent) in unmet.items():
            dependents = {"dependents": [*parent.dependents, task.task_id]}
            writes.append(Update(path, dependents, if_update_time=snapshot.update_time))
        try:
            await store.commit(writes, together=not unmet)
        except Conflict as conflict:
            owner = await read_owner(store, task)
            if owner.task is not None:
                return Submitted(owner.task, created=conflict.ambiguous and owner.task.task_id == task.task_id)
            if owner.fault is not None and owner.snapshot.id == task.key_id:
                raise InvalidInput(f"{owner.fault}. Correct or delete this document, then submit again") from conflict
            continue
        return Submitted(task, created=True)
    raise StoreUnavailable(
        "the tasks that this task depends on keep changing: nothing was submitted, submit the same objective again"
    )


async def _sent_to_full_queue(board: BoardContext, spec: TaskSpec) -> Task | None:
    """Return None if a count finds room in the role's queue; otherwise the task, if it was submitted before.

    Raises QueueFull if it was not.
    """
    try:
        await _count_room(board, spec.assigned_to)
    except QueueFull:
        earlier = await find_submitted(board, spec)
        if earlier is None:
            raise
        return earlier
    return None


async def find_submitted(board: BoardContext, spec: TaskSpec) -> Task | None:
    """Return the task that does this work, or None if it was not submitted."""
    return (await read_owner(board.store, new_task(_as_stored(board.store, spec), board.clock.now()))).task


async def check_room(board: BoardContext, role: str) -> None:
    """Take a place in a role's queue. Raises QueueFull if as many tasks wait as the settings allow."""
    if not _has_room(board, role):
        await _count_room(board, role)


def _has_room(board: BoardContext, role: str) -> bool:
    """Take a place in a role's queue, if the last count left one or there is no limit."""
    return not board.rules.max_queued or board.rooms.take(role, board.clock.now())


async def _count_room(board: BoardContext, role: str) -> None:
    """Count the tasks that wait for a role, and note how many more may. Raises QueueFull if there is no room."""
    most = board.rules.max_queued
    queued = await board.store.count(queries.queued_tasks(role, most))
    board.rooms.note_room(role, most - queued, board.clock.now())
    if queued >= most:
        raise QueueFull(
            f"{most:,} or more tasks wait for a {role} agent (queue.max_queued): nothing was "
            f"submitted. Start more agents of the role, cancel tasks, or submit it again later"
        )


async def _sent_before(store: Store, task: Task) -> Submitted:
    """Return the task if it was submitted before its deadline.

    Raises InvalidInput if the deadline has passed without a submit.
    """
    owner = await read_owner(store, task)
    if owner.task is None:
        raise InvalidInput(
            f"the deadline, {task.deadline.isoformat()}, has passed: nothing was submitted. Give a later one, in UTC"
        )
    return Submitted(owner.task, created=False)


async def _parents(store: Store, spec: TaskSpec) -> dict[str, tuple[Snapshot, Task]]:
    existing: dict[str, tuple[Snapshot, Task]] = {}
    for snapshot in await store.get_many([task_path(task_id) for task_id in spec.depends_on]):
        if (snapshot.data or {}).get("session_hash") != spec.session_hash:
            raise InvalidInput(
                f"depends_on names {snapshot.id}, but session {spec.session_hash} has no such task: nothing was "
                f"submitted"
            )
        task = parse_task_snapshot(snapshot)
        if task.status is TaskStatus.CANCELED:
            raise InvalidInput(f"depends_on names {snapshot.id}, which is canceled: nothing was submitted")
        existing[snapshot.path] = (snapshot, task)
    return existing


def children_of(
    parent: Task,
    epoch: int,
    planned: Sequence[PlannedTask],
    roles: Collection[str],
    clock: Clock,
    rules: BoardRules,
    known: Mapping[str, Task] = graph.NO_TASKS,
) -> list[Task]:
    """Build the tasks of a plan, linked to each other by id; *known* are earlier ones by key. Writes nothing."""
    ordered = graph.validate(planned, roles, rules.max_graph_tasks, known)
    now = clock.now()
    ended = {key for key, task in known.items() if task.status is TaskStatus.DONE}
    tasks = {item.key: planned_task(parent, epoch, item, now, len(set(item.depends_on) - ended)) for item in ordered}
    ids = {key: task.task_id for key, task in {**known, **tasks}.items()}
    dependents: dict[str, list[str]] = {key: [] for key in ids}
    for item in ordered:
        for needed in item.depends_on:
            dependents[needed].append(ids[item.key])
    return [
        tasks[item.key].model_copy(
            update={
                "depends_on": tuple(ids[key] for key in item.depends_on),
                "dependents": tuple(dependents[item.key]),
            }
        )
        for item in ordered
    ]
