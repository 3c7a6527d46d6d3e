"""The packaged files: frontmatter, role cards, and the imports of each skill."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.swarm.roles.card import load_roles
from tests.support.packs import REPOSITORY, SKILLS, skill_module

NAMES = (
    "content-summarizer", "csv-forecast", "fact-recall", "keyword-search-extractor", "markdown-report-drafter",
    "plan-objective", "risk-forecast", "session-compactor", "task-checklist-builder", "workspace-inventory",
)  # fmt: skip
EXTRAS = {"numpy", "sklearn", "matplotlib", "threadpoolctl"}
ROLES = ("architect", "executor", "memory", "predictor", "scout")


def frontmatter(file: Path) -> tuple[dict[str, Any], str]:
    _, head, body = file.read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(head), body


@pytest.mark.parametrize("name", NAMES)
def test_skill_frontmatter_is_complete(name: str) -> None:
    head, body = frontmatter(SKILLS / name / "SKILL.md")
    assert set(head) == {"name", "description", "metadata"}
    assert head["name"] == name
    assert 1 <= len(head["description"]) <= 1024
    assert "Use it" in head["description"]
    assert set(head["metadata"]) - {"needs", "asked_for"} == {"version", "tags", "roles", "entry", "writes"}
    assert head["metadata"].get("needs", "swarm") == "swarm"
    assert head["metadata"]["writes"] in ("false", "unless_read_only")
    assert all(isinstance(value, str) for value in head["metadata"].values())
    assert (SKILLS / name / head["metadata"]["entry"]).is_file()
    assert {role.strip() for role in head["metadata"]["roles"].split(",")} <= set(ROLES)
    for section in ("## Inputs", "## Outputs", "## Method", "## Limits"):
        assert section in body


@pytest.mark.parametrize("name", NAMES)
def test_linked_files_of_a_skill_exist(name: str) -> None:
    folder = SKILLS / name
    for target in re.findall(r"\]\(([^)]+)\)", (folder / "SKILL.md").read_text(encoding="utf-8")):
        assert (folder / target).exists(), target


def test_catalog_and_role_loader_find_every_skill_and_role() -> None:
    catalog = load_catalog([SKILLS])
    assert set(NAMES) <= set(catalog.skills)
    assert not catalog.left_out
    assert set(ROLES) <= set(load_roles(REPOSITORY / "roles"))


@pytest.mark.parametrize("role", ROLES)
def test_role_card_names_skills_that_list_the_role(role: str) -> None:
    head, body = frontmatter(REPOSITORY / "roles" / role / "ROLE.md")
    assert head["name"] == role
    assert head["description"].strip()
    for skill in head["skills"]:
        metadata = frontmatter(SKILLS / skill / "SKILL.md")[0]["metadata"]
        assert role in metadata["roles"].split(",")
    for section in ("## How you work", "## What you hand over", "## What you never do"):
        assert section in body


LAZY = {
    "typescript.py": {"tree_sitter", "tree_sitter_typescript"},
    "bundle.py": {"referencing"},
    "openapi.py": {"jsonschema", "openapi_spec_validator", "referencing"},
    "markdown.py": {"markdown_it"},
}
"""Files of schema-infer that are imported where they are used, with the packages of the extra that each needs."""


@pytest.mark.parametrize("file", sorted(SKILLS.glob("*/scripts/*.py")), ids=lambda file: "/".join(file.parts[-3::2]))
def test_skill_imports_only_its_folder_and_allowed_packages(file: Path) -> None:
    lazy = LAZY.get(file.name, set[str]()) if file.parts[-3] == "schema-infer" else set[str]()
    allowed = {*lazy, "fireswarm", "yaml", "rapidfuzz", "pydantic", *EXTRAS, *sys.stdlib_module_names}
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        for name in names if isinstance(node, ast.Import) or node.level == 0 else []:
            top = name.split(".")[0]
            assert top in allowed, name
            assert top != "fireswarm" or name == "fireswarm", f"{name}: import from fireswarm alone"
            assert top not in EXTRAS or node.col_offset > 0, f"{name} is an extra: import it where it is used"
            assert top not in {"socket", "http"}, name
            assert name != "urllib.request", name


def test_planner_scout_and_forecaster_use_the_same_bucket_names(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a\n1\n")
    planned = skill_module("plan-objective", "target").bucket_of
    scouted = skill_module("workspace-inventory").bucket_of
    assert planned(tmp_path) == scouted(tmp_path)
    assert planned(table) == scouted(table) == skill_module("csv-forecast").bucket_of(None, table)
