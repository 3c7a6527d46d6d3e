"""workspace-inventory on real folders and git repositories."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fireswarm.contracts.skills.skill import ChildResult, SkillRequest, SkillResult, SkillState
from tests.support.packs import MakeRequest, Repository, kept, run_skill, skill_module

NAME = "workspace-inventory"


def content(request: SkillRequest, result: SkillResult) -> dict[str, Any]:
    uri = kept(request, result)[0].uri
    assert uri is not None
    return json.loads(Path(uri).read_bytes())


def inventory(make_request: MakeRequest, path: Path, **context: Any) -> tuple[dict[str, Any], SkillResult]:
    request = make_request(context={"path": str(path), **context})
    result = run_skill(NAME, request)
    assert result.state is SkillState.COMPLETED, result.summary
    return content(request, result), result


def files_of(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {record["path"]: record for record in found["files"]}


def test_git_listing_omits_ignored_files_and_keeps_untracked_ones(
    repository: Repository, make_request: MakeRequest
) -> None:
    repository.write(".gitignore", "ignored/\n")
    repository.write("kept.py", "x = 1\n")
    repository.write("ignored/secret.txt", "no")
    repository.commit("Start")
    repository.write("new.md", "# New\n")
    repository.write(".fireswarm/store.db", "changes all the time")
    found, _ = inventory(make_request, repository.root)
    assert found["folder"]["listed_by"] == "git"
    assert set(files_of(found)) == {".gitignore", "kept.py", "new.md"}


def test_folder_without_git_is_walked_without_cache_folders(tmp_path: Path, make_request: MakeRequest) -> None:
    (tmp_path / "node_modules" / "x").mkdir(parents=True)
    (tmp_path / "node_modules" / "x" / "index.js").write_text("1")
    (tmp_path / "a.txt").write_text("hello\n")
    found, result = inventory(make_request, tmp_path)
    assert set(files_of(found)) == {"a.txt"}
    assert found["folder"]["left_out"] == {"excluded_folder": 1}
    assert any("1 excluded folder" in text for text in result.insights)


@pytest.mark.parametrize("folder", [".tools/uv", ".venv/lib", "node_modules/x", "web/node_modules/y"])
def test_untracked_tool_and_package_folders_are_omitted(
    repository: Repository, make_request: MakeRequest, folder: str
) -> None:
    repository.write("kept.py", "x = 1\n")
    repository.commit("Start")
    repository.write(f"{folder}/one.py", "x = 1\n" * 1_000)
    repository.write(f"{folder}/two.py", "x = 2\n" * 1_000)
    found, result = inventory(make_request, repository.root)
    assert set(files_of(found)) == {"kept.py"}
    assert found["folder"]["left_out"] == {"excluded_folder": 1}
    assert not [signal for signal in result.signals if "one.py" in str(signal)]


def test_churn_follows_a_rename_and_counts_fixes(repository: Repository, make_request: MakeRequest) -> None:
    repository.write("old.py", "".join(f"value_{n} = {n}\n" for n in range(20)))
    repository.commit("Start")
    repository.git("mv", "old.py", "new.py")
    repository.commit("Rename")
    repository.write("new.py", "".join(f"value_{n} = {n}\n" for n in range(19)) + "last = 1\n")
    repository.commit("Fix crash in last value")
    repository.write("new.py", "".join(f"value_{n} = {n}\n" for n in range(19)) + "last = 2\n")
    repository.commit("Fix typo")
    record = files_of(inventory(make_request, repository.root)[0])["new.py"]
    assert record["commits"] == 4
    assert (record["added"], record["deleted"]) == (22, 2)
    assert record["fixes"] == 1
    assert record["authors"] == 1


def test_history_snapshots_contain_past_complexity(repository: Repository, make_request: MakeRequest) -> None:
    repository.write("a.py", "x = 1\n")
    for number in range(12):
        repository.commit(f"Step {number}")
        repository.write("b.py", f"y = {number}\n")
    body = "".join(f"    if x == {n}:\n        return {n}\n" for n in range(8))
    repository.write("a.py", f"def f(x):\n{body}    return x\n")
    repository.commit("Grow")
    repository.commit("Nothing")
    found, _ = inventory(make_request, repository.root)
    assert files_of(found)["a.py"]["complexity"] == 9
    early = found["history"]["splits"][0]["files"]
    assert early["a.py"] == [1, 1]


def test_single_file_is_inventoried_under_its_own_bucket(tmp_path: Path, make_request: MakeRequest) -> None:
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    (tmp_path / "other.txt").write_text("x")
    found, _ = inventory(make_request, tmp_path / "data.csv")
    assert set(files_of(found)) == {"data.csv"}
    assert found["folder"]["bucket"].startswith("file:")
    assert [fact["key"] for fact in found["facts"]] == ["bytes", "lines"]


def test_markdown_links_are_checked_and_code_blocks_ignored(tmp_path: Path, make_request: MakeRequest) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "there.md").write_text("# There\n")
    (tmp_path / "README.md").write_text(
        "# Title\n\n[ok](docs/there.md) [anchor](#title) [web](https://example.org/x) [gone](docs/gone.md#part)\n\n"
        "```\n# no heading\n[no link](nowhere.md)\n```\n\n"
        "`[no](either.md)` [bad anchor](#missing)\n\n[ref]: docs/away.md\n"
    )
    found, result = inventory(make_request, tmp_path)
    broken = {(entry["line"], entry["target"]) for entry in found["broken_links"]}
    assert broken == {(3, "docs/gone.md#part"), (10, "#missing"), (12, "docs/away.md")}
    assert found["totals"]["headings"] == 2
    signal = next(signal for signal in result.signals if signal.name == "broken_link")
    assert signal.strength == pytest.approx(1 - 0.5**3)


def test_markers_are_found_with_their_lines_and_credentials_are_blanked(
    tmp_path: Path, make_request: MakeRequest
) -> None:
    (tmp_path / "a.py").write_text('x = "no TODO in text"\n# TODO: use token=abcdef123456 here\n# FIXME(bob) later\n')
    (tmp_path / "n.md").write_text("- [ ] open point\n- [x] done\n")
    found, _ = inventory(make_request, tmp_path)
    files = files_of(found)
    assert [(marker["line"], marker["kind"]) for marker in files["a.py"]["markers"]] == [(2, "TODO"), (3, "FIXME")]
    assert "abcdef123456" not in json.dumps(found)
    assert files["a.py"]["markers"][1]["text"] == "(bob) later"
    assert files["n.md"]["markers"] == [{"line": 1, "kind": "OPEN", "text": "open point"}]


def test_files_with_secrets_are_listed_by_name_only(tmp_path: Path, make_request: MakeRequest) -> None:
    (tmp_path / ".env").write_text("KEY=hunter2\n# TODO: hunter2\n")
    found, _ = inventory(make_request, tmp_path)
    assert files_of(found)[".env"]["kind"] == "sensitive"
    assert "hunter2" not in json.dumps(found)
    assert "sha256" not in files_of(found)[".env"]


def test_unusual_files_do_not_stop_the_inventory(tmp_path: Path, make_request: MakeRequest) -> None:
    (tmp_path / "binary.py").write_bytes(b"\0\1\2" * 100)
    (tmp_path / "latin.txt").write_bytes("Grüße\n".encode("latin-1"))
    (tmp_path / "wide.txt").write_bytes("hello\n".encode("utf-16"))
    (tmp_path / "huge-line.js").write_text("x" * 3_000_000)
    (tmp_path / "broken.py").write_text("def f(:\n  if x:\n    y\n")
    (tmp_path / "deep.py").write_text("x = " + "(" * 5000 + ")" * 5000)
    (tmp_path / "escape.py").write_text('pattern = "\\d"\n')
    (tmp_path / "empty.md").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    found, _ = inventory(make_request, tmp_path)
    files = files_of(found)
    assert files["binary.py"]["kind"] == "binary"
    assert files["latin.txt"]["encoding"] == "unknown-8bit"
    assert (files["wide.txt"]["encoding"], files["wide.txt"]["lines"]) == ("utf-16", 1)
    assert files["huge-line.js"]["analysed_bytes"] == 2_000_000
    assert files["huge-line.js"]["bytes"] == 3_000_000
    assert files["broken.py"]["measured"] == "indentation"
    assert found["folder"]["left_out"] == {"special_file": 1, "symlink": 2}


def test_a_file_that_vanishes_between_listing_and_reading_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_request: MakeRequest
) -> None:
    (tmp_path / "stays.txt").write_text("x\n")
    (tmp_path / "vanishes.txt").write_text("x\n")
    skill = skill_module(NAME)
    real = skill.list_files

    def list_then_delete(*arguments: Any, **options: Any) -> Any:
        listing = real(*arguments, **options)
        (tmp_path / "vanishes.txt").unlink()
        return listing

    monkeypatch.setattr(skill, "list_files", list_then_delete)
    found, result = inventory(make_request, tmp_path)
    assert set(files_of(found)) == {"stays.txt"}
    assert found["folder"]["left_out"] == {"vanished": 1}
    assert result.confidence == 0.5


def test_empty_folder_gives_an_empty_inventory(tmp_path: Path, make_request: MakeRequest) -> None:
    found, result = inventory(make_request, tmp_path)
    assert found["totals"]["files"] == 0
    assert result.signals == ()


EMPTY = "an empty folder"


@pytest.mark.parametrize(
    ("context", "says"),
    [
        ({"path": "/no/such/folder"}, "Give the absolute path"),
        ({"path": "/", "shard_files": 0}, "shard_files"),
        ({"path": EMPTY, "shard": {"index": 4, "count": 4}}, "not between 0 and 3"),
    ],
)
def test_impossible_task_fails_permanently_with_advice(
    context: dict[str, Any], says: str, make_request: MakeRequest, tmp_path: Path
) -> None:
    if context["path"] == EMPTY:
        context = context | {"path": str(tmp_path)}
    result = run_skill(NAME, make_request(context=context))
    assert result.state is SkillState.FAILED
    assert not result.retryable
    assert says in result.summary


def test_missing_path_is_asked_for(make_request: MakeRequest) -> None:
    result = run_skill(NAME, make_request())
    assert result.state is SkillState.INPUT_REQUIRED
    assert [question.name for question in result.questions] == ["path"]


def test_shards_merge_to_the_same_inventory_as_one_task(repository: Repository, make_request: MakeRequest) -> None:
    for number in range(25):
        repository.write(
            f"pkg/m{number}.py", f"import pkg.m{(number + 1) % 25}\n\ndef run_{number}(): pass\n# TODO: {number}\n"
        )
        repository.write(f"docs/d{number}.md", f"# Page {number}\n\n[next](d{number + 1}.md)\n")
    repository.write("tests/test_m3.py", "from pkg.m3 import run_3\n")
    repository.write("copy.md", "# Page 0\n\n[next](d1.md)\n")
    repository.commit("Start")
    whole, _ = inventory(make_request, repository.root)

    first = make_request(context={"path": str(repository.root), "shard_files": 10})
    shared = run_skill(NAME, first)
    assert shared.state is SkillState.DELEGATING
    children: list[ChildResult] = []
    for task in shared.tasks:
        assert len(json.dumps(task.context)) < 16_384
        request = make_request(task_id=task.key, context=task.context)
        done = run_skill(NAME, request)
        children.append(
            ChildResult(
                task_id=task.key, key=task.key, assigned_to="scout", objective="part", status="done",
                artifacts=kept(request, done),
            )
        )  # fmt: skip
    resumed = first.model_copy(update={"children": tuple(reversed(children))})
    merged = content(resumed, run_skill(NAME, resumed))
    assert merged == whole


def test_missing_shard_is_reported_and_lowers_confidence(tmp_path: Path, make_request: MakeRequest) -> None:
    for number in range(12):
        (tmp_path / f"f{number}.txt").write_text(f"{number}\n")
    first = make_request(context={"path": str(tmp_path), "shard_files": 4})
    task = run_skill(NAME, first).tasks[0]
    request = make_request(context=task.context)
    child = ChildResult(
        task_id="c", assigned_to="scout", objective="part", status="done",
        artifacts=kept(request, run_skill(NAME, request)),
    )  # fmt: skip
    result = run_skill(NAME, first.model_copy(update={"children": (child,)}))
    assert any("parts 2, 3 of 3 are missing" in text for text in result.insights)
    assert result.confidence is not None
    assert result.confidence < 1


@given(st.sets(st.text(min_size=1, max_size=30), max_size=60), st.integers(1, 9))
def test_every_path_is_in_exactly_one_shard(paths: set[str], count: int) -> None:
    listing = skill_module(NAME, "listing")
    parts = [listing.in_shard(sorted(paths), index, count) for index in range(count)]
    assert sorted(path for part in parts for path in part) == sorted(paths)


def test_same_folder_produces_the_same_bytes(repository: Repository, make_request: MakeRequest) -> None:
    repository.write("a.py", "def f(x):\n    return x if x else 0\n")
    repository.commit("Start")
    one, other = (run_skill(NAME, make_request(context={"path": str(repository.root)})) for _ in range(2))
    assert one.artifacts[0].sha256 == other.artifacts[0].sha256


def test_distance_from_a_test_follows_imports(tmp_path: Path, make_request: MakeRequest) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "near.py").write_text("from . import far\n")
    (tmp_path / "pkg" / "far.py").write_text("x = 1\n")
    (tmp_path / "pkg" / "alone.py").write_text("y = 1\n")
    (tmp_path / "tests" / "test_near.py").write_text("from pkg.near import far\n")
    found, _ = inventory(make_request, tmp_path)
    files = files_of(found)
    assert files["pkg/near.py"]["test_distance"] == 1
    assert files["pkg/far.py"]["test_distance"] == 2
    assert "test_distance" not in files["pkg/alone.py"]
    assert found["tests"] == {"pkg/near.py": ["tests/test_near.py"]}


def test_cyclomatic_complexity_counts_decisions_by_function() -> None:
    measure = skill_module(NAME, "code").measure_code(
        "def f(a, b):\n    if a and b:\n        return [x for x in a if x]\n"
        "    for _ in b:\n        pass\n\ndef g(): pass\n",
        "Python",
    )
    assert (measure.worst_name, measure.worst) == ("f", 6)
    assert measure.complexity == 6


def test_git_environment_variables_are_ignored(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_request: MakeRequest
) -> None:
    repository.write("a.txt", "x\n")
    repository.commit("Start")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    found, _ = inventory(make_request, repository.root)
    assert found["history"]["commits_read"] == 1


def test_missing_git_program_falls_back_to_a_walk(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, make_request: MakeRequest
) -> None:
    repository.write("a.txt", "x\n")
    repository.commit("Start")
    monkeypatch.setenv("PATH", "")
    found, result = inventory(make_request, repository.root)
    assert found["folder"]["listed_by"] == "walk"
    assert found["history"] is None
    assert any("No git history" in text for text in result.insights)
