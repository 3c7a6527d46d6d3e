"""Await foreign code. Its own CancelledError or `sys.exit` fails the call; a cancellation by us ends it as always."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel

from fireswarm.errors import FireswarmError

Failure = Callable[[str], FireswarmError]
"""Makes the error of an explanation: a class of error, for most."""


async def call_foreign[T](call: Callable[[], Awaitable[T]], what: str, failure: Failure) -> T:
    """Await *call* in an asyncio task of its own, so that it can cancel only that.

    Raises *failure*, in whose message *what* names the code, if the call was canceled but no scope around it was, and
    if it called `sys.exit`; else what the call raises. anyio takes such a CancelledError for one of another library: it
    would pass through every scope and end a worker in silence.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    async def run() -> None:
        try:
            results.append(await call())
        except asyncio.CancelledError as error:
            await anyio.lowlevel.checkpoint_if_cancelled()
            errors.append(_explain(error, what, failure))
        except SystemExit as error:
            errors.append(_explain(error, what, failure))
        except BaseException as error:  # must leave the task group unwrapped; raised again below
            errors.append(error)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
    if not errors:
        return results[0]
    try:
        raise errors[0]
    finally:
        errors.clear()  # the error has this frame in its traceback: a cycle


@asynccontextmanager
async def refuse_own_end(what: str, failure: Failure) -> AsyncGenerator[None]:
    """Raise *failure* if foreign code in the block cancels itself or calls `sys.exit`.

    For code that must run in the current task, such as a context manager. It does not notice code that cancels the
    current asyncio task: ``call_foreign`` does.
    """
    try:
        yield
    except asyncio.CancelledError as error:
        await anyio.lowlevel.checkpoint_if_cancelled()
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise _explain(error, what, failure) from error
    except SystemExit as error:
        raise _explain(error, what, failure) from error


def _explain(error: BaseException, what: str, failure: Failure) -> FireswarmError:
    if isinstance(error, SystemExit):
        explained = failure(f"{what} called sys.exit({error.code!r})")
    else:
        explained = failure(f"{what} was canceled by its own code")
    explained.__cause__ = error
    return explained
