"""Fix failing code by a bounded patch: the advisor proposes a diff, and only changes in scope are applied."""

from __future__ import annotations

from pathlib import Path

from fireswarm import (
    MAX_DETAIL_CHARS,
    AdviceKind,
    AdviceRequest,
    Material,
    PatchAdvice,
    SkillRequest,
    SkillResult,
    SkillState,
    pipelines,
    truncate,
)

QUESTION = Path(__file__).parents[1] / "references" / "question.md"
ATTEMPTS = "fix_attempts.json"
MAX_LOG_CHARS = 20_000
MAX_KEPT_CHARS = 12_000
"""Of the log and of the patch of an attempt."""


def run(request: SkillRequest) -> SkillResult:
    """Return the project with the patch applied, and the run's diff."""
    carried = pipelines.Carried.of(request)
    patterns = tuple(item for item in carried.json("allowlist.json")["patterns"] if not item.startswith("tests/"))
    if not request.advice:
        asks = _asks(carried, patterns)
        return SkillResult(state=SkillState.ADVICE_REQUIRED, summary="the tests fail", asks=asks)
    advice = PatchAdvice.model_validate(request.advice[-1].content)
    before = carried.tree(pipelines.PROJECT)
    after = pipelines.apply_patch(advice.patch, before, pipelines.Allowlist(patterns), request.limits.max_changed_files)
    if gone := sorted(set(before) - set(after)):
        told = f"the patch removes {', '.join(gone)}: a patch may change files of a node, but not remove them"
        return SkillResult.failure(told)
    changed = pipelines.changed_files(before, after)
    carried.write_project({path: after[path] for path in changed})
    pipelines.write_diff(carried)
    tries = carried.json(ATTEMPTS) if ATTEMPTS in carried else []
    log = carried.text("validation_logs.txt")[-MAX_KEPT_CHARS:]
    tries.append({"log": log, "answer": advice.explanation, "patch": advice.patch[:MAX_KEPT_CHARS]})
    carried.write_json(ATTEMPTS, tries, "each fix that was tried: the log before it, the answer, the patch")
    told = truncate(f"changed {', '.join(changed) or 'nothing'}: {advice.explanation}", MAX_DETAIL_CHARS)
    return SkillResult(summary=told, artifacts=carried.artifacts(), confidence=0.5)


def _asks(carried: pipelines.Carried, patterns: tuple[str, ...]) -> AdviceRequest:
    log = carried.text("validation_logs.txt")[-MAX_LOG_CHARS:]
    paths = ["node_schema.json", *carried.names(pipelines.PROJECT)]
    material = [Material(name="validation_logs.txt", text=log)]
    question = QUESTION.read_text(encoding="utf-8").replace("{scope}", ", ".join(patterns))
    return AdviceRequest(
        kind=AdviceKind.PATCH,
        question=question,
        material=(*material, *pipelines.material_of(carried, paths, material)),
        scope=patterns,
    )
