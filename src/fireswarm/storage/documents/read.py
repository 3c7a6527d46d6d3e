"""Parse documents into contracts. An invalid document is logged and skipped."""

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
    """Parse a task. Raises InvalidInput that names every invalid field."""
    return parse_task(snapshot.data, snapshot.path)


def parse_run_snapshot(snapshot: Snapshot) -> Run:
    """Parse a run. Raises InvalidInput that names every invalid field."""
    try:
        return Run.model_validate(snapshot.data)
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
