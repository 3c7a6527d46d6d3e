"""A task group whose errors are raised as themselves, for code of users: `except NotDone` around it matches."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def task_group() -> AsyncGenerator[TaskGroup]:
    """Yield a task group. Raises the error of the block, or else of the first task that failed, not in a group.

    Further errors are notes of that error. Errors that end a program, such as KeyboardInterrupt, come first.
    """
    block: Exception | None = None
    try:
        async with anyio.create_task_group() as group:
            try:
                yield group
            except Exception as error:  # noted, and raised again
                block = error
                raise
    except BaseExceptionGroup as found:
        errors = [*_leaves(found)]
        ends = [error for error in errors if not isinstance(error, Exception)]
        first = ends[0] if ends else block or errors[0]
        for other in errors:
            if other is not first:
                first.add_note(f"also: {type(other).__name__}: {other}")
        raise first from first.__cause__


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
