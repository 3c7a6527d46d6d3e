"""Discovery and the catalog: nearer folders win, limits are reported, and changed skills are never read from cache."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fireswarm.skills.packs import cache as caching
from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.skills.packs.discovery import DiscoveryLimits, discover, places


def make(folder: Path, name: str, description: str = "what it does", body: str = "# T\n") -> Path:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nname: {name.rpartition('/')[2]}\ndescription: {description}\n---\n{body}")
    return path


def test_places_are_searched_from_near_to_far(tmp_path: Path) -> None:
    found = places([Path("mine"), Path("/abs")], tmp_path / "here", tmp_path / "home", tmp_path / "packaged")
    relative = [path.relative_to(tmp_path).as_posix() if path.is_relative_to(tmp_path) else str(path) for path in found]
    assert relative == ["here/mine", "/abs", "here/skills", "here/.agents/skills", "home/.agents/skills", "packaged"]


def test_skills_are_found_at_any_depth_but_not_inside_other_skills(tmp_path: Path) -> None:
    make(tmp_path, "a")
    make(tmp_path, "a/inner")
    make(tmp_path, "group/deep/b")
    make(tmp_path, "node_modules/c")
    make(tmp_path, ".hidden/d")
    assert sorted(load_catalog([tmp_path]).skills) == ["a", "b"]
    assert list(load_catalog([tmp_path / "a"]).skills) == ["a"]
    assert not load_catalog([tmp_path / "none"]).skills


def test_symbolic_link_is_followed_once(tmp_path: Path) -> None:
    make(tmp_path / "real", "a")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "again").symlink_to(tmp_path / "real", target_is_directory=True)
    (tmp_path / "real" / "loop").symlink_to(tmp_path / "root", target_is_directory=True)
    catalog = load_catalog([tmp_path / "root", tmp_path / "real"])
    assert list(catalog.skills) == ["a"]
    assert not catalog.left_out


@pytest.mark.parametrize("target", ["/", "..", "../outside", "../outside/secret"])
def test_links_out_of_the_folder_are_noted_and_not_followed(target: str, tmp_path: Path) -> None:
    make(tmp_path / "skills", "a")
    make(tmp_path / "outside", "secret")
    (tmp_path / "skills" / "link").symlink_to(target, target_is_directory=True)
    (tmp_path / "skills" / "b").mkdir()
    (tmp_path / "skills" / "b" / "SKILL.md").symlink_to(tmp_path / "outside" / "secret" / "SKILL.md")
    found = discover([tmp_path / "skills"])
    assert [Path(place.folder).name for place in found.skills] == ["a"]
    assert {path.name for path, note in found.notes if "link out" in note} == {"link", "SKILL.md"}
    assert list(load_catalog([tmp_path / "skills"]).skills) == ["a"]


def test_links_within_the_folder_are_followed(tmp_path: Path) -> None:
    make(tmp_path / "skills" / "packs" / ".store", "a")
    (tmp_path / "skills" / "a").symlink_to("packs/.store/a", target_is_directory=True)
    assert list(load_catalog([tmp_path / "skills"]).skills) == ["a"]


def test_folders_beyond_the_limits_are_noted(tmp_path: Path) -> None:
    make(tmp_path, "one/two/three/deep")
    for number in range(5):
        make(tmp_path, f"s{number}")
    deep = discover([tmp_path], DiscoveryLimits(max_depth=2))
    assert len(deep.skills) == 5
    assert "deeper than max_depth 2" in deep.notes[0][1]
    few = discover([tmp_path], DiscoveryLimits(max_folders=3))
    assert len(few.skills) < 5
    assert "max_folders is 3" in few.notes[0][1]


def test_references_and_existing_links_of_the_body_are_indexed(tmp_path: Path) -> None:
    body = (
        "# T\nSee [guide](docs/guide.md#x), `notes.txt`, [gone](none.md), [web](https://x.org/a.md), [up](../b.md).\n"
    )
    folder = make(tmp_path, "a", body=body).parent
    for name in (
        "references/deep/r.md",
        "assets/logo.svg",
        "docs/guide.md",
        "notes.txt",
        "scripts/run.py",
        "unnamed.md",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    (tmp_path / "b.md").write_text("x")
    [skill] = load_catalog([tmp_path]).skills.values()
    assert skill.references_index == ("references/deep/r.md", "assets/logo.svg", "docs/guide.md", "notes.txt")
    assert skill.describe().references_index == skill.references_index


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return a folder of skills and a cache file that is used for any number of skills."""
    monkeypatch.setattr(caching, "LEAST_CACHED", 0)
    for name in ("a", "b"):
        make(tmp_path / "skills", name)
    (tmp_path / "skills" / "bad").mkdir()
    (tmp_path / "skills" / "bad" / "SKILL.md").write_text("nothing")
    return tmp_path / "skills", tmp_path / "cache" / "skills.json"


