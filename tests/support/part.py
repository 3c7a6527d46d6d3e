"""What CI runs of slow tests: a part that the printed seed chooses, another one each time.

`make test` runs the part, `make test-all` and pytest by itself run everything. ``SEED`` repeats a choice.
"""

from __future__ import annotations

import json
import os
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.measuring import MEASURED

TIMES = Path(__file__).parents[1] / "times.json"
"""Seconds that a case takes on average, by test, in what takes longer than `MAX_SECONDS` or `MAX_SECONDS_OF_FILE`.

``tools/times.py`` writes it. A test that is not in it always runs, such as a new one."""

MAX_SECONDS = 6.0
"""What the cases of one test may take in CI, if these are more than `MIN_CASES`."""

MIN_CASES = 1

MAX_SECONDS_OF_FILE = 12.0
"""What the tests of one file may take in CI, if these are more than one. Files whose coverage is measured run whole."""

_LEFT_OUT = pytest.StashKey[int]()


def seed_of_this_run() -> int:
    """Return the seed, which the processes of one run share; the first call chooses it."""
    return int(os.environ.setdefault("SEED", str(random.SystemRandom().randrange(1, 1_000_000))))


def choose_part(items: Sequence[pytest.Item], times: Mapping[str, float], seed: int) -> list[pytest.Item]:
    """Return what runs, in its order: of a slow test and a slow file as much as fits, of all others everything."""
    tests: defaultdict[str, list[int]] = defaultdict(list)
    files: defaultdict[str, list[int]] = defaultdict(list)
    for number, item in enumerate(items):
        tests[name_of_test(item.nodeid)].append(number)
    for name, numbers in tests.items():
        most = max(MIN_CASES, int(MAX_SECONDS / times[name])) if times.get(name) else len(numbers)
        files[file_of_test(name)] += _choose(numbers, most, f"{seed} {name}")
    chosen: list[int] = []
    for file, numbers in files.items():
        seconds = {number: times.get(name_of_test(items[number].nodeid), 0.0) for number in numbers}
        chosen += numbers if is_whole(file) else _choose_seconds(seconds, f"{seed} {file}")
    return [items[number] for number in sorted(chosen)]


def _choose(numbers: list[int], most: int, seed: str) -> list[int]:
    return numbers if len(numbers) <= most else random.Random(seed).sample(numbers, most)


def _choose_seconds(seconds: dict[int, float], seed: str) -> list[int]:
    """Return at random as many of the numbers as fit into `MAX_SECONDS_OF_FILE`, at least one that takes time."""
    chosen: list[int] = []
    left = MAX_SECONDS_OF_FILE
    for number in random.Random(seed).sample(list(seconds), len(seconds)):
        if not seconds[number] or seconds[number] <= left or left == MAX_SECONDS_OF_FILE:
            chosen.append(number)
            left -= seconds[number]
    return chosen


def is_whole(file: str) -> bool:
    """Return True if all tests of a file run: their coverage is measured."""
    return file.startswith(MEASURED)


def file_of_test(name: str) -> str:
    """Return the file of a test."""
    return name.partition("::")[0]


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
    """Choose the seed before xdist starts its workers, which inherit it; snapshots of other cases are not unused."""
    if config.getoption("part"):
        seed_of_this_run()
        config.option.disable_unused_snapshots = True


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases that are not of the part, of those that ``-k`` has left."""
    if config.getoption("part"):
        kept = choose_part(items, known_times(), seed_of_this_run())
        config.stash[_LEFT_OUT] = len(items) - len(kept)
        items[:] = kept


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take from a worker of xdist how many cases it left out; one that crashed tells nothing."""
    told = getattr(node, "workeroutput", {}).get("left_out", 0)
    node.config.stash[_LEFT_OUT] = max(told, node.config.stash.get(_LEFT_OUT, 0))


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
