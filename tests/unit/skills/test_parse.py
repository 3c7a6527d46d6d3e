"""The parser accepts any bytes, tolerates recoverable faults, and reports them as warnings."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fireswarm.skills.checks.pack import check_file
from fireswarm.skills.packs import field_values
from fireswarm.skills.packs.catalog import Skill, load_catalog, load_skill
from fireswarm.skills.packs.parse import MAX_FILE_BYTES, parse, read_header

AWKWARD = Path(__file__).resolve().parents[2] / "fixtures" / "awkward_skills"
UNUSABLE = {
    "blank-description", "empty", "list-header", "no-frontmatter", "null-description", "only-marks", "question-marks",
    "scalar-header", "tilde",
}  # fmt: skip


def load(tmp_path: Path, data: bytes | str, name: str = "any") -> Skill:
    path = tmp_path / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return load_skill(path)


@given(st.binary(max_size=2_000))
def test_any_bytes_are_parsed(data: bytes) -> None:
    parsed = parse(data)
    assert isinstance(parsed.body, str)


PIECES = (
    "---\n", "name: x\n", "description: ", "a: b: c\n", "- [ ] x\n", "\t", "'", '"', "&a ", "*a", "<<: ", "{", "[",
    "|\n", ">-\n", "  ", "# T\n", "\r\n", "\0", "\ufeff", "é", "\n", "allowed-tools: Bash(", "? ", "!!x ",
    "metadata:\n  k: v\n",
)  # fmt: skip
pieces = st.sampled_from(PIECES)


@settings(max_examples=300)
@given(st.lists(pieces, max_size=40).map("".join))
def test_any_mixture_of_frontmatter_is_parsed_loaded_and_checked(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("x") / "SKILL.md"
    path.write_bytes(f"---\n{text}".encode())
    assert all(fault.line >= 1 for fault in check_file(path))
    try:
        skill = load_skill(path)
    except ValueError as reason:
        assert "no description" in str(reason)
    else:
        assert skill.description
        assert field_values.is_name(skill.name)
        assert all(isinstance(value, str) for value in skill.metadata.values())


plain = st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S", "Zs")), max_size=40).filter(
    lambda text: (
        not text.lstrip().startswith("!")
    )  # a tag: YAML reads an empty text there, this parser the written text
)


@given(st.dictionaries(st.sampled_from(["name", "description", "license"]), plain))
def test_fast_parser_for_simple_headers_agrees_with_yaml(header: dict[str, str]) -> None:
    text = "\n".join(f"{key}: {value}" for key, value in header.items())
    try:
        expected = yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError:
        return
    if isinstance(expected, dict):
        notes: list[str] = []
        assert read_header(text, 2, notes.append) == expected


def test_malformed_files_are_loaded_with_warnings_or_skipped_without_a_description() -> None:
    catalog = load_catalog([AWKWARD])
    assert {path.parent.name for path, _ in catalog.left_out} == UNUSABLE
    assert all("no description" in reason for _, reason in catalog.left_out)
    assert len(catalog.skills) == len(list(AWKWARD.iterdir())) - len(UNUSABLE)
    assert catalog.get("2024-01-01").description == "2024-05-05"
    assert catalog.get("yes").metadata == {"version": "1.10"}
    assert catalog.get("unquoted-colon").description == "Use when: the user says: convert this"
    assert catalog.get("unquoted-colon").allowed_tools == ("Bash(git status:*)", "Read")
    assert catalog.get("lists-and-maps").tags == ("a", "b")
    assert catalog.get("name-with-path").folder.name == "name-with-path"
    assert catalog.get("twice").warnings == ("line 4: description is given twice; the last one counts",)
    assert len(catalog.get("scripts-outside").outside) == 3
    assert catalog.get("lowercase-file").path.name == "skill.md"
    assert len(catalog.get("long-description").description) == field_values.KEPT_DESCRIPTION_CHARS


def test_every_malformed_file_fails_the_check_and_unusual_ones_pass() -> None:
    harmless = {"anchors", "comment-in-value", "crlf", "dashes-inside", "indented-dashes", "old-mac"}
    faulty = {path.parent.name for path in AWKWARD.glob("*/*.md") if check_file(path)}
    assert {path.name for path in AWKWARD.iterdir()} - faulty == harmless


def test_frontmatter_of_ten_megabytes_is_truncated_at_the_limit(tmp_path: Path) -> None:
    skill = load(tmp_path, b"---\nname: any\ndescription: first\n" + b"filler: x\n" * 1_000_000 + b"---\n")
    assert skill.description == "first"
    assert f"only the first {MAX_FILE_BYTES:,} of" in skill.warnings[0]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Bash(git:*) Bash(jq:*) Read", ("Bash(git:*)", "Bash(jq:*)", "Read")),
        ("Read, Write,  Bash(git log, x)", ("Read", "Write", "Bash(git log, x)")),
        ("[Read, 'Write']", ("Read", "Write")),
        ("\n  - Read\n  - Bash(npm run *)", ("Read", "Bash(npm run *)")),
        ("", ()),
    ],
)
def test_allowed_tools_are_parsed_in_every_form(tmp_path: Path, written: str, read: tuple[str, ...]) -> None:
    assert load(tmp_path, f"---\nname: any\ndescription: d\nallowed-tools: {written}\n---\n").allowed_tools == read


def test_metadata_is_flattened_and_legacy_tags_and_version_are_read(tmp_path: Path) -> None:
    skill = load(tmp_path, "---\nname: any\ndescription: d\ntags: [a, b]\nversion: 2\nmetadata: {x: {y: 1}}\n---\n")
    assert (skill.tags, skill.version, skill.metadata) == (("a", "b"), "2", {"x.y": "1"})
    assert load(tmp_path, "---\ndescription: d\nmetadata: words\n---\n").metadata == {"metadata": "words"}


def test_folder_name_replaces_a_missing_or_invalid_name(tmp_path: Path) -> None:
    assert load(tmp_path, "---\ndescription: d\n---\n", "from-folder").name == "from-folder"
    named = load(tmp_path, "---\nname: My Skill!\ndescription: d\n---\n", "from-folder")
    assert named.name == "from-folder"
    assert "not a valid name" in named.warnings[0]
    other = load(tmp_path, "---\nname: other\ndescription: d\n---\n", "from-folder")
    assert (other.name, "its folder is named" in other.warnings[0]) == ("other", True)
    assert load(tmp_path, "---\nname: My Skill!\ndescription: d\n---\n", "Not Legal").name == "my-skill"
