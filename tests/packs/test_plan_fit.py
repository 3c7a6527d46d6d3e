"""The fit of an objective to the plans of code, measured on the table of ``objectives.yaml``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from fireswarm.contracts.skills.skill import SkillState
from tests.support.packs import MakeRequest, run_skill, skill_module

NAME = "plan-objective"
TABLE: dict[str, dict[str, list[list[str]]]] = yaml.safe_load(
    (Path(__file__).parent / "objectives.yaml").read_text(encoding="utf-8")
)
ANSWERED, NOT_ANSWERED = "answered", "not_answered"


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "plain").mkdir()
    (tmp_path / "letter.md").write_text("# Letter\n")
    (tmp_path / "leads.csv").write_text("size,region,won\n1,N,yes\n")
    return {"folder": tmp_path / "plain", "file": tmp_path / "letter.md", "csv": tmp_path / "leads.csv"}


def wrong(part: str, kind: str, given: dict[str, Path], make_request: MakeRequest) -> list[str]:
    """Return the objectives whose first turn is not what the table says: planned or asked about, or refused."""
    found: list[str] = []
    for about, objective in TABLE[part][kind]:
        context: dict[str, Any] = {"path": str(given[about])} if about in given else {}
        result = run_skill(NAME, make_request(role="architect", objective=objective, context=context))
        if result.needs_model is (kind == ANSWERED):
            found.append(objective)
        assert result.needs_model or result.state in (SkillState.DELEGATING, SkillState.INPUT_REQUIRED), objective
    return found


@pytest.mark.parametrize("part", ["chosen_on", "held_out"])
def test_at_most_one_objective_in_sixteen_is_judged_wrongly(
    part: str, given: dict[str, Path], make_request: MakeRequest
) -> None:
    assert [len(TABLE[part][kind]) for kind in (ANSWERED, NOT_ANSWERED)] == [16, 16]
    for kind in (ANSWERED, NOT_ANSWERED):
        missed = wrong(part, kind, given, make_request)
        assert len(missed) <= 1, missed


def test_hard_objectives_are_refused_rather_than_answered_wrongly(
    given: dict[str, Path], make_request: MakeRequest
) -> None:
    assert wrong("hard", NOT_ANSWERED, given, make_request) == []
    assert len(wrong("hard", ANSWERED, given, make_request)) <= 5


def test_examples_and_the_objectives_of_the_documents_fit(make_request: MakeRequest) -> None:
    fit, templates = skill_module(NAME, "fit"), skill_module(NAME, "templates").load_templates()
    said = [text for template in templates for text in template.examples]
    for objective in [*said, "Report on this folder", "Look at this folder."]:
        assert fit.measure(objective, templates, None).enough, objective


@pytest.mark.parametrize(
    ("objective", "same"),
    [("Summarise 'the capital of France'", "Summarise"), ("Summarise /tmp/poems/sea.md", "Summarise")],
)
def test_quoted_words_and_paths_do_not_count(objective: str, same: str) -> None:
    fit, templates = skill_module(NAME, "fit"), skill_module(NAME, "templates").load_templates()
    assert fit.measure(objective, templates, None) == fit.measure(same, templates, None)


@pytest.mark.parametrize(
    "objective",
    [
        "Do not write a report on this folder",
        "Don't report on this folder",
        "Report on this folder without the risky files",
        "Find the broken links and fix them",
        "Where is 'orion' not mentioned?",
        "Which files changed the most and why?",
        "Which files have no tests?",
        "Summarise the notes in one sentence",
        "Summarise the notes as a table",
        "Summarise the notes except the first",
    ],
)
def test_words_that_turn_or_restrict_an_objective_are_not_passed_over(objective: str) -> None:
    fit, templates = skill_module(NAME, "fit"), skill_module(NAME, "templates").load_templates()
    assert not fit.measure(objective, templates, None).enough
