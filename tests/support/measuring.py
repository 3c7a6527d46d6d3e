"""Branch coverage of the core, measured in the tests that aim at it and nowhere else."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Generator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

from coverage import Coverage

CORE = (
    *("firelite", "fireswarm.swarm.board", "fireswarm.swarm.records", "fireswarm.swarm.worker"),
    *("fireswarm.mind", "fireswarm.capabilities", "fireswarm.llm", "fireswarm.processes"),
)
MEASURED = (
    "packages/firelite/tests",
    "tests/fundamentals",
    "tests/unit/capabilities",
    "tests/unit/llm",
    "tests/unit/mind",
    "tests/unit/processes",
    "tests/unit/skills/test_confined_skill.py",
    "tests/unit/storage",
    "tests/unit/swarm",
    "tests/wire",
    "tests/chaos/test_poison_documents.py",
    "tests/integration/test_answers_by_hand.py",
    "tests/integration/test_answers_by_mail.py",
    "tests/integration/test_bad_documents.py",
    "tests/integration/test_budgets.py",
    "tests/integration/test_talking.py",
    "tests/integration/test_team_board.py",
    "tests/integration/test_team_faults.py",
    "tests/integration/test_time.py",
    "tests/integration/test_upkeep.py",
    "tests/integration/test_work_by_mail.py",
    "tests/integration/test_worker.py",
    "tests/integration/test_worker_faults.py",
)
"""Tests whose branch coverage counts: the others do not aim at the core, and tracing doubles the time of a test.

Children of the tests in tests/unit/processes measure themselves."""

REPEATING = (
    "packages/firelite/tests/unit/test_query_model.py",
    "packages/firelite/tests/unit/test_watch_model.py",
    "tests/fundamentals/test_big_fans.py",
)
"""Tests among them that run the same code thousands of times, and those of firelite over gRPC: not measured either."""

MAX_CASES = 6
"""Cases of one test that each process measures, one for each provider: further ones mostly run the same branches."""


def import_core() -> None:
    """Import the core while coverage is measured: afterwards the lines that run at import are not seen."""
    if Coverage.current() is None:
        return
    for name in CORE:
        for module in walk_packages(import_module(name).__path__, f"{name}."):
            import_module(module.name)


class Measuring:
    """Stops what pytest-cov started, and starts it for the tests that are measured.

    pytest-cov's marker ``no_cover`` does not do this: it stops the measurement that a worker of xdist started last,
    and coverage then resumes an earlier one of the same worker, whose data are not kept.
    """

    def __init__(self, root: Path) -> None:
        self._measured = tuple(root / name for name in MEASURED)
        self._repeating = {root / name for name in REPEATING}
        self._known: dict[Path, bool] = {}  # by file: comparing paths takes seconds for all tests
        self._cases: Counter[tuple[Path, str]] = Counter()
        self._coverage: Coverage | None = None
        while (running := Coverage.current()) is not None:
            running.stop()
            self._coverage = self._coverage or running

    @contextlib.contextmanager
    def of(self, path: Path, name: str) -> Generator[None]:
        """Measure the test *name* of the file *path* if it counts."""
        if self._coverage is None or "[grpc" in name or not self._counts(path, name.partition("[")[0]):
            yield
            return
        self._coverage.start()
        try:
            yield
        finally:
            self._coverage.stop()

    def _counts(self, path: Path, test: str) -> bool:
        if path not in self._known:
            of_the_core = any(path.is_relative_to(place) for place in self._measured)
            self._known[path] = of_the_core and path not in self._repeating
        self._cases[path, test] += 1
        return self._known[path] and self._cases[path, test] <= MAX_CASES
