"""CI runs of slow tests a part that the seed chooses, and of all other tests everything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from tools.times import find_slow_tests, read_report

from tests.support import part
from tests.support.part import MAX_SECONDS, MAX_SECONDS_OF_FILE, choose_cases, choose_part, known_times

ROOT = Path(__file__).parents[2]


class Item(NamedTuple):
    nodeid: str


def ids(seed: int, times: dict[str, float], items: list[Item]) -> list[str]:
    chosen: list[Any] = choose_part(items, times, seed)  # pyright: ignore[reportArgumentType]
    return [item.nodeid for item in chosen]


def test_of_a_slow_test_as_many_cases_run_as_fit_and_each_has_its_turn() -> None:
    items = [Item(f"a.py::{name}[{case}]") for name in ("slow", "fast") for case in range(20)]
    times = {"a.py::slow": MAX_SECONDS / 4, "a.py::gone": 1.0}
    runs = [ids(seed, times, items) for seed in range(60)]
    for names in runs:
        assert len(names) == 4 + 20 and names == [item.nodeid for item in items if item.nodeid in names]
    assert runs[7] == ids(7, times, items)
    assert {name for names in runs for name in names} == {item.nodeid for item in items}
    assert len(ids(1, {"a.py::slow": 1_000.0}, items)) == 1 + 20


def test_of_a_slow_file_as_many_tests_run_as_fit_unless_coverage_is_measured_in_it() -> None:
    names = [f"tests/integration/test_x.py::test_{number}" for number in range(20)]
    new = "tests/integration/test_x.py::test_new"
    items = [Item(name) for name in (*names, new)]
    times = dict.fromkeys(names, MAX_SECONDS_OF_FILE / 3)
    runs = [ids(seed, times, items) for seed in range(60)]
    assert all(len(run) == 4 and new in run for run in runs)
    assert {name for run in runs for name in run} == {*names, new}
    assert len(ids(1, dict.fromkeys(names, 1_000.0), items)) == 2, "one that takes too long, and the new one"
    measured = [Item(item.nodeid.replace("integration", "wire")) for item in items]
    times = {name.replace("integration", "wire"): seconds for name, seconds in times.items()}
    assert len(ids(1, times, measured)) == 21


def test_without_the_option_every_case_runs(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEED", "5")
    monkeypatch.setattr(pytestconfig.option, "part", False)
    assert choose_cases(pytestconfig, range(9), 3) == list(range(9))
    monkeypatch.setattr(pytestconfig.option, "part", True)
    chosen = choose_cases(pytestconfig, range(9), 3)
    assert len(set(chosen)) == 3 and choose_cases(pytestconfig, range(9), 3) == chosen


def write_slow_test(folder: Path, body: str) -> None:
    (folder / "test_it.py").write_text(
        f"import pytest\n\n@pytest.mark.parametrize('case', range(9))\ndef test_slow(case, request): {body}\n"
    )
    (folder / "conftest.py").write_text(
        f"from tests.support import part\npart.known_times = lambda: {{'test_it.py::test_slow': {MAX_SECONDS / 3}}}\n"
    )


def run_tests(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "tests.support.part", "-rA", *options]
    search = os.pathsep.join(map(str, (ROOT, ROOT / "packages" / "firelite" / "tests")))
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}  # those of xdist
    environment = {**own, "SEED": "41", "PYTHONPATH": search}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_processes_of_one_run_choose_the_same_part_and_say_how_to_repeat_it(tmp_path: Path) -> None:
    write_slow_test(tmp_path, "pass")
    done = run_tests(tmp_path, "--part")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
    assert "SEED=41 chose this part: 6 cases of slow tests did not run; `make test-all` runs all" in done.stdout


def test_snapshots_of_cases_that_were_left_out_do_not_fail_the_part(tmp_path: Path) -> None:
    write_slow_test(tmp_path, "assert case == request.getfixturevalue('snapshot')")
    written = run_tests(tmp_path, "--snapshot-update")
    assert written.returncode == 0 and "9 snapshots generated" in written.stdout, written.stdout
    done = run_tests(tmp_path, "--part")
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout
    (tmp_path / "test_it.py").write_text((tmp_path / "test_it.py").read_text().replace("range(9)", "range(3)"))
    everything = run_tests(tmp_path)
    assert everything.returncode != 0 and "6 snapshots unused" in everything.stdout, everything.stdout


def test_worker_that_crashed_does_not_hide_what_was_left_out(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytestconfig.option, "part", True)
    monkeypatch.setenv("SEED", "5")
    config: Any = SimpleNamespace(stash=pytest.Stash(), getoption=pytestconfig.getoption)
    part.pytest_testnodedown(SimpleNamespace(config=config, workeroutput={"left_out": 7}))
    part.pytest_testnodedown(SimpleNamespace(config=config))
    lines: list[str] = []
    reporter: Any = SimpleNamespace(line=lines.append)
    part.pytest_terminal_summary(reporter, config)
    assert "7 cases of slow tests did not run" in lines[0]


def test_times_come_from_the_report_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\n@pytest.mark.parametrize('case', range(3))\ndef test_a(case): pass\n\n"
        "class TestB:\n    def test_c(self): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=r.xml"]
    subprocess.run([*command, "-o", "junit_family=xunit1"], cwd=tmp_path, capture_output=True, check=True)
    names = [name for name, _ in read_report(tmp_path / "r.xml")]
    assert names == [*(f"test_it.py::test_a[{case}]" for case in range(3)), "test_it.py::TestB::test_c"]
    seconds = [(name, MAX_SECONDS if "a[" in name else 1.0) for name in names]
    assert find_slow_tests(seconds) == {"test_it.py::test_a": MAX_SECONDS, "test_it.py::TestB::test_c": 1.0}
    assert find_slow_tests((f"tests/wire/{name}", each) for name, each in seconds) == {
        "tests/wire/test_it.py::test_a": MAX_SECONDS
    }


def test_known_times_are_of_tests_that_exist() -> None:
    known = known_times()
    files = {name.partition("::")[0] for name in known}
    assert [file for file in sorted(files) if not (ROOT / file).is_file()] == []
    gone = [
        name for name in known if f"def {name.rpartition('::')[2]}(" not in (ROOT / name.partition("::")[0]).read_text()
    ]
    assert gone == [], f"{part.TIMES.name} names tests that do not exist: `python -m tools.times` writes it"
