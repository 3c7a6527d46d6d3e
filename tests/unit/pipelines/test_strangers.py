"""Sources, workdirs and repositories of strangers: a link in them leads no file of the user in, and none out."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fireswarm.contracts.skills.skill import SkillRequest, SkillResult
from fireswarm.errors import InvalidInput
from fireswarm.pipelines import package_root
from fireswarm.pipelines.files import Carried, lay_out
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.running.in_child import load_entry


@pytest.mark.parametrize("link", ["tests", "tests/deep", "tests/deep/a.py"])
@pytest.mark.parametrize("carried", [True, False])
def test_nothing_is_written_through_a_link(link: str, carried: bool, tmp_path: Path) -> None:
    outside, work = tmp_path / "outside", tmp_path / "work"
    (outside / "deep").mkdir(parents=True)
    (outside / "a.py").write_text("mine")
    (work / link).parent.mkdir(parents=True)
    (work / link).symlink_to(outside / "a.py" if link.endswith(".py") else outside)
    with pytest.raises(InvalidInput, match="may be a link"):
        if carried:
            Carried(work).write("tests/deep/a.py", "planted")
        else:
            lay_out({"tests/deep/a.py": "planted"}, work)
    assert (outside / "a.py").read_text() == "mine"
    assert [path.name for path in outside.rglob("*")] == ["deep", "a.py"] or not list((outside / "deep").iterdir())


def test_files_are_written_whole_and_again(tmp_path: Path) -> None:
    carried = Carried(tmp_path / "work")
    for text in ("a long text\r\n", "short\n"):
        carried.write("deep/er/a.txt", text)
        lay_out({"x/b.txt": text}, tmp_path / "new" / "place")
    assert (tmp_path / "work" / "deep" / "er" / "a.txt").read_bytes() == b"short\n"
    assert (tmp_path / "new" / "place" / "x" / "b.txt").read_bytes() == b"short\n"


def test_links_out_of_a_source_are_left_out(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "part").mkdir(parents=True)
    (tmp_path / "private.md").write_text("# a secret\n")
    (source / "node.ts").write_text("export class A {}\n")
    (source / "part" / "inner.md").write_text("# inner\n")
    (source / "notes.md").symlink_to("../private.md")
    (source / "again.md").symlink_to("part/inner.md")
    request = SkillRequest(
        task_id="t", session_hash="s", objective="o", role="scout", context={"source": str(source)},
        workdir=tmp_path / "work", now=datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    skill = load_entry(packaged_path("skills") / "node-normalize", Path("scripts/skill.py"))
    result: SkillResult = skill.run(request)
    assert result.summary.startswith("source: 3 files")
    snapshot = json.loads((tmp_path / "work" / "request_snapshot.json").read_text())
    assert [file["name"] for file in snapshot["source"]["files"]] == ["again.md", "node.ts", "part/inner.md"]


def test_package_of_a_file_is_the_one_that_lists_nodes(tmp_path: Path) -> None:
    """A package.json in the home does not make all of it readable for a stranger's node."""
    node = tmp_path / "downloads" / "Evil.node.js"
    node.parent.mkdir()
    node.write_text("")
    (tmp_path / "package.json").write_text("{}")
    assert package_root(node) == node.parent
    (tmp_path / "package.json").write_text(json.dumps({"n8n": {"nodes": ["downloads/Evil.node.js"]}}))
    assert package_root(node) == tmp_path
