"""Server-sent events of an objective, or of the session: changes of tasks, and events of runs.

The id of each event is the reader's full position, so any process can continue from a ``Last-Event-ID``: the last
reported task change, and the number of reported events of each run.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fireswarm.api.session import TOO_MANY_STREAMS, ApiSession, caller_of
from fireswarm.client import Swarm
from fireswarm.contracts.ports import Query, Snapshot
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import FireswarmError, InvalidInput
from fireswarm.runs.sinks.run_reader import RunReader
from fireswarm.storage.documents import queries
from fireswarm.storage.documents.paths import RUNS, TASKS
from fireswarm.storage.documents.read import parse_all, parse_task_snapshot
from fireswarm.swarm.records.run_follower import RunFollower

BEAT_SECONDS = 15.0
"""Pause between heartbeat comments: proxies close a connection that is silent for a minute or less."""

FOLLOWED = 100
"""Maximum number of runs and tasks of a session that are followed: the newest."""

ALL = -1
"""In a position: a run has ended and all its events were reported."""

RETRY_MILLISECONDS = 2_000

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class StreamPosition:
    """A reader's position: the time and id of the last task change, and the number of events of each run."""

    changed: datetime | None = None
    task_id: str = ""
    runs: dict[str, int] = field(default_factory=dict[str, int])
    ended: bool = False

    def encode(self) -> str:
        """Return the position as an event's id."""
        at = None if self.changed is None else self.changed.astimezone(UTC).isoformat()
        text = json.dumps([at, self.task_id, self.runs, int(self.ended)], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> StreamPosition:
        """Parse an event's id; raises InvalidInput for an id from elsewhere."""
        try:
            at, task_id, runs, ended = json.loads(base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4)))
            changed = None if at is None else datetime.fromisoformat(at)
            if changed is not None and changed.tzinfo is None:
                raise ValueError("a time without a zone")
            changed = changed and changed.astimezone(UTC)  # at the end of time, an OverflowError
            counts = {str(name): int(count) for name, count in dict(runs).items()}
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError, binascii.Error) as error:
            raise InvalidInput("unknown Last-Event-ID; reconnect without it") from error
        return cls(changed, str(task_id), counts, bool(ended))


def run_key(run_id: str) -> str:
    """Return the short key of a run inside a stream position."""
    return base64.urlsafe_b64encode(hashlib.sha256(run_id.encode()).digest()[:6]).decode()


