"""The task at work, and the receiver of signals, both of the current context: task groups hand them on.

Without a receiver, which is the default, recording does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from datetime import datetime
from typing import NamedTuple, Protocol

from fireswarm.signals.ids import SpanIds, ids_of_turn

AttributeValue = str | int | float | bool | Sequence[str]
Attributes = Mapping[str, AttributeValue]


class CurrentTurn(NamedTuple):
    """The turn at work: ids of its objective's first task, of its task and of its run."""

    chain_id: str
    task_id: str
    run_id: str

    @property
    def ids(self) -> SpanIds:
        """The ids of its span."""
        return ids_of_turn(*self)


class OpenSpan(Protocol):
    """A span that has not ended."""

    def add(self, attributes: Attributes) -> None:
        """Add attributes."""
        ...

    def fail(self, error_type: str, message: str = "") -> None:
        """Mark the operation as failed."""
        ...


class Telemetry(Protocol):
    """Receives spans and measurements. Nothing here waits or raises.

    ``captures_content`` is True if prompts, answers, and inputs and outputs of tools are recorded too. A span without
    *ids* is a child of the current one. ``is_client`` marks a request to another system.
    """

    @property
    def captures_content(self) -> bool:
        """True if content is recorded."""
        ...

    def span(
        self, name: str, attributes: Attributes, *, ids: SpanIds | None = None, is_client: bool = False
    ) -> AbstractContextManager[OpenSpan]:
        """Record a span around a block; an exception marks it as failed."""
        ...

    def report(
        self, name: str, attributes: Attributes, ids: SpanIds, start: datetime, end: datetime, error: str = ""
    ) -> None:
        """Record a span that has ended; *error* is the type of its error."""
        ...

    def measure(self, metric: str, value: float, attributes: Attributes) -> None:
        """Add a value to a histogram of ``signals.metrics``."""
        ...

    def count_claims(self, role: str, claims: Callable[[], tuple[int, int]]) -> None:
        """Export the numbers of claims won and lost of a worker, which *claims* returns."""
        ...


turn_at_work: ContextVar[CurrentTurn | None] = ContextVar("turn_at_work", default=None)
telemetry_in_use: ContextVar[Telemetry | None] = ContextVar("telemetry_in_use", default=None)


def log_fields(project: str) -> dict[str, str]:
    """Return the fields that join a log entry to the trace of the current turn, as Cloud Logging names them.

    *project* is the Google Cloud project of the trace, or "".
    """
    turn = turn_at_work.get()
    if turn is None:
        return {}
    ids = turn.ids
    trace = f"{ids.trace:032x}"
    return {
        "logging.googleapis.com/trace": f"projects/{project}/traces/{trace}" if project else trace,
        "logging.googleapis.com/spanId": f"{ids.span:016x}",
    }
