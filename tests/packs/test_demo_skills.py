"""The demo pack: each skill works on a real folder, through its entry and from a shell."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.skills.skill import SkillRequest, SkillState
from tests.support.packs import NOW, SKILLS, run_skill

SCRIPTS = {
    "keyword-search-extractor": "search_keywords.py",
    "content-summarizer": "summarize.py",
    "task-checklist-builder": "build_checklist.py",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with notes, code and files that must not be read."""
    place = tmp_path / "work"
    (place / "notes").mkdir(parents=True)
    (place / "notes" / "deploy.md").write_text(
        "# Deploying\n\nThe rollback restores the last release within two minutes of a failure. "
        "Every release is tagged before it is deployed to production servers. It rains.\n\n"
        "## Next steps\n\n- write the runbook for the rollback @mira 2026-04-01\n\n"
        "- [ ] test the rollback, urgent\n- [x] tag the release\n\n```sh\n- [ ] not a task\n```\n"
    )
    (place / "app.py").write_text("x = 1  # TODO(sam): drop x\ny = 2  # FIXME rolls back too late\n# maybe ROLLBACK\n")
    (place / ".env").write_text("ROLLBACK=secret")
    (place / "id_rsa").write_text("rollback")
    (place / "blob.bin").write_bytes(b"rollback\0")
    return place


def asking(tmp_path: Path, objective: str = "x", **context: Any) -> SkillRequest:
    return SkillRequest(
        task_id="t",
        session_hash="s",
        objective=objective,
        role="scout",
        workdir=tmp_path / "out",
        now=NOW,
        context=context,
    )


def shell(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = SKILLS / name / "scripts" / SCRIPTS[name]
    return subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", SCRIPTS)
def test_missing_path_is_asked_for_and_wrong_path_fails(name: str, tmp_path: Path) -> None:
    asked = run_skill(name, asking(tmp_path))
    assert asked.state is SkillState.INPUT_REQUIRED
    assert "path" in [question.name for question in asked.questions]
    wrong = run_skill(name, asking(tmp_path, path=str(tmp_path / "none"), keywords="x"))
    assert wrong.state is SkillState.FAILED
    assert "There is nothing at" in wrong.summary


def test_keywords_are_found_as_whole_words_with_file_and_line(folder: Path, tmp_path: Path) -> None:
    result = run_skill(
        "keyword-search-extractor", asking(tmp_path, path=str(folder), keywords="rollback, last release, nowhere")
    )
    assert result.state is SkillState.COMPLETED
    content = json.loads((tmp_path / "out" / "keyword_hits.json").read_text())
    assert content["counts"] == {"rollback": 4, "last release": 1}
    assert {hit["path"] for hit in content["hits"]} == {"app.py", "notes/deploy.md"}
    assert content["left_out"] == {"binary": 1, "likely to hold secrets": 2}
    assert "Not found: nowhere." in result.insights


def test_quoted_words_in_the_objective_become_keywords(folder: Path, tmp_path: Path) -> None:
    result = run_skill(
        "keyword-search-extractor", asking(tmp_path, 'where is "last release" mentioned', path=str(folder))
    )
    assert result.artifacts[0].value["counts"] == [{"keyword": "last release", "hits": 1}]
    bad = run_skill("keyword-search-extractor", asking(tmp_path, path=str(folder), regex="("))
    assert bad.state is SkillState.FAILED
    assert "invalid regular expression" in bad.summary
    late = run_skill("keyword-search-extractor", asking(tmp_path, path=str(folder), keywords=["x"], limit=0))
    assert "context.limit" in late.summary


def test_summary_quotes_important_sentences_verbatim(folder: Path, tmp_path: Path) -> None:
    result = run_skill("content-summarizer", asking(tmp_path, path=f"file://{folder}", sentences=1))
    assert result.state is SkillState.COMPLETED
    text = (tmp_path / "out" / "content_summary.md").read_text()
    assert "## notes/deploy.md: Deploying" in text
    assert "- The rollback restores the last release within two minutes of a failure." in text
    assert "It rains" not in text
    nothing = run_skill("content-summarizer", asking(tmp_path, path=str(folder / "blob.bin")))
    assert nothing.state is SkillState.FAILED
    assert "sentences" in run_skill("content-summarizer", asking(tmp_path, path=str(folder), sentences=99)).summary


def test_summary_prefers_words_that_occur_in_few_files(tmp_path: Path) -> None:
    place = tmp_path / "two"
    place.mkdir()
    for name, subject in (("a", "walrus"), ("b", "harbour")):
        (place / f"{name}.txt").write_text(
            "The meeting took place on the usual day in the usual room. "
            f"One {subject} saw this {subject} and that {subject}. "
            "The meeting took place again after the usual break of the day."
        )
    result = run_skill("content-summarizer", asking(tmp_path, path=str(place), sentences=1))
    shown = [file["sentences"][0] for file in result.artifacts[0].value["files"]]
    assert "walrus" in shown[0]
    assert "harbour" in shown[1]
    assert "meeting" in result.insights[0]


def test_checklist_collects_boxes_markers_and_steps_by_urgency(folder: Path, tmp_path: Path) -> None:
    result = run_skill("task-checklist-builder", asking(tmp_path, path=str(folder), include_done=True, title="Release"))
    text = (tmp_path / "out" / "checklist.md").read_text()
    assert text == (
        "# Release\n\n4 open, 2 of them urgent, in 2 files\n\n"
        "## Urgent\n\n- [ ] rolls back too late (app.py:2)\n- [ ] test the rollback, urgent (notes/deploy.md:9)\n\n"
        "## Open\n\n- [ ] write the runbook for the rollback @mira 2026-04-01 (notes/deploy.md:7)\n"
        "- [ ] drop x, @sam (app.py:1)\n\n## Done\n\n- [x] tag the release (notes/deploy.md:10)\n\n"
        "## Left out\n\n- 1 binary (blob.bin)\n- 2 likely to hold secrets (.env, id_rsa)\n"
    )
    assert result.insights == ("Urgent: 2 of 4.", "Named: mira, sam.", "The first date is 2026-04-01.")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run_skill("task-checklist-builder", asking(tmp_path, path=str(empty))).insights == ("Nothing is open.",)


def test_each_script_runs_from_a_shell(folder: Path) -> None:
    found = shell("keyword-search-extractor", str(folder), "-k", "rollback", "--format", "markdown")
    assert found.returncode == 0
    assert found.stdout.startswith("# 4 hits in 2 of 2 files")
    assert shell("keyword-search-extractor", str(folder), "-k", "absent").returncode == 1
    assert shell("keyword-search-extractor", str(folder)).returncode == 2
    summary = shell("content-summarizer", str(folder), "--format", "json")
    assert [file["path"] for file in json.loads(summary.stdout)["files"]] == ["notes/deploy.md"]
    tasks = shell("task-checklist-builder", str(folder), "--format", "json")
    assert json.loads(tasks.stdout)["counts"] == {"urgent": 2, "open": 2, "later": 0, "done": 0}
    for name in SCRIPTS:
        wrong = shell(name, str(folder / "none"), *(["-k", "x"] if name.startswith("keyword") else []))
        assert (wrong.returncode, "there is nothing at" in wrong.stderr) == (2, True)
