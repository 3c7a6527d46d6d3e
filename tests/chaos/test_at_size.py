"""Chaos at size, small, on firelite and on Google's emulator; ``make chaos`` runs 10,000 tasks on firelite."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.chaos.at_size.__main__ import MUST_BE_ZERO, MUST_BE_ZERO_IF_CALM
from tests.chaos.at_size.run import LEASE_SECONDS, Plan, run

HOST = os.environ.get("FIRESTORE_EMULATOR_HOST")
pytestmark = pytest.mark.anyio
on_emulator = pytest.mark.skipif(HOST is None, reason="no emulator: `make test-emulator` starts it")


@pytest.mark.parametrize("calm", [False, True], ids=["broken", "calm"])
@pytest.mark.parametrize("store", ["firelite", pytest.param("emulator", marks=on_emulator)])
async def test_no_task_is_lost_or_done_twice(tmp_path: Path, store: str, calm: bool) -> None:
    host = HOST if store == "emulator" else None
    plan = Plan(
        tasks=60,
        seed=1,
        poison=10,
        replicas=1,
        kill_every_seconds=8.0,
        suspend_every_seconds=1_000.0 if calm else 6.0,  # on a slow machine, a renewal may come too late after one
        lease_seconds=30.0 if calm else LEASE_SECONDS,
        commit_faults=0.05,
        limit_seconds=240,
        host=host,
        calm=calm,
    )
    found = await run(plan, tmp_path)
    print(found)
    names = MUST_BE_ZERO_IF_CALM if calm else MUST_BE_ZERO
    assert {name: found[name] for name in names} == dict.fromkeys(names, 0)
    assert found["failed_commits"] and (calm or found["suspends"])
