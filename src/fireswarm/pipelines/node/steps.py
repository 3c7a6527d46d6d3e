"""Plan the next round of the node pipeline from the files of the earlier steps. Pure.

    node-normalize, source-classify, source-ingest, schema-infer, schema-build, node-scaffold
    code-convert (TYPE1) or code-implement (TYPE2), unless templates have written all operations
    test-generate, code-validate
    while it does not pass: code-fix, code-validate; at most ``fix_loop_max`` times
    pr-prepare; or pipeline-escalate, which needs review

Each round is one plan; the steps of a round run in sequence, each with the files of the previous step.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fireswarm.contracts.limits import MAX_OBJECTIVE_CHARS, truncate
from fireswarm.contracts.skills.artifact import PIPELINE_STEPS
from fireswarm.contracts.skills.skill import ChildResult, PlannedTask, SkillRequest, SkillResult, SkillState
from fireswarm.pipelines.files import Carried
from fireswarm.pipelines.node.schema import NodeSchema

FRONT = PIPELINE_STEPS[:6]
CODE = {"TYPE1": "code-convert", "TYPE2": "code-implement"}
ROLES = {
    "node-normalize": "scout",
    "source-classify": "scout",
    "source-ingest": "scout",
    "code-validate": "predictor",
    "pipeline-escalate": "memory",
}
"""Role of each step; other steps belong to the executor."""

READ_BY = {
    "node-normalize": ("source", "name", "source_type", "repository"),
    "source-classify": ("source", "document"),
    "source-ingest": ("source",),
    "pr-prepare": ("repository",),
}
"""Keys of the objective's context that a step gets: a step that reads files sees those that its context names only."""


class Round(NamedTuple):
    """The steps to plan next, or the end of the run."""

    steps: tuple[str, ...] = ()
    ending: str = ""


def next_round(request: SkillRequest) -> SkillResult:
    """Return the next plan of the run to which *request*'s task belongs, or its end."""
    children = request.children
    files = Carried.of(request)
    if stuck := [child for child in children if child.status != "done"]:
        reason = "; ".join(f"{child.key} is {child.status}: {child.summary}" for child in stuck)
        return SkillResult.failure(f"the run stopped: {reason}", escalated=True)
    fixes = sum(child.key.startswith("code-fix") for child in children)
    chosen = _choose_round(children, files, fixes, request)
    if chosen.ending:
        ended = files.artifacts()
        if chosen.ending == "done":
            return SkillResult(summary=children[-1].summary, artifacts=ended, confidence=1.0)
        return SkillResult(state=SkillState.FAILED, summary=chosen.ending, artifacts=ended, escalated=True)
    total = len(children) + len(chosen.steps)
    if total > request.limits.max_steps:
        reason = f"the run would need {total} steps; {request.limits.max_steps} are allowed"
        return SkillResult.failure(reason, escalated=True)
    tasks = _plan_tasks(chosen.steps, request, fixes)
    summary = f"steps {len(children) + 1} to {total}: {', '.join(chosen.steps)}"
    return SkillResult(state=SkillState.DELEGATING, summary=summary, tasks=tasks, artifacts=files.artifacts())


def _choose_round(children: tuple[ChildResult, ...], files: Carried, fixes: int, request: SkillRequest) -> Round:
    """Choose the next steps from the steps that have run and their results."""
    ran = [child.key.partition(".")[0] for child in children]
    if not ran:
        return Round(FRONT)
    if "pipeline-escalate" in ran:
        return Round(ending=children[-1].summary)
    if "pr-prepare" in ran:
        return Round(ending="done")
    if "code-validate" not in ran:
        steps = () if not load_schema(files).to_write() else (CODE[files.json("classification.json")["source_type"]],)
        return Round((*steps, "test-generate", "code-validate"))
    if files.json("validation.json")["passed"]:
        return Round(("pr-prepare",))
    if fixes < request.limits.fix_loop_max:
        return Round(("code-fix", "code-validate"))
    return Round(("pipeline-escalate",))


def load_schema(files: Carried) -> NodeSchema:
    """Return the schema that schema-build wrote."""
    content = files.json("node_schema.json")
    content.pop("inputs", None)
    return NodeSchema.model_validate(content)


def _plan_tasks(steps: Iterable[str], request: SkillRequest, fixes: int) -> tuple[PlannedTask, ...]:
    """Return the tasks of a round, each depending on the previous one."""
    number = sum(child.key.startswith("code-validate") for child in request.children)
    tasks: list[PlannedTask] = []
    for step in steps:
        context = {"correlation_id": request.task_id}
        if step == "node-normalize":
            context["objective"] = request.objective
        context |= {key: request.context[key] for key in READ_BY.get(step, ()) if key in request.context}
        if "source" in READ_BY.get(step, ()) and request.attachments:
            context.setdefault("source", request.attachments[0].uri)
        if step == "pipeline-escalate":
            context |= {"attempts": str(fixes), "why": f"the tests still fail after {fixes} attempts to fix the code"}
        tasks.append(
            PlannedTask(
                key=f"{step}.{number}" if number else step,
                assigned_to=ROLES.get(step, "executor"),
                skill=step,
                objective=truncate(f"{step}: {request.objective}", MAX_OBJECTIVE_CHARS),
                context=context,
                depends_on=(tasks[-1].key,) if tasks else (),
                handoff_reason=f"step {step} of the pipeline",
            )
        )
    return tuple(tasks)
