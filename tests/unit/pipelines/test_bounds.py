"""The backbone's limits: scope, patches, trace maps and gates. Violations are named and change nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from fireswarm.contracts.skills.advice import (
    MAX_MATERIAL_CHARS,
    MAX_PIECES,
    Advice,
    AdviceKind,
    AdviceRequest,
    Evidence,
    ExecutionMode,
    Material,
    TraceEntry,
    TraceMap,
)
from fireswarm.contracts.skills.artifact import PIPELINE_FILE, Artifact
from fireswarm.contracts.skills.limits import BackboneSettings
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult, SkillState
from fireswarm.errors import GateFailed, InvalidInput
from fireswarm.pipelines import (
    Allowlist,
    Carried,
    apply_patch,
    changed_files,
    check_advice,
    check_step,
    material_of,
    unified_diff,
)
from fireswarm.pipelines.files import safe_path
from fireswarm.pipelines.node.schema import NodeSchema, identifier
from fireswarm.pipelines.trace import trace_faults
from tests.support.documents import step_named

SCOPE = Allowlist(("nodes/x/**", "tests/test_x*.py"))


def request(tmp_path: Path, **fields: Any) -> SkillRequest:
    """Make the request of a step."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    base = {"task_id": "t", "session_hash": "s", "objective": "o", "role": "executor"}
    return SkillRequest.model_validate({**base, "workdir": tmp_path, "now": now, **fields})


def file(name: str, content: str) -> Artifact:
    return Artifact(type=PIPELINE_FILE, name=name, value=content)


# ── scope and patches ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("nodes/x/a.py", True),
        ("nodes/x/deep/er/a.py", True),
        ("tests/test_x_more.py", True),
        ("nodes/xy/a.py", False),
        ("nodes/x", False),
        ("nodes/x/../y/a.py", False),
        ("/nodes/x/a.py", False),
        ("tests/sub/test_x.py", False),
        ("nodes/x/.git/config", False),
        ("nodes/x/a:b.py", False),
        ("", False),
        (".", False),
        ("./", False),
    ],
)
def test_allowlist_matches_paths_by_its_patterns(path: str, allowed: bool) -> None:
    assert SCOPE.allows(path) is allowed


@given(st.text(max_size=40) | st.text(alphabet="./a\\:", max_size=8))
def test_safe_path_is_always_inside_its_folder(name: str) -> None:
    try:
        path = safe_path(name)
    except InvalidInput:
        return
    root = Path("/somewhere/folder")
    assert (root / path).resolve().is_relative_to(root) and (root / path).resolve() != root


FILES = st.dictionaries(
    st.sampled_from(["nodes/x/a.py", "nodes/x/b.py", "tests/test_x.py"]),
    st.lists(st.sampled_from(["one", "two", "three", ""]), min_size=1, max_size=6).map(
        lambda lines: "\n".join(lines) + "\n"
    ),
    min_size=1,
)


@settings(deadline=None)
@given(before=FILES, after=FILES)
def test_applying_the_diff_of_two_projects_turns_one_into_the_other(
    before: dict[str, str], after: dict[str, str]
) -> None:
    if changed_files(before, after):
        assert apply_patch(unified_diff(before, after), before, SCOPE, 20) == after


@pytest.mark.parametrize(
    ("patch", "fault"),
    [
        ("nothing of a patch", "not a unified diff"),
        ("--- a/nodes/y/a.py\n+++ b/nodes/y/a.py\n@@ -1 +1 @@\n-one\n+two\n", "outside the scope"),
        ("--- /dev/null\n+++ b/nodes/x/../../etc/passwd\n@@ -0,0 +1 @@\n+x\n", "not a path inside"),
        ("--- a/nodes/x/a.py\n+++ b/nodes/x/a.py\n@@ -1,2 +1,2 @@\n-three\n+two\n four\n", "does not apply"),
        ("diff --git a/nodes/x/a.py b/nodes/x/a.py\nnew file mode 120000\n+++ b/nodes/x/a.py\n", "only change text"),
        ("diff --git a/nodes/x/a.py b/nodes/x/c.py\nrename from nodes/x/a.py\n", "only change text"),
    ],
)  # fmt: skip
def test_patch_outside_the_scope_or_malformed_is_refused(patch: str, fault: str) -> None:
    with pytest.raises(InvalidInput, match=fault):
        apply_patch(patch, {"nodes/x/a.py": "one\ntwo\n"}, SCOPE, 20)


