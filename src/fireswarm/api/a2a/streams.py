"""Changes of an objective for streams and blocking requests, from the store's listener.

The listener runs in a task of the server: the package reads the first event of a stream in one task and the others in
another one, and a listener has to be closed by the task that opened it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import anyio
from a2a.server.context import ServerCallContext
from a2a.utils.errors import InvalidRequestError
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream
from starlette.requests import Request

from fireswarm.api.session import TOO_MANY_STREAMS, ApiSession, caller_of
from fireswarm.contracts.swarm.task import Task
from fireswarm.swarm.worker.task_groups import task_group

REQUEST = "request"
"""Name of the HTTP request in the state of a call."""

Trees = MemoryObjectSendStream[list[Task]]


@dataclass(frozen=True, slots=True)
class TaskStreams:
    """Follows tasks in *group*, the tasks of the server. ``ApiSession`` counts and ends the streams."""

    service: ApiSession
    group: TaskGroup

    async def follow(self, task: Task, context: ServerCallContext, *, blocking: bool) -> AsyncGenerator[list[Task]]:
        """Yield the tasks of a task's objective now and after each change, until none of them moves by itself.

        Ends when the server stops, and if *blocking*, when the client leaves: the response of a stream notices that by
        itself. Raises InvalidRequestError if too many streams are open, and StoreError.
        """
        request: Request = context.state[REQUEST]
        scope, faults = anyio.CancelScope(), list[Exception]()
        with self.service.stream_of(caller_of(request.scope)) as is_counted:
            if not is_counted:
                raise InvalidRequestError(TOO_MANY_STREAMS.detail)
            send, receive = anyio.create_memory_object_stream[list[Task]](0)
            try:
                self.group.start_soon(self._listen, task, request if blocking else None, send, scope, faults)
                async for tree in receive:
                    yield tree
            finally:
                scope.cancel()
                receive.close()
        if faults:
            raise faults[0]

    async def _listen(
        self, task: Task, request: Request | None, send: Trees, scope: anyio.CancelScope, faults: list[Exception]
    ) -> None:
        """Send the tasks to the stream; its reader raises the *faults*."""
        with scope, send:
            try:
                async with task_group() as group:
                    group.start_soon(self._until_stopped, group)
                    if request is not None:
                        group.start_soon(_until_gone, request, group)
                    async with self.service.swarm.follow(task) as changes:
                        async for tree in changes:
                            await send.send([each for each in tree if each.session_hash == task.session_hash])
                    group.cancel_scope.cancel()
            except Exception as error:  # raised to the reader; here it would end the server
                faults.append(error)

    async def _until_stopped(self, group: TaskGroup) -> None:
        await self.service.stopping.wait()
        group.cancel_scope.cancel()


async def _until_gone(request: Request, group: TaskGroup) -> None:
    """Cancel the group when the client has left. The body of the request has been read before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    group.cancel_scope.cancel()
