"""Gates between a step, its advisor and the next step. The output of a step that fails its gate is discarded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.skills.advice import ADVICE, AdviceKind, AdviceRequest, ExecutionMode, TraceMap
from fireswarm.contracts.skills.limits import MAX_CHANGED_FILES
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult, SkillState
from fireswarm.errors import GateFailed, InvalidInput
from fireswarm.pipelines.allowed_code import fixed_faults
from fireswarm.pipelines.documents.counting import measure, measure_markdown
from fireswarm.pipelines.files import PROJECT, SOURCES, Carried
from fireswarm.pipelines.generated_code import code_faults
from fireswarm.pipelines.node.schema import NodeSchema
from fireswarm.pipelines.scope import Allowlist, apply_patch, changed_files
from fireswarm.pipelines.trace import trace_faults, unquoted_values

SNAPSHOT, INFERRED, TRACE, ALLOWLIST = (
    "request_snapshot.json",
    "inferred_schema.json",
    "trace_map.json",
    "allowlist.json",
)
CLASSIFICATION = "classification.json"
LOSSES = {"openapi": measure, "markdown": measure_markdown}
"""What counts the document of each reader, apart from the reader."""

MAX_NAMED = 10
"""So many lost parts are named in a fault."""

DIFF, LOGS, ESCALATION = "diff.patch", "validation_logs.txt", "escalation_report.md"

LEAVES: dict[str, tuple[str, ...]] = {
    "node-normalize": (SNAPSHOT,),
    "source-classify": (SNAPSHOT, "classification.json"),
    "source-ingest": (SNAPSHOT, SOURCES),
    "schema-infer": (SNAPSHOT, SOURCES, INFERRED, TRACE),
    "schema-build": (SNAPSHOT, SOURCES, INFERRED, TRACE, "node_schema.json"),
    "node-scaffold": (SNAPSHOT, SOURCES, TRACE, ALLOWLIST, PROJECT),
    "code-convert": (SNAPSHOT, ALLOWLIST, DIFF, PROJECT),
    "code-implement": (SNAPSHOT, ALLOWLIST, DIFF, PROJECT),
    "test-generate": (SNAPSHOT, ALLOWLIST, DIFF, PROJECT),
    "code-validate": (SNAPSHOT, LOGS, "validation.json"),
    "code-fix": (SNAPSHOT, ALLOWLIST, DIFF, PROJECT),
    "pipeline-escalate": (SNAPSHOT, ESCALATION),
    "pr-prepare": (SNAPSHOT, SOURCES, INFERRED, TRACE, ALLOWLIST, DIFF, LOGS, "pull_request.json"),
}
"""Files (or folders, with a slash) that each step must pass on: its own, and those of the earlier steps."""


def check_step(name: str, mode: ExecutionMode, request: SkillRequest, result: SkillResult) -> None:
    """Check a step's result against its mode and its required files. Raises GateFailed with all faults."""
    faults: list[str] = []
    if result.state is SkillState.ADVICE_REQUIRED:
        if mode is ExecutionMode.DETERMINISTIC:
            faults.append("a deterministic step must not ask for advice")
        if result.asks is None:
            faults.append("a step that requires advice must ask for it")
    elif result.state is SkillState.COMPLETED:
        if mode is ExecutionMode.ADVISOR_ONLY and not request.advice:
            faults.append("an advisor_only step must not end without advice")
        faults += _file_faults(name, request, result)
    if faults:
        raise GateFailed(f"{name} failed its gate: {'; '.join(faults)}")


def _file_faults(name: str, request: SkillRequest, result: SkillResult) -> list[str]:
    before = Carried.of(request)
    after = Carried.of(request.model_copy(update={"artifacts": result.artifacts, "children": ()}))
    after.made = {key: artifact for key, artifact in after.given.items() if artifact != before.given.get(key)}
    faults = [f"{wanted} is missing" for wanted in LEAVES.get(name, ()) if not _there(after, wanted)]
    if SNAPSHOT in before and SNAPSHOT in after.made:
        faults.append(f"{SNAPSHOT} was overwritten: the request must not change")
    if TRACE in after.made or INFERRED in after.made:
        faults += _schema_faults(after)
    return faults + _project_faults(name, request, before, after)


def _there(files: Carried, wanted: str) -> bool:
    return bool(files.names(wanted)) if wanted.endswith("/") else wanted in files


