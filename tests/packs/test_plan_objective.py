"""plan-objective: choosing, filling, checking and reviewing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fireswarm.contracts.skills.artifact import Artifact
from fireswarm.contracts.skills.skill import ChildResult, PlannedTask, SkillState
from tests.support.packs import SKILLS, MakeRequest, run_skill, skill_module

NAME = "plan-objective"


@pytest.mark.parametrize(
    ("objective", "template"),
    [
        ("Analyse this project and report which files are most likely to cause trouble", "folder-report"),
        ("Take an inventory of what is in this folder, with duplicates", "inventory-only"),
        ("Summarise my research notes: keywords, broken links and a checklist of open points", "research-notes"),
        ("Summarise this folder", "summary"),
        ("Find the word 'lease'", "keyword-search"),
        ("Make a checklist", "checklist"),
        ("Analize this repositry and report the risk", "folder-report"),
    ],
)
def test_words_of_the_objective_select_the_template(
    objective: str, template: str, tmp_path: Path, make_request: MakeRequest
) -> None:
    result = run_skill(NAME, make_request(role="architect", objective=objective, context={"path": str(tmp_path)}))
    assert result.state is SkillState.DELEGATING
    assert result.artifacts[0].value["template"] == template
    assert any("Scores:" in text for text in result.insights)


def test_objective_that_no_template_fits_needs_a_model(tmp_path: Path, make_request: MakeRequest) -> None:
    objective = "Make something nice of it"
    refused = run_skill(NAME, make_request(objective=objective, context={"path": str(tmp_path)}))
    assert refused.state is SkillState.FAILED
    assert refused.needs_model
    for remedy in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "--skill", "--best-effort"):
        assert remedy in refused.summary
    context = {"path": str(tmp_path), "best_effort": True}
    planned = run_skill(NAME, make_request(objective=objective, context=context))
    assert planned.artifacts[0].value["template"] == "fallback"
    assert [task.context.get("not_answered") for task in planned.tasks if task.key == "report"] == [True]
    report = child("report", "done", Artifact(type="report", name="report.md"))
    reviewed = run_skill(NAME, make_request(objective=objective, context=context, children=(report,)))
    assert reviewed.summary.startswith("The objective was not answered")
    assert reviewed.confidence is not None
    assert reviewed.confidence < 0.5


def test_best_effort_changes_nothing_for_an_objective_that_fits(tmp_path: Path, make_request: MakeRequest) -> None:
    context = {"path": str(tmp_path), "best_effort": True}
    planned = run_skill(NAME, make_request(objective="Report the risk", context=context))
    assert planned.artifacts[0].value["template"] == "folder-report"
    report = child("report", "done", Artifact(type="report", name="report.md"))
    reviewed = run_skill(NAME, make_request(objective="Report the risk", context=context, children=(report,)))
    assert "not answered" not in reviewed.summary
    assert reviewed.confidence == 0.8


def test_csv_path_plans_a_forecast_with_its_target(tmp_path: Path, make_request: MakeRequest) -> None:
    table = tmp_path / "leads.csv"
    table.write_text("a,won\n1,yes\n")
    context = {"path": str(table), "target": "won"}
    result = run_skill(NAME, make_request(objective="Predict the lead scores", context=context))
    forecast = next(task for task in result.tasks if task.key == "forecast")
    assert forecast.context == {"path": str(table), "target": "won"}
    assert forecast.assigned_to == "predictor"


def test_single_csv_of_a_folder_is_used_and_several_are_asked_about(tmp_path: Path, make_request: MakeRequest) -> None:
    (tmp_path / "one.csv").write_text("a,b\n1,2\n")
    request = make_request(objective="Forecast the column b from the csv dataset", context={"path": str(tmp_path)})
    forecast = next(task for task in run_skill(NAME, request).tasks if task.key == "forecast")
    assert forecast.context["path"] == str(tmp_path / "one.csv")
    (tmp_path / "two.csv").write_text("a,b\n1,2\n")
    asked = run_skill(NAME, request)
    assert asked.state is SkillState.INPUT_REQUIRED
    assert "one.csv, two.csv" in asked.questions[0].description


def test_missing_path_is_asked_for_and_the_answer_is_used(tmp_path: Path, make_request: MakeRequest) -> None:
    asked = run_skill(NAME, make_request(objective="Report the risk"))
    assert asked.state is SkillState.INPUT_REQUIRED
    assert [question.name for question in asked.questions] == ["path"]
    answered = run_skill(NAME, make_request(objective="Report the risk", answers={"path": str(tmp_path)}))
    assert answered.state is SkillState.DELEGATING


def test_path_in_the_objective_is_used(tmp_path: Path, make_request: MakeRequest) -> None:
    result = run_skill(NAME, make_request(objective=f"Analyse '{tmp_path}' and report the risk."))
    assert result.tasks[0].context["path"] == str(tmp_path)


def test_nonexistent_path_is_asked_about(make_request: MakeRequest) -> None:
    result = run_skill(NAME, make_request(context={"path": "/no/such/place"}))
    assert result.state is SkillState.INPUT_REQUIRED
    assert "/no/such/place" in result.summary


def test_optional_task_without_its_role_is_skipped(tmp_path: Path, make_request: MakeRequest) -> None:
    roles = ("scout", "architect", "executor")
    result = run_skill(NAME, make_request(objective="Report the risk", roles=roles, context={"path": str(tmp_path)}))
    assert [task.key for task in result.tasks] == ["inventory", "report"]
    assert result.tasks[1].depends_on == ("inventory",)
    assert any("this swarm has no predictor" in text for text in result.insights)


def test_missing_required_role_fails_the_plan(tmp_path: Path, make_request: MakeRequest) -> None:
    result = run_skill(NAME, make_request(roles=("scout",), context={"path": str(tmp_path)}))
    assert result.state is SkillState.FAILED
    assert "executor" in result.summary


def test_every_template_assigns_skills_to_their_roles() -> None:
    templates = skill_module(NAME, "templates").load_templates()
    assert {template.name for template in templates} == {
        "folder-report", "csv-forecast", "inventory-only", "research-notes", "summary", "keyword-search", "checklist",
        "fallback",
    }  # fmt: skip
    for template in templates:
        for task in template.tasks:
            roles = (SKILLS / task.skill / "SKILL.md").read_text().split('roles: "')[1].split('"')[0]
            assert task.assigned_to in roles.split(","), (template.name, task.key)


def test_broken_template_is_named_in_the_error(tmp_path: Path) -> None:
    templates = skill_module(NAME, "templates")
    (tmp_path / "odd.yaml").write_text("name: odd\ndescription: x\n")
    with pytest.raises(templates.TemplateBroken, match=r"odd\.yaml"):
        templates.load_templates(tmp_path)


def planned(key: str, *needs: str, **fields: Any) -> PlannedTask:
    return PlannedTask(key=key, assigned_to="scout", objective="x", depends_on=needs, **fields)


@pytest.mark.parametrize(
    ("tasks", "says"),
    [
        ([planned("a", "b"), planned("b", "a")], "cycle"),
        ([planned("a", "c")], "not in the plan"),
        ([planned("a"), planned("a")], "same key"),
        ([planned("a", context={"x": "y" * 20_000})], "bytes"),
        ([planned(f"t{number}") for number in range(41)], "41 tasks"),
    ],
)
def test_invalid_task_graph_is_refused(tasks: list[PlannedTask], says: str) -> None:
    graph = skill_module(NAME, "graph")
    with pytest.raises(graph.PlanInvalid, match=says):
        graph.validate(tasks, ("scout",))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
@given(st.lists(st.sets(st.integers(0, 11)), min_size=1, max_size=12))
def test_steps_respect_every_dependency(needs: list[set[int]]) -> None:
    tasks = [
        planned(f"t{index}", *(f"t{need}" for need in sorted(wanted) if need < index))
        for index, wanted in enumerate(needs)
    ]
    waves = skill_module(NAME, "graph").validate(tasks, ("scout",))
    position = {key: number for number, wave in enumerate(waves) for key in wave}
    assert sorted(position) == sorted(task.key for task in tasks)
    assert all(position[need] < position[task.key] for task in tasks for need in task.depends_on)


def child(key: str, status: str = "done", *artifacts: Artifact) -> ChildResult:
    return ChildResult(
        task_id=f"id-{key}", key=key, assigned_to="scout", objective=key, status=status, summary=f"{key} summary",
        artifacts=artifacts, confidence=0.8,
    )  # fmt: skip


def test_review_returns_the_artifacts_of_the_report_task(make_request: MakeRequest) -> None:
    report = Artifact(type="report", name="report.md", uri="blob://r", sha256="ab")
    chart = Artifact(type="chart", name="chart.svg", uri="blob://c")
    children = (child("inventory", "done", Artifact(type="inventory")), child("report", "done", chart, report))
    result = run_skill(NAME, make_request(children=children))
    assert result.state is SkillState.COMPLETED
    assert [artifact.uri for artifact in result.artifacts] == ["blob://r", "blob://c"]
    assert result.artifacts[0].source_task_id == "id-report"
    assert "report.md" in result.summary
    assert result.confidence == 0.8


def test_review_without_a_report_fails_and_names_the_missing_task(make_request: MakeRequest) -> None:
    result = run_skill(NAME, make_request(children=(child("inventory"), child("report", "canceled"))))
    assert result.state is SkillState.FAILED
    assert "report (scout) is canceled" in result.summary


def test_review_with_a_report_names_unfinished_tasks(make_request: MakeRequest) -> None:
    report = Artifact(type="report", name="report.md")
    result = run_skill(NAME, make_request(children=(child("report", "done", report), child("compact", "blocked"))))
    assert result.state is SkillState.COMPLETED
    assert "Not finished: compact" in result.summary
    assert result.confidence == 0.4
