"""Requests that wait for a task: for its end or a question, or for any change."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Generator
from typing import Annotated

from fastapi import Query, Request, Response

from fireswarm.api.problems import Refused
from fireswarm.api.reading.entity_tags import TagCondition, hash_content
from fireswarm.api.session import TOO_MANY_STREAMS, ApiSession, caller_of
from fireswarm.contracts.swarm.task import AnyTask, id_of
from fireswarm.storage.documents import queries
from fireswarm.swarm.worker.task_groups import task_group

MAX_WAIT_SECONDS = 60
"""Longest wait of a request: proxies end a request without an answer after one or a few minutes."""

Wait = Annotated[
    float,
    Query(
        ge=0,
        le=MAX_WAIT_SECONDS,
        allow_inf_nan=False,
        description="longest wait in seconds, until the task has ended or needs a person; 0 answers at once",
        examples=[30],
    ),
]


@contextlib.contextmanager
def waiting(given: ApiSession, request: Request, seconds: float) -> Generator[None]:
    """Count a request that may wait as one of its caller's streams. Raises Refused with 429 if there are too many."""
    if not seconds:
        yield
        return
    with given.stream_of(caller_of(request.scope)) as is_counted:
        if not is_counted:
            raise Refused(TOO_MANY_STREAMS)
        yield


async def wait_for_end(given: ApiSession, request: Request, task: AnyTask, seconds: float) -> None:
    """Wait until a task has ended or needs a person, as ``Swarm.wait`` does, for at most *seconds*."""

    async def follow() -> None:
        async with given.swarm.follow(task) as changes:
            async for _ in changes:
                pass

    await _wait(given, request, seconds, follow)


async def wait_for_change(
    given: ApiSession, request: Request, task: AnyTask, seconds: float, render: Callable[[], Awaitable[Response]]
) -> None:
    """Wait until the response that *render* makes has a tag that ``If-None-Match`` does not name."""
    condition = TagCondition.parse(request.headers.getlist("if-none-match"))

    async def follow() -> None:
        async with given.swarm.parts.store.listen(queries.one_task(id_of(task))) as batches:
            async for _ in batches:
                if not condition.matches_weakly(hash_content(bytes((await render()).body))):
                    return

    await _wait(given, request, seconds, follow)


async def _wait(given: ApiSession, request: Request, seconds: float, follow: Callable[[], Awaitable[None]]) -> None:
    """Run *follow* until it returns, the time is over, the client leaves, or the server stops."""
    async with task_group() as group:

        async def stop_after(end: Callable[[], Awaitable[object]]) -> None:
            await end()
            group.cancel_scope.cancel()

        group.start_soon(stop_after, lambda: given.swarm.parts.clock.sleep(seconds))
        group.start_soon(stop_after, given.stopping.wait)
        group.start_soon(stop_after, lambda: _wait_until_gone(request))
        await follow()
        group.cancel_scope.cancel()


async def _wait_until_gone(request: Request) -> None:
    """Return when the client has left. The body of the request has been read before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