def _schema_faults(files: Carried) -> list[str]:
    if TRACE not in files or INFERRED not in files:
        return [f"{INFERRED} and {TRACE} must be written together; one is missing"]
    try:
        schema, trace = NodeSchema.model_validate(files.json(INFERRED)), TraceMap.model_validate(files.json(TRACE))
    except ValidationError as error:
        return [explain_validation(error)]
    sources = files.tree(SOURCES)
    return trace_faults(trace, schema.fields(), sources) + _loss_faults(schema, files, sources)


def _loss_faults(schema: NodeSchema, files: Carried, sources: Mapping[str, str]) -> list[str]:
    """Compare a schema with a count of its document: what is lost, and a count that the schema tells differently."""
    classified = files.json(CLASSIFICATION) if CLASSIFICATION in files else {}
    if classified.get("reader") not in LOSSES:
        return []
    measured = LOSSES[classified["reader"]](schema, sources, classified["main"])
    lost = ", ".join(measured.lost[:MAX_NAMED])
    more = f" and {len(measured.lost) - MAX_NAMED:,} more" if len(measured.lost) > MAX_NAMED else ""
    faults = [f"the schema neither has nor lists {lost}{more}"] if lost else []
    if schema.parts and schema.parts != measured.parts:
        faults.append("the schema counts other parts than the document has")
    return faults


def _project_faults(name: str, request: SkillRequest, before: Carried, after: Carried) -> list[str]:
    """Check changes of the project: in scope, few enough, and valid Python."""
    old, new = before.tree(PROJECT), after.tree(PROJECT)
    changed = changed_files(old, new)
    if not changed:
        return []
    if ALLOWLIST not in after:
        return [f"the project was changed without {ALLOWLIST}"]
    if ALLOWLIST in before and ALLOWLIST in after.made:
        return [f"{ALLOWLIST} was overwritten: a step must not widen its own scope"]
    scope = Allowlist(tuple(after.json(ALLOWLIST)["patterns"]))
    faults = scope.faults(changed, request.limits.max_changed_files)
    if name != "node-scaffold":
        faults += fixed_faults(changed)
    if name == "code-fix" and any(path.startswith("tests/") for path in changed):
        faults.append("tests were changed: a fix must change the code, not the tests")
    return faults + [fault for path in changed if path in new for fault in code_faults(path, new[path])]


def check_advice(request: AdviceRequest, content: Any) -> str:
    """Return the faults of an advisor's answer, phrased for the advisor, or ""."""
    try:
        json.dumps(content)
        advice = ADVICE[request.kind].model_validate(content)
        match request.kind:
            case AdviceKind.SCHEMA:
                return _advised_schema(request, advice.model_dump(mode="json"))
            case AdviceKind.CODE:
                drafts = {file["path"]: file["content"] for file in advice.model_dump()["files"]}
                faults = fixed_faults([*drafts]) + Allowlist(request.scope).faults(drafts, len(drafts))
                faults += [fault for path, text in drafts.items() for fault in code_faults(path, text)]
            case AdviceKind.PATCH:
                faults = _advised_patch(request, advice.model_dump()["patch"])
    except ValidationError as error:
        return explain_validation(error)
    except (InvalidInput, TypeError, ValueError) as error:
        return str(error)
    return "; ".join(faults)


def _advised_patch(request: AdviceRequest, patch: str) -> list[str]:
    """Try the patch on the version of the project that the advisor had."""
    project = {
        piece.name.removeprefix(PROJECT): piece.text for piece in request.material if piece.name.startswith(PROJECT)
    }
    after = apply_patch(patch, project, Allowlist(request.scope), MAX_CHANGED_FILES)
    changed = changed_files(project, after)
    if not changed:
        return ["the patch changes nothing"]
    return [fault for path in changed if path in after for fault in code_faults(path, after[path])]


def _advised_schema(request: AdviceRequest, content: Mapping[str, Any]) -> str:
    schema = NodeSchema.model_validate(content["inferred"])
    sources = {
        piece.name.removeprefix(SOURCES): piece.text for piece in request.material if piece.name.startswith(SOURCES)
    }
    trace = TraceMap.model_validate(content["trace"])
    faults = trace_faults(trace, schema.fields(), sources) + unquoted_values(trace, schema.values())
    lost = measure_markdown(schema, sources, "").lost[:MAX_NAMED]
    faults += [f"the source has {name}: add the operation, or list it in unread with the reason" for name in lost]
    return "; ".join(faults)
