"""The strict check names file, line and rule; the packs of this repository pass it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fireswarm.skills.checks.pack import check_file, check_paths
from tests.support.packs import REPOSITORY, SKILLS

GOOD = "---\nname: good\ndescription: does good\n---\n# T\n"


def judged(tmp_path: Path, text: str | bytes, name: str = "good") -> list[tuple[int, str]]:
    path = tmp_path / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return [(fault.line, fault.rule) for fault in check_file(path)]


def header(*lines: str) -> str:
    return "\n".join(["---", "name: good", "description: d", *lines, "---", "# T", ""])


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        (GOOD, []),
        (header("license: MIT", "compatibility: git", "metadata: {a: b}", "allowed-tools: Bash(a, b) Read"), []),
        ("# T\n", [(1, "frontmatter-missing")]),
        ("\n" + GOOD, [(1, "frontmatter-start")]),
        ("---\nname: good\ndescription: d\n", [(1, "frontmatter-unclosed")]),
        ("\ufeff" + GOOD, [(1, "encoding")]),
        (GOOD.encode() + b"\xff", [(6, "encoding")]),
        (GOOD + "\x07", [(6, "encoding")]),
        ("---\nname: good\ndescription: a: b\n---\n", [(3, "frontmatter-yaml")]),
        ("---\n- a\n---\n", [(2, "frontmatter-yaml")]),
        ("---\n---\n", [(2, "description-missing"), (2, "name-missing")]),
        ("---\nmetadata: " + "[" * 300 + "\n---\n", [(2, "frontmatter-yaml")]),
        ("---\nname: 1\ndescription: d\n---\n", [(2, "name-text")]),
        ("---\nname: ''\ndescription: d\n---\n", [(2, "name-folder"), (2, "name-length")]),
        ("---\nname: Good\ndescription: d\n---\n", [(2, "name-folder"), (2, "name-form")]),
        ("---\nname: go--od\ndescription: d\n---\n", [(2, "name-folder"), (2, "name-form")]),
        (f"---\nname: {'a' * 65}\ndescription: d\n---\n", [(2, "name-folder"), (2, "name-length")]),
        ("---\nname: good\ndescription:\n---\n", [(3, "description-text")]),
        ("---\nname: good\ndescription: ''\n---\n", [(3, "description-length")]),
        (f"---\nname: good\ndescription: {'d' * 1025}\n---\n", [(3, "description-length")]),
        (header("license: 3"), [(4, "license-text")]),
        (header(f"compatibility: {'c' * 501}"), [(4, "compatibility-length")]),
        (header("compatibility: [a]"), [(4, "compatibility-text")]),
        (header("metadata: text"), [(4, "metadata-map")]),
        (header("metadata:", "  version: 1.0", "  a: b", "  a: c"), [(5, "metadata-text"), (7, "field-repeated")]),
        (header("allowed-tools: [Read]"), [(4, "allowed-tools-text")]),
        (header("allowed-tools: Read, Write"), [(4, "allowed-tools-text")]),
        (header("tags: a", "license: MIT", "license: MIT"), [(4, "field-unknown"), (6, "field-repeated")]),
        (GOOD + "\nRun `../x.sh`.\n", [(7, "script-outside")]),
        (header("metadata: {entry: ../x.py}"), [(1, "script-outside")]),
    ],
)
def test_violations_of_the_specification_are_reported_by_line_and_rule(
    tmp_path: Path, text: str | bytes, faults: list[tuple[int, str]]
) -> None:
    assert judged(tmp_path, text) == faults


def test_check_accepts_files_skills_and_folders_of_skills(tmp_path: Path) -> None:
    judged(tmp_path, GOOD)
    judged(tmp_path, "# T", "bad")
    assert check_paths([tmp_path / "good" / "SKILL.md", tmp_path / "good"]).faults == ()
    report = check_paths([tmp_path])
    assert report.skills == 2
    assert str(report.faults[0]).startswith(f"{tmp_path / 'bad' / 'SKILL.md'}:1: frontmatter-missing: ")
    (tmp_path / "empty").mkdir()
    assert check_paths([tmp_path / "empty"]).faults[0].rule == "no-skill"
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "skill.md").write_text(GOOD.replace("good", "small"))
    if not (tmp_path / "small" / "SKILL.md").exists():
        assert [fault.rule for fault in check_paths([tmp_path / "small"]).faults] == ["file-name"]
    assert check_file(tmp_path / "none" / "SKILL.md")[0].rule == "unreadable"


ROUTING = REPOSITORY / "benchmarks" / "routing"


def test_shipped_and_benchmark_packs_pass() -> None:
    report = check_paths([SKILLS, ROUTING / "skills", ROUTING / "unseen" / "skills"])
    assert report.skills > 120
    assert report.faults == ()
