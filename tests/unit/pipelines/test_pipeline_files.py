"""Pipelines as files: what a file may say, what is said of a faulty one, and which rounds follow from it."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fireswarm.contracts.frontmatter import load_yaml
from fireswarm.contracts.skills.artifact import PIPELINE_FILE, Artifact
from fireswarm.contracts.skills.skill import ChildResult, SkillRequest, SkillResult, SkillState
from fireswarm.errors import InvalidInput
from fireswarm.pipelines.definition import Pipeline
from fireswarm.pipelines.loading import Pipelines, check_pipeline, find_faults, load_pipelines, read_pipeline
from fireswarm.pipelines.rounds import count_kept, next_round
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.packs.catalog import load_catalog
from fireswarm.swarm.records.policy import HandoffPolicy
from fireswarm.swarm.roles.card import load_roles

ROOT = Path(__file__).resolve().parents[3]
PACKAGED = packaged_path("pipelines")
CATALOG = load_catalog([packaged_path("skills")])

STEPS = """\
description: Counts.
steps:
  - id: first
    skill: source-classify
  - id: second
    skill: source-ingest
    needs: [first]
"""


def write(folder: Path, text: str, name: str = "mine") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_packaged_pipelines_fit_the_packaged_skills_roles_and_routes() -> None:
    policy = HandoffPolicy.load(packaged_path("mailbox") / "policy.yaml")
    found, catalog = load_pipelines([PACKAGED], CATALOG, load_roles(packaged_path("roles")), policy.route_fault)
    assert found.left_out == ()
    assert {path.stem for path in PACKAGED.glob("*.yaml")} == {file.name for file in found.by_skill.values()}
    assert {*found.by_skill} <= {*catalog.skills}


def test_engine_names_no_skill_of_the_node_pipeline() -> None:
    """What belongs to the node pipeline is its file, its skills, and two places with the code that these share."""
    source = ROOT / "src" / "fireswarm"
    own = (source / "pipelines" / "node", source / "pipelines" / "registered" / "node.py")
    steps = read_pipeline(PACKAGED / "node.yaml").pipeline.steps
    names = "|".join(("node-pipeline", *(step.skill_name for step in steps)))
    named = [
        f"{path.relative_to(source)}: {match[0]}"
        for path in source.rglob("*.py")
        if not any(path.is_relative_to(place) for place in own)
        for match in re.finditer(rf"\b(?:{names})\b", path.read_text(encoding="utf-8"))
    ]
    assert named == []


@pytest.mark.parametrize(
    ("old", "new", "line", "fault"),
    [
        ("    needs: [first]", "    neds: [first]", 7, "steps.1.neds: Extra inputs are not permitted"),
        ("    needs: [first]", "    needs: [third]", 7, "step 'second' needs third: no step before it has this id"),
        ("  - id: second", "  - id: first", 5, "two steps have the id 'first'"),
        ("  - id: second", "  - id: Se.cond", 5, "lower-case letters, digits and hyphens"),
        ("    skill: source-ingest", "    skill: nothing-here", 6, "there is no skill 'nothing-here' with code"),
        (
            "    skill: source-ingest",
            "    skill: csv-forecast",
            6,
            "add `execution_mode: deterministic`",
        ),
        ("    needs: [first]", "    mode: advisor_only", 7, "the skill is deterministic by"),
        ("    needs: [first]", "    role: pilot", 7, "there is no role 'pilot'; known: executor, scout"),
        ("    needs: [first]", "    gates: [nothing]", 7, "there is no gate nothing; known: fixed-files"),
        ("    needs: [first]", "    when: [{holds: nothing}]", 7, "there is no condition nothing"),
        ("    needs: [first]", "    when: [{at: a}]", 7, "`file`, `at` and `equals`"),
        ("    needs: [first]", "    loop: {until: {file: a.json}, most: 4}", 7, "less than or equal to 3"),
        ("    needs: [first]", "    loop: {until: {file: a.json}, else: x}", 7, "ends with 'x': name a step after it"),
        ("description: Counts.", "description: Counts.\nlimits: {steps: 51}", 2, "less than or equal to 50"),
        ("description: Counts.", "description: Counts.\nrole: pilot", 2, "there is no role 'pilot'"),
    ],
)
def test_fault_of_a_file_is_named_with_its_line(tmp_path: Path, old: str, new: str, line: int, fault: str) -> None:
    path = write(tmp_path, STEPS.replace(old, new))
    with pytest.raises(InvalidInput) as refused:
        check_pipeline(read_pipeline(path), CATALOG, frozenset({"architect", "executor", "scout"}))
    told = str(refused.value)
    assert fault.replace("known: executor, scout", "known: architect, executor, scout") in told
    assert f"{path}:{line}: " in told


@pytest.mark.parametrize(
    ("text", "fault"),
    [("a: [", "is not YAML: line 1"), ("- a", "is no pipeline"), ("a: &a [*a]", "is not YAML"), ("\xff\0", "is not")],
)
def test_file_that_is_no_pipeline_leaves_the_others_in_use(tmp_path: Path, text: str, fault: str) -> None:
    write(tmp_path, text, "broken")
    write(tmp_path, STEPS)
    found, catalog = load_pipelines([tmp_path, PACKAGED], CATALOG)
    assert {"mine-pipeline", "node-pipeline"} <= {*found.by_skill} and "mine-pipeline" in catalog.skills
    [(path, reason)] = found.left_out
    assert path.stem == "broken" and fault in reason
    with pytest.raises(InvalidInput, match="cannot be used"):
        found.get("broken")
    with pytest.raises(InvalidInput, match="known: .*node"):
        found.get("other")


def test_file_of_the_user_takes_the_place_of_the_packaged_one(tmp_path: Path) -> None:
    path = write(tmp_path, STEPS, "node")
    found, _ = load_pipelines([tmp_path, PACKAGED], CATALOG)
    assert found.get("node").path == path
    assert (PACKAGED / "node.yaml", f"shadowed by {path}") in found.left_out


def test_link_is_no_pipeline(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").symlink_to("/dev/zero")
    found, _ = load_pipelines([tmp_path], CATALOG)
    assert "cannot be read" in found.left_out[0][1]


# ── rounds ──────────────────────────────────────────────────────────────────────────────────────────────


class Run:
    """The planner's view of a run: the tasks that ended, with the files that each of them wrote."""

    def __init__(self, steps: str, **more: Any) -> None:
        self.pipeline = Pipeline.model_validate(load_yaml(steps) | more)
        self.children: list[ChildResult] = []

    def ended(self, key: str, made: dict[str, Any] | None = None, *, status: str = "done", summary: str = "") -> Run:
        """Add a task that ended and wrote files with JSON."""
        given = {item.name: item for child in self.children for item in child.artifacts}
        new = {
            name: Artifact(type=PIPELINE_FILE, name=name, value=json.dumps(value), source_task_id=f"t-{key}")
            for name, value in (made or {}).items()
        }
        files = tuple((given | new).values())
        self.children.append(
            ChildResult(
                task_id=f"t-{key}",
                key=key,
                assigned_to="a",
                objective="o",
                status=status,
                summary=summary,
                artifacts=files,
            )
        )
        return self

    def next(self, **context: Any) -> SkillResult:
        """Return the next round."""
        return next_round(
            self.pipeline,
            SkillRequest(
                task_id="t", session_hash="s", objective="count", role="architect", context=context,
                children=tuple(self.children), workdir=Path("/nowhere"), now=datetime(2026, 1, 1, tzinfo=UTC),
            ),
        )  # fmt: skip

    def planned(self, **context: Any) -> dict[str, tuple[str, ...]]:
        """Return the keys of the next round, each with what it waits for."""
        return {task.key: task.depends_on for task in self.next(**context).tasks}


