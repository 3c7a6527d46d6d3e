"""Documents read back into contracts. One that cannot be read is told, and hides none of the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.ports import Snapshot
from fireswarm.contracts.swarm.run import Run
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import InvalidInput
from fireswarm.storage.documents.build import parse_task

_log = logging.getLogger(__name__)


def parse_task_snapshot(snapshot: Snapshot) -> Task:
    """Read a task; InvalidInput names every field that is wrong."""
    return parse_task(snapshot.data, snapshot.path)


def parse_run_snapshot(snapshot: Snapshot) -> Run:
    """Read a run; InvalidInput names every field that is wrong."""
    try:
        return Run.model_validate(snapshot.data)
    except ValidationError as error:
        raise InvalidInput(f"{snapshot.path} is not a run: {explain_validation(error)}") from error


def parse_all[T](
    snapshots: Iterable[Snapshot], parse: Callable[[Snapshot], T]
) -> tuple[list[T], list[tuple[Snapshot, InvalidInput]]]:
    """Read what can be read, in order; the others come with what is wrong with them."""
    items: list[T] = []
    others: list[tuple[Snapshot, InvalidInput]] = []
    for snapshot in snapshots:
        try:
            items.append(parse(snapshot))
        except InvalidInput as error:
            others.append((snapshot, error))
    return items, others


def parse_readable[T](snapshots: Iterable[Snapshot], parse: Callable[[Snapshot], T]) -> list[T]:
    """Read what can be read, in order; the log names what was left out, and why."""
    items, others = parse_all(snapshots, parse)
    for _, error in others:
        _log.warning("skipped: %s", error)
    return items
