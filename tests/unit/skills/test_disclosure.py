"""Disclosure: each stage shows only its part of a skill, within both limits and only from the skill's folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from fireswarm.errors import InvalidInput
from fireswarm.skills import disclosure
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


def test_stage_1_shows_all_of_a_skill_with_its_folder_and_files(tmp_path: Path) -> None:
    (tmp_path / "s" / "references").mkdir(parents=True)
    (tmp_path / "s" / "references" / "more.md").write_text("More.")
    skill = make(tmp_path, header="allowed-tools: Read\ncompatibility: needs git\n")
    shown = disclosure.whole(skill)
    assert shown.text.endswith(BODY.strip())
    for line in (str(skill.folder), "Files: references/more.md", "only these tools: Read", "It needs: needs git"):
        assert line in shown.text
    assert shown.offered == ("references/more.md",)


def test_stage_2_shows_only_requested_files_and_sections(tmp_path: Path) -> None:
    skill = make(tmp_path)
    (skill.folder / "references" / "a.md").write_text("# A\n\nText of A.\n")
    asked = ["references/a.md", "SKILL.md#Detail", "./references/a.md#A", "#steps"]
    shown = [disclosure.file_text(skill, path) for path in asked]
    assert [path for path, _ in shown] == [
        "references/a.md", "SKILL.md#Detail", "references/a.md#A", "SKILL.md#Steps",
    ]  # fmt: skip
    assert shown[0][1] == "# A\n\nText of A.\n"
    assert "Whenever it rains" not in shown[3][1]


@pytest.mark.parametrize(
    "asked",
    ["../secret.md", "references/../../secret.md", "/etc/hostname", "~/x", "C:\\x", "references/link.md", "a\0b"],
)
def test_path_outside_the_skill_is_rejected(tmp_path: Path, asked: str) -> None:
    skill = make(tmp_path)
    (tmp_path / "secret.md").write_text("secret")
    (skill.folder / "references" / "link.md").symlink_to(tmp_path / "secret.md")
    for read in (disclosure.file_text, disclosure.file_content):
        with pytest.raises(InvalidInput, match="it is outside the skill's folder"):
            read(skill, asked)


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
    for asked, reason in (
        ("references/none.md", "the file does not exist"),
        ("references", "it is a folder: request the files in it"),
        ("SKILL.md#Nowhere", "SKILL.md has no section 'Nowhere'"),
        ("references/blob.bin", "it is not text"),
    ):
        with pytest.raises(InvalidInput, match=reason):
            disclosure.file_text(skill, asked)


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
    for shown in (disclosure.whole(skill), disclosure.scripts(skill)):
        assert (shown.text == "") == (faults > 0)
    if faults:
        with pytest.raises(InvalidInput, match="outside the skill's folder|placeholder"):
            disclosure.file_text(skill, "SKILL.md")
    assert disclosure.whole(skill, block_outside=False).text
    assert disclosure.metadata(skill).text


def test_script_that_links_outside_blocks_the_skill(tmp_path: Path) -> None:
    skill = make(tmp_path, "Run `scripts/x.sh`.")
    (tmp_path / "x.sh").write_text("echo")
    (skill.folder / "scripts" / "x.sh").symlink_to(tmp_path / "x.sh")
    assert disclosure.provenance(skill) == ("line 5: the script scripts/x.sh is outside the skill's folder",)
    skill.path.unlink()
    assert disclosure.whole(skill).refused[0][1].startswith("it cannot be read")