def test_unchanged_skills_are_loaded_from_the_cache(cached: tuple[Path, Path]) -> None:
    folder, file = cached
    first = load_catalog([folder], cache=file)
    written = file.stat().st_mtime_ns
    again = load_catalog([folder], cache=file)
    assert again == first == load_catalog([folder])
    assert file.stat().st_mtime_ns == written
    assert file.stat().st_mode & 0o077 == 0


def test_changed_skill_is_read_again(cached: tuple[Path, Path]) -> None:
    folder, file = cached
    load_catalog([folder], cache=file)
    make(folder, "a", "changed text")
    (folder / "b" / "references").mkdir()
    (folder / "b" / "references" / "new.md").write_text("x")
    (folder / "bad" / "SKILL.md").unlink()
    catalog = load_catalog([folder], cache=file)
    assert catalog.get("a").description == "changed text"
    assert catalog.get("b").references_index == ("references/new.md",)
    (folder / "b" / "references" / "second.md").write_text("x")
    os.utime(folder / "b" / "references", ns=(1, 1))
    assert len(load_catalog([folder], cache=file).get("b").references_index) == 2
    assert not catalog.left_out
    assert len(json.loads(file.read_text())["skills"]) == 2


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"format": "other/1", "skills": {}}', b"\xff\xfe", b'{"format": null, "skills": 3}']
)
def test_damaged_or_foreign_cache_is_ignored(cached: tuple[Path, Path], damage: bytes) -> None:
    folder, file = cached
    load_catalog([folder], cache=file)
    file.write_bytes(damage)
    assert set(load_catalog([folder], cache=file).skills) == {"a", "b"}
    assert json.loads(file.read_bytes())["format"] == caching.FORMAT


@pytest.mark.parametrize("entry", [None, [], [0], ["x", [], []], [None, [["x"]], ["y"]]])
def test_skill_with_a_damaged_record_is_read_again(cached: tuple[Path, Path], entry: object) -> None:
    folder, file = cached
    load_catalog([folder], cache=file)
    content = json.loads(file.read_bytes())
    for name, record in content["skills"].items():
        content["skills"][name] = entry if not isinstance(entry, list) or len(entry) < 3 else [record[0], [], entry]
    file.write_text(json.dumps(content))
    assert set(load_catalog([folder], cache=file).skills) == {"a", "b"}


def test_cache_writable_by_others_is_ignored(cached: tuple[Path, Path]) -> None:
    folder, file = cached
    load_catalog([folder], cache=file)
    content = file.read_text().replace("what it does", "something else")
    file.write_text(content)
    assert load_catalog([folder], cache=file).get("a").description == "something else"
    file.write_text(content)
    file.chmod(0o666)
    assert load_catalog([folder], cache=file).get("a").description == "what it does"


def test_unwritable_cache_is_ignored(cached: tuple[Path, Path], tmp_path: Path) -> None:
    folder, _ = cached
    (tmp_path / "file").write_text("x")
    assert set(load_catalog([folder], cache=tmp_path / "file" / "below").skills) == {"a", "b"}


def test_few_skills_are_not_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "skills", "a")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = caching.default_cache([tmp_path / "skills"])
    assert file.is_relative_to(tmp_path / "cache")
    load_catalog([tmp_path / "skills"], cache=file)
    assert not file.exists()
