"""Disclosure: each stage shows only its part of a skill, within both limits and only from the skill's folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fireswarm.errors import InvalidInput
from fireswarm.skills import disclosure
from fireswarm.skills.disclosure import DisclosureLimits, Spent
from fireswarm.skills.packs.catalog import Skill, load_skill

BODY = """# Title

What it is for.

## When to use

Whenever it rains.

## Steps

Secret of stage two.

### Detail

Deeper.

```
# no heading
```
"""


def make(folder: Path, body: str = BODY, header: str = "") -> Skill:
    (folder / "s" / "references").mkdir(parents=True, exist_ok=True)
    (folder / "s" / "scripts").mkdir(exist_ok=True)
    (folder / "s" / "SKILL.md").write_text(f"---\nname: s\ndescription: does s\n{header}---\n{body}")
    return load_skill(folder / "s" / "SKILL.md")


def test_stage_0_shows_only_name_and_description(tmp_path: Path) -> None:
    shown = disclosure.metadata(make(tmp_path))
    assert (shown.stage, shown.text) == (0, "s: does s")
    assert (shown.files[0].path, shown.files[0].bytes, shown.files[0].tokens) == ("SKILL.md", 9, 3)


def test_stage_1_shows_title_and_summary_and_offers_the_rest(tmp_path: Path) -> None:
    (tmp_path / "s" / "references").mkdir(parents=True)
    (tmp_path / "s" / "references" / "more.md").write_text("More.")
    shown = disclosure.overview(make(tmp_path))
    assert shown.text == "# Title\n\nWhat it is for.\n\n## When to use\n\nWhenever it rains."
    assert shown.offered == ("SKILL.md#Title", "SKILL.md#Steps", "SKILL.md#Detail", "references/more.md")


def test_stage_1_falls_back_to_the_first_section_and_truncates_long_text(tmp_path: Path) -> None:
    assert (
        disclosure.overview(make(tmp_path, "# T\n\n## A\n\nFirst.\n\n## B\n\nSecond.\n")).text
        == "# T\n\n## A\n\nFirst."
    )
    long = disclosure.overview(make(tmp_path, "# T\n\n" + "line of text\n" * 2_000))
    assert long.files[0].truncated
    assert len(long.text) <= disclosure.OVERVIEW_CHARS
    assert long.text.endswith("line of text")


def test_stage_2_shows_only_requested_references(tmp_path: Path) -> None:
    skill = make(tmp_path)
    (skill.folder / "references" / "a.md").write_text("# A\n\nText of A.\n")
    (skill.folder / "references" / "b.md").write_text("Text of B.")
    shown = disclosure.references(skill, ["references/a.md", "SKILL.md#Detail", "./references/a.md#A", "#steps"])
    assert [file.path for file in shown.files] == [
        "references/a.md", "SKILL.md#Detail", "references/a.md#A", "SKILL.md#Steps",
    ]  # fmt: skip
    assert shown.text.startswith("[references/a.md]\n# A\n\nText of A.\n")
    assert "Text of B" not in shown.text
    assert "Whenever it rains" not in shown.text


@pytest.mark.parametrize(
    "asked",
    ["../secret.md", "references/../../secret.md", "/etc/hostname", "~/x", "C:\\x", "references/link.md", "a\0b"],
)
def test_path_outside_the_skill_is_rejected(tmp_path: Path, asked: str) -> None:
    skill = make(tmp_path)
    (tmp_path / "secret.md").write_text("secret")
    (skill.folder / "references" / "link.md").symlink_to(tmp_path / "secret.md")
    shown = disclosure.references(skill, [asked])
    assert (shown.text, shown.files) == ("", ())
    assert shown.refused == ((asked, "it is outside the skill's folder"),)


def test_file_is_found_whatever_the_case_of_its_name(tmp_path: Path) -> None:
    skill = make(tmp_path)
    (skill.folder / "references" / "forms.md").write_text("Text of the form.")
    assert disclosure.file_text(skill, "REFERENCES/FORMS.md") == ("REFERENCES/FORMS.md", "Text of the form.")
    (skill.folder / "references" / "Forms.md").write_text("Another.")
    assert disclosure.file_text(skill, "references/Forms.md")[1] == "Another.", "the exact name comes first"
    with pytest.raises(InvalidInput, match="does not exist"):
        disclosure.file_text(skill, "references/FORMS.md")
    (tmp_path / "secret.md").write_text("secret")
    (skill.folder / "references" / "link.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(InvalidInput, match="outside the skill's folder"):
        disclosure.file_text(skill, "references/LINK.md")


def test_unreadable_reference_is_rejected_with_the_reason(tmp_path: Path) -> None:
    skill = make(tmp_path)
    (skill.folder / "references" / "blob.bin").write_bytes(b"\0\1")
    asked = ["references/none.md", "references", "SKILL.md#Nowhere", "references/blob.bin"]
    reasons = [reason for _, reason in disclosure.references(skill, asked).refused]
    assert reasons == [
        "the file does not exist", "it is a folder: request the files in it", "SKILL.md has no section 'Nowhere'",
        "it is not text",
    ]  # fmt: skip


def test_limits_apply_across_steps_and_truncation_is_noted(tmp_path: Path) -> None:
    skill = make(tmp_path)
    for name in "abc":
        (skill.folder / "references" / f"{name}.md").write_text(f"line of {name}\n" * 20)
    limits = DisclosureLimits(max_reference_bytes=500, max_reference_tokens=100)
    first = disclosure.references(skill, ["references/a.md"], limits)
    spent = Spent().plus(first)
    second = disclosure.references(skill, ["references/b.md", "references/c.md"], limits, spent)
    assert not first.files[0].truncated
    assert second.files[0].truncated
    assert "truncated, 200 characters in total" in second.text
    assert second.text.endswith("line of b")
    assert "limit for references is reached" in second.refused[0][1]
    assert first.tokens + second.tokens <= 100
    assert Spent().plus(disclosure.overview(skill)) == Spent()


@given(st.text(max_size=300), st.integers(0, 300), st.integers(0, 80))
def test_limits_are_never_exceeded(tmp_path_factory: pytest.TempPathFactory, text: str, most: int, tokens: int) -> None:
    skill = make(tmp_path_factory.mktemp("x"))
    (skill.folder / "references" / "r.md").write_text(text, encoding="utf-8", errors="replace", newline="")
    shown = disclosure.references(skill, ["references/r.md"], DisclosureLimits(most, tokens))
    assert shown.bytes <= most
    assert shown.tokens <= tokens
    assert bool(shown.files) != bool(shown.refused)


def test_stage_3_describes_scripts_without_running_them(tmp_path: Path) -> None:
    skill = make(
        tmp_path, header="allowed-tools: Bash(git:*) Read\ncompatibility: needs git\nmetadata: {entry: scripts/a.py}\n"
    )
    assert skill.entry is None
    scripts = skill.folder / "scripts"
    (scripts / "a.py").write_text('#!/usr/bin/env python3\n"""Count\nthe files.\n\nMore."""\nraise SystemExit\n')
    (scripts / "b.sh").write_text("#!/bin/bash -e\n# Deploys it,\n# carefully.\nset -e\n")
    (scripts / "c.js").write_text("/* Draws */\n")
    (scripts / "tool").write_text("#!/usr/bin/perl\n")
    (scripts / "tool").chmod(0o755)
    (scripts / "notes.txt").write_text("no script")
    (scripts / "out.py").symlink_to("/etc/hostname")
    shown = disclosure.scripts(load_skill(skill.path))
    assert shown.offered == ("scripts/a.py", "scripts/b.sh", "scripts/c.js", "scripts/tool")
    assert "- scripts/a.py (python3, 70 bytes): Count the files." in shown.text
    assert "(bash, 49 bytes): Deploys it, carefully." in shown.text
    assert "(node, 12 bytes): Draws" in shown.text
    assert "Allowed tools: Bash(git:*), Read" in shown.text
    assert "Needs: needs git" in shown.text
    assert "Entry: scripts/a.py" in shown.text
    bare = tmp_path / "bare"
    assert "no scripts" in disclosure.scripts(make(bare)).text


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ("Run [it](../x.sh).", 1),
        ("Run `/opt/x.py` or `~/y.sh` or `C:\\z.ps1`.", 3),
        ("```bash\npython3 ../x.py && ./ok.sh\ncat data.csv | bash /opt/y.sh\n```", 2),
        ("Use `scripts/a.py`, [b](scripts/b.sh), `/path/to/x.py`, `$HOME/x.sh`, <https://x.org/a.sh>.", 0),
        ("```\nopen('/data/x.py')\nls ../other\n```", 0),
        ("See [the guide](../guide.md).", 0),
        ("`<folder>/../../x.sh`", 1),
    ],
)
def test_scripts_outside_block_a_skill_unless_only_warnings_are_requested(
    tmp_path: Path, body: str, faults: int
) -> None:
    skill = make(tmp_path, body)
    assert len(disclosure.provenance(skill)) == faults == len(skill.outside)
    for shown in (disclosure.overview(skill), disclosure.references(skill, ["#x"]), disclosure.scripts(skill)):
        assert (shown.text == "") == (faults > 0 or shown.stage == 2)
    assert disclosure.overview(skill, block_outside=False).text
    assert disclosure.metadata(skill).text


def test_script_that_links_outside_blocks_the_skill(tmp_path: Path) -> None:
    skill = make(tmp_path, "Run `scripts/x.sh`.")
    (tmp_path / "x.sh").write_text("echo")
    (skill.folder / "scripts" / "x.sh").symlink_to(tmp_path / "x.sh")
    assert disclosure.provenance(skill) == ("line 5: the script scripts/x.sh is outside the skill's folder",)
    skill.path.unlink()
    assert disclosure.overview(skill).refused[0][1].startswith("it cannot be read")
