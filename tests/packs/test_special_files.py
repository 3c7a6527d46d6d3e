"""No packaged skill waits for a pipe, a socket or a device, and files that were not read are named with the reason."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult, SkillState
from tests.support.packs import NOW, REPOSITORY, SKILLS, run_skill

SECONDS = 20
ALL = sorted(path.parents[1].name for path in SKILLS.glob("*/scripts/skill.py"))
DEMO = {
    "task-checklist-builder": "checklist.md",
    "content-summarizer": "content_summary.md",
    "keyword-search-extractor": "keyword_hits.md",
}
CARRIED = ("inventory", "risk_scores", "csv_forecast", "report", "checklist", "pipeline_file")
CHILD = """
import signal, sys
signal.alarm(15)
from fireswarm.contracts.skills.skill import SkillRequest
from tests.support.packs import skill_module
run = skill_module(sys.argv[1]).run
for line in sys.stdin:
    try:
        print(run(SkillRequest.model_validate_json(line)).state.value, flush=True)
    except Exception as error:
        print(type(error).__name__, flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a note, and with entries of all kinds that are not regular files, named like text."""
    place = tmp_path / "work"
    place.mkdir()
    (place / "a.md").write_text(
        "# Rollback\n\nThe rollback restores the last release within two minutes.\n- [ ] try it\n"
    )
    for suffix in ("md", "csv", "py", "ts"):
        os.mkfifo(place / f"pipe.{suffix}")
    (place / "link.md").symlink_to("pipe.md")
    (place / "device.md").symlink_to("/dev/zero")
    monkeypatch.chdir(place)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket.md")
    return place


def request(folder: Path, **fields: Any) -> SkillRequest:
    usual: dict[str, Any] = {"task_id": "t", "session_hash": "s", "role": "scout", "objective": 'find "rollback"'}
    usual |= {"workdir": folder.parent / "out", "now": NOW}
    return SkillRequest(**(usual | fields))


def asking(folder: Path, path: Path) -> SkillRequest:
    return request(folder, context={"path": str(path), "source": str(path), "keywords": "rollback", "csv": str(path)})


@pytest.mark.parametrize("name", ALL)
def test_no_packaged_skill_waits_for_a_file_that_is_not_regular(name: str, folder: Path) -> None:
    places = [folder, *(entry for entry in sorted(folder.iterdir()) if entry.name != "a.md")]
    requests = [asking(folder, place) for place in places]
    for kind in CARRIED:
        for place in places[1:]:
            made = Artifact(type=kind, name="request_snapshot.json", uri=place.as_uri())
            requests.append(request(folder, artifacts=(made,), context={"path": str(folder)}))
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, name],
        input="".join(each.model_dump_json() + "\n" for each in requests),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=REPOSITORY,
        check=False,
    )
    answered = len(ran.stdout.splitlines())
    assert answered == len(requests), f"{requests[answered].model_dump_json()}\n{ran.stderr[-1_000:]}"


def run_on(name: str, folder: Path, **fields: Any) -> tuple[SkillResult, str]:
    result = run_skill(name, asking(folder, folder).model_copy(update=fields))
    return result, (folder.parent / "out" / DEMO[name]).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", DEMO)
def test_summary_and_markdown_say_what_was_left_out_and_why(name: str, folder: Path) -> None:
    (folder / "large.md").write_bytes(b"rollback\n" * 300_000)
    (folder / "binary.md").write_bytes(b"rollback\0")
    os.symlink("a.md", os.fsencode(folder) + b"/odd\xff.md")  # noqa: PTH211
    result, text = run_on(name, folder)
    assert result.state is SkillState.COMPLETED
    for reason in (
        "1 binary (binary.md)",
        "1 larger than 2 MB (large.md)",
        "3 symlinked (device.md, link.md, odd?.md)",
    ):
        assert reason in result.summary
        assert f"- {reason}" in text
    pipes = (
        "not a regular file (pipe.csv, pipe.md, pipe.py, ...)"
        if name != "content-summarizer"
        else "(pipe.md, socket.md)"
    )
    assert pipes in result.summary
    assert json.dumps(text)


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every file")
@pytest.mark.parametrize("name", DEMO)
def test_unreadable_file_and_folder_are_named(name: str, folder: Path) -> None:
    (folder / "b.md").touch(0o000)
    (folder / "closed").mkdir(0o000)
    result, _ = run_on(name, folder)
    assert "2 unreadable (b.md, closed/)" in result.summary


@pytest.mark.parametrize("name", DEMO)
def test_link_that_the_request_names_is_followed(name: str, folder: Path) -> None:
    (folder / "named.md").symlink_to("a.md")
    result = run_skill(name, asking(folder, folder / "named.md"))
    assert result.state is SkillState.COMPLETED
    assert "1 file of named.md" in result.summary


def test_folder_with_one_large_file_says_that_it_was_not_searched(tmp_path: Path) -> None:
    (place := tmp_path / "work").mkdir()
    (place / "log.txt").write_bytes(b"rollback\n" * 300_000)
    result, text = run_on("keyword-search-extractor", place)
    assert result.summary == "No text file to search in work. Left out: 1 larger than 2 MB (log.txt)."
    assert text == "# No text file to search\n\n## Left out\n\n- 1 larger than 2 MB (log.txt)\n"
    failed = run_skill("content-summarizer", asking(place, place))
    assert failed.summary.endswith("Left out: 1 larger than 2 MB (log.txt).")