def test_patch_with_too_many_files_is_rejected() -> None:
    after = {f"nodes/x/{number}.py": "one\n" for number in range(3)}
    with pytest.raises(InvalidInput, match="3 files are changed; 2 are allowed"):
        apply_patch(unified_diff({}, after), {}, SCOPE, 2)


# ── trace maps ──────────────────────────────────────────────────────────────────────────────────────────

SOURCES = {"api.md": "# API\n`GET /links` lists links\n"}
SEEN = TraceEntry(evidence=(Evidence(file="api.md", line_start=2, line_end=2, quote="GET /links"),))
GUESS = TraceEntry(kind="ASSUMPTION", rationale="usual")


@pytest.mark.parametrize(
    ("entries", "fault"),
    [
        ({"a": SEEN}, "b: no entry"),
        ({"a": SEEN, "b": SEEN, "c": SEEN}, "c: the schema has no such field"),
        ({"a": SEEN, "b": TraceEntry()}, "b: no evidence"),
        ({"a": SEEN, "b": TraceEntry(kind="ASSUMPTION")}, "b: an assumption needs a rationale"),
        ({"a": SEEN, "b": GUESS}, "1 of 2 fields are assumptions"),
        (
            {"a": SEEN, "b": TraceEntry(evidence=(Evidence(file="no.md", line_start=1, line_end=1),))},
            "not in the source",
        ),
        ({"a": SEEN, "b": TraceEntry(evidence=(Evidence(file="api.md", line_start=9, line_end=9),))}, "has 2 lines"),
        (
            {"a": SEEN, "b": TraceEntry(evidence=(Evidence(file="api.md", line_start=1, line_end=1, quote="GET"),))},
            "is not in",
        ),
    ],
)
def test_faults_of_a_trace_map_are_named(entries: dict[str, TraceEntry], fault: str) -> None:
    faults = trace_faults(TraceMap(fields=entries), ["a", "b"], SOURCES)
    assert any(fault in found for found in faults), faults


@pytest.mark.parametrize(("guesses", "holds"), [(3, True), (4, False)])
def test_more_than_30_percent_assumptions_are_rejected(guesses: int, holds: bool) -> None:
    names = [f"f{number}" for number in range(10)]
    trace = TraceMap(fields={name: GUESS if number < guesses else SEEN for number, name in enumerate(names)})
    assert (trace_faults(trace, names, SOURCES) == []) is holds


# ── gates ───────────────────────────────────────────────────────────────────────────────────────────────

ASKS = AdviceRequest(kind=AdviceKind.CODE, question="?", scope=("nodes/x/a.py",))
ADVICE = Advice(kind=AdviceKind.CODE, content={})


def gate(step: str, mode: ExecutionMode, asked: SkillRequest, **result: Any) -> str:
    """Return the message of the gate, or an empty string if the step passes."""
    try:
        check_step(step_named(step), mode, asked, SkillResult.model_validate({"summary": "done", **result}))
    except GateFailed as failed:
        return str(failed)
    return ""


def test_deterministic_step_that_asks_for_advice_fails_its_gate(tmp_path: Path) -> None:
    asked = request(tmp_path)
    wants = {"state": SkillState.ADVICE_REQUIRED, "asks": ASKS}
    assert "a deterministic step must not ask" in gate("some-step", ExecutionMode.DETERMINISTIC, asked, **wants)
    assert gate("some-step", ExecutionMode.HYBRID, asked, **wants) == ""
    assert "must ask for it" in gate("some-step", ExecutionMode.HYBRID, asked, state=SkillState.ADVICE_REQUIRED)


