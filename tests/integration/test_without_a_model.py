"""The shipped roles without a model: objectives that their code knows end done, the others need a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fireswarm as fs

pytestmark = pytest.mark.anyio

KEYLESS = fs.Settings.model_validate({"worker": {"think": "never"}})
UNKNOWN = (
    "What is the capital of France?",
    "Write a poem about the sea",
    "Translate this file into German",
    "Fix the failing test",
    "Summarise today's news",
)
KNOWN = {
    "What does this folder hold and what is risky?": (".", "report.md"),
    "Summarise this file": ("notes.md", "content_summary.md"),
    "Forecast won in this csv": ("leads.csv", "report.md"),
    "Find the word 'lease' in these files": (".", "keyword_hits.json"),
    "Make a checklist": (".", "checklist.md"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "notes.md").write_text("# Notes\n\nA lease is a fencing token. It expires.\n\n- [ ] renew the lease\n")
    rows = "".join(f"{size},{'NS'[size % 2]},{'yn'[size > 30]}\n" for size in range(60))
    (folder / "leads.csv").write_text(f"size,region,won\n{rows}")
    return folder


async def ended(swarm: fs.Swarm, objective: str, role: str = "architect", **fields: Any) -> fs.Task:
    """Submit an objective and follow it until it cannot move."""
    submitted = await swarm.submit(objective, role=role, **fields)
    async with swarm.events(submitted) as events:
        async for _ in events:
            pass
    return await swarm.get(submitted)


async def test_objectives_that_no_plan_fits_are_blocked_and_say_what_they_need(folder: Path) -> None:
    async with fs.Swarm.local(settings=KEYLESS) as swarm:
        for objective in UNKNOWN:
            task = await ended(swarm, objective, context={"path": str(folder)})
            assert (task.status, task.status_reason) == (fs.TaskStatus.BLOCKED, fs.StatusReason.NEEDS_MODEL), objective
            assert "ANTHROPIC_API_KEY or GEMINI_API_KEY" in task.summary
            assert task.children == ()
            told = await swarm.explain(task)
            assert told.endswith(f"`swarm retry {task.task_id[:8]}`.")


async def test_objectives_that_a_plan_fits_are_done(folder: Path) -> None:
    async with fs.Swarm.local(settings=KEYLESS) as swarm:
        for objective, (path, answer) in KNOWN.items():
            task = await ended(swarm, objective, context={"path": str(folder / path)})
            assert task.status is fs.TaskStatus.DONE, (objective, task.summary)
            assert task.result is not None
            assert task.result.artifacts[0].name == answer


async def test_retry_frees_an_objective_that_needs_a_model(folder: Path) -> None:
    async with fs.Swarm.local(settings=KEYLESS) as swarm:
        task = await ended(swarm, UNKNOWN[0], context={"path": str(folder)})
        assert (await swarm.retry(task)).status is fs.TaskStatus.QUEUED


async def test_best_effort_reports_in_its_first_line_that_nothing_was_answered(folder: Path) -> None:
    async with fs.Swarm.local(settings=KEYLESS) as swarm:
        task = await ended(swarm, UNKNOWN[0], context={"path": str(folder), "best_effort": True})
        assert task.status is fs.TaskStatus.DONE
        assert task.summary.startswith("The objective was not answered")
        assert task.result is not None
        assert task.result.confidence is not None
        assert task.result.confidence < 0.5
        report = await swarm.parts.blobs.get(str(task.result.artifacts[0].uri))
        assert report.decode().splitlines()[0].startswith("**This report does not answer the objective**")


@pytest.mark.parametrize("role", ["scout", "executor", "predictor", "memory"])
async def test_role_does_not_answer_what_its_code_was_not_asked(role: str, folder: Path) -> None:
    async with fs.Swarm.local(settings=KEYLESS) as swarm:
        for objective in (*UNKNOWN, "delete the duplicate files"):
            task = await ended(swarm, objective, role, context={"path": str(folder)})
            assert (task.status, task.status_reason) == (fs.TaskStatus.BLOCKED, fs.StatusReason.NEEDS_MODEL), objective
            assert any(f"--skill {name}" in task.summary for name in swarm.parts.roles[role].skills)
            assert task.result is None


async def test_role_works_on_what_its_code_can_be_asked(folder: Path) -> None:
    known = {
        "scout": ("How many files are in this folder?", "."),
        "executor": ("Draft a report with a chart", "."),
        "predictor": ("Forecast won by size and region", "leads.csv"),
        "memory": ("Recall what was learned about this folder", "."),
    }
    async with fs.Swarm.local(settings=KEYLESS) as swarm:
        for role, (objective, path) in known.items():
            context = {"path": str(folder / path)}
            context |= {"csv": context["path"], "target": "won"} if role == "predictor" else {}
            task = await ended(swarm, objective, role, context=context)
            assert task.status_reason is not fs.StatusReason.NEEDS_MODEL, (objective, task.summary)


async def test_role_does_what_a_person_asks_for_by_the_name_of_the_skill_or_by_best_effort(folder: Path) -> None:
    async with fs.Swarm.local(settings=KEYLESS) as swarm:
        context = {"path": str(folder)}
        named = await ended(swarm, UNKNOWN[0], "scout", skill="workspace-inventory", context=context)
        assert named.status is fs.TaskStatus.DONE
        assert not named.summary.startswith("The objective was not answered")
        effort = await ended(swarm, UNKNOWN[0], "scout", context={**context, "best_effort": True})
        assert effort.status is fs.TaskStatus.DONE
        assert effort.result is not None
        assert effort.summary.startswith("The objective was not answered: it needs a model. ")
        assert effort.result.confidence is not None
        assert effort.result.confidence < 0.5


async def test_skill_that_does_not_say_what_it_is_asked_for_works_on_every_objective() -> None:
    @fs.skill("count", "Counts.")
    def count(request: fs.SkillRequest) -> fs.SkillResult:
        return fs.SkillResult(summary="counted")

    async with fs.Swarm.local(settings=KEYLESS, roles={"clerk": [count]}) as swarm:
        assert (await ended(swarm, UNKNOWN[0], "clerk")).status is fs.TaskStatus.DONE


WORDS = """\
---
name: count-words
description: Counts the words of the text file that the task's path names.
metadata: {version: "1.0.0", entry: scripts/skill.py, asked_for: "count, how many", writes: "false"}
---