@dataclass(slots=True)
class StreamFollower:
    """Follows one objective (*chain*), or the session, and emits each event with the position after it."""

    swarm: Swarm
    chain: str | None
    position: StreamPosition
    fresh: bool
    emit: Callable[[str, Mapping[str, Any], str], Awaitable[None]]
    readers: dict[str, RunReader] = field(default_factory=dict[str, RunReader])
    silent: bool = field(init=False)
    runs: RunFollower = field(init=False)

    def __post_init__(self) -> None:
        """Follow the runs of the objective, or the newest of the session."""
        self.silent = self.fresh and self.chain is None
        query = self._query_of(RUNS, "started_at", queries.runs_of)
        self.runs = RunFollower(self.swarm.parts.store, self.swarm.parts.clock, query, self._report)

    async def follow(self) -> None:
        """Emit events until canceled; for one objective, until it has ended and all events are emitted."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.runs.follow)
            await self.runs.started.wait()
            await self._tasks()
            group.cancel_scope.cancel()

    def _query_of(self, collection: str, order: str, of_chain: Callable[[str], Query]) -> Query:
        """Return the query for all of the objective, or for the newest of a session."""
        if self.chain is not None:
            return of_chain(self.chain)
        return queries.newest(collection, order, FOLLOWED, session_hash=self.swarm.session)

    async def _tasks(self) -> None:
        silent = self.fresh and self.chain is None
        async with self.swarm.parts.store.listen(self._query_of(TASKS, "updated_at", queries.chain)) as snapshots:
            async for changed in snapshots:
                tasks, _ = parse_all(changed, parse_task_snapshot)  # their role's sweep blocks the others
                for task in sorted(tasks, key=lambda item: (item.updated_at, item.task_id)):
                    await self._task(task, silent=silent)
                if silent:  # a place without an event: who is cut off before the first one goes on from here
                    await self.emit("", {}, self.position.encode())
                silent = False
                if any(task.task_id == self.chain and task.status.terminal for task in tasks):
                    await self._finish()
                    return

    async def _task(self, task: Task, *, silent: bool) -> None:
        at = self.position
        if at.changed is not None and (task.updated_at, task.task_id) <= (at.changed, at.task_id):
            return
        at.changed, at.task_id = task.updated_at, task.task_id
        if silent:
            return
        payload = {
            "task_id": task.task_id,
            "chain_id": task.trace.chain_id,
            "assigned_to": task.assigned_to,
            "status": task.status.value,
            "status_reason": task.status_reason.value if task.status_reason else None,
            "summary": task.summary,
            "updated_at": task.updated_at,
        }
        await self.emit("task", payload, at.encode())

    async def _finish(self) -> None:
        """Emit the events of the last commit, then the end of the objective."""
        await self.runs.read_once()
        self.position.ended = True
        await self.emit("end", {"chain_id": self.chain}, self.position.encode())

    async def _report(self, runs: Sequence[Snapshot]) -> None:
        for run in runs:
            await self._run(run, silent=self.silent)
        self.silent = False

    async def _run(self, run: Snapshot, *, silent: bool) -> None:
        data, key = run.data or {}, run_key(run.id)
        if data.get("session_hash") != self.swarm.session:
            return
        ended = data.get("ended_at") is not None
        sent = self.position.runs.get(key, 0)
        if sent == ALL or (silent and ended):
            self.position.runs[key] = ALL
            return
        first = run.path not in self.readers
        reader = self.readers.setdefault(run.path, RunReader(self.swarm.parts.store))
        events = await reader.news(run)
        number = 0 if first else sent
        for event in events:
            number += 1
            if number <= sent:
                continue
            self.position.runs[key] = number
            if not silent:
                await self.emit("run", _event_payload(data, number, event), self.position.encode())
        if ended:  # there will be no more events: a client that continues from here need not read it again
            self.position.runs[key] = ALL


def _event_payload(run: Mapping[str, Any], number: int, event: Mapping[str, Any]) -> dict[str, Any]:
    named = {name: run.get(name) for name in ("run_id", "task_id", "chain_id", "role", "agent_id")}
    return {**named, "number": number, "ts": event.get("ts"), "type": event.get("type")} | {
        "payload": event.get("payload") or {}
    }


class EventStream(Response):
    """The response; it ends when the client leaves, the objective has ended, or the server stops."""

    media_type = "text/event-stream"

    def __init__(self, session: ApiSession, chain: str | None, position: StreamPosition | None) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}, media_type=self.media_type)
        del self.headers["content-length"]
        self._session = session
        self._swarm = session.swarm
        self._redactor = session.redactor
        self._stopping = session.stopping
        self._chain = chain
        self._position = position

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the stream ends; respond with a problem if too many streams are open."""
        with self._session.stream_of(caller_of(scope)) as is_counted:
            if is_counted:
                await self._send_events(receive, send)
            else:
                await TOO_MANY_STREAMS.response()(scope, receive, send)

    async def _send_events(self, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        outbox, inbox = anyio.create_memory_object_stream[str](0)
        async with anyio.create_task_group() as group, outbox:
            group.start_soon(self._until_gone, receive, group)
            group.start_soon(self._until_stopped, group)
            group.start_soon(self._beat, outbox.clone())
            group.start_soon(self._follow, outbox.clone(), group)
            async with inbox:
                await _send(send, f"retry: {RETRY_MILLISECONDS}\n\n")
                async for text in inbox:
                    if text:
                        await _send(send, text)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _follow(self, outbox: MemoryObjectSendStream[str], group: TaskGroup) -> None:
        async def emit(kind: str, told: Mapping[str, Any], place: str) -> None:
            await outbox.send(_format_event(kind, self._redactor.value(told), place))

        fresh = self._position is None
        position = self._position or StreamPosition()
        async with outbox:
            try:
                await StreamFollower(self._swarm, self._chain, position, fresh, emit).follow()
            except* FireswarmError as errors:
                logger.warning("an event stream ended: %s", errors.exceptions[0])
            await outbox.send("")  # taken only after the events before it were sent
        group.cancel_scope.cancel()

    async def _beat(self, outbox: MemoryObjectSendStream[str]) -> None:
        async with outbox:
            while True:
                await self._swarm.parts.clock.sleep(BEAT_SECONDS)
                await outbox.send(": beat\n\n")

    async def _until_gone(self, receive: Receive, group: TaskGroup) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        group.cancel_scope.cancel()

    async def _until_stopped(self, group: TaskGroup) -> None:
        await self._stopping.wait()
        group.cancel_scope.cancel()


async def _send(send: Send, text: str) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})


def _format_event(kind: str, told: Any, place: str) -> str:
    mark = f"id: {place}\n"
    if not kind:
        return f"{mark}\n"
    data = json.dumps(told, default=_json, ensure_ascii=False)
    return f"{mark}event: {kind}\ndata: {data}\n\n"


def _json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)
