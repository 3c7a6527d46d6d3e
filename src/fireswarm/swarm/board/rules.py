"""Limits of the task board, and the context of its state changes."""

from __future__ import annotations

import logging
import random
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from fireswarm.contracts.ports import Clock, Snapshot, Store
from fireswarm.errors import NotFound

_log = logging.getLogger(__name__)

COUNT_SERVES_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class BoardRules:
    """Rules of the board: times in seconds, sizes in documents."""

    lease_seconds: float = 60.0
    """Lifetime of a lease without renewal.

    A worker renews it every third of that time. The lease must be longer than any pause of a healthy process, such as
    garbage collection. The tasks of a suspended laptop count as lost.
    """

    backoff_base_seconds: float = 1.0
    backoff_max_seconds: float = 300.0

    max_graph_tasks: int = 400
    """Maximum number of tasks in one plan.

    With envelopes, dependents and the run, this keeps a settle commit well under Firestore's 10 MiB request limit.
    """

    claim_window: int = 20
    """Maximum number of tasks claimed in one round; each costs one billed read."""

    sweep_batch: int = 50
    settle_attempts: int = 8
    """Maximum attempts to commit a state change; each one after the first follows a write conflict."""

    max_setbacks: int = 20
    """Number of failures of one task that cost no attempt, since its turn had finished a step.

    Without a limit, a turn that finishes one step and then fails would be repeated for ever. The sum with
    ``max_attempts`` must stay below the number of runs that a journal reads (`EPOCHS_REPLAYED`).
    """

    aging_seconds: float = 600.0
    """Age at which a queued task is also claimed by age, whatever its priority."""

    max_queued: int = 10_000
    """Number of queued tasks of a role at which a submit is refused; 0: no limit.

    The tasks of a plan are always created.
    """

    message_ttl_seconds: float = 7 * 24 * 3600.0
    """Lifetime of a stop message."""

    @property
    def renew_every_seconds(self) -> float:
        """A third of the lease: it survives two failed renewals."""
        return self.lease_seconds / 3

    def backoff_seconds(self, attempt: int, rng: random.Random) -> float:
        """Pause before retry number *attempt* (from 1): exponential up to a cap, times a random factor of 0.5 to 1."""
        ceiling = min(self.backoff_max_seconds, self.backoff_base_seconds * 2 ** (attempt - 1))
        return ceiling * rng.uniform(0.5, 1.0)


@dataclass(slots=True)
class SetAside:
    """Documents that this process set aside: their number, and the last one with its reason.

    ``left_alone`` are documents of a newer version, which it does not change, by path, with their update times.
    """

    count: int = 0
    last: str = ""
    left_alone: dict[str, Any] = field(default_factory=dict[str, Any])

    def leave(self, snapshot: Snapshot, error: Exception) -> None:
        """Note a document that is left as it is; each version of it is logged once."""
        if not self.leaves(snapshot):
            self.left_alone[snapshot.path] = snapshot.update_time
            _log.warning("left alone: %s", error)

    def leaves(self, snapshot: Snapshot) -> bool:
        """Return True if this version of the document is left as it is."""
        return self.left_alone.get(snapshot.path, self) == snapshot.update_time

    def add(self, path: str, error: Exception) -> None:
        """Count one document."""
        self.count += 1
        self.last = f"{path}: {error}"


@dataclass(slots=True)
class QueueRoom:
    """How many tasks this process may still submit for each role before it counts the role's queue again.

    A count, which costs one read for each 1,000 queued tasks, serves an eighth of the room that it found, and ten
    seconds: other processes submit too. Eight of them at once exceed the limit by less than the room.
    """

    left: dict[str, tuple[int, datetime]] = field(default_factory=dict[str, tuple[int, datetime]])

    def take(self, role: str, now: datetime) -> bool:
        """Use up the room of one task; False if the queue has to be counted."""
        room, until = self.left.get(role, (0, now))
        if room <= 0 or now >= until:
            return False
        self.left[role] = room - 1, until
        return True

    def note_room(self, role: str, room: int, now: datetime) -> None:
        """Note the *room* that a count found."""
        self.left[role] = room // 8, now + timedelta(seconds=COUNT_SERVES_SECONDS)


@dataclass(frozen=True, slots=True)
class BoardContext:
    """Context of every state change. *roles* are the roles of this swarm; a plan may use only these."""

    store: Store
    clock: Clock
    roles: Collection[str]
    rules: BoardRules = BoardRules()
    rng: random.Random = field(default_factory=random.Random)
    aside: SetAside = field(default_factory=SetAside)
    rooms: QueueRoom = field(default_factory=QueueRoom)

    def check_role(self, role: str) -> None:
        """Raise NotFound for a role that this swarm does not have."""
        if role not in self.roles:
            raise NotFound(
                f"there is no role {role!r}; this swarm has {', '.join(sorted(self.roles))}. Add "
                f"roles/{role}/ROLE.md to create it."
            )
