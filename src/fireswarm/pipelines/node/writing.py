"""Write a node's operations with the advisor's answer: one question, one file in scope, and the run's diff."""

from __future__ import annotations

from fireswarm.contracts.skills.advice import AdviceKind, AdviceRequest, CodeAdvice, Material
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult, SkillState
from fireswarm.pipelines.files import PROJECT, SOURCES, Carried
from fireswarm.pipelines.scope import unified_diff


def write_operations(request: SkillRequest, question: str) -> SkillResult:
    """Write ``operations.py`` from the advisor's answer. *question* is a template with ``{name}`` and ``{target}``."""
    carried = Carried.of(request)
    name = str(carried.json("node_schema.json")["name"])
    target = f"nodes/{name}/operations.py"
    if not request.advice:
        paths = [*carried.names(SOURCES), "node_schema.json", *carried.names(f"{PROJECT}nodes/")]
        asks = AdviceRequest(
            kind=AdviceKind.CODE,
            question=question.replace("{name}", name).replace("{target}", target),
            material=material_of(carried, paths),
            scope=(target,),
        )
        return SkillResult(state=SkillState.ADVICE_REQUIRED, summary=f"{target} needs to be written", asks=asks)
    advice = CodeAdvice.model_validate(request.advice[-1].content)
    carried.write_project({draft.path: draft.content for draft in advice.files})
    write_diff(carried)
    summary = f"{target} written by {request.advice[-1].by or 'the advisor'}"
    notes = (advice.notes,) if advice.notes else ()
    return SkillResult(summary=summary, artifacts=carried.artifacts(), insights=notes, confidence=0.6)


def material_of(carried: Carried, paths: list[str]) -> tuple[Material, ...]:
    """Return the named files as material for the advisor, without empty ones."""
    return tuple(Material(name=path, text=text) for path in paths if (text := carried.text(path)))


def write_diff(carried: Carried) -> None:
    """Write ``diff.patch``: all additions of the run so far."""
    carried.write("diff.patch", unified_diff({}, carried.tree(PROJECT)), "all additions of this run")
