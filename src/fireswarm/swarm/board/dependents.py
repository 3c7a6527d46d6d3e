"""Update the tasks that wait for a task: the commit that ends the last dependency queues them, without a scan."""

from __future__ import annotations

from typing import Any

from fireswarm.contracts.ports import SERVER_TIME, Store, Update, Write
from fireswarm.contracts.swarm.task import WAITS_FOR_OTHERS, StatusReason, Task, TaskStatus
from fireswarm.errors import InvalidInput
from fireswarm.storage.documents.paths import task_path
from fireswarm.storage.documents.read import parse_task_snapshot
from fireswarm.swarm.board.by_hand.set_aside import set_aside_write
from fireswarm.swarm.board.state import queued_fields, unleased_fields


async def tell_dependents(store: Store, ended: Task, status: TaskStatus) -> list[Write]:
    """Return the writes that update *ended*'s dependents; each write requires an unchanged dependent.

    Costs one read and one write per dependent; a task without dependents costs nothing.
    """
    writes: list[Write] = []
    for snapshot in await store.get_many([task_path(task_id) for task_id in ended.dependents]):
        if snapshot.data is None:
            continue
        try:
            dependent = parse_task_snapshot(snapshot)
        except InvalidInput as error:  # an unreadable dependent must not stop the ended task from being committed
            if snapshot.data.get("status") == TaskStatus.BLOCKED:
                writes.append(set_aside_write(snapshot, error))
            continue
        if dependent.status is TaskStatus.BLOCKED and dependent.status_reason in WAITS_FOR_OTHERS:
            writes.append(Update(snapshot.path, _after(dependent, ended, status), snapshot.update_time))
    return writes


def _after(dependent: Task, ended: Task, status: TaskStatus) -> dict[str, Any]:
    is_child = ended.task_id in dependent.children
    if status is TaskStatus.CANCELED and not is_child:
        summary = f"depends on task {ended.task_id}, which was canceled: retry runs this one anyway, cancel ends it"
        return unleased_fields(dependent, TaskStatus.BLOCKED, StatusReason.ESCALATED, summary)
    left = max(0, dependent.waiting_on - 1)
    if left:
        return {"waiting_on": left, "updated_at": SERVER_TIME}
    ready = "all its tasks ended, waits for an agent" if is_child else "dependencies met, waits for an agent"
    return queued_fields(dependent, ready) | {"waiting_on": 0}
