"""Gates between a step, its advisor and the next step. The output of a step that fails its gate is discarded.

Each step has the gates of this file: its mode, its files, the request, the scope of its changes. A pipeline's file adds
further ones by name: ``@gate`` registers a function, ``@condition`` one for the conditions ``when`` and ``until``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.inputs import faults_of_value
from fireswarm.contracts.skills.advice import ADVICE, AdviceKind, AdviceRequest, ExecutionMode
from fireswarm.contracts.skills.limits import MAX_CHANGED_FILES
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult, SkillState
from fireswarm.errors import GateFailed, InvalidInput
from fireswarm.pipelines.allowed_code import fixed_faults
from fireswarm.pipelines.definition import PipelineStep
from fireswarm.pipelines.files import PROJECT, Carried
from fireswarm.pipelines.generated_code import code_faults
from fireswarm.pipelines.scope import Allowlist, apply_patch, changed_files

SNAPSHOT, ALLOWLIST = "request_snapshot.json", "allowlist.json"


@dataclass(frozen=True, slots=True)
class StepFiles:
    """The files before and after a step. ``after.made`` are those that the step has changed."""

    before: Carried
    after: Carried

    @property
    def changed(self) -> list[str]:
        """The paths in the project that the step added, removed or changed."""
        return changed_files(self.before.tree(PROJECT), self.after.tree(PROJECT))


Gate = Callable[[StepFiles], list[str]]
"""Returns the faults of a step's files."""

GATES: dict[str, Gate] = {}
CONDITIONS: dict[str, Callable[[Carried], bool]] = {}
"""Functions by the names that a pipeline's file uses."""

ADVICE_CHECKS: dict[AdviceKind, Callable[[AdviceRequest, dict[str, Any]], list[str]]] = {}
"""Checks of an answer of each kind, after its schema."""


def gate(name: str) -> Callable[[Gate], Gate]:
    """Register a function as the gate *name*."""

    def register(function: Gate) -> Gate:
        GATES[name] = function
        return function

    return register


def condition(name: str) -> Callable[[Callable[[Carried], bool]], Callable[[Carried], bool]]:
    """Register a function as the condition *name*."""

    def register(function: Callable[[Carried], bool]) -> Callable[[Carried], bool]:
        CONDITIONS[name] = function
        return function

    return register


def check_step(step: PipelineStep, mode: ExecutionMode, request: SkillRequest, result: SkillResult) -> None:
    """Check a step's result against its mode, its required files and its gates. Raises GateFailed with all faults."""
    faults: list[str] = []
    if result.state is SkillState.ADVICE_REQUIRED:
        if mode is ExecutionMode.DETERMINISTIC:
            faults.append("a deterministic step must not ask for advice")
        if result.asks is None:
            faults.append("a step that requires advice must ask for it")
    elif result.state is SkillState.COMPLETED:
        if mode is ExecutionMode.ADVISOR_ONLY and not request.advice:
            faults.append("an advisor_only step must not end without advice")
        faults += _file_faults(step, request, result)
    if faults:
        raise GateFailed(f"{step.skill_name} failed its gate: {'; '.join(faults)}")


def _file_faults(step: PipelineStep, request: SkillRequest, result: SkillResult) -> list[str]:
    before = Carried.of(request)
    after = Carried.of(request.model_copy(update={"artifacts": result.artifacts, "children": ()}))
    after.made = {key: artifact for key, artifact in after.given.items() if artifact != before.given.get(key)}
    faults = [f"{wanted} is missing" for wanted in step.leaves if not _there(after, wanted)]
    if SNAPSHOT in before and SNAPSHOT in after.made:
        faults.append(f"{SNAPSHOT} was overwritten: the request must not change")
    files = StepFiles(before, after)
    faults += _project_faults(step, request, files)
    return faults + [fault for name in step.gates for fault in GATES[name](files)]


def _there(files: Carried, wanted: str) -> bool:
    return bool(files.names(wanted)) if wanted.endswith("/") else wanted in files


def _project_faults(step: PipelineStep, request: SkillRequest, files: StepFiles) -> list[str]:
    """Check changes of the project: in scope, few enough, and valid Python."""
    before, after, changed = files.before, files.after, files.changed
    if not changed:
        return []
    if ALLOWLIST in before and ALLOWLIST in after.made:
        return [f"{ALLOWLIST} was overwritten: a step must not widen its own scope"]
    if ALLOWLIST not in after and not step.scope:
        return [f"the project was changed without {ALLOWLIST}, and the step has no `scope`"]
    most, faults = request.limits.max_changed_files, list[str]()
    if ALLOWLIST in after:
        faults += Allowlist(tuple(after.json(ALLOWLIST)["patterns"])).faults(changed, most)
    if step.scope:
        faults += Allowlist(step.scope).faults(changed, most)
    new = after.tree(PROJECT)
    return faults + [fault for path in changed if path in new for fault in code_faults(path, new[path])]


def check_advice(request: AdviceRequest, content: Any) -> str:
    """Return the faults of an advisor's answer, phrased for the advisor, or ""."""
    try:
        json.dumps(content)
        if request.kind is AdviceKind.DATA:
            return "; ".join(faults_of_value(request.answer_schema, content, "the schema of the advice"))
        advice = ADVICE[request.kind].model_validate(content)
        return "; ".join(ADVICE_CHECKS[request.kind](request, advice.model_dump(mode="json")))
    except ValidationError as error:
        return explain_validation(error)
    except (InvalidInput, TypeError, ValueError) as error:
        return str(error)


def _advised_code(request: AdviceRequest, content: dict[str, Any]) -> list[str]:
    drafts = {file["path"]: file["content"] for file in content["files"]}
    faults = fixed_faults([*drafts]) + Allowlist(request.scope).faults(drafts, len(drafts))
    return faults + [fault for path, text in drafts.items() for fault in code_faults(path, text)]


def _advised_patch(request: AdviceRequest, content: dict[str, Any]) -> list[str]:
    """Try the patch on the version of the project that the advisor had."""
    project = {
        piece.name.removeprefix(PROJECT): piece.text for piece in request.material if piece.name.startswith(PROJECT)
    }
    after = apply_patch(content["patch"], project, Allowlist(request.scope), MAX_CHANGED_FILES)
    changed = changed_files(project, after)
    if not changed:
        return ["the patch changes nothing"]
    return [fault for path in changed if path in after for fault in code_faults(path, after[path])]


ADVICE_CHECKS[AdviceKind.CODE] = _advised_code
ADVICE_CHECKS[AdviceKind.PATCH] = _advised_patch
