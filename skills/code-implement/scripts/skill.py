"""Write a node's operations from an API's documents: the advisor writes one file, within its scope."""

from __future__ import annotations

from pathlib import Path

from fireswarm.backbone.files import PROJECT, SOURCES, Carried
from fireswarm.backbone.scope import unified_diff
from fireswarm.contracts.backbone import AdviceKind, AdviceRequest, CodeAdvice, Material
from fireswarm.contracts.skill import SkillRequest, SkillResult, SkillState

QUESTION = Path(__file__).parents[1] / "references" / "question.md"


def run(request: SkillRequest) -> SkillResult:
    """``operations.py`` as advised, and the run's diff."""
    carried = Carried.of(request)
    name = str(carried.json("node_schema.json")["name"])
    target = f"nodes/{name}/operations.py"
    if not request.advice:
        return SkillResult(
            state=SkillState.ADVICE_REQUIRED, summary=f"{target} is to be written", asks=_asks(carried, name, target)
        )
    advice = CodeAdvice.model_validate(request.advice[-1].content)
    carried.write_project({draft.path: draft.content for draft in advice.files})
    carried.write("diff.patch", unified_diff({}, carried.tree(PROJECT)), "all that this run adds")
    told = f"{target} written by {request.advice[-1].by or 'the advisor'}"
    notes = (advice.notes,) if advice.notes else ()
    return SkillResult(summary=told, artifacts=carried.artifacts(), insights=notes, confidence=0.6)


def _asks(carried: Carried, name: str, target: str) -> AdviceRequest:
    paths = [*carried.names(SOURCES), "node_schema.json", *carried.names(f"{PROJECT}nodes/")]
    material = tuple(Material(name=path, text=carried.text(path)) for path in paths if carried.text(path))
    question = QUESTION.read_text(encoding="utf-8").replace("{name}", name).replace("{target}", target)
    return AdviceRequest(kind=AdviceKind.CODE, question=question, material=material, scope=(target,))
