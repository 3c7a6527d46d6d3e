"""Random long queries while random commits move documents: each answer equals a model's at the answer's own time."""

from __future__ import annotations

import asyncio
import os
import random
from datetime import UTC, datetime
from typing import Any

import pytest
from google.cloud.firestore import DELETE_FIELD, AsyncClient
from google.cloud.firestore_v1.base_query import FieldFilter

from firelite.query import slices

pytestmark = pytest.mark.anyio

DOCUMENTS = 250
QUERIES = 8
SEEDS = range(int(os.environ.get("FIRELITE_SLICE_SEEDS", "2")))
HUNDREDS = 10

type State = dict[str, dict[str, int]]


class Commits:
    """Writes random batches, and the state after each of them under its commit time."""

    def __init__(self, client: AsyncClient, rng: random.Random) -> None:
        self.client = client
        self.rng = rng
        self.state: State = {}
        self.states: list[tuple[Any, State]] = []

    async def fill(self) -> None:
        batch = self.client.batch()
        for number in range(DOCUMENTS):
            self._change(batch, f"{number:03}", {"n": self.rng.randrange(HUNDREDS), "m": self.rng.randrange(100)})
        await self._commit(batch)

    async def move(self) -> None:
        """Change, delete, or create again some documents: most change their places in every index."""
        batch = self.client.batch()
        for number in self.rng.sample(range(DOCUMENTS), self.rng.randrange(1, 20)):
            name = f"{number:03}"
            match self.rng.randrange(5):
                case 0:
                    batch.delete(self.client.document(f"c/{name}"))
                    self.state.pop(name, None)
                case 1 if name in self.state:
                    batch.update(self.client.document(f"c/{name}"), {"m": DELETE_FIELD})
                    self.state[name] = {"n": self.state[name]["n"]}
                case _:
                    self._change(batch, name, {"n": self.rng.randrange(HUNDREDS), "m": self.rng.randrange(100)})
        await self._commit(batch)

    def at(self, time: Any) -> State:
        """Return the state at a time: the client gives a message for a document and a datetime for a sum."""
        if not isinstance(time, datetime):
            time = time.ToDatetime(UTC)
        return next(state for committed, state in reversed(self.states) if committed <= time)

    def _change(self, batch: Any, name: str, fields: dict[str, int]) -> None:
        batch.set(self.client.document(f"c/{name}"), fields)
        self.state[name] = fields

    async def _commit(self, batch: Any) -> None:
        await batch.commit()
        self.states.append((batch.commit_time, dict(self.state)))


class Question:
    """A random query, and its answer by the model."""

    def __init__(self, rng: random.Random) -> None:
        self.least = rng.randrange(HUNDREDS)
        self.descending = rng.random() < 0.5
        self.second = rng.random() < 0.5
        self.offset = rng.choice((0, 0, 7, 90))
        self.limit = rng.choice((None, 5, 60, 200))
        self.group = rng.random() < 0.3

    def query(self, client: AsyncClient) -> Any:
        direction = "DESCENDING" if self.descending else "ASCENDING"
        base = client.collection_group("c") if self.group else client.collection("c")
        query = base.where(filter=FieldFilter("n", ">=", self.least)).order_by("n", direction=direction)
        if self.second:
            query = query.order_by("m", direction=direction)
        query = query.offset(self.offset)
        return query if self.limit is None else query.limit(self.limit)

    def answer(self, state: State) -> list[tuple[str, dict[str, int]]]:
        names = ("n", "m") if self.second else ("n",)
        found = [
            item for item in state.items() if item[1]["n"] >= self.least and all(name in item[1] for name in names)
        ]
        found.sort(key=lambda item: (*(item[1][name] for name in names), item[0]), reverse=self.descending)
        return found[self.offset :][: self.limit]


class Pauses:
    """Holds a query at each of its pauses until one more commit is done, or until no more are coming."""

    def __init__(self) -> None:
        self.commits = asyncio.Semaphore(0)
        self.held = False

    async def pause(self) -> None:
        if self.held:
            await self.commits.acquire()
        else:
            await asyncio.sleep(0)

    def hold(self) -> None:
        self.commits = asyncio.Semaphore(0)
        self.held = True

    def committed(self) -> None:
        self.commits.release()

    def release(self) -> None:
        self.held = False
        self.commits.release()


@pytest.mark.parametrize("seed", SEEDS)
async def test_answer_is_that_of_one_time_while_documents_move(
    lite: AsyncClient, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "SLICE_SECONDS", 0.0)
    monkeypatch.setattr(slices, "STEP_DOCUMENTS", 3)
    monkeypatch.setattr("firelite.storage.versions.SMALL_DOCUMENTS", 0)
    monkeypatch.setattr("firelite.storage.snapshot_scan.STEP_DOCUMENTS", 3)
    rng = random.Random(seed)
    commits = Commits(lite, rng)
    await commits.fill()
    pauses = Pauses()
    monkeypatch.setattr(slices, "pause", pauses.pause)
    raced = 0
    for _ in range(QUERIES):
        question = Question(rng)
        pauses.hold()
        if rng.random() < 0.3:
            sums = question.query(lite).count(alias="count").sum("n", alias="n")
            task = asyncio.ensure_future(sums.get())
        else:
            task = asyncio.ensure_future(question.query(lite).get())
        for _ in range(rng.randrange(1, 60)):
            await commits.move()
            pauses.committed()
            if task.done():
                break
        pauses.release()
        answer = await task
        if answer and isinstance(answer[0], list):
            values = {item.alias: item.value for item in answer[0]}
            expected = question.answer(commits.at(answer[0][0].read_time))
            assert values == {"count": len(expected), "n": sum(fields["n"] for _, fields in expected)}, f"seed {seed}"
        elif answer:
            expected = question.answer(commits.at(answer[0].read_time))
            assert [(found.id, found.to_dict()) for found in answer] == expected, f"seed {seed}"
            raced += expected != question.answer(commits.state)
    assert raced > 1, "no commit changed the answer while a query ran"