def test_advisor_only_step_without_advice_fails_its_gate(tmp_path: Path) -> None:
    asked = request(tmp_path)
    assert "without advice" in gate("some-step", ExecutionMode.ADVISOR_ONLY, asked)
    assert gate("some-step", ExecutionMode.ADVISOR_ONLY, asked.model_copy(update={"advice": (ADVICE,)})) == ""


ALLOWED = file("allowlist.json", '{"patterns": ["nodes/x/**", "tests/test_x*.py"]}')


@pytest.mark.parametrize(
    ("step", "made", "fault"),
    [
        ("source-classify", {}, "classification.json is missing"),
        ("other", {"request_snapshot.json": "{}"}, "the request must not change"),
        ("other", {"project/nodes/y/a.py": "x = 1\n"}, "outside the scope"),
        ("other", {"project/nodes/x/a.py": "def f(:\n"}, "invalid syntax"),
        (
            "other",
            {"allowlist.json": '{"patterns": ["**"]}', "project/nodes/x/a.py": ""},
            "must not widen its own scope",
        ),
        ("code-fix", {"project/tests/test_x.py": "x = 1\n"}, "must change the code, not the tests"),
        ("schema-infer", {"trace_map.json": '{"fields": {}}'}, "must be written together"),
        ("other", {f"project/nodes/x/{number}.py": "" for number in range(21)}, "21 files are changed; 20"),
    ],
)
def test_step_with_forbidden_output_fails_its_gate(tmp_path: Path, step: str, made: dict[str, str], fault: str) -> None:
    given = [file("request_snapshot.json", '{"a": 1}'), ALLOWED]
    asked = request(tmp_path, artifacts=given)
    left = {artifact.name: artifact for artifact in given} | {name: file(name, text) for name, text in made.items()}
    assert fault in gate(step, ExecutionMode.DETERMINISTIC, asked, artifacts=tuple(left.values()))


def test_project_change_without_an_allowlist_fails_its_gate(tmp_path: Path) -> None:
    made = (file("project/nodes/x/a.py", "x = 1\n"),)
    assert "without allowlist.json" in gate("other", ExecutionMode.DETERMINISTIC, request(tmp_path), artifacts=made)


# ── advice ──────────────────────────────────────────────────────────────────────────────────────────────

PROJECT = Material(name="project/nodes/x/a.py", text="one\ntwo\n")
GOOD_PATCH = "--- a/nodes/x/a.py\n+++ b/nodes/x/a.py\n@@ -1,2 +1,2 @@\n-one\n+three\n two\n"


@pytest.mark.parametrize(
    ("kind", "content", "fault"),
    [
        (AdviceKind.CODE, {"files": [{"path": "nodes/x/a.py", "content": "x = 1\n"}]}, ""),
        (AdviceKind.CODE, {"files": [{"path": "nodes/x/b.py", "content": "x = 1\n"}]}, "outside the scope"),
        (AdviceKind.CODE, {"files": [{"path": "nodes/x/a.py", "content": "x = (\n"}]}, "never closed"),
        (AdviceKind.CODE, {"files": [{"path": "nodes/x/a.py", "content": "async def f(): ...\n"}]}, "async-code"),
        (
            AdviceKind.CODE,
            {"files": [{"path": "nodes/x/a.py", "content": "import httpx\nhttpx.get('x', timeout=None)\n"}]},
            "http-timeout",
        ),
        (AdviceKind.CODE, {"files": []}, "files"),
        (AdviceKind.CODE, {"files": "x", "more": 1}, "more"),
        (AdviceKind.PATCH, {"patch": GOOD_PATCH}, ""),
        (AdviceKind.PATCH, {"patch": GOOD_PATCH.replace("x/a.py", "x/b.py")}, "outside the scope"),
        (AdviceKind.PATCH, {"patch": GOOD_PATCH.replace("-one", "-four")}, "does not apply"),
        (AdviceKind.SCHEMA, {"inferred": {"name": "x"}, "trace": {"fields": {}}}, "source_type"),
    ],
)
def test_invalid_advice_is_rejected(kind: AdviceKind, content: Any, fault: str) -> None:
    material = () if kind is AdviceKind.CODE else (PROJECT,)
    asks = AdviceRequest(kind=kind, question="?", material=material, scope=("nodes/x/a.py",))
    found = check_advice(asks, content)
    assert (fault in found) if fault else found == ""


