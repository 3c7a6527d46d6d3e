"""A newcomer works with documents only, as in the Firebase console: the official client, no command of ours.

A fleet of two role processes runs beside it, on firelite and, if FIRESTORE_EMULATOR_HOST is set, on that emulator.
"""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import anyio
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore_v1 import AsyncClient
from google.cloud.firestore_v1.async_document import AsyncDocumentReference

from tests.support.fleet import lay_out, until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.processes import Processes, reachable

HOST = os.environ.get("FIRESTORE_EMULATOR_HOST")
STORES = [
    None,
    pytest.param(HOST, marks=pytest.mark.skipif(HOST is None, reason="no emulator: `make test-emulator` starts it")),
]
pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("host", STORES, ids=["firelite", "emulator"])]

COUNT = """
from fireswarm.contracts.skills.skill import Question, SkillResult, SkillState

def run(request):
    if request.context.get("ask") and "side" not in request.answers:
        question = Question(name="side", description="Which side?", allowed={"enum": ["north", "south"]})
        return SkillResult(state=SkillState.INPUT_REQUIRED, summary="which side?", questions=(question,))
    if request.context.get("fail"):
        return SkillResult.failure("the disk is full")
    return SkillResult(summary=f"counted {request.answers.get('side', 'all')}")
"""


class Console:
    """Documents of ``agent_tasks``, written and read as a person does in the Firebase console."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client
        self.prefix = uuid.uuid4().hex[:6]

    def at(self, name: str) -> AsyncDocumentReference:
        return self.client.document(f"agent_tasks/{self.prefix}-{name}")

    async def create(self, name: str, **fields: Any) -> None:
        needed = [f"{self.prefix}-{other}" for other in fields.pop("after", ())]
        document = {"assigned_to": "scout", "status": "queued", "objective": name, **fields}
        await self.at(name).set(document | ({"depends_on": needed} if needed else {}))

    async def read(self, name: str) -> dict[str, Any]:
        return (await self.at(name).get()).to_dict() or {}

    async def reaches(self, name: str, **expected: Any) -> dict[str, Any]:
        async def reached() -> bool:
            document = await self.read(name)
            return all(document.get(field) == value for field, value in expected.items())

        try:
            await until(reached, seconds=PATIENCE_SECONDS, every=0.2, what=f"{name} as {expected}")
        except AssertionError as late:
            raise AssertionError(f"{late}; it is {await self.read(name)}") from late
        return await self.read(name)


@asynccontextmanager
async def fleet(root: Path, host: str | None) -> AsyncGenerator[Console]:
    """Two role processes on a store that is served for the test, or on *host*."""
    lay_out(root, {"count": COUNT}, settings={"leases": {"lease_seconds": 5.0}})
    processes = Processes(root, random.Random(1), host, {"scout": 1, "executor": 1})
    address = processes.start()
    try:
        await until(lambda: reachable(address), seconds=30, what="serving the store")
        with mock.patch.dict(os.environ, FIRESTORE_EMULATOR_HOST=address):
            client = AsyncClient(project="chaos", credentials=AnonymousCredentials())
        async with anyio.create_task_group() as group:
            group.start_soon(processes.keep)
            yield Console(client)
            group.cancel_scope.cancel()
    finally:
        processes.end()


async def test_tasks_written_by_hand_are_worked_on_answered_canceled_and_retried(
    tmp_path: Path, host: str | None
) -> None:
    async with fleet(tmp_path, host) as console:
        await console.create("first")
        await console.create("second", after=["first"], assigned_to="executor", priority="9")
        await console.create("asks", context={"ask": True})
        await console.create("after-asks", after=["asks"])
        await console.create("fails", context={"fail": True})
        await console.create("odd", priority=99)
        await console.create("unwanted", after=["asks"])

        second = await console.reaches("second", status="done", summary="counted all")
        assert (second["priority"], second["session_hash"], second["epoch"]) == (9, "console", 1)
        assert second["task_id"] == f"{console.prefix}-second" and second["lease"] is None

        asking = await console.reaches("asks", status="blocked", status_reason="input_required")
        assert asking["questions"][0]["name"] == "side" and asking["summary"] == "which side?"
        waiting = await console.reaches("after-asks", status="blocked", status_reason="dependencies")
        assert waiting["waiting_on"] == 1 and waiting["summary"] == "waits for 1 task"

        await console.reaches("unwanted", status="blocked")
        await console.at("unwanted").update({"status": "canceled"})
        canceled = await console.reaches("unwanted", summary="canceled by hand")
        assert canceled["status"] == "canceled" and "open" not in canceled

        await console.at("asks").update({"answers": {"side": "east"}, "status": "queued"})
        refused = await console.reaches("asks", status="blocked", status_reason="input_required")
        assert "'east' is not one of" in refused["summary"]
        await console.at("asks").update({"answers": {"side": "north"}, "status": "queued"})
        await console.reaches("asks", status="done", summary="counted north")
        await console.reaches("after-asks", status="done")

        odd = await console.reaches("odd", status="blocked", status_reason="dead_letter")
        assert odd["summary"].startswith("set aside") and "priority" in odd["summary"]
        await console.at("odd").update({"priority": 3, "status": "queued"})
        await console.reaches("odd", status="done")

        failed = await console.reaches("fails", status="blocked", status_reason="dead_letter")
        assert failed["error"] == "the disk is full"
        await console.at("fails").update({"context": {"fail": False}, "status": "queued"})
        ended = await console.reaches("fails", status="done", summary="counted all")
        assert ended["epoch"] == 2 and ended["error"] is None
