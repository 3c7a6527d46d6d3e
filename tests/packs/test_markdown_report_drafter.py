"""markdown-report-drafter: valid Markdown, traceable statements, reproducible output."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from fireswarm.contracts.skills.artifact import Artifact, Signal
from fireswarm.contracts.skills.skill import Fact, SkillRequest, SkillResult, SkillState
from tests.support.packs import NOW, MakeRequest, kept, run_skill, skill_module

NAME = "markdown-report-drafter"
PARSER = MarkdownIt("commonmark").enable("table")

NASTY = "a|b `c` *d* <script>alert(1)</script> [x](y) ![z](w) \\ $e$ ~~f~~ & &amp;"


def table_shapes(text: str) -> list[set[int]]:
    """Return the set of row lengths, in cells, of each table in *text*."""
    shapes: list[set[int]] = []
    cells = 0
    for token in PARSER.parse(text):
        if token.type == "table_open":
            shapes.append(set())
        elif token.type == "tr_open":
            cells = 0
        elif token.type in {"th_open", "td_open"}:
            cells += 1
        elif token.type == "tr_close":
            shapes[-1].add(cells)
    return shapes


def risk(**fields: Any) -> Artifact:
    value: dict[str, Any] = {
        "method": "weighted ranks", "files": 2, "score_means": "order", "bands": "draws", "features": ["lines"],
        "evaluation": {}, "why_not_supervised": "the history is short",
        "scores": [
            {"path": f"src/{NASTY[:20]}.py", "score": 0.9, "low": 0.8, "high": 1.0, "top_share": 1.0, "why": [NASTY]},
            {"path": "src/b.py", "score": 0.4, "low": 0.1, "high": 0.6, "top_share": 0.2, "why": []},
        ],
        "facts": [{"bucket": "folder:x", "key": "highest_risk", "value": 0.9}],
    }  # fmt: skip
    return Artifact(type="risk_scores", name="risk_scores.json", summary=f"Highest is {NASTY}", value=value | fields)


def inventory(request: SkillRequest) -> tuple[Artifact, ...]:
    return kept(request, run_skill("workspace-inventory", request))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "pro|ject"
    (root / "docs").mkdir(parents=True)
    notes = "# Notes | about\n\nTODO: `look` | at it\n\n[gone](away.md)\n\n- [ ] decide\n"
    (root / "docs" / "notes.md").write_text(notes)
    (root / "docs" / "copy.md").write_text(notes)
    (root / "docs" / "bare.md").write_text("no heading here\n")
    (root / "a|b.py").write_text("def parse_config(reader):\n    return reader\n")
    return root


def draft(make_request: MakeRequest, artifacts: tuple[Artifact, ...], **fields: Any) -> tuple[str, SkillResult]:
    request = make_request(role="executor", artifacts=artifacts, **fields)
    result = run_skill(NAME, request)
    assert result.state is SkillState.COMPLETED, result.summary
    return (request.workdir / "report.md").read_text(encoding="utf-8"), result


def test_folder_report_with_special_characters_in_names_is_valid_markdown(
    folder: Path, make_request: MakeRequest
) -> None:
    artifacts = (*inventory(make_request(context={"path": str(folder)})), risk())
    signals = (Signal(name="risk", strength=0.9, subject=NASTY, note=NASTY),)
    text, result = draft(make_request, artifacts, signals=signals, objective=NASTY, context={"title": NASTY})
    shapes = table_shapes(text)
    assert len(shapes) >= 7
    assert all(len(shape) == 1 for shape in shapes), shapes
    assert "<script>" not in PARSER.render(text)
    assert {artifact.type for artifact in result.artifacts} == {"report", "chart"}


def test_every_citation_is_in_the_sources_table_and_every_section_has_one(
    folder: Path, make_request: MakeRequest
) -> None:
    artifacts = (*inventory(make_request(task_id="scout-7", context={"path": str(folder)})), risk())
    text, _ = draft(make_request, artifacts)
    body, sources = text.split("## Sources")
    listed = set(re.findall(r"^\| (A\d+) \|", sources, re.MULTILINE))
    assert set(re.findall(r"\[(A\d+)\]", body)) == listed == {"A1", "A2"}
    assert artifacts[0].sha256 is not None
    assert artifacts[0].sha256[:16] in sources
    assert "`scout-7`" in sources
    for block in body.split("\n\n"):
        if block.startswith("- ") or block.startswith("1. "):
            continue
        if re.match(r"### ", block):
            assert re.search(r"\[A\d+\]$", block), block


def test_changes_since_the_last_run_are_shown_old_to_new(folder: Path, make_request: MakeRequest) -> None:
    artifacts = inventory(make_request(context={"path": str(folder)}))
    facts = {fact["key"]: fact for fact in artifacts[0].value["facts"]}
    recalled = [
        {**facts["files"], "value": 2, "source": "task-old", "learned_at": "2026-01-05T10:00:00Z"},
        {**facts["broken_links"], "source": "task-old"},
        {**facts["files"], "key": "colour", "value": "blue", "source": "task-old"},
        {**facts["files"], "key": "objective:1", "value": {"objective": "Look", "outcome": "Fine"}, "source": "t"},
    ]
    memory = Artifact(type="recalled_facts", name="recalled", summary="Recalled 4 facts.", value={"facts": recalled})
    text, result = draft(make_request, (*artifacts, memory))
    section = text.split("## What earlier runs learned")[1].split("\n## ")[0]
    assert "| files | 2 | 4 [A2] | +2 | `task-old` 2026-01-05 |" in section
    assert "Unchanged (1): broken links 2" in section
    assert "Not measured this time (1): colour blue" in section
    assert "`t`: Look Fine" in section
    assert "Since the last run: files: 2 → 4 [A1][A2]" in text
    assert any("files: 2 → 4" in text for text in result.insights)


def test_first_run_is_reported_as_the_first(folder: Path, make_request: MakeRequest) -> None:
    memory = run_skill("fact-recall", make_request(role="memory", context={"path": str(folder), "bucket": "folder:x"}))
    artifacts = (*inventory(make_request(context={"path": str(folder)})), *memory.artifacts)
    assert "This is the first objective on" in draft(make_request, artifacts)[0]


def test_report_on_notes_includes_a_checklist_of_open_points(folder: Path, make_request: MakeRequest) -> None:
    request = make_request(
        role="executor", artifacts=inventory(make_request(context={"path": str(folder)})), context={"kind": "notes"}
    )
    result = run_skill(NAME, request)
    assert [artifact.type for artifact in result.artifacts] == ["report", "chart", "checklist"]
    checklist = (request.workdir / "checklist.md").read_text()
    assert "- [ ] Line 5: repair the link to `away.md`" in checklist
    assert "- [ ] Line 7: OPEN decide" in checklist
    assert "## `docs/bare.md`\n\n- [ ] Give the document a heading" in checklist
    assert "checklist.md" in result.summary


def test_pipe_in_a_name_is_escaped_only_in_tables() -> None:
    markdown = skill_module(NAME, "markdown")
    assert markdown.code("a|b") == "`a|b`"
    assert markdown.table(["x"], [[markdown.code("a|b")]]).endswith("| `a\\|b` |")


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_forecast_is_reported_with_its_error(task: str, make_request: MakeRequest) -> None:
    rows = "".join(f"{n % 17},{(n * 7) % 13},{'' if n < 3 else (n % 17) * 2 + (n * 7) % 5}\n" for n in range(120))
    if task == "classification":
        rows = "".join(f"{n % 17},{(n * 7) % 13},{'' if n < 3 else 'yn'[n % 17 > 8]}\n" for n in range(120))
    request = make_request(context={"csv": "a|x,b,t\n" + rows, "target": "t"})
    artifacts = kept(request, run_skill("csv-forecast", request))
    text, result = draft(make_request, artifacts)
    assert "### On rows the model never saw [A1]" in text
    assert "### Rows forecast (3 of 3) [A1]" in text
    assert all(len(shape) == 1 for shape in table_shapes(text))
    assert "chart" in {artifact.type for artifact in result.artifacts}


def test_same_input_produces_the_same_bytes_and_a_valid_chart(folder: Path, make_request: MakeRequest) -> None:
    artifacts = (*inventory(make_request(context={"path": str(folder)})), risk())
    drafts = [draft(make_request, artifacts)[1] for _ in range(2)]
    hashes = [[artifact.sha256 for artifact in result.artifacts] for result in drafts]
    assert hashes[0] == hashes[1]
    request = make_request(role="executor", artifacts=artifacts)
    run_skill(NAME, request)
    chart = (request.workdir / "chart.svg").read_text()
    assert ElementTree.fromstring(chart).tag.endswith("svg")
    assert "<dc:date>" not in chart


def test_report_without_matplotlib_has_no_chart_and_names_the_extra(
    folder: Path, make_request: MakeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text, result = draft(make_request, inventory(make_request(context={"path": str(folder)})))
    assert "chart.svg" not in text
    assert [artifact.type for artifact in result.artifacts] == ["report"]
    assert any("matplotlib>=" in text for text in result.insights)


def test_facts_of_the_request_are_used_without_a_recalled_artifact(folder: Path, make_request: MakeRequest) -> None:
    artifacts = inventory(make_request(context={"path": str(folder)}))
    bucket = artifacts[0].value["folder"]["bucket"]
    facts = (Fact(bucket=bucket, key="files", value=9, source="old", learned_at=NOW),)
    text, _ = draft(make_request, artifacts, facts=facts)
    assert "| files | 9 | 4 [A1] | -5 |" in text


def test_unreadable_inventory_file_falls_back_to_the_totals(folder: Path, make_request: MakeRequest) -> None:
    whole = inventory(make_request(context={"path": str(folder)}))[0]
    text, _ = draft(make_request, (whole.model_copy(update={"uri": "file:///no/such/file"}),))
    assert "| Files | 4 |" in text


def test_a_file_uri_is_read(folder: Path, make_request: MakeRequest) -> None:
    whole = inventory(make_request(context={"path": str(folder)}))[0]
    text, _ = draft(make_request, (whole.model_copy(update={"uri": Path(str(whole.uri)).as_uri(), "value": None}),))
    assert "### Broken links (2) [A1]" in text


def test_missing_inventory_fails_with_the_reason(make_request: MakeRequest) -> None:
    result = run_skill(NAME, make_request(role="executor"))
    assert result.state is SkillState.FAILED
    assert "no inventory" in result.summary


def rendered_text(markdown: str) -> str:
    """Return the text as rendered; fail if any of it was parsed as markup."""
    tokens = PARSER.parse(markdown)
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"], markdown
    children = tokens[1].children or []
    assert {child.type for child in children} <= {"text", "text_special"}, markdown
    return "".join(child.content for child in children)


@given(st.text(min_size=1))
def test_escaped_text_is_rendered_verbatim(text: str) -> None:
    markdown = skill_module(NAME, "markdown")
    visible = " ".join(markdown.visible(text).split())
    if visible:
        assert rendered_text(markdown.inline(text)) == visible


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=5))
def test_any_text_stays_in_its_table_cell(rows: list[tuple[str, str]]) -> None:
    markdown = skill_module(NAME, "markdown")
    text = markdown.table(["One", "Two"], [[markdown.inline(a), markdown.code(b)] for a, b in rows])
    assert table_shapes(text) == [{2}]


@given(st.text(min_size=1, alphabet=st.sampled_from("ab`| \\*")))
def test_code_in_a_table_cell_is_rendered_verbatim(text: str) -> None:
    markdown = skill_module(NAME, "markdown")
    cell = markdown.code(text)
    if not cell:
        return
    tokens = PARSER.parse(markdown.table(["One"], [[cell]]))
    inline = [token for token in tokens if token.type == "inline"][1]
    codes = [child.content for child in inline.children or [] if child.type == "code_inline"]
    assert codes == [" ".join(text.split())]
