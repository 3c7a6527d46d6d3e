"""The session that the API serves, as a FastAPI dependency."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, cast

import anyio
from fastapi import Depends, Path, Request

from fireswarm.api.models.base import Id
from fireswarm.client import Swarm
from fireswarm.contracts.ports import Snapshot
from fireswarm.contracts.swarm.task import Task
from fireswarm.errors import NotFound
from fireswarm.redaction import Redactor


@dataclass(frozen=True, slots=True)
class ApiSession:
    """One session of a swarm behind HTTP. ``stopping`` is set when the server shuts down."""

    swarm: Swarm
    redactor: Redactor
    stopping: anyio.Event = field(default_factory=anyio.Event)

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


def _session(request: Request) -> ApiSession:
    return cast("ApiSession", request.app.state.session)


CurrentSession = Annotated[ApiSession, Depends(_session)]
InPath = Annotated[Id, Path(description="id of the resource", examples=["5f0c2f54-61d7-4b4e-9c39-6a6f35d2c7ab"])]
