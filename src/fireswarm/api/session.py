"""The session that the API serves, as a FastAPI dependency."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Generator, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

import anyio
from fastapi import Depends, Path, Request
from fastapi.responses import FileResponse, Response
from starlette.types import Scope

from fireswarm.api.models.base import Id
from fireswarm.api.problems import Refusal
from fireswarm.client import Swarm
from fireswarm.contracts.ports import Snapshot
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import NotFound
from fireswarm.redaction import Redactor
from fireswarm.swarm.records.artifacts import Content

MAX_STREAMS, MAX_STREAMS_OF_CALLER = 250, 100
"""Maximum number of event streams and of requests that wait at once, of all callers and with one token.

With the connections that wait for a request, they stay below the server's MAX_CONNECTIONS: other requests are answered.
"""

TOO_MANY_STREAMS = Refusal(
    429,
    "too_many_streams",
    "too many event streams are open and requests wait: close some, or follow the session with one stream",
    retryable=True,
)

MAX_KEPT = 100
"""Maximum number of things that are kept at once."""


@dataclass(slots=True)
class Kept:
    """Keeps for some seconds what was read, for all who ask meanwhile."""

    _kept: dict[Hashable, tuple[float, Any]] = field(init=False, default_factory=dict[Hashable, tuple[float, Any]])
    _reading: defaultdict[Hashable, anyio.Lock] = field(init=False, default_factory=lambda: defaultdict(anyio.Lock))

    async def remember[T](self, name: Hashable, seconds: float, read: Callable[[], Awaitable[T]]) -> T:
        """Return what *read* gives, or gave within the last *seconds*. Who comes meanwhile waits for the same read.

        What different functions read has different entries, also under the same *name*.
        """
        key = read.__module__, read.__qualname__, name
        async with self._reading[key]:
            now = anyio.current_time()
            if (kept := self._kept.get(key)) is not None and now - kept[0] < seconds:
                return kept[1]
            value = await read()
            self._kept.pop(key, None)
            self._kept[key] = anyio.current_time(), value
        self._drop_oldest()
        return value

    def _drop_oldest(self) -> None:
        """Drop what was read first: there is an entry for each objective that was ever looked at."""
        for name in list(self._kept)[: max(0, len(self._kept) - MAX_KEPT)]:
            del self._kept[name]
        for name in [name for name, lock in self._reading.items() if name not in self._kept and not lock.locked()]:
            del self._reading[name]

    def forget(self) -> None:
        """Read everything anew: something has changed."""
        self._kept.clear()


@dataclass(frozen=True, slots=True)
class ApiSession:
    """One session of a swarm behind HTTP. ``stopping`` is set at shutdown, ``streams`` counts streams by caller."""

    swarm: Swarm
    redactor: Redactor
    kept: Kept = field(default_factory=Kept)
    stopping: anyio.Event = field(default_factory=anyio.Event)
    streams: Counter[str] = field(default_factory=Counter[str])

    @contextlib.contextmanager
    def stream_of(self, caller: str) -> Generator[bool]:
        """Count an event stream of a caller while it lasts. Yields False, and counts nothing, if there are too many."""
        if self.streams[caller] >= MAX_STREAMS_OF_CALLER or self.streams.total() >= MAX_STREAMS:
            yield False
            return
        self.streams[caller] += 1
        try:
            yield True
        finally:
            self.streams[caller] -= 1
            if not self.streams[caller]:
                del self.streams[caller]

    @property
    def session(self) -> str:
        """Hash of the served session."""
        return self.swarm.session

    async def task(self, task_id: str) -> Task:
        """Return a task of the session. Raises NotFound for any other."""
        task = await self.swarm.get(task_id)
        if task.session_hash != self.session:
            raise NotFound(f"there is no task {task_id}: `GET /v1/tasks` lists the tasks")
        return task

    def own_document(self, snapshot: Snapshot, noun: str) -> Snapshot:
        """Return *snapshot* if it is a document of the session. Raises NotFound otherwise."""
        if snapshot.data is None or snapshot.data.get("session_hash") != self.session:
            raise NotFound(f"there is no {noun} {snapshot.id}")
        return snapshot


def caller_of(scope: Scope) -> str:
    """Return a name for the caller of a request: all with one token have the same."""
    return hashlib.sha256(dict(scope["headers"]).get(b"authorization", b"")).hexdigest()


def attachment(content: Content, headers: Mapping[str, str]) -> Response:
    """Return the response with an artifact, which a browser saves. A file is sent piece by piece as it is read."""
    named = {**headers, "Content-Disposition": f'attachment; filename="{content.file_name}"'}
    if content.path is not None:
        return FileResponse(content.path, headers=named, media_type=content.media_type)
    return Response(content.data, media_type=content.media_type, headers=named)


def _session(request: Request) -> ApiSession:
    return cast("ApiSession", request.app.state.session)


CurrentSession = Annotated[ApiSession, Depends(_session)]
InPath = Annotated[Id, Path(description="id of the resource", examples=["5f0c2f54-61d7-4b4e-9c39-6a6f35d2c7ab"])]
