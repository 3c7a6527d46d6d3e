"""From objective to report: plan, all tasks in order, review, and a second run that compares with the first."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.skills.artifact import Artifact, Signal
from fireswarm.contracts.skills.skill import ChildResult, Fact, SkillRequest, SkillResult, SkillState
from tests.support.packs import MakeRequest, Repository, kept, run_skill


class Session:
    """Runs objectives as the engine does: tasks in order, with the artifacts of dependencies and stored facts."""

    def __init__(self, make_request: MakeRequest) -> None:
        self._make = make_request
        self._runs = 0
        self.facts: dict[tuple[str, str], Fact] = {}

    def run(self, objective: str, **context: Any) -> tuple[SkillResult, dict[str, str]]:
        """Run *objective* to its end; return the review and its text artifacts by name."""
        self._runs += 1
        asked = self._make(role="architect", objective=objective, context=context)
        plan = run_skill("plan-objective", asked)
        assert plan.state is SkillState.DELEGATING, plan.summary
        artifacts: dict[str, tuple[Artifact, ...]] = {}
        signals: dict[str, tuple[Signal, ...]] = {}
        children: list[ChildResult] = []
        for task in plan.tasks:
            request = self._make(
                task_id=f"{task.key}-{self._runs}",
                role=task.assigned_to,
                objective=task.objective,
                context=task.context,
                artifacts=tuple(artifact for key in task.depends_on for artifact in artifacts[key]),
                signals=tuple(signal for key in task.depends_on for signal in signals[key]),
                facts=tuple(self.facts.values()) if task.assigned_to == "memory" else (),
            )
            assert task.skill is not None
            result = run_skill(task.skill, request)
            assert result.state is SkillState.COMPLETED, (task.key, result.summary)
            artifacts[task.key], signals[task.key] = kept(request, result), result.signals
            self.facts |= {(fact.bucket, fact.key): fact for fact in result.facts}
            children.append(_child(task.key, request, result))
        review = run_skill("plan-objective", asked.model_copy(update={"children": tuple(children)}))
        return review, {a.name: Path(str(a.uri)).read_text(encoding="utf-8") for a in review.artifacts}


def _child(key: str, request: SkillRequest, result: SkillResult) -> ChildResult:
    return ChildResult(
        task_id=request.task_id, key=key, assigned_to=request.role, objective=request.objective, status="done",
        summary=result.summary, artifacts=kept(request, result), signals=result.signals, insights=result.insights,
        confidence=result.confidence,
    )  # fmt: skip


@pytest.fixture
def session(make_request: MakeRequest) -> Session:
    return Session(make_request)


def test_second_analysis_of_a_repository_reports_what_changed(repository: Repository, session: Session) -> None:
    for number in range(6):
        repository.write(
            f"src/part{number}.py", "def run(x):\n" + "    if x:\n        x += 1\n" * number + "    return x\n"
        )
    repository.write("README.md", "# Project\n\n[guide](guide.md)\n")
    repository.commit("Start")
    repository.write("src/part5.py", "def run(x):\n    return x or 1\n")
    repository.commit("Fix wrong default")
    objective = "Analyse this repository and report which files are most likely to cause trouble."
    first, files = session.run(objective, path=str(repository.root))
    assert first.state is SkillState.COMPLETED
    assert set(files) == {"report.md", "chart.svg"}
    assert "This is the first objective on project" in files["report.md"]
    assert "Since the last run" not in files["report.md"]

    repository.write("guide.md", "# Guide\n")
    repository.write("src/part6.py", "def run(x):\n    return x\n")
    repository.commit("Add guide")
    second, again = session.run(objective, path=str(repository.root))
    assert second.state is SkillState.COMPLETED
    report = again["report.md"]
    assert "| broken links | 1 | 0 [A2] | -1 | `inventory-1` 2026-03-01 |" in report
    assert "Since the last run: source files: 6 → 7 [A1][A2]" in report
    assert "`compact-1` 2026-03-01: Analyse this repository" in report


def test_forecast_objective_on_a_csv_ends_in_a_report(tmp_path: Path, session: Session) -> None:
    generator = random.Random(4)
    rows = [(generator.uniform(0, 10), generator.choice("NS")) for _ in range(150)]
    table = tmp_path / "leads.csv"
    table.write_text(
        "size,region,won\n"
        + "".join(f"{a:.2f},{b},{'' if n % 15 == 0 else 'yn'[a > 5]}\n" for n, (a, b) in enumerate(rows))
    )
    review, files = session.run("Forecast won for the open rows of the csv", path=str(table))
    assert review.state is SkillState.COMPLETED
    assert "### Rows forecast (10 of 10)" in files["report.md"]
    assert "chart.svg" in files
    assert any(fact.key == "held_out_brier" for fact in session.facts.values())


def test_notes_objective_ends_in_an_overview_and_a_checklist(tmp_path: Path, session: Session) -> None:
    (tmp_path / "a.md").write_text("# Heat pumps\n\nHeat pumps need insulation.\n\n- [ ] ask about insulation\n")
    (tmp_path / "b.md").write_text("# Insulation\n\nInsulation of heat pumps, see [a](a.md) and [c](c.md).\n")
    review, files = session.run("Summarise my research notes with a checklist", path=str(tmp_path))
    assert set(files) == {"report.md", "chart.svg", "checklist.md"}
    assert "insulation" in files["report.md"].split("### Keywords")[1]
    assert "OPEN ask about insulation" in files["checklist.md"]
    assert "repair the link to `c.md`" in files["checklist.md"]
    assert review.confidence == 1.0


def test_empty_folder_ends_in_a_report(tmp_path: Path, session: Session) -> None:
    review, files = session.run("Report on the risk in this folder", path=str(tmp_path))
    assert review.state is SkillState.COMPLETED
    assert set(files) == {"report.md"}
    title, sentence = files["report.md"].strip().split("\n\n")
    assert title.startswith("# ")
    assert sentence.endswith("has no files: there is nothing to report on. [A2]")
