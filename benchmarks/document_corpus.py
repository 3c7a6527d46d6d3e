"""How much of public API documents the pipeline reads, and how many of the nodes pass their tests.

Each OpenAPI document below a folder becomes a node in this process, without a model; so does each folder that has
Markdown or HTML with calls. The tests of the nodes are run confined.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fireswarm import errors, pipelines
from fireswarm.contracts.skills.skill import SkillState
from tests.support.documents import ALL, run_steps

MAX_BYTES = 20_000_000
"""The pipeline takes no larger document."""

DESCRIBED = (".json", ".yaml", ".yml")
PAGES = (".md", ".html")
MIN_CALLS = 5
"""Pages of a folder are an API's documentation if they name so many calls."""

NODES_APART = 8
"""Of the nodes of a package, one in so many goes through all steps: each takes some seconds."""


def find_documents(folder: Path) -> Iterator[Path]:
    """Yield the OpenAPI documents below a folder, and the folders in it with Markdown or HTML that names calls.

    The only document of a folder is that folder, with the files to which it refers.
    """
    files = [path for path in sorted(folder.rglob("*")) if "node_modules" not in path.parts and path.is_file()]
    documents = [each for each in files if each.suffix in DESCRIBED and each.stat().st_size <= MAX_BYTES]
    documents = [each for each in documents if _is_openapi(each)]
    beside = Counter(each.parent for each in documents)
    yield from (each if each.parent == folder or beside[each.parent] > 1 else each.parent for each in documents)
    calls = Counter({each: _calls_in(each) for each in files if each.suffix in PAGES})
    for place in sorted({each.parent for each in calls}):
        if sum(calls[each] for each in calls if each.parent == place) >= MIN_CALLS:
            yield place


def _calls_in(page: Path) -> int:
    text = page.read_text(encoding="utf-8", errors="replace")
    markdown = pipelines.page_as_markdown(text) if page.suffix == ".html" else text
    return sum(1 for _ in pipelines.count_calls(markdown))


def _is_openapi(path: Path) -> bool:
    text = path.read_text(encoding="utf-8", errors="replace")
    if "openapi" not in text and "swagger" not in text:
        return False
    try:
        value = pipelines.load_document(text).value
    except errors.InvalidInput:
        return "paths" in text
    return isinstance(value, dict) and bool({"openapi", "swagger"} & value.keys()) and bool(value.get("paths"))


def judge_document(path: Path) -> tuple[Counter[str], str]:
    """Return the counts of one document, and why it did not become a node that passes its tests, or ""."""
    counts = Counter({"documents": 1})
    with tempfile.TemporaryDirectory() as place:
        work = Path(place).resolve()
        result, files = run_steps(path, work, ALL, name="made")
        if "node_schema.json" in files:
            schema = pipelines.load_schema(files)
            counts["documents_read"] += 1
            for kind, count in schema.parts.items():
                counts[f"{kind}_present"] += count.present
                counts[f"{kind}_found"] += count.found
            counts["listed_as_unread"] += len(schema.unread)
            counts["operations_for_the_advisor"] += len(schema.to_write())
            counts["lost_silently"] += len(_lost(schema, files))
        if result.state is not SkillState.COMPLETED:
            return counts, result.summary[:300]
        outcome: dict[str, Any] = files.json("validation.json")
        has_stubs = "node_schema.json" in files and bool(pipelines.load_schema(files).to_write())
        counts["nodes_that_need_an_advisor"] += has_stubs
        counts["nodes"] += not has_stubs
        counts["nodes_that_pass"] += outcome["passed"] and not has_stubs
        counts += changes_found(outcome)
        return counts, "" if outcome["passed"] or has_stubs else f"{outcome['pytest']} {outcome['faults'][:2]}"


def changes_found(outcome: dict[str, Any]) -> Counter[str]:
    """Return how many changes of the code were made, and how many the tests find."""
    found = outcome.get("mutants") or {"made": 0, "killed": 0}
    return Counter({"changes": found["made"], "changes_found": found["killed"]})


def port_nodes(root: Path) -> Counter[str]:
    """Let one in NODES_APART nodes of a package go through all steps; count how many pass and what their tests find."""
    counts = Counter[str]()
    for name in pipelines.listed_nodes(root)[::NODES_APART]:
        with tempfile.TemporaryDirectory() as place:
            result, files = run_steps(root, Path(place).resolve(), ALL, name="made", node=name)
            if result.state is SkillState.COMPLETED:
                outcome = files.json("validation.json")
                counts += Counter({"ported": 1, "ported_that_pass": int(outcome["passed"])}) + changes_found(outcome)
    return counts


def _lost(schema: pipelines.NodeSchema, files: Any) -> list[str]:
    classified = files.json("classification.json")
    count = {"openapi": pipelines.measure, "markdown": pipelines.measure_markdown}.get(classified["reader"])
    return count(schema, files.tree(pipelines.SOURCES), classified["main"]).lost if count is not None else []
