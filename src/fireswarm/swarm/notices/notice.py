"""A notice: one document for each event and receiver. Its id is made of both, so no event is stored twice."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from pydantic import Field, ValidationError

from fireswarm.contracts.base import Stored, Timestamp, explain_validation
from fireswarm.contracts.limits import truncate
from fireswarm.contracts.ports import Clock, Create, Snapshot, Store
from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from fireswarm.errors import Conflict, InvalidInput
from fireswarm.llm.budget import Limit
from fireswarm.settings.swarm import NoticeKind, ReceiverSettings
from fireswarm.storage.documents.build import plain
from fireswarm.storage.documents.paths import notice_path

KEPT = timedelta(days=30)
MAX_TEXT_CHARS = 500
"""Maximum length of each text of a notice: channels and pagers show a line or two."""

Receivers = Mapping[str, ReceiverSettings]


class NoticeState(StrEnum):
    """State of a delivery."""

    NEW = "new"
    SENT = "sent"
    FAILED = "failed"


class Notice(Stored):
    """One event for one receiver, and its delivery.

    The next attempt is made at ``not_before``; ``error`` is the reason why the last one failed.
    """

    notice_id: str
    receiver: str
    kind: NoticeKind
    role: str
    task_id: str
    session_hash: str
    objective: str = ""
    status: str = ""
    reason: str = ""
    text: str = ""
    asks: tuple[str, ...] = ()
    state: NoticeState = NoticeState.NEW
    attempts: int = Field(default=0, ge=0)
    not_before: Timestamp
    error: str = ""
    created_at: Timestamp
    expires_at: Timestamp | None = None


def notices_of_task(task: Task, receivers: Receivers, now: datetime) -> list[Notice]:
    """Return the notices about the state of a task: that it needs a person, or that its objective has ended."""
    kind = _kind_of(task)
    if kind is None:
        return []
    state = task.status_reason.value if task.status_reason else task.status.value
    happened = f"{task.task_id}/{kind}/{state}/{task.turn}/{task.attempt}/{task.epoch}"
    asks = tuple(truncate(question.description, MAX_TEXT_CHARS) for question in task.questions)
    return _for_receivers(task, kind, receivers, now, happened, text=task.summary, asks=asks)


def _kind_of(task: Task) -> NoticeKind | None:
    if task.status.terminal:
        return NoticeKind.OBJECTIVE_ENDED if task.parent_task_id is None else None
    if not task.needs_person:
        return None
    if task.status_reason is StatusReason.DEAD_LETTER:
        return NoticeKind.DEAD_LETTER
    return NoticeKind.BUDGET_100 if task.status_reason is StatusReason.BUDGET_EXCEEDED else NoticeKind.NEEDS_PERSON


def notices_of_limit(task: Task, limit: Limit, receivers: Receivers, now: datetime) -> list[Notice]:
    """Return the notices that a budget is nearly spent: one for each task, objective or session, and one a day."""
    of_scope = {
        "task": task.task_id,
        "objective": task.trace.chain_id,
        "session": task.session_hash,
        "day": now.date().isoformat(),
    }
    happened = f"{limit.scope}/{of_scope.get(limit.scope, task.task_id)}/{limit.tokens}/{limit.usd}"
    text = f"{round(100 * (1 - limit.left))} % of a budget is spent; left: {limit}"
    return _for_receivers(task, NoticeKind.BUDGET_80, receivers, now, happened, text=text)


def _for_receivers(
    task: Task,
    kind: NoticeKind,
    receivers: Receivers,
    now: datetime,
    happened: str,
    *,
    text: str,
    asks: tuple[str, ...] = (),
) -> list[Notice]:
    return [
        Notice(
            notice_id=str(uuid.uuid5(uuid.NAMESPACE_OID, f"notice/{name}/{happened}")),
            receiver=name,
            kind=kind,
            role=task.assigned_to,
            task_id=task.task_id,
            session_hash=task.session_hash,
            objective=truncate(task.objective, MAX_TEXT_CHARS),
            status=task.status.value,
            reason=task.status_reason.value if task.status is TaskStatus.BLOCKED and task.status_reason else "",
            text=truncate(text, MAX_TEXT_CHARS),
            asks=asks,
            not_before=now,
            created_at=now,
            expires_at=now + KEPT,
        )
        for name, receiver in receivers.items()
        if kind in receiver.on
    ]


async def store_notices(store: Store, notices: Iterable[Notice]) -> None:
    """Store each notice, unless it is stored already."""
    for notice in notices:
        with contextlib.suppress(Conflict):  # this process, another or an earlier one has stored it
            await store.commit([Create(notice_path(notice.notice_id), plain(notice))])


async def report_limit(store: Store, clock: Clock, task: Task, receivers: Receivers, limit: Limit) -> None:
    """Store the notices that a budget of a task is nearly spent."""
    await store_notices(store, notices_of_limit(task, limit, receivers, clock.now()))


def parse_notice(snapshot: Snapshot) -> Notice:
    """Parse a notice. Raises InvalidInput with the faulty field."""
    try:
        return Notice.model_validate(snapshot.data)
    except ValidationError as error:
        raise InvalidInput(f"{snapshot.path} is not a notice: {explain_validation(error)}") from error


def body_of(notice: Notice, receiver: ReceiverSettings) -> dict[str, Any]:
    """Return the JSON that the receiver gets."""
    link = f"{receiver.console.rstrip('/')}/ui/tasks/{notice.task_id}" if receiver.console else ""
    if receiver.format == "slack":
        return {"text": _as_text(notice, link)}
    data: dict[str, Any] = {
        "session": notice.session_hash,
        "role": notice.role,
        "task_id": notice.task_id,
        "objective": notice.objective,
        "status": notice.status,
        "reason": notice.reason,
        "text": notice.text,
        "asks": [*notice.asks],
        "link": link,
    }
    return {
        "type": f"fireswarm.{notice.kind}",
        "timestamp": notice.created_at.isoformat(),
        "data": data,
    }


_TITLES = {
    NoticeKind.NEEDS_PERSON: "A task needs you",
    NoticeKind.DEAD_LETTER: "A task gave up",
    NoticeKind.OBJECTIVE_ENDED: "An objective has ended",
    NoticeKind.BUDGET_80: "A budget is nearly spent",
    NoticeKind.BUDGET_100: "A budget is spent",
}


def _as_text(notice: Notice, link: str) -> str:
    """Return the notice as Slack's text; what models and people wrote cannot mention or link there."""
    state = notice.reason.replace("_", " ") or notice.status
    lines = [f"*{_TITLES[notice.kind]}* ({notice.role}, {state})", notice.objective, notice.text, *notice.asks]
    told = "\n".join(line for line in lines if line)
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        told = told.replace(character, entity)
    return f"{told}\n<{link}|Open the task>" if link else told