DIAMOND = """\
description: d
steps:
  - id: a
  - id: b
    needs: [a]
  - id: c
    needs: [a]
  - id: d
    needs: [b, c]
  - id: e
    when: [{file: f.json, at: x.y, equals: 1}]
"""


def test_steps_run_side_by_side_and_join_in_the_next_round() -> None:
    run = Run(DIAMOND)
    assert run.planned() == {"a": (), "b": ("a",), "c": ("a",)}
    run.ended("a").ended("b").ended("c")
    assert run.planned() == {"d": ()}


@pytest.mark.parametrize(
    ("value", "state"), [({"x": {"y": 1}}, "delegating"), ({"x": 1}, "completed"), ([], "completed")]
)
def test_step_with_a_condition_is_left_out_unless_it_holds(value: Any, state: str) -> None:
    run = Run(DIAMOND).ended("a").ended("b").ended("c").ended("d", {"f.json": value})
    assert run.next().state == state


def test_file_that_two_steps_side_by_side_wrote_stops_the_run() -> None:
    run = Run(DIAMOND).ended("a", {"f.json": 0}).ended("b", {"f.json": 1})
    run.ended("c", {"f.json": 2})
    told = run.next()
    assert told.escalated and told.summary == "b and c both wrote f.json: add one to the `needs` of the other"


def test_file_that_only_one_step_changed_is_not_replaced_by_the_old_one() -> None:
    run = Run(DIAMOND).ended("a", {"f.json": 0})
    old = run.children[0].artifacts
    run.ended("b", {"f.json": 1})
    run.children.append(run.children[0].model_copy(update={"key": "c", "task_id": "t-c", "artifacts": old}))
    [passed] = run.next().artifacts
    assert passed.value == "1"


LOOP = """\
description: d
steps:
  - id: check
  - id: fix
    loop: {until: {file: v.json, at: ok, equals: true}, most: 2, again: [check], else: report, because: it fails}
  - id: end
    needs: [check]
  - id: report
"""


