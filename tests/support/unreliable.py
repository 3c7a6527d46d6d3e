"""An API that fails on purpose: before a commit is applied, after it was with the answer lost, or before a late one."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import anyio

from tests.support.swarm import SwarmRig


class Unreliable:
    """Stands between the adapter and the API: some attempts fail, before or after they were applied."""

    def __init__(self, api: Any, faults: list[tuple[str, Exception]]) -> None:
        self._api = api
        self._faults = faults
        self._late: list[dict[str, Any]] = []
        self.attempts = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def commit(self, **request: Any) -> Any:
        self.attempts += 1
        when, error = self._faults.pop(0) if self._faults else ("never", None)
        if when == "late":
            self._late.append(request)
        if when in ("before", "late"):
            raise error or AssertionError
        response = await self._api.commit(**request)
        if when == "after":
            raise error or AssertionError
        return response

    def recover(self) -> None:
        """Fail no more."""
        self._faults.clear()

    async def apply_late(self) -> None:
        """Apply the first of the commits that ended without an answer; the others then fail their preconditions."""
        await self._api.commit(**self._late[0])


def unreliable(swarm: SwarmRig, *faults: tuple[str, Exception]) -> Unreliable:
    store = swarm.store
    api = Unreliable(store._channel.api, list(faults))
    store._channel = type(store._channel)(api, store._channel.database, store._channel.metadata)
    return api


@contextlib.asynccontextmanager
async def time_flows(swarm: SwarmRig) -> AsyncGenerator[None]:
    """Let virtual time pass in small steps while the block runs, so that pauses between attempts end."""

    async def flow() -> None:
        while True:
            await swarm.clock.advance(0.05)

    async with anyio.create_task_group() as group:
        group.start_soon(flow)
        yield
        group.cancel_scope.cancel()
