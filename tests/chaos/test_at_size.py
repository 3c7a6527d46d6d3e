"""Chaos at size, small, on firelite and on Google's emulator; ``make chaos`` runs 10,000 tasks on firelite."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.chaos.at_size.__main__ import MUST_BE_ZERO, MUST_BE_ZERO_IF_CALM
from tests.chaos.at_size.run import LEASE_SECONDS, Plan, run
from tests.support.processes import INJECTED, SKEWS, skew_library, skewed

HOST = os.environ.get("FIRESTORE_EMULATOR_HOST")
MINUTE = 60.0
pytestmark = pytest.mark.anyio
on_emulator = pytest.mark.skipif(HOST is None, reason="no emulator: `make test-emulator` starts it")


@pytest.mark.skipif(skew_library() is None, reason="no clock can be shifted: install the Debian package faketime")
def test_process_with_a_shifted_clock_sleeps_and_is_off_by_that() -> None:
    library = skew_library()
    assert library is not None
    code = "import time; began = time.monotonic(); time.sleep(0.05); print(time.time(), time.monotonic() - began)"
    env = {**os.environ, **skewed(library, SKEWS[0]), "PYTHONPATH": str(INJECTED)}
    told = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    now, slept = map(float, told.split())
    assert abs(now - time.time()) > MINUTE and slept >= 0.05


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