def test_loop_repeats_until_its_condition_holds() -> None:
    run = Run(LOOP).ended("check", {"v.json": {"ok": False}})
    assert run.planned() == {"fix.1": (), "check.2": ("fix.1",)}
    run.ended("fix.1").ended("check.2", {"v.json": {"ok": True}})
    assert run.planned() == {"end": ()}
    assert run.ended("end").next().state is SkillState.COMPLETED


@pytest.mark.parametrize(("fixes", "tries", "summary"), [(3, 2, "told"), (1, 1, ""), (0, 0, "done")])
def test_loop_that_does_not_help_ends_with_its_last_step_and_needs_review(fixes: int, tries: int, summary: str) -> None:
    run = Run(LOOP, limits={"fixes": fixes}).ended("check", {"v.json": {"ok": False}})
    for number in range(1, tries + 1):
        assert f"fix.{number}" in run.planned()
        run.ended(f"fix.{number}").ended(f"check.{number + 1}", {"v.json": {"ok": False}})
    [last] = run.next().tasks
    assert (last.key, last.context["attempts"]) == ("report", str(tries))
    assert last.context["why"] == f"it fails after {tries} attempts to fix it"
    ended = run.ended("report", summary=summary).next()
    assert ended.state is SkillState.FAILED and ended.escalated


def test_limits_hold_for_the_whole_run() -> None:
    steps = Run(LOOP, limits={"steps": 2}).ended("check", {"v.json": {"ok": False}}).next()
    assert steps.escalated and steps.summary == "the run would need 3 steps; 2 are allowed"
    files = Run(DIAMOND, limits={"files": 2}).ended("a", {"project/1": 0, "project/2": 0}).ended("b").ended("c")
    assert files.planned() == {"d": ()}
    told = files.ended("d", {"project/3": 0}).next()
    assert told.escalated and told.summary == "the run has changed 3 files of the project; 2 are allowed"


def test_failed_step_ends_the_run() -> None:
    told = Run(DIAMOND).ended("a", status="blocked").next()
    assert told.escalated and "a is blocked" in told.summary


def test_missing_input_is_asked_for_and_a_step_gets_what_it_reads() -> None:
    run = Run(
        "description: d\ninputs: {source: 'Which?', name: 'Whose?'}\nsteps: [{id: a, reads: [source, objective]}]"
    )
    asked = run.next(source="x")
    assert [(item.name, item.description) for item in asked.questions] == [("name", "Whose?")]
    [task] = run.next(source="x", name="y", more="z").tasks
    assert task.context == {"correlation_id": "t", "source": "x", "objective": "count"}


def test_empty_set_of_pipelines_knows_none() -> None:
    with pytest.raises(InvalidInput, match="known: none"):
        Pipelines().get("node")


# ── resuming ────────────────────────────────────────────────────────────────────────────────────────────

ESCALATED = ("check", "fix.1", "check.2", "fix.2", "check.3", "report")


@pytest.mark.parametrize(
    ("steps", "keys", "step", "kept"),
    [
        (DIAMOND, "abcd", "a", 0),
        (DIAMOND, "abcd", "c", 2),
        (DIAMOND, "abcd", "d", 3),
        (LOOP, ("check", "fix.1", "check.2", "end"), "end", 3),
        (LOOP, ESCALATED, "check", 0),
        (LOOP, ESCALATED, "fix", 1),
    ],
)
def test_resumed_run_keeps_the_tasks_before_its_first_step(
    steps: str, keys: tuple[str, ...], step: str, kept: int
) -> None:
    assert count_kept(Run(steps).pipeline, [(key, "done") for key in keys], step) == kept


@pytest.mark.parametrize(
    ("keys", "step", "fault"),
    [
        ("ab", "x", "no step 'x' to resume from; known: a, b, c, d, e"),
        ("ab", "d", "has not reached the step 'd': resume from b or a step before it"),
        ("", "a", "has not reached the step 'a': run the pipeline again"),
        ("abc", "c", "the step b before 'c' is blocked: resume from b"),
    ],
)
def test_step_that_a_run_cannot_resume_from_is_refused_with_another(keys: str, step: str, fault: str) -> None:
    with pytest.raises(InvalidInput, match=fault):
        count_kept(Run(DIAMOND).pipeline, [(key, "blocked" if key == "b" else "done") for key in keys], step)


def test_every_fault_of_a_file_is_found_at_once(tmp_path: Path) -> None:
    steps = "".join(f"  - {{id: s{number}, skill: nothing-{number}, gates: [none]}}\n" for number in range(12))
    found = find_faults(write(tmp_path, f"description: d\nsteps:\n{steps}"), CATALOG)
    assert len(found) == 24 and ":14: steps.11.skill: step 's11': there is no skill 'nothing-11'" in found[-2]
    path = write(tmp_path, STEPS.replace("needs: [first]", "needs: [x]") + "  - {id: first}\n  - {id: first}\n")
    assert [fault.partition(": ")[2][:13] for fault in find_faults(path, CATALOG)] == [
        "steps.1.needs",
        "steps.2.id: t",
        "steps.3.id: t",
    ]
