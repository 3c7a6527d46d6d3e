"""Write a node's operations with the advisor's answer: one question, one file in scope, and the run's diff."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from fireswarm.contracts.skills.advice import (
    MAX_MATERIAL_CHARS,
    MAX_PIECES,
    AdviceKind,
    AdviceRequest,
    CodeAdvice,
    Material,
)
from fireswarm.contracts.skills.skill import SkillRequest, SkillResult, SkillState
from fireswarm.pipelines.files import PROJECT, SOURCES, Carried
from fireswarm.pipelines.scope import unified_diff

SCHEMA = "node_schema.json"


def write_operations(request: SkillRequest, question: str) -> SkillResult:
    """Write ``operations.py`` from the advisor's answer. *question* is a template with ``{name}`` and ``{target}``."""
    carried = Carried.of(request)
    name = str(carried.json(SCHEMA)["name"])
    target = f"nodes/{name}/operations.py"
    if not request.advice:
        paths = [*carried.names(SOURCES), SCHEMA, *carried.names(f"{PROJECT}nodes/")]
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


def material_of(carried: Carried, paths: list[str], spent: Sequence[Material] = ()) -> tuple[Material, ...]:
    """Return the named files as material for the advisor, as far as they fit beside *spent*, without empty ones.

    Of the schema it has what is still to be written. Files of the source come last, small ones first. A note stands
    where a text is cut.
    """
    texts = {path: _schema_to_write(text) if path == SCHEMA else text for path in paths if (text := carried.text(path))}
    sources = sorted((path for path in texts if path.startswith(SOURCES)), key=lambda path: len(texts[path]))
    chosen: list[Material] = []
    room = MAX_MATERIAL_CHARS - sum(len(piece.text) for piece in spent)
    for path in [*(path for path in texts if path not in sources), *sources]:
        text = texts[path]
        if len(text) > room:
            note = f"\n[the rest is left out: {len(text):,} characters do not fit]\n"
            text = text[: max(room - len(note), 0)] + note
        if len(text) > room or len(chosen) + len(spent) >= MAX_PIECES:
            continue
        chosen.append(Material(name=path, text=text))
        room -= len(text)
    return tuple(chosen)


def _schema_to_write(text: str) -> str:
    """Return the schema without the operations that a template has written."""
    content: dict[str, Any] = json.loads(text)
    operations = [each for each in content["operations"] if not each.get("template")]
    if len(operations) == len(content["operations"]):
        return text
    keys = {each["key"] for each in operations}
    mine = [each for each in content["parameters"] if not each["operations"] or keys.intersection(each["operations"])]
    inputs = {key: each for key, each in content.get("inputs", {}).items() if key in keys}
    kept = {**content, "operations": operations, "parameters": mine, "inputs": inputs}
    return json.dumps(kept, indent=2, ensure_ascii=False) + "\n"


def write_diff(carried: Carried) -> None:
    """Write ``diff.patch``: all additions of the run so far."""
    carried.write("diff.patch", unified_diff({}, carried.tree(PROJECT)), "all additions of this run")
