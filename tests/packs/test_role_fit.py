"""The fit of an objective that names a role, but no skill, measured on the table of ``role_objectives.yaml``."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fireswarm.skills.packs.catalog import Catalog, load_catalog
from fireswarm.swarm.turn.engines.unnamed import measure_fit_of
from tests.support.packs import SKILLS

TABLE: dict[str, dict[str, dict[str, list[str]]]] = yaml.safe_load(
    (Path(__file__).parent / "role_objectives.yaml").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog([SKILLS])


def accepted(part: str, kind: str, catalog: Catalog) -> list[str]:
    return [
        objective
        for name, kinds in TABLE[part].items()
        for objective in kinds[kind]
        if measure_fit_of(objective, {"path": "folder"}, catalog.get(name)).enough
    ]


@pytest.mark.parametrize(("part", "wrong", "right"), [("chosen_on", 0, 34), ("held_out", 2, 20)])
def test_few_objectives_are_accepted_that_the_code_cannot_answer(
    part: str, wrong: int, right: int, catalog: Catalog
) -> None:
    assert sum(len(kinds["not_answered"]) for kinds in TABLE[part].values()) == 72
    assert len(taken := accepted(part, "not_answered", catalog)) <= wrong, taken
    assert len(accepted(part, "answered", catalog)) >= right


@pytest.mark.parametrize("objective", ["take stock", "Report on this folder", "Look at this folder.", "How big is it?"])
def test_objectives_of_the_documents_fit_the_inventory(objective: str, catalog: Catalog) -> None:
    assert measure_fit_of(objective, {"path": "."}, catalog.get("workspace-inventory")).enough


def test_columns_of_a_table_are_known(tmp_path: Path, catalog: Catalog) -> None:
    table = tmp_path / "shops.csv"
    table.write_text("Monthly_Sales,city\n1,Oslo\n")
    skill = catalog.get("csv-forecast")
    assert measure_fit_of("Forecast monthly sales by city", {"csv": str(table)}, skill).enough
    assert measure_fit_of("Forecast monthly sales by city", {}, skill).unknown == ("monthly", "sales", "city")


@pytest.mark.parametrize("path", ["a\0b", "x" * 5_000, "/dev/null/a.csv", 7, None, "\ud800.csv"])
def test_odd_paths_are_no_error(path: object, catalog: Catalog) -> None:
    assert measure_fit_of("Count the files", {"csv": path}, catalog.get("csv-forecast")).score == 0.0
