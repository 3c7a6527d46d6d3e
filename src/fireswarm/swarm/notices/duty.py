"""A role process's duty: store a notice for each event of its role's tasks, and deliver stored notices.

The store is the journal. A notice is stored before it is sent; before each attempt, the process that makes it moves the
next one on, so that no two processes send at once. A process that is killed after a delivery and before it is noted
sends the notice again, with the same ``webhook-id``, by which receivers leave repetitions out.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from fireswarm.clocks import Bell
from fireswarm.contracts.limits import truncate
from fireswarm.contracts.ports import Query, Snapshot, Update
from fireswarm.contracts.swarm.task import NEEDS_PERSON
from fireswarm.errors import Conflict
from fireswarm.settings.swarm import ReceiverSettings
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import notice_path
from fireswarm.storage.documents.read import parse_all, parse_task_snapshot
from fireswarm.swarm.notices.notice import (
    Notice,
    NoticeState,
    notices_of_task,
    parse_notice,
    store_notices,
)
from fireswarm.swarm.notices.send import NotSent, send
from fireswarm.swarm.parts import SwarmParts

RECENT = timedelta(hours=1)
"""Age of the ended objectives that are told at a start: objectives end only while a process of the role runs."""

LISTENED = 100
"""Number of waiting tasks and ended objectives, the newest, and of undelivered notices, the next due, that are listened
to."""

PAUSES = (5.0, 30.0, 120.0, 600.0, 3600.0, 3600.0, 3600.0)
"""Seconds between attempts; after the last one, the notice is failed."""

AGAIN_SECONDS = 60.0
"""Time after which another process takes over an attempt whose process has died, in addition to its time limit."""

MAX_ERROR_CHARS = 500

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class NoticeDuty:
    """Stores and delivers the notices of one role; without receivers, nothing is read or written."""

    parts: SwarmParts
    role: str
    _due: Bell = field(default_factory=Bell)
    _waiting: dict[str, Snapshot] = field(default_factory=dict[str, Snapshot])

    @property
    def receivers(self) -> Mapping[str, ReceiverSettings]:
        """The receivers of the settings, by name."""
        return self.parts.settings.notify

    async def watch_waiting(self) -> None:
        """Store a notice for each task of the role that waits for a person, until the listener ends."""
        await self._watch(queries.needing_person(self.role, sorted(NEEDS_PERSON), LISTENED))

    async def watch_ended(self) -> None:
        """Store a notice for each objective of the role that ends, until the listener ends."""
        await self._watch(queries.ended_since(self.role, self.parts.clock.now() - RECENT, LISTENED))

    async def _watch(self, query: Query) -> None:
        stored = set[str]()
        async with self.parts.store.listen(query) as batches:
            async for snapshots in batches:
                tasks, _ = parse_all(snapshots, parse_task_snapshot)
                now = self.parts.clock.now()
                found = [notice for task in tasks for notice in notices_of_task(task, self.receivers, now)]
                await store_notices(self.parts.store, (each for each in found if each.notice_id not in stored))
                stored = {notice.notice_id for notice in found}

    async def watch_notices(self) -> None:
        """Follow the notices of the role that are not delivered, until the listener ends."""
        async with self.parts.store.listen(queries.new_notices(self.role, sorted(self.receivers), LISTENED)) as batches:
            async for snapshots in batches:
                self._waiting = {snapshot.path: snapshot for snapshot in snapshots}
                self._due.ring()

    async def deliver(self) -> None:
        """Deliver each notice when it is due, until canceled."""
        while True:
            now = self.parts.clock.now()
            notices, others = parse_all(list(self._waiting.values()), parse_notice)
            for snapshot, fault in others:
                _log.warning("a notice is left out: %s", fault)
                self._waiting.pop(snapshot.path, None)
            for notice in sorted(notices, key=lambda notice: notice.not_before):
                if notice.not_before <= now:
                    await self._attempt(notice)
            later = [(notice.not_before - now).total_seconds() for notice in notices if notice.not_before > now]
            await self._due.heard(self.parts.clock, min(later, default=None))

    async def _attempt(self, notice: Notice) -> None:
        """Make one attempt, unless another process makes it. Raises StoreError, and the notice waits on."""
        snapshot = self._waiting.get(notice_path(notice.notice_id))
        if snapshot is None:  # another process has sent it while this one sent others
            return
        receiver, store, clock = self.receivers[notice.receiver], self.parts.store, self.parts.clock
        until = clock.now() + timedelta(seconds=receiver.timeout_seconds + AGAIN_SECONDS)
        number = notice.attempts + 1
        claimed = False
        with contextlib.suppress(Conflict):  # another process makes it
            await store.commit([Update(snapshot.path, {"attempts": number, "not_before": until}, snapshot.update_time)])
            claimed = True
        if self._waiting.get(snapshot.path) is snapshot:  # the listener may have told the next state already
            del self._waiting[snapshot.path]
        if not claimed:
            return
        changed = await self._send(notice, receiver, number)
        await store.commit([Update(snapshot.path, changed)])

    async def _send(self, notice: Notice, receiver: ReceiverSettings, number: int) -> dict[str, object]:
        """Send a notice and return what changes of its document."""
        try:
            await send(notice, receiver, self.parts.clock.now(), self.parts.settings.root.resolve())
        except NotSent as error:
            reason = truncate(str(error), MAX_ERROR_CHARS)
            _log.warning("notice %s to %s: attempt %d: %s", notice.notice_id, notice.receiver, number, reason)
            if number > len(PAUSES):
                return {"state": NoticeState.FAILED.value, "error": reason}
            return {"not_before": self.parts.clock.now() + timedelta(seconds=PAUSES[number - 1]), "error": reason}
        return {"state": NoticeState.SENT.value, "error": ""}
