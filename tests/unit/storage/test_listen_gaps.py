"""A listener reads on when gRPC could not parse a message, which it tells by None."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from fireswarm.storage.documents import queries
from fireswarm.storage.firestore import codec
from fireswarm.storage.firestore.channel import Channel
from fireswarm.storage.firestore.listen import listening
from tests.support.patience import PATIENCE_SECONDS
from tests.support.swarm import open_test_swarm

pytestmark = pytest.mark.anyio


class LosingOne:
    """The API of a store, whose first stream loses a message after *kept* others."""

    def __init__(self, api: Any, kept: int) -> None:
        self._api, self._kept = api, kept
        self.opened = 0

    async def listen(self, **given: Any) -> AsyncIterator[Any]:
        self.opened += 1
        return self._messages(await self._api.listen(**given), self.opened == 1)

    async def _messages(self, stream: Any, loses: bool) -> AsyncIterator[Any]:
        number = 0
        async for message in stream:
            yield None if loses and number == self._kept else message
            number += 1


@pytest.mark.parametrize("kept", [0, 1])
async def test_listener_reopens_its_stream_and_misses_no_document(kept: int) -> None:
    async with open_test_swarm() as swarm:
        task = await swarm.submit()
        channel: Channel = swarm.store._channel
        api = LosingOne(channel.api, kept)
        query = codec.structured_query(queries.queued_tasks("scout"))
        losing = Channel(api, channel.database, channel.metadata)
        with anyio.fail_after(PATIENCE_SECONDS):
            async with listening(losing, query, swarm.store.usage) as snapshots:
                seen = list[str]()
                while not seen:
                    seen = [document.id for document in await anext(snapshots)]
        assert seen == [task.task_id]
        assert api.opened == 2
