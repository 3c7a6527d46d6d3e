"""What earlier runs learned, and what changed since."""

from __future__ import annotations

import math
from typing import Any

from fireswarm.contracts.skill import SkillRequest

from .markdown import brief, code, inline, number, table
from .sources import Source, of_type

_SHOWN = 25


def remembered_section(request: SkillRequest, sources: list[Source]) -> tuple[str, list[str]]:
    """The section, and one sentence a changed figure for the summary."""
    recalled = of_type(sources, "recalled_facts")
    facts = _recalled(request, recalled)
    cite = recalled.cite if recalled is not None else "(facts handed in with this task)"
    title = "## What earlier runs learned"
    if not facts:
        summary = recalled.artifact.summary if recalled is not None else "No fact was recalled."
        return f"{title}\n\n{inline(summary)} {cite}", []
    now = _current(sources)
    rows: list[list[str]] = []
    changed: list[str] = []
    for fact in facts[:_SHOWN]:
        known = now.get((fact["bucket"], fact["key"]))
        row, sentence = _compared(fact, known)
        rows.append(row)
        if sentence:
            changed.append(f"{sentence} {cite}{known[1].cite if known else ''}")
    summary = recalled.artifact.summary if recalled is not None else f"{len(facts)} facts were handed in."
    counts = f"{len(changed)} of the {len(rows)} facts shown have another value now."
    header = ["What", "Then", "Now", "Change", "Learned by"]
    return f"{title}\n\n{inline(summary)} {cite} {counts}\n\n{table(header, rows, 'lllll')}", changed


def change_of(before: Any, now: Any) -> str:
    """How a value moved: a signed difference with its share for numbers, otherwise a word."""
    if isinstance(before, bool) or isinstance(now, bool):
        return "same" if before is now else "changed"
    if isinstance(before, int | float) and isinstance(now, int | float):
        if math.isclose(before, now, rel_tol=1e-9, abs_tol=1e-12):
            return "same"
        difference = now - before
        sign = "+" if difference > 0 else "-"
        share = f" ({difference / abs(before):+.0%})" if before else ""
        return f"{sign}{number(abs(difference))}{share}"
    if isinstance(before, list | tuple) and isinstance(now, list | tuple):
        added = [str(entry) for entry in now if entry not in before]
        removed = [str(entry) for entry in before if entry not in now]
        if not added and not removed:
            return "same" if list(before) == list(now) else "reordered"
        parts = {"new": added, "gone": removed}
        return "; ".join(f"{name}: {', '.join(entries)}" for name, entries in parts.items() if entries)
    return "same" if before == now else "changed"


def _compared(fact: dict[str, Any], known: tuple[Any, Source] | None) -> tuple[list[str], str]:
    name = inline(str(fact["key"]).replace("_", " "))
    learned = str(fact.get("learned_at") or "")[:10]
    by = " ".join(part for part in (code(fact.get("source") or ""), inline(learned)) if part)
    if known is None:
        return [name, brief(fact["value"]), "-", "not measured now", by or "-"], ""
    value, source = known
    change = change_of(fact["value"], value)
    row = [name, brief(fact["value"]), f"{brief(value)} {source.cite}", inline(change), by or "-"]
    if change == "same":
        return row, ""
    return row, f"{name.capitalize()}: {brief(fact['value'], 50)} → {brief(value, 50)}."


def _recalled(request: SkillRequest, recalled: Source | None) -> list[dict[str, Any]]:
    if recalled is not None:
        return [fact for fact in recalled.content.get("facts", []) if isinstance(fact, dict)]
    return [
        {
            "bucket": fact.bucket,
            "key": fact.key,
            "value": fact.value,
            "source": fact.source,
            "learned_at": fact.learned_at.isoformat() if fact.learned_at else "",
        }
        for fact in request.facts
    ]


def _current(sources: list[Source]) -> dict[tuple[str, str], tuple[Any, Source]]:
    """What the artifacts at hand state as facts, by bucket and key."""
    found: dict[tuple[str, str], tuple[Any, Source]] = {}
    for source in sources:
        if source.artifact.type != "recalled_facts":
            for fact in source.content.get("facts", []):
                if isinstance(fact, dict) and {"bucket", "key", "value"} <= set(fact):
                    found[fact["bucket"], fact["key"]] = (fact["value"], source)
    return found
