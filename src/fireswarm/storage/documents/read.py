"""Parse documents into contracts. An invalid document is logged and skipped."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.ports import DELETE_FIELD, SERVER_TIME, Snapshot
from fireswarm.contracts.swarm.run import RunDocument
from fireswarm.contracts.swarm.task import DEFAULT_PRIORITY, NO_DEADLINE, Task, idempotency_key
from fireswarm.errors import InvalidInput
from fireswarm.storage.documents.build import parse_task

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_log = logging.getLogger(__name__)


def shows(data: Mapping[str, Any] | None, fields: Mapping[str, Any]) -> bool:
    """Return True if a document has *fields*, as a commit of them would have written it.

    Times of the store are not compared.
    """
    stored = data or {}
    written = {name: value for name, value in fields.items() if value is not SERVER_TIME}
    return all(stored.get(name) == (None if value is DELETE_FIELD else value) for name, value in written.items())


HAND_WRITTEN_SESSION = "console"
"""Session of a hand-written task without one."""


def parse_task_snapshot(snapshot: Snapshot) -> Task:
    """Parse a task. Raises InvalidInput with every invalid field, NewerDocument for a document of a newer version.

    The document's id is the task's id, even if the document has another one. Missing fields of a hand-written task are
    derived.
    """
    if snapshot.data is None:
        raise InvalidInput(f"{snapshot.path} does not exist")
    key = _key_or_empty(snapshot.data)  # of what is stored: a person may have edited it
    data = {**snapshot.data, "task_id": snapshot.id, "idempotency_key": key}
    if any(data.get(name) is None for name in REQUIRED):
        data = {**data, **_derived_fields(data, snapshot)}
    return parse_task(data, snapshot.path)


REQUIRED = ("session_hash", "priority", "deadline", "trace", "created_at", "updated_at")
"""Fields of every submitted task that a hand-written one may lack."""


def _derived_fields(data: Mapping[str, Any], snapshot: Snapshot) -> dict[str, Any]:
    """Return values for the missing fields."""
    created = snapshot.create_time or EPOCH
    derived: dict[str, Any] = {
        "session_hash": HAND_WRITTEN_SESSION,
        "priority": DEFAULT_PRIORITY,
        "deadline": NO_DEADLINE,
        "trace": {"chain_id": snapshot.id, "step": 0},
        "created_at": created,
        "updated_at": created,
    }
    return {name: value for name, value in derived.items() if data.get(name) is None}


def _key_or_empty(data: Mapping[str, Any]) -> str:
    """Return the key of the stored work. Invalid content gets an empty key; parsing names the invalid field."""
    try:
        return idempotency_key(data.get("objective") or "", data.get("context") or {}, data.get("fresh_key") or "")
    except (TypeError, ValueError, AttributeError, RecursionError):
        return ""


def parse_run_snapshot(snapshot: Snapshot) -> RunDocument:
    """Parse a run. Raises InvalidInput with every invalid field."""
    try:
        return RunDocument.model_validate(snapshot.data)
    except ValidationError as error:
        raise InvalidInput(f"{snapshot.path} is not a run: {explain_validation(error)}") from error


def parse_all[T](
    snapshots: Iterable[Snapshot], parse: Callable[[Snapshot], T]
) -> tuple[list[T], list[tuple[Snapshot, InvalidInput]]]:
    """Split snapshots into parsed items and (snapshot, error) pairs."""
    items: list[T] = []
    others: list[tuple[Snapshot, InvalidInput]] = []
    for snapshot in snapshots:
        try:
            items.append(parse(snapshot))
        except InvalidInput as error:
            others.append((snapshot, error))
    return items, others


def parse_readable[T](snapshots: Iterable[Snapshot], parse: Callable[[Snapshot], T]) -> list[T]:
    """Return the items that can be parsed, in order; the others are logged with the reason."""
    items, others = parse_all(snapshots, parse)
    for _, error in others:
        _log.warning("skipped: %s", error)
    return items
