"""Decision records follow one template and are listed in their index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "adr"
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))
HEADINGS = ["Context", "Decision", "Cost", "Date", "Status"]
STATUSES = ("Proposed", "Accepted", "Rejected", "Superseded by ")


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_record_follows_the_template(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.match(rf"# {path.stem[:3]}: \S", text)
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))
    assert list(sections) == HEADINGS
    assert all(sections.values())
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", sections["Date"])
    assert sections["Status"].startswith(STATUSES)


def test_numbers_are_consecutive_and_the_index_lists_every_record() -> None:
    assert [path.name[:3] for path in RECORDS] == [f"{number:03}" for number in range(1, len(RECORDS) + 1)]
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[\d+\]\(([\w.-]+)\)", index, re.MULTILINE) == [path.name for path in RECORDS]
