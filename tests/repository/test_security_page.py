"""docs/explanation/security.md: each threat names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "security.md"


def test_every_threat_names_tests_that_exist() -> None:
    named = re.findall(r"`((?:packages/firelite/)?tests/[^`:]+)(?:::(\w+))?`", PAGE.read_text())
    assert len(named) > 20
    for file, test in named:
        assert f"def {test or 'test_'}" in (ROOT / file).read_text(), f"{file} has no test {test}"


def test_every_threat_has_a_test() -> None:
    section = PAGE.read_text().partition("## Threats")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    assert rows and all("`tests/" in row for row in rows)
