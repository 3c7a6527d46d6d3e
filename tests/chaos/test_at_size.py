"""Chaos at size, small, on firelite and on Google's emulator; ``make chaos`` runs 10,000 tasks on firelite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.chaos.at_size.__main__ import MUST_BE_ZERO
from tests.chaos.at_size.run import Plan, run

HOST = os.environ.get("FIRESTORE_EMULATOR_HOST")
pytestmark = pytest.mark.anyio
on_emulator = pytest.mark.skipif(HOST is None, reason="no emulator: `make test-emulator` starts it")


@pytest.mark.parametrize("store", ["firelite", pytest.param("emulator", marks=on_emulator)])
async def test_no_task_is_lost_or_done_twice(tmp_path: Path, store: str) -> None:
    host = HOST if store == "emulator" else None
    plan = Plan(tasks=60, seed=1, poison=10, replicas=1, kill_every_seconds=8.0, limit_seconds=240, host=host)
    found = await run(plan, tmp_path)
    print(found)
    assert {name: found[name] for name in MUST_BE_ZERO} == dict.fromkeys(MUST_BE_ZERO, 0)
