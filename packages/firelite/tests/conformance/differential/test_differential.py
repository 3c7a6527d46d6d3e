"""Send random requests to firelite and to Google's emulator, and compare the answers.

``FIRELITE_CASES`` sets the number of cases and ``FIRELITE_SEED`` the seed. ``FIRELITE_CASE`` replays one case.
"""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator

import pytest

from conformance.clients import EXTERNAL_HOST
from conformance.differential.backend import Backend
from conformance.differential.cases import Case, make_case
from conformance.differential.comparison import Comparison
from conformance.differential.shrink import reductions
from firelite.database import Database
from firelite.wire.server import Server

pytestmark = pytest.mark.anyio

CASES_DEFAULT = 250
SEED_DEFAULT = 1
REPORTS_MAX = 5
NEEDS_EMULATOR = pytest.mark.skipif(not EXTERNAL_HOST, reason="FIRESTORE_EMULATOR_HOST is not set")


@pytest.fixture
async def comparison() -> AsyncIterator[Comparison]:
    with Database.open(None) as database:
        async with Server(database) as server:
            pair = Comparison(Backend(server.endpoint), Backend(str(EXTERNAL_HOST)))
            yield pair
            await pair.ours.close()
            await pair.theirs.close()


def chosen_cases(seed: int) -> list[Case]:
    """Return the case to replay, or as many as FIRELITE_CASES says."""
    if number := os.environ.get("FIRELITE_CASE"):
        return [make_case(seed, int(number))]
    return [make_case(seed, number) for number in range(int(os.environ.get("FIRELITE_CASES", CASES_DEFAULT)))]


@NEEDS_EMULATOR
@pytest.mark.timeout(0)  # the number of cases decides
async def test_firelite_and_the_emulator_give_the_same_answers(
    comparison: Comparison, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get("FIRELITE_SEED", SEED_DEFAULT))
    reports: list[str] = []
    cases = chosen_cases(seed)
    for case in cases:
        difference = await comparison.first_difference(case.steps)
        if difference is not None:
            replay = f"FIRELITE_SEED={seed} FIRELITE_CASE={case.number} make test-emulator"
            reports.append(f"{replay}\n{await comparison.report(case.steps, difference)}")
            if len(reports) == REPORTS_MAX:
                break
    with capsys.disabled():
        print(
            f"\nseed {seed}, {len(cases)} cases, answers {dict(comparison.answers)}, quirks {dict(comparison.quirks)}"
        )
    assert not reports, "\n\n".join(reports)


def test_same_seed_and_number_make_the_same_case() -> None:
    first, second = make_case(7, 3), make_case(7, 3)
    assert first == second
    assert first != make_case(8, 3)


def test_reductions_of_a_request_lack_one_part_each() -> None:
    case = make_case(1, random.Random(1).randrange(100))
    request = case.steps[0].request
    sizes = [reduction.ByteSize() for reduction in reductions(request)]
    assert sizes
    assert max(sizes) < request.ByteSize()