def test_advice_request_needs_a_scope_and_has_a_size_limit() -> None:
    with pytest.raises(ValidationError, match="needs a scope"):
        AdviceRequest(kind=AdviceKind.PATCH, question="?")
    with pytest.raises(ValidationError, match="120,000 are allowed"):
        AdviceRequest(
            kind=AdviceKind.SCHEMA, question="?", material=(Material(name="a", text="x" * (MAX_MATERIAL_CHARS + 1)),)
        )


# ── limits, names, files ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("name", "value"), [("max_steps", 51), ("fix_loop_max", 4), ("max_changed_files", 21)])
def test_hard_limits_cannot_be_raised(name: str, value: int) -> None:
    with pytest.raises(ValidationError, match=name):
        BackboneSettings.model_validate({name: value})


@given(st.text(max_size=80))
def test_any_name_becomes_a_valid_schema_name(text: str) -> None:
    name = identifier(text)
    assert name.isidentifier()
    NodeSchema.model_validate({"name": name, "source_type": "TYPE1", "operations": [{"key": f"{name}.{name}"}]})


def test_last_written_file_of_a_name_is_passed_on(tmp_path: Path) -> None:
    asked = request(tmp_path, artifacts=[file("a.txt", "old"), file("b.txt", "kept"), Artifact(type="other", name="c")])
    carried = Carried.of(asked)
    carried.write("a.txt", "new")
    assert {name: carried.text(name) for name in carried.names()} == {"a.txt": "new", "b.txt": "kept"}
    assert [artifact.name for artifact in carried.artifacts()] == ["a.txt", "b.txt"]
    with pytest.raises(InvalidInput, match=r"c.txt is missing: the step that creates it did not run"):
        carried.text("c.txt")
    with pytest.raises(InvalidInput, match="not a path inside"):
        carried.write("../a.txt", "x")


def test_material_for_an_advisor_fits_and_has_what_is_still_to_be_written(tmp_path: Path) -> None:
    carried = Carried(tmp_path)
    written = {"key": "a", "template": {"requests": ["x" * 50_000]}}
    schema = {
        "operations": [written, {"key": "b", "template": None}],
        "parameters": [{"name": "one", "operations": ["a"]}, {"name": "two", "operations": ["a", "b"]}],
        "inputs": {"a": {}, "b": {}},
    }
    carried.write_json("node_schema.json", schema)
    carried.write("source_bundle/large.js", "l" * 200_000)
    carried.write("source_bundle/small.js", "s" * 1_000)
    carried.write("project/nodes/x/operations.py", "p" * 1_000)
    for number in range(80):
        carried.write(f"source_bundle/many/{number}.js", "m")
    spent = [Material(name="log", text="t" * 10_000)]
    found = material_of(carried, carried.names(), spent)
    assert len(found) + len(spent) == MAX_PIECES
    assert sum(len(piece.text) for piece in (*found, *spent)) <= MAX_MATERIAL_CHARS
    texts = {piece.name: piece.text for piece in found}
    kept = json.loads(texts["node_schema.json"])
    assert [each["key"] for each in kept["operations"]] == ["b"]
    assert ([each["name"] for each in kept["parameters"]], list(kept["inputs"])) == (["two"], ["b"])
    assert texts["project/nodes/x/operations.py"] == "p" * 1_000


def test_file_that_does_not_fit_is_cut_with_a_note(tmp_path: Path) -> None:
    carried = Carried(tmp_path)
    carried.write("source_bundle/large.js", "l" * 200_000)
    carried.write("source_bundle/small.js", "s" * 1_000)
    small, large = material_of(carried, carried.names())
    assert small.text == "s" * 1_000
    assert large.text.endswith("[the rest is left out: 200,000 characters do not fit]\n")
    assert len(small.text) + len(large.text) == MAX_MATERIAL_CHARS
