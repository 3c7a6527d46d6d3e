"""Checks of a task before it ends: skills with code, reviews by other roles, and what a reviewer sees of the work."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.swarm.task import StatusReason, Task, TaskStatus
from tests.integration.test_inputs import Expert, part, plan, turn
from tests.integration.test_plan_rounds import finish, start
from tests.integration.test_thinking import act, decide, submit
from tests.support.swarm import SwarmRig

pytestmark = pytest.mark.anyio

REVIEW = [{"command": "test -s n.txt"}, {"role": "predictor", "question": "Is the number right?"}]


def shell(command: str) -> dict[str, Any]:
    return decide(act("run_command", command=command))


def verdict(strength: float, note: str) -> dict[str, Any]:
    return finish(f"n.txt says {note}", signals=[{"name": "review", "strength": strength, "note": note}])


async def review_of(swarm: SwarmRig) -> Task:
    [task] = [each for each in await swarm.board.list() if each.is_review and not each.status.terminal]
    return task


async def test_review_sends_work_back_until_it_accepts(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a", "executor", checks=REVIEW, expected_outcome="the number is 3"))
    waits = await turn(swarm, tmp_path, Expert(shell("echo 2 > n.txt"), "I wrote 2"), "executor")
    assert waits.status_reason is StatusReason.DELEGATING
    asked = await review_of(swarm)
    assert (asked.assigned_to, asked.constraints.read_only) == ("predictor", True)
    reviewer = Expert(verdict(0, "2 is wrong"))
    await turn(swarm, tmp_path, reviewer, "predictor")
    for seen in ("Is the number right?", "the number is 3", "I wrote 2", "test -s n.txt"):
        assert seen in reviewer.first, seen
    author = Expert(shell("echo 3 > n.txt"), "I wrote 3")
    await turn(swarm, tmp_path, author, "executor")
    assert "The predictor who reviewed the work wants it mended" in author.told[0] and "2 is wrong" in author.told[0]
    again = Expert(verdict(1, "3 is right"))
    await turn(swarm, tmp_path, again, "predictor")
    assert "sent_back in the context is what a review of an earlier state wanted mended" in again.first
    assert "2 is wrong" in again.first and "I wrote 3" in again.first
    done = await turn(swarm, tmp_path, Expert("never asked"), "executor")
    assert done.result is not None and done.result.summary == "I wrote 3", done.summary
    planner = Expert("the number is right")
    await turn(swarm, tmp_path, planner, "architect")
    passed = "it passed test -s n.txt; predictor: Is the number right?, after reviews had sent it back 1 time"
    assert passed in planner.first


async def test_author_hears_the_note_of_a_review(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a", "executor", checks=REVIEW))
    await turn(swarm, tmp_path, Expert(shell("echo 2 > n.txt"), "I wrote 2"), "executor")
    said_in_note = finish("see the note", signals=[{"name": "review", "strength": 0, "note": "2 is not prime enough"}])
    await turn(swarm, tmp_path, Expert(said_in_note), "predictor")
    author = Expert("I leave it")
    await turn(swarm, tmp_path, author, "executor")
    assert "review 0: 2 is not prime enough" in author.told[0]


async def test_review_waits_for_the_other_checks_and_needs_a_verdict(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a", "executor", checks=REVIEW))
    author = Expert("nothing written", shell("echo 3 > n.txt"), "written")
    await turn(swarm, tmp_path, author, "executor")
    assert "`test -s n.txt` ended with exit code 1" in author.told[1] and "mended" not in author.told[1]
    reviewer = Expert("it looks fine", verdict(1, "3 is right"))
    done = await turn(swarm, tmp_path, reviewer, "predictor")
    assert "one signal named review" in reviewer.told[1] and done.status is TaskStatus.DONE


async def test_work_that_the_reviewer_never_accepts_goes_to_the_planner(swarm: SwarmRig, tmp_path: Path) -> None:
    await start(swarm, tmp_path, part("a", "executor", checks=REVIEW[1:], max_revisions=1))
    for number in range(2):
        await turn(swarm, tmp_path, Expert(f"try {number}"), "executor")
        await turn(swarm, tmp_path, Expert(verdict(0, f"bad {number}")), "predictor")
    ended = await turn(swarm, tmp_path, Expert("never asked"), "executor")
    assert ended.status_reason is StatusReason.ESCALATED and "bad 1" in str(ended.error)
    planner = Expert("cannot be done")
    await turn(swarm, tmp_path, planner, "architect")
    assert "the checks still fail after 2 tries" in planner.first


@pytest.mark.parametrize(
    ("check", "told"),
    [
        ({"role": "nobody", "question": "x"}, "there is no role 'nobody'; this swarm has"),
        ({"skill": "no-such-skill"}, "no skill with code"),
        ({"skill": "plan-objective"}, "no skill with code"),
        ({"role": "predictor"}, "a check has one of"),
        ({"command": "true", "skill": "noop"}, "a check has one of"),
    ],
)
async def test_check_that_cannot_run_is_refused_in_the_plan(
    swarm: SwarmRig, tmp_path: Path, check: dict[str, Any], told: str
) -> None:
    await submit(swarm, tmp_path, role="architect")
    planner = Expert(plan(part("a", checks=[check])), "another plan")
    await turn(swarm, tmp_path, planner, "architect")
    assert told in planner.told[1]


SKILL = """---
name: sum-check
description: Checks that n.txt holds a number above a limit.
metadata: {version: "1.0.0", entry: scripts/skill.py, writes: "false"}
---

