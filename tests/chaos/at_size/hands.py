"""What people do to the documents of a running swarm: edit tasks, delete tasks that others wait for, try again."""

from __future__ import annotations

import contextlib
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup
from google.api_core.exceptions import GoogleAPICallError, RetryError
from google.cloud.firestore_v1 import AsyncClient, async_transactional

from fireswarm.contracts.ports import Query, Snapshot
from fireswarm.contracts.swarm.task import GIVEN_UP
from fireswarm.errors import FireswarmError, StoreError
from fireswarm.swarm.parts import SwarmParts

MOST_SECONDS = 2.0
"""Longest pause between the creation of a task and its change: agents may have claimed or finished it meanwhile."""


class Hands:
    """Changes tasks in the background. ``words`` is the context that each edited task must be executed with.

    ``deleted`` counts the tasks that are gone, ``told`` those that a person was told about and tried again.
    """

    def __init__(self, swarm: SwarmParts, client: AsyncClient, session: str, rng: random.Random) -> None:
        self.swarm = swarm
        self.client = client
        self.rng = rng
        self.words: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self._session = session

    async def surely(self, act: Callable[[], Awaitable[Any]]) -> Any:
        """Repeat *act* while the store cannot be reached."""
        while True:
            with contextlib.suppress(StoreError, GoogleAPICallError, RetryError, ValueError):
                return await act()
            self.counts["repeated_by_hand"] += 1
            await anyio.sleep(0.3)  # how long a person waits before the next attempt

    def edit_later(self, group: TaskGroup, task_id: str, word: str) -> None:
        """Change the word in the context of the task, unless it is done by then."""
        group.start_soon(self._later, partial(self._change, task_id, {"context.word": word}, word), self._pause())

    def delete_later(self, group: TaskGroup, task_id: str) -> None:
        """Delete the task, unless it is done by then."""
        group.start_soon(self._later, partial(self._change, task_id, None, ""), self._pause())

    def _pause(self) -> float:
        return self.rng.uniform(0, MOST_SECONDS)

    async def _later(self, act: Callable[[], Awaitable[Any]], seconds: float) -> None:
        await anyio.sleep(seconds)  # when a person happens to do it
        await self.surely(act)

    async def _change(self, task_id: str, fields: Mapping[str, Any] | None, word: str) -> None:
        reference = self.client.document(f"agent_tasks/{task_id}")
        transaction = self.client.transaction()

        @async_transactional
        async def change(transaction: Any) -> bool:
            found = await reference.get(transaction=transaction)
            if not found.exists or found.get("status") == "done":
                return found.exists is False
            if fields is None:
                transaction.delete(reference)
            else:
                transaction.update(reference, dict(fields))
            return True

        if not await change(transaction):
            self.counts["too_late"] += 1
        elif fields is None:
            self.counts["deleted"] += 1
        else:
            self.words[task_id] = word
            self.counts["edited"] += 1

    async def try_again(self) -> None:
        """Retry, as an operator who reads the reasons would, each task that was given up; until canceled."""
        query = Query(
            "agent_tasks", where=(("session_hash", "==", self._session), ("status", "==", "blocked")), limit=500
        )
        while True:
            await anyio.sleep(1.0)  # how often the operator looks
            with contextlib.suppress(StoreError):
                for task in await self.swarm.store.query(query):
                    if (task.data or {}).get("status_reason") in GIVEN_UP:
                        await self._retry(task)

    async def _retry(self, task: Snapshot) -> None:
        with contextlib.suppress(FireswarmError):
            await self.swarm.board.retry(task.id)
            self.counts["retried"] += 1
            print(task.path, (task.data or {}).get("summary"), file=sys.stderr)