# Count words
"""
WORDS_CODE = """\
from pathlib import Path

from fireswarm import SkillRequest, SkillResult


def run(request: SkillRequest) -> SkillResult:
    return SkillResult(summary=f"{len(Path(request.context['path']).read_text().split())} words")
"""
IN_PART = {
    "Count the words and tell Bob": "tell Bob",
    "Count the words of notes.md, then translate it": "translate it",
    "Count the words; also email it to ada@example.org": "email it to ada@example.org",
}


@pytest.fixture
def librarian(tmp_path: Path) -> dict[str, Any]:
    """Options of a swarm with one role, whose only skill counts words."""
    code = tmp_path / "skills" / "count-words" / "scripts" / "skill.py"
    code.parent.mkdir(parents=True)
    code.write_text(WORDS_CODE)
    (code.parents[1] / "SKILL.md").write_text(WORDS)
    settings = KEYLESS.model_copy(update={"root": tmp_path})
    return {"settings": settings, "root": tmp_path, "roles": {"librarian": ["count-words"]}}


async def test_only_skill_of_a_role_is_run_for_its_work_in_other_words(folder: Path, librarian: dict[str, Any]) -> None:
    async with fs.Swarm.local(**librarian) as swarm:
        context = {"path": str(folder / "notes.md")}
        task = await ended(swarm, "Tell me the number of words", "librarian", context=context)
        assert task.status is fs.TaskStatus.DONE, task.summary
        for objective in UNKNOWN:
            task = await ended(swarm, objective, "librarian", context=context)
            assert task.status_reason is fs.StatusReason.NEEDS_MODEL, objective


async def test_part_that_no_code_can_do_blocks_the_objective_and_is_named(
    folder: Path, librarian: dict[str, Any]
) -> None:
    async with fs.Swarm.local(**librarian) as swarm:
        context = {"path": str(folder / "notes.md")}
        for objective, undone in IN_PART.items():
            task = await ended(swarm, objective, "librarian", context=context)
            assert task.status_reason is fs.StatusReason.NEEDS_MODEL, objective
            assert f"nothing here can do this part: “{undone}”" in task.summary


async def test_best_effort_does_one_part_and_names_the_other_in_the_answer(
    folder: Path, librarian: dict[str, Any]
) -> None:
    async with fs.Swarm.local(**librarian) as swarm:
        context = {"path": str(folder / "notes.md"), "best_effort": True}
        for objective, undone in IN_PART.items():
            task = await ended(swarm, objective, "librarian", context=context)
            assert task.status is fs.TaskStatus.DONE, objective
            assert task.summary.startswith("Only a part of the objective was done.")
            assert f"“{undone}”" in task.summary
            assert task.summary.endswith(" words")


async def test_plan_does_one_part_by_best_effort_and_its_report_names_the_other(folder: Path) -> None:
    async with fs.Swarm.local(settings=KEYLESS) as swarm:
        objective, context = "Report on this folder and tell Bob", {"path": str(folder)}
        refused = await ended(swarm, objective, context=context)
        assert refused.status_reason is fs.StatusReason.NEEDS_MODEL
        assert "“tell Bob”" in refused.summary
        task = await ended(swarm, objective, context=context | {"best_effort": True})
        assert task.status is fs.TaskStatus.DONE
        assert task.summary.startswith("Only a part of the objective was done.")
        assert task.result is not None
        report = await swarm.parts.blobs.get(str(task.result.artifacts[0].uri))
        assert "“tell Bob”" in report.decode().splitlines()[0]
