"""Tell an open page of changes, as server-sent events: which regions changed, it finds out by itself."""

from __future__ import annotations

import anyio
from anyio.abc import TaskGroup
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fireswarm.api.console.feed import Feed

BEAT_SECONDS = 15.0
"""Pause between comments: proxies close a connection that is silent for a minute or less."""


class LivePage(Response):
    """The stream of one page; it ends when the page is closed or the server stops."""

    media_type = "text/event-stream"

    def __init__(self, feed: Feed, browser: str, stopping: anyio.Event) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}, media_type=self.media_type)
        del self.headers["content-length"]
        self._feed = feed
        self._browser = browser
        self._stopping = stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send an event for each change until the stream ends."""
        if not self._feed.open_page(self._browser):
            await Response("too many open pages", 503)(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._until_gone, receive, group)
                group.start_soon(self._until_stopped, group)
                await self._tell(send)
        finally:
            self._feed.close_page(self._browser)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, send: Send) -> None:
        version = self._feed.version
        await _send(send, "retry: 2000\n\n")
        while True:
            with anyio.move_on_after(BEAT_SECONDS) as silent:
                version = await self._feed.changed_since(version)
            if silent.cancelled_caught:
                await _send(send, ": beat\n\n")
            else:
                await _send(send, f"event: {'away' if self._feed.away else 'changed'}\ndata: {version}\n\n")

    async def _until_gone(self, receive: Receive, group: TaskGroup) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        group.cancel_scope.cancel()

    async def _until_stopped(self, group: TaskGroup) -> None:
        await self._stopping.wait()
        group.cancel_scope.cancel()


async def _send(send: Send, text: str) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
