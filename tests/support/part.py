"""What CI runs of tests with many slow cases: a part that the printed seed chooses, another one each time.

`make test` runs the part, `make test-all` and pytest by itself run everything. ``SEED`` repeats a choice.
"""

from __future__ import annotations

import json
import os
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

TIMES = Path(__file__).parents[1] / "times.json"
"""Seconds that a case takes on average, by test, of those tests whose cases take longer together than `MAX_SECONDS`.

``tools/times.py`` writes it."""

MAX_SECONDS = 6.0
"""What the cases of one test may take in CI, if these are more than `MIN_CASES`."""

MIN_CASES = 1
_LEFT_OUT = pytest.StashKey[int]()


def seed_of_this_run() -> int:
    """Return the seed, which the processes of one run share; the first call chooses it."""
    return int(os.environ.setdefault("SEED", str(random.SystemRandom().randrange(1, 1_000_000))))


def choose_part(items: Sequence[pytest.Item], times: dict[str, float], seed: int) -> list[pytest.Item]:
    """Return the cases to run, in their order: of a slow test as many as fit into `MAX_SECONDS`, all of the others."""
    cases: defaultdict[str, list[int]] = defaultdict(list)
    for number, item in enumerate(items):
        cases[name_of_test(item.nodeid)].append(number)
    chosen: list[int] = []
    for name, numbers in cases.items():
        most = max(MIN_CASES, int(MAX_SECONDS / times[name])) if name in times else len(numbers)
        chosen += numbers if len(numbers) <= most else random.Random(f"{seed} {name}").sample(numbers, most)
    return [items[number] for number in sorted(chosen)]


def name_of_test(nodeid: str) -> str:
    """Return the name of a test without that of its case."""
    return nodeid.partition("[")[0]


def choose_cases[T](config: pytest.Config, cases: Sequence[T], most: int) -> list[T]:
    """Return *most* of the cases of one test if only the part runs, otherwise all of them."""
    if not config.getoption("part") or len(cases) <= most:
        return list(cases)
    return random.Random(seed_of_this_run()).sample(cases, most)


def known_times() -> dict[str, float]:
    """Return the seconds of a case of each slow test."""
    return json.loads(TIMES.read_text(encoding="utf-8"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of CI."""
    parser.addoption(
        "--part", action="store_true", help="of slow tests with many cases, run the part that SEED chooses"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed before xdist starts its workers, which inherit it."""
    if config.getoption("part"):
        seed_of_this_run()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases that are not of the part, of those that ``-k`` has left."""
    if config.getoption("part"):
        kept = choose_part(items, known_times(), seed_of_this_run())
        config.stash[_LEFT_OUT] = len(items) - len(kept)
        items[:] = kept


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take from a worker of xdist how many cases it left out."""
    node.config.stash[_LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell xdist how many cases this worker left out."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["left_out"] = session.config.stash.get(_LEFT_OUT, 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what did not run, and how to repeat this part."""
    if config.getoption("part"):
        left_out = config.stash.get(_LEFT_OUT, 0)
        terminalreporter.line(
            f"SEED={seed_of_this_run()} chose this part: {left_out:,} cases of slow tests did not run; "
            "`make test-all` runs all"
        )
