"""The fit of an objective to the only skill of a role, measured on the table of ``one_skill_objectives.yaml``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from fireswarm.skills.packs.catalog import Catalog, Skill, load_catalog
from fireswarm.skills.routing.fit import Fit
from fireswarm.skills.routing.parts import parts_of
from fireswarm.swarm.turn.engines.unnamed import measure_fit_of
from tests.support.packs import SKILLS

TABLE: dict[str, dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "one_skill_objectives.yaml").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog([SKILLS])


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    table = tmp_path / "sales.csv"
    table.write_text("amount,day\n1,2\n")
    return table


def joined(objective: str) -> str:
    """Return an objective of the table without the bar before its second part."""
    text = " ".join(objective.replace("|", " ").split())
    return text.replace(" ,", ",").replace(" ;", ";")


def measured(part: str, kind: str, catalog: Catalog, sales: Path) -> list[tuple[str, Fit]]:
    fits: list[tuple[str, Fit]] = []
    for name, objectives in TABLE[part][kind].items():
        said = TABLE["skills"].get(name)
        skill = catalog.get(name) if said is None else _skill(name, said)
        path = str(sales) if name == "add-column" else "folder"
        for objective in objectives:
            fits.append((objective, measure_fit_of(joined(objective), {"path": path}, skill, alone=part != "shipped")))
    return fits


def _skill(name: str, said: dict[str, str]) -> Skill:
    return Skill(name=name, description=said["description"], folder=Path(), metadata={"asked_for": said["asked_for"]})


@pytest.mark.parametrize(("part", "missed"), [("chosen_on", 0), ("held_out", 2), ("shipped", 1)])
def test_the_only_skill_of_a_role_runs_for_what_it_can_do(
    part: str, missed: int, catalog: Catalog, sales: Path
) -> None:
    refused = [objective for objective, fit in measured(part, "answered", catalog, sales) if not fit.enough]
    assert len(refused) <= missed, refused


@pytest.mark.parametrize(("part", "wrong"), [("chosen_on", 0), ("held_out", 1)])
def test_the_only_skill_of_a_role_does_not_run_for_what_it_cannot_do(
    part: str, wrong: int, catalog: Catalog, sales: Path
) -> None:
    taken = [objective for objective, fit in measured(part, "not_answered", catalog, sales) if fit.enough]
    assert len(taken) <= wrong, taken


@pytest.mark.parametrize(("part", "missed"), [("chosen_on", 0), ("held_out", 1), ("shipped", 1)])
def test_an_objective_with_a_part_that_nothing_can_do_is_never_accepted_and_the_part_is_named(
    part: str, missed: int, catalog: Catalog, sales: Path
) -> None:
    fits = measured(part, "in_part", catalog, sales)
    assert [objective for objective, fit in fits if fit.enough] == []
    unnamed = [objective for objective, fit in fits if not fit.undone]
    assert len(unnamed) <= missed, unnamed


def test_the_table_is_large_enough_to_measure() -> None:
    held_out = [text for kinds in TABLE["held_out"].values() for texts in kinds.values() for text in texts]
    assert len(held_out) >= 70
    assert len(set(held_out)) == len(held_out)


@pytest.mark.parametrize(
    ("objective", "texts"),
    [
        ("Count the words and tell Bob", ["Count the words", "tell Bob"]),
        ("Count the words; also email it to X", ["Count the words", "email it to X"]),
        ("Find 'lock and delete it' in these files", ["Find 'lock and delete it' in these files"]),
        ("Summarise my notes about trees and flowers", ["Summarise my notes about trees and flowers"]),
        ("List the largest and the oldest files", ["List the largest and the oldest files"]),
        ("Count the words. Thanks, and have a nice day", ["Count the words. Thanks, and have a nice day"]),
        ("Count the words, frobnicate them", ["Count the words", "frobnicate them"]),
        ("Count the words without counting numbers", ["Count the words without counting numbers"]),
        ("", [""]),
    ],
)
def test_an_objective_is_split_where_another_order_begins(objective: str, texts: list[str]) -> None:
    assert [part.text for part in parts_of(objective)] == texts
