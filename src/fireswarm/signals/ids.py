"""Ids of traces and spans, derived from ids of tasks: processes that never talk to each other agree on them.

The ids are hashes, not the digits of the task's id: samplers need uniform bits, and the digits of a UUID are not.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from fireswarm.contracts.swarm.task import Task


class SpanIds(NamedTuple):
    """Ids of one span: of its trace (128 bits), its own and its parent's (64 bits); a ``parent`` of 0 means a root."""

    trace: int
    span: int
    parent: int = 0


def ids_of_task(task: Task) -> SpanIds:
    """Return the ids of a task's span. The first task of an objective is the root of its trace."""
    chain = task.trace.chain_id
    above = task.parent_task_id or (chain if chain != task.task_id else "")
    return SpanIds(trace_id_of(chain), span_id_of(task.task_id), span_id_of(above) if above else 0)


def ids_of_turn(chain_id: str, task_id: str, run_id: str) -> SpanIds:
    """Return the ids of a turn's span, whose parent is the span of the task."""
    return SpanIds(trace_id_of(chain_id), span_id_of(run_id), span_id_of(task_id))


def trace_id_of(chain_id: str) -> int:
    """Return the id of the trace of an objective, whose first task has the id *chain_id*."""
    return _hash(f"trace/{chain_id}", 16)


def span_id_of(name: str) -> int:
    """Return the id of the span of a task or a run, by its id."""
    return _hash(f"span/{name}", 8)


def _hash(text: str, size: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:size]) or 1  # an id of 0 is invalid
