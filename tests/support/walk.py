"""Models of a fleet for the screens of the console: one acts, plans and answers, and one fails until it is mended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Generator, Mapping
from typing import Any

from tests.support.fleet import TRUSTS
from tests.support.providers import FakeProviders, Received, Reply

VARIABLES = {"ANTHROPIC_API_KEY": "sk-test", TRUSTS: "true"}
"""Environment of a fleet that asks these models."""

LOG = "echo walked >> steps.log"
MENDED = threading.Event()
"""Until it is set, the model of the task to mend refuses its requests."""


def answer(request: Received) -> Reply:
    """Answer as the model of every role: the architect acts, then plans, then ends; others only answer."""
    text = json.dumps(request.body["messages"])
    if "mend it" in text and not MENDED.is_set():
        return Reply(status=400, message="the part is missing")
    if "# Task\\nplan the walk" not in json.dumps(request.body["messages"][0]):
        return Reply("looked at it")
    if "is a fork" in text:
        return Reply("the fork took another way")
    if "looked at it" in text:
        return Reply("walked")
    if not request.answers:
        return Reply(calls=(("run_command", {"command": LOG}),))
    if request.answers == 1:
        part = {"key": "a", "assigned_to": "scout", "objective": "a part of the walk"}
        return Reply(calls=(("finish", {"answer": "a plan", "result": {"tasks": [part]}}),))
    return Reply("walked")


@contextlib.contextmanager
def serving_models(answers: Callable[[Received], Reply] = answer) -> Generator[str]:
    """Serve the models in a thread, since the browser's driver has this one; yields the address."""
    ready, started = threading.Event(), list[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]]()

    async def serve() -> None:
        async with FakeProviders(answers).serving() as server:
            started.append((server.url, asyncio.get_running_loop(), asyncio.Event()))
            ready.set()
            await started[0][2].wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(30)
    url, loop, ended = started[0]
    try:
        yield url
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(30)


def walk_settings(url: str) -> Mapping[str, Any]:
    """Return the settings of a fleet that asks the models at *url*, and a person before it echoes."""
    return {
        "worker": {"drain_seconds": 1},
        "leases": {"lease_seconds": 4, "backoff_base_seconds": 0.05},
        "model": {"provider": "anthropic", "providers": {"anthropic": {"base_url": url}}},
        "permissions": {"ask": ["Bash(echo:*)"]},
    }
