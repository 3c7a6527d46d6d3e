"""Write tests/times.json, by which CI chooses its part of the slow tests, from the report of a run of all tests.

make test-all
.venv/bin/python -m tools.times .tools/tests.xml
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree import ElementTree  # the report is our own

from tests.support.part import (
    MAX_SECONDS,
    MAX_SECONDS_OF_FILE,
    MIN_CASES,
    TIMES,
    file_of_test,
    is_whole,
    name_of_test,
)

DECIMALS = 2


def read_report(report: Path) -> Iterable[tuple[str, float]]:
    """Yield the id and the seconds of each case in a report of the family ``xunit1``."""
    for case in ElementTree.parse(report).iter("testcase"):
        file = case.attrib["file"]
        inner = case.attrib["classname"].removeprefix(file.removesuffix(".py").replace("/", ".")).strip(".")
        yield "::".join(filter(None, (file, inner, case.attrib["name"]))), float(case.attrib["time"])


def find_slow_tests(cases: Iterable[tuple[str, float]]) -> Mapping[str, float]:
    """Return the seconds of a case by test, of those tests of which CI runs a part."""
    by_test: defaultdict[str, list[float]] = defaultdict(list)
    by_file: defaultdict[str, float] = defaultdict(float)
    for name, seconds in cases:
        by_test[name_of_test(name)].append(seconds)
        by_file[file_of_test(name)] += seconds
    files = {file for file, seconds in by_file.items() if seconds > MAX_SECONDS_OF_FILE and not is_whole(file)}
    slow = {
        name: each
        for name, each in by_test.items()
        if file_of_test(name) in files or (len(each) > MIN_CASES and sum(each) > MAX_SECONDS)
    }
    return {name: round(sum(each) / len(each), DECIMALS) for name, each in sorted(slow.items())}


def main() -> None:
    """Read the report that the command line names."""
    found = find_slow_tests(read_report(Path(sys.argv[1])))
    TIMES.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{TIMES}: {len(found)} tests")


if __name__ == "__main__":
    main()