# Check
"""

CODE = """
from pathlib import Path
from fireswarm import Signal, SkillResult

def run(request):
    number = int(Path(request.context["file"]).read_text())
    good = number > request.context["limit"]
    return SkillResult(summary=f"{number} counted", signals=(Signal(name="sum", strength=float(good)),))
"""


async def test_skill_with_code_is_a_check(swarm: SwarmRig, tmp_path: Path) -> None:
    scripts = tmp_path / "skills" / "sum-check" / "scripts"
    scripts.mkdir(parents=True)
    (scripts.parent / "SKILL.md").write_text(SKILL)
    (scripts / "skill.py").write_text(CODE)
    space = tmp_path / "space"
    checks = [{"skill": "sum-check", "input": {"file": str(space / "n.txt"), "limit": 2}}]
    await start(swarm, tmp_path, part("a", "executor", checks=checks, context={"path": str(space)}))
    author = Expert(shell("echo 1 > n.txt"), "one", shell("echo 3 > n.txt"), "three")
    done = await turn(swarm, tmp_path, author, "executor")
    assert "the skill sum-check says no" in author.told[2] and "1 counted" in author.told[2]
    assert done.status is TaskStatus.DONE and done.result is not None and done.result.summary == "three"


def git(folder: Path, *arguments: str) -> None:
    told = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run(["git", *told, *arguments], cwd=folder, check=True, capture_output=True)


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(folder.rglob("*"))}


async def test_reviewer_and_dependents_see_what_changed_in_the_repository(swarm: SwarmRig, tmp_path: Path) -> None:
    space = tmp_path / "space"
    space.mkdir()
    git(space, "init", "-q")
    (space / "old.py").write_text("a = 1\n")
    (space / ".gitignore").write_text("*.log\n")
    git(space, "add", "-A")
    git(space, "commit", "-qm", "first")
    own = content_of(space / ".git")
    await submit(swarm, tmp_path, role="architect", context={"path": str(space)})
    there = {"context": {"path": str(space)}}
    review = part("r", "predictor", depends_on=["a"], **there)
    await turn(
        swarm, tmp_path, Expert(plan(part("a", "executor", **there), part("b", "scout", **there), review)), "architect"
    )
    work = shell("echo 'a = 2' > old.py; echo new > new.py; echo x > x.log")
    done = await turn(swarm, tmp_path, Expert(work, "changed"), "executor")
    assert done.result is not None
    assert [artifact.name for artifact in done.result.artifacts if artifact.uri] == ["changes.diff"]
    await turn(swarm, tmp_path, Expert(shell("cat old.py"), "looked"), "scout")
    reviewer = Expert(decide(act("read_file", path="inputs/a/changes.diff")), "fine")
    await turn(swarm, tmp_path, reviewer, "predictor")
    for line in ("-a = 1", "+a = 2", "+new"):
        assert line in reviewer.told[1]
    assert "x.log" not in reviewer.told[1]
    assert content_of(space / ".git") == own
